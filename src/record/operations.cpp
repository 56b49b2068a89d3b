// operations.cpp: ranges with inputs and outputs, sequence numbers, node and thread ids.
#include <marey/operation.h>

#include <marey/call_stack.h>
#include <marey/detail/operator_path.h>
#include <marey/detail/values.h>
#include <marey/error.h>
#include <marey/observe.h>

#include "record/clocks/clock.h"
#include "record/observer_snapshot.h"
#include "record/recorder.h"
#include "record/thread_log.h"
#include "record/value_encoding.h"

namespace marey {

using detail::load_relaxed;
using detail::ThreadState;

namespace {

constinit thread_local std::int64_t next_sequence __attribute__((tls_model("initial-exec"))) = 0;

ObserverFrame* frame_of(void* frame) noexcept {
    return static_cast<ObserverFrame*>(frame);
}

// Puts facts, inputs and keywords onto the side stack. 0: there are none, or there is no space.
std::uint32_t push_operation(std::uint64_t armed, const detail::RangeProperties& facts,
                             const CallStack* stack, Span<const Value> inputs,
                             Span<const KeyedValue> keywords) noexcept {
    const ValueNeeds needs{(armed & detail::kArmedShapes) != 0, (armed & detail::kArmedConcrete) != 0};
    const bool has_facts = facts.sequence >= 0 || facts.forward_thread != 0 || facts.id != 0;
    if ((armed & detail::kArmedValues) == 0) {
        keywords = {};
        stack = nullptr;
    }
    if (!needs.shapes) inputs = {};
    if (!has_facts && stack == nullptr && inputs.empty() && keywords.empty()) return 0;
    const ValueKeys keyed(keywords);
    const detail::SideBuffer room = detail::open_side();
    if (room.place == nullptr) return 0;
    detail::ValueWriter first(room);
    if (stack != nullptr) first.add(0, *stack);
    ValueEncoder encoder(first.end(), room.limit);
    if (has_facts) encoder.add_facts(facts);
    for (const Value& input : inputs) encoder.add(0, detail::kValueInput, input, needs);
    keyed.add_to(encoder);
    if (keywords.size() > detail::kMaxValues) encoder.mark_cut();
    detail::prefetch_log(detail::current_thread, static_cast<std::size_t>(encoder.end() - room.place));
    return detail::close_side(room, encoder.end());
}

detail::Opened open_with_side(std::uint32_t site, Scope scope, std::uint32_t side) noexcept {
    ThreadState* const thread = detail::current_thread;
    // A capture may have begun since the site was looked up.
    if (!detail::may_open(thread, site) || !Recorder::get().names().is_shown(site))
        return open_recorded(site, scope, side);
    return side != 0 ? detail::open_valued(thread, site, side) : detail::open_slot(thread, site);
}

// Adds to the side-stack values of the innermost open range, which began at `start`.
void push_more(std::uint64_t start, const auto& add) noexcept {
    const SlowPath path(kNoRecord);
    ThreadState* const state = detail::current_thread;
    if (!path || state->owner == nullptr || state->depth == 0) return;
    detail::OpenSlot* const slot = Recorder::get().threads().slot(*state, state->depth - 1);
    if (slot == nullptr || load_relaxed(slot->start) != start) return;
    const SideExtension room = extend_side(*state, *slot);
    if (room.place == nullptr) return;
    ValueEncoder encoder(room.place, room.limit);
    add(encoder);
    close_extension(*state, *slot, encoder.end());
}

void push_outputs(std::uint64_t start, Span<const Value> outputs) noexcept {
    const std::uint64_t armed = load_relaxed(detail::current_thread->armed);
    if ((armed & detail::kArmedShapes) == 0) return;
    const ValueNeeds needs{true, (armed & detail::kArmedConcrete) != 0};
    push_more(start, [&](ValueEncoder& encoder) {
        for (const Value& output : outputs) encoder.add(0, detail::kValueOutput, output, needs);
    });
}

}  // namespace

void detail::close_with_facts_slow(Opened opened, std::uint32_t thread,
                                   const RangeProperties& facts) noexcept {
    const ScopedEnable enabled;
    if (!may_read_clock()) return;
    const std::uint64_t now = Clock::now();
    if (thread != thread_number()) return close_elsewhere(opened, thread);
    push_more(opened.start, [&](ValueEncoder& encoder) { encoder.add_facts(facts); });
    close_recorded(opened.index, opened.start, now);
}

detail::Opened detail::open_with_inputs(std::uint32_t site, Scope scope, const RangeProperties& facts,
                                        Span<const Value> inputs) noexcept {
    const std::uint64_t armed = load_relaxed(current_thread->armed);
    return open_with_side(site, scope, push_operation(armed, facts, nullptr, inputs, {}));
}

std::int64_t peek_sequence() noexcept {
    return next_sequence;
}

std::int64_t take_sequence() noexcept {
    return next_sequence++;
}

void Operation::prepare() noexcept {
    check_thread();
    std::uint64_t armed = load_relaxed(detail::current_thread->armed);
    if ((armed & detail::kArmedAttention) != 0) {
        const SlowPath path;
        if (!path) return;
        const ThreadState* const state = ready_thread();
        if (state == nullptr) return;
        armed = load_relaxed(state->armed);
    }
    if ((armed & detail::kArmedObservers) != 0) frame_ = begin_frame(0, scope_);
    const bool records = (armed & detail::kArmedRecorder) != 0;
    const ObserverFrame* const frame = frame_of(frame_);
    is_active_ = frame != nullptr || records;
    const bool observed_inputs = frame != nullptr && frame->needs.inputs;
    needs_inputs_ = observed_inputs || (records && (armed & detail::kArmedShapes) != 0);
    needs_keywords_ = observed_inputs || (records && (armed & detail::kArmedValues) != 0);
    needs_outputs_ =
        (frame != nullptr && frame->needs.outputs) || (records && (armed & detail::kArmedShapes) != 0);
}

void Operation::start(std::string_view name, const OperationProperties& facts, Span<const Value> inputs,
                      Span<const KeyedValue> keywords) noexcept {
    start(detail::dynamic_site(name, scope_), facts, inputs, keywords);
}

void Operation::start(detail::Site& site, const OperationProperties& facts, Span<const Value> inputs,
                      Span<const KeyedValue> keywords) noexcept {
    // A site that stands for another scope would be filtered by that scope.
    const std::uint32_t id =
        site.scope == scope_ ? detail::site_id(site) : detail::dynamic_site(site.name, scope_);
    start(id, facts, inputs, keywords);
}

void Operation::start(std::uint32_t site, const OperationProperties& facts, Span<const Value> inputs,
                      Span<const KeyedValue> keywords) noexcept {
    if (has_begun_) return;
    has_begun_ = true;
    thread_ = detail::thread_number();
    std::uint64_t id = 0;
    if (ObserverFrame* const frame = frame_of(frame_)) {
        frame->set_range(site, scope_, frame->range.start_thread());
        frame->set_facts(facts.sequence, facts.forward_thread);
        if (frame->needs.inputs) frame->set_inputs(inputs, keywords);
        id = frame->range.id();
        run_starts(*frame);
    }
    const std::uint64_t armed = load_relaxed(detail::current_thread->armed);
    if ((armed & detail::kArmedRecorder) == 0) return;
    opened_ = open_with_side(
        site, scope_,
        push_operation(armed, {facts.sequence, facts.forward_thread, id}, facts.stack, inputs, keywords));
}

void Operation::finish() noexcept {
    const ScopedEnable enabled;
    is_active_ = false;
    ObserverFrame* const frame = frame_of(frame_);
    if (!has_begun_) {
        if (frame != nullptr) drop_frame(frame);
        return;
    }
    if (thread_ != detail::thread_number()) {
        if (opened_.index != detail::kNotOpen) detail::close_elsewhere(opened_, thread_);
        if (frame != nullptr) frame->set_async();
    } else if (opened_.index != detail::kNotOpen && may_read_clock()) {
        const std::uint64_t now = outputs_.empty() ? 0 : Clock::now();
        if (!outputs_.empty()) push_outputs(opened_.start, outputs_);
        ThreadState* const thread = detail::current_thread;
        if (now == 0 && opened_.index < detail::kInlineDepth) {
            detail::close_range(opened_);
        } else if (now == 0 && detail::is_usual(thread)) {
            detail::set_busy(thread);
            detail::close_unusual(opened_.index, opened_.start, 0);
        } else {
            close_recorded(opened_.index, opened_.start, now != 0 ? now : Clock::now());
        }
    }
    if (frame != nullptr) {
        if (frame->needs.outputs) frame->set_outputs(outputs_);
        end_frame(frame);
    }
}

void set_node_id(std::int32_t node) {
    if (node < 0) throw Error("a node id must not be negative: " + std::to_string(node));
    Recorder::get().set_node(node);
}

std::int32_t node_id() noexcept {
    return Recorder::get().node();
}

std::uint32_t current_thread_id() noexcept {
    const ScopedEnable enabled;
    ThreadState* state = detail::current_thread;
    if (state->owner == nullptr) {
        const SlowPath path(kNoRecord);
        if (!path) return 0;
        state = ready_thread();
        if (state == nullptr) return 0;
    }
    return static_cast<ThreadEntry*>(state->owner)->id;
}

}  // namespace marey
