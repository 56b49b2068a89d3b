// observer.cpp: writes PyTorch's operators, autograd nodes and user ranges into Marey's logs. Compiled
// against the installed PyTorch; independent of Python.
#include "observer_table.h"

#include <ATen/record_function.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <marey/detail/thread_safety.h>
#include <marey/device.h>
#include <marey/operation.h>

#include "collective_values.h"
#include "current_stream.h"
#include "element_values.h"
#include "input_values.h"
#include "input_writer.h"
#include "observed_range.h"
#include "operator_sites.h"
#include "profiler_state.h"
#include "tensor_objects.h"

// Declared in a header that takes long to compile. Null in versions that do not have it.
namespace torch::profiler::impl {
[[gnu::weak, gnu::visibility("default")]] bool get_fwd_bwd_enabled();
[[gnu::weak, gnu::visibility("default")]] bool get_cuda_sync_enabled();
}  // namespace torch::profiler::impl

namespace marey::torch {

namespace {

// ---- the schema of a range, for which PyTorch has no cheap accessor

using FunctionMember = std::variant<std::string, at::RecordFunction::schema_ref_t> at::RecordFunction::*;
FunctionMember function_member() noexcept;
template <FunctionMember member>
struct Access {
    friend FunctionMember function_member() noexcept { return member; }
};
template struct Access<&at::RecordFunction::fn_>;  // an explicit instantiation may access private members

const c10::FunctionSchema* schema_of(const at::RecordFunction& range) noexcept {
    const auto* const schema = std::get_if<at::RecordFunction::schema_ref_t>(&(range.*function_member()));
    return schema != nullptr ? &schema->get() : nullptr;
}

// ---- PyTorch's thread numbers and Marey's

constexpr std::size_t kMaxThreads = 1 << 16;
std::atomic<std::uint32_t> thread_ids[kMaxThreads];

std::uint32_t recorder_thread_id(std::uint64_t torch_id) noexcept {
    return torch_id < kMaxThreads ? thread_ids[torch_id].load(std::memory_order_relaxed) : 0;
}

// The thread of the forward half of a backward node; 0: not a backward node, or nothing was recorded on that
// thread.
std::uint32_t forward_thread(const at::RecordFunction& range) noexcept {
    return range.forwardThreadId() != 0 && range.seqNr() >= 0 ? recorder_thread_id(range.forwardThreadId())
                                                              : 0;
}

// Registers this thread, since a backward node may refer to it later. A range's own number is not used: a
// collective begins on a thread of its process group, in a range that was made by the thread that called it.
void register_torch_thread() noexcept {
    static constinit thread_local bool is_known = false;
    if (is_known) [[likely]]
        return;
    is_known = true;
    const std::uint64_t torch_id = at::RecordFunction::currentThreadId();
    if (torch_id < kMaxThreads) thread_ids[torch_id].store(current_thread_id(), std::memory_order_relaxed);
}

// ---- ranges

std::atomic<std::uint32_t> current_needs{0};

std::uint32_t site_of(const at::RecordFunction& range, Scope scope, std::uint32_t needs) noexcept {
    if (const c10::FunctionSchema* const schema = schema_of(range))
        return operator_sites.find(*schema, scope, (needs & kNeedsOverloads) != 0).site;
    return detail::dynamic_site(range.name(), scope);
}

/// The arguments of a boxed call are the last ones on the stack.
c10::ArrayRef<const c10::IValue> last_of(c10::ArrayRef<const c10::IValue> all, std::size_t count) noexcept {
    return count < all.size() ? all.slice(all.size() - count) : all;
}
c10::ArrayRef<const c10::IValue> arguments_of(const at::RecordFunction& range) noexcept {
    return last_of(range.inputs(), range.num_inputs());
}

void add_inputs(InputValues& inputs, const at::RecordFunction& range, std::uint32_t needs) {
    if ((needs & kNeedsOutputs) != 0) inputs.name_storages();
    if ((needs & kNeedsIdentities) == kNeedsIdentities) {
        const c10::FunctionSchema* const schema = schema_of(range);
        inputs.add_identified(arguments_of(range),
                              schema != nullptr ? std::optional(written_by(*schema)) : std::nullopt);
    } else {
        inputs.add(arguments_of(range));
    }
}

[[gnu::noinline]] void begin_with_inputs(Operation& operation, std::uint32_t site,
                                         const OperationProperties& facts, const at::RecordFunction& range,
                                         std::uint32_t needs) {
    InputValues inputs;
    add_inputs(inputs, range, needs);
    std::optional<ElementValues> elements;
    if ((needs & kNeedsOutputs) != 0 && ElementRequest::get().is_any()) [[unlikely]]
        elements.emplace(range.name(), arguments_of(range));
    operation.begin(site, facts, inputs.values());
}

/// Begins a range that is not an operator: it may have keyword values too.
[[gnu::noinline]] void begin_named(Operation& operation, std::uint32_t site, const OperationProperties& facts,
                                   const at::RecordFunction& range, std::uint32_t needs) {
    InputValues inputs;
    std::vector<KeyedValue> keywords;
    std::unordered_map<std::string, c10::IValue> given;
    std::optional<CollectiveValues> collective;
    if (operation.needs_inputs()) {
        add_inputs(inputs, range, needs);
        given = range.kwinputs();
        for (const auto& [key, value] : given) keywords.push_back({key, inputs.add_keyed(value)});
    }
    if (range.isNcclMeta() && operation.needs_keywords()) {
        collective.emplace();
        keywords.insert(keywords.end(), collective->values().begin(), collective->values().end());
    }
    operation.begin(site, facts, inputs.values(), keywords);
}

/// Null: the work does not belong to a followed thread.
[[gnu::noinline]] std::unique_ptr<FollowedContext> follow_context() {
    const CarriedState* const state = current_state();
    if (state == nullptr || state->is_retired() || state->context().is_empty()) return nullptr;
    return std::make_unique<FollowedContext>(state->context());
}

[[gnu::noinline]] std::unique_ptr<at::ObserverContext> start_fully(const at::RecordFunction& range,
                                                                   Scope scope) {
    std::unique_ptr<FollowedContext> followed;
    if (!detail::should_record(scope)) {
        if (CarriedState::carriers.load(std::memory_order_relaxed) == 0) return nullptr;
        followed = follow_context();
        if (followed == nullptr || !detail::should_record(scope)) return nullptr;
    }
    const std::uint32_t needs = current_needs.load(std::memory_order_relaxed);
    const std::uint32_t site = site_of(range, scope, needs);
    if (site == kNoSite) return nullptr;
    if ((needs & kNeedsMemory) != 0) watch_allocations();
    auto kept = std::make_unique<FullRange>(scope, std::move(followed));
    register_torch_thread();
    Operation& operation = kept->operation();
    const OperationProperties facts{range.seqNr(), forward_thread(range), nullptr};
    if (schema_of(range) == nullptr && (operation.needs_inputs() || range.isNcclMeta())) {
        begin_named(operation, site, facts, range, needs);
    } else if (operation.needs_inputs() && !range.inputs().empty()) {
        begin_with_inputs(operation, site, facts, range, needs);
    } else {
        operation.begin(site, facts);
    }
    return kept;
}

[[gnu::noinline]] detail::Opened open_slow(std::uint32_t site, const detail::RangeProperties& facts,
                                           const at::RecordFunction& range, std::uint32_t needs) {
    InputValues inputs;
    add_inputs(inputs, range, needs);
    return detail::open_with_inputs(site, static_cast<Scope>(range.scope()), facts, inputs.values());
}

/// Begins an operator with inputs, while only sessions need them.
[[gnu::noinline]] std::unique_ptr<at::ObserverContext> start_with_inputs(const at::RecordFunction& range,
                                                                         const c10::FunctionSchema& schema,
                                                                         std::uint32_t needs) {
    const auto scope = static_cast<Scope>(range.scope());
    const OperatorSite found = operator_sites.find(schema, scope, (needs & kNeedsOverloads) != 0);
    if (found.site == kNoSite || found.site == 0) return nullptr;
    if ((needs & kNeedsMemory) != 0) watch_allocations();
    register_torch_thread();
    const detail::RangeProperties facts{range.seqNr(), forward_thread(range), 0};
    const bool is_identified = (needs & kNeedsIdentities) == kNeedsIdentities;
    detail::Opened opened =
        InputWriter::open(found, facts, last_of(range.inputs(), schema.arguments().size()), is_identified);
    if (opened.index == detail::kNotOpen) opened = open_slow(found.site, facts, range, needs);
    if (opened.index == detail::kNotOpen) return nullptr;
    return std::make_unique<InputRange>(opened, detail::thread_number());
}

std::unique_ptr<at::ObserverContext> start_range(const at::RecordFunction& range) {
    const auto scope = static_cast<Scope>(range.scope());
    detail::ThreadState* const thread = detail::current_thread;
    const std::uint32_t needs = current_needs.load(std::memory_order_relaxed);
    if (!detail::may_open_operator(thread, scope) || range.isNcclMeta()) [[unlikely]] {
        const c10::FunctionSchema* const schema = schema_of(range);
        const bool is_fast_path = (needs & kNeedsOutputs) == 0 &&
                                  detail::may_open_with_inputs(thread, scope) && schema != nullptr &&
                                  !range.isNcclMeta();
        return is_fast_path ? start_with_inputs(range, *schema, needs) : start_fully(range, scope);
    }
    const std::uint32_t site = site_of(range, scope, needs);
    if (site == kNoSite) return nullptr;
    if (!detail::may_open(thread, site)) [[unlikely]]
        return start_fully(range, scope);
    if ((needs & kNeedsMemory) != 0) watch_allocations();
    register_torch_thread();
    const std::uint32_t forward = forward_thread(range);
    return std::make_unique<PlainRange>(detail::open_slot(thread, site), range.seqNr(), forward);
}

[[gnu::noinline]] void end_with_outputs(Operation& operation, const at::RecordFunction& range) {
    InputValues outputs;
    outputs.name_storages();
    outputs.add(c10::ArrayRef<const c10::IValue>(range.outputs().data(), range.outputs().size()));
    operation.set_outputs(outputs.values());
    operation.end();
}

void end_range(const at::RecordFunction& range, at::ObserverContext* context) {
    auto* const kept = static_cast<RangeContext*>(context);
    if (kept == nullptr) return;
    if (kept->kind() == RangeContext::Kind::Plain) [[likely]]
        return static_cast<PlainRange*>(kept)->end();
    if (kept->kind() == RangeContext::Kind::Input) return static_cast<InputRange*>(kept)->end();
    Operation& operation = static_cast<FullRange*>(kept)->operation();
    if (operation.needs_outputs() && !range.outputs().empty()) return end_with_outputs(operation, range);
    operation.end();
}

// ---- the table

Mutex registration;
at::CallbackHandle handle MAREY_GUARDED_BY(registration) = at::INVALID_CALLBACK_HANDLE;
bool is_over MAREY_GUARDED_BY(registration) = false;

void unregister_callback() MAREY_REQUIRES(registration) {
    if (handle != at::INVALID_CALLBACK_HANDLE)
        at::removeCallback(std::exchange(handle, at::INVALID_CALLBACK_HANDLE));
}

/// Created after PyTorch's list of callbacks, and so destroyed before it when the program ends.
struct CallbackRemover {
    ~CallbackRemover() {
        const ScopedLock lock(registration);
        unregister_callback();
        is_over = true;
    }
};

bool set_needs(std::uint32_t needs) noexcept {
    try {
        const ScopedLock lock(registration);
        const std::uint32_t before = current_needs.exchange(needs);
        if ((before & ~needs & kNeedsMemory) != 0) {
            SharedState::retire();
            leave_states();  // on this thread; on others it stays set, without effect
        }
        if ((before & kNeedsIdentities) == kNeedsIdentities && (needs & kNeedsIdentities) != kNeedsIdentities)
            TensorObjects::clear();
        constexpr std::uint32_t kRegistered = kNeedsRanges | kNeedsInputs | kNeedsOutputs;
        if (((before ^ needs) & kRegistered) == 0 || is_over) return true;
        unregister_callback();
        if ((needs & kNeedsRanges) == 0) return true;
        SchemaWatch::start();
        handle = at::addGlobalCallback(at::RecordFunctionCallback(start_range, end_range)
                                           .needsInputs((needs & kNeedsInputs) != 0)
                                           .needsOutputs((needs & kNeedsOutputs) != 0));
        static const CallbackRemover callback_remover;
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

Mutex states_mutex;
auto& states MAREY_GUARDED_BY(states_mutex) = *new std::map<std::uint64_t, std::shared_ptr<CarriedState>>;
std::uint64_t last_token MAREY_GUARDED_BY(states_mutex) = 0;

std::uint64_t enter(bool shapes) noexcept {
    try {
        register_torch_thread();
        auto state = enter_state(shapes);
        if (state == nullptr) return 0;
        const ScopedLock lock(states_mutex);
        states.emplace(++last_token, std::move(state));
        return last_token;
    } catch (const std::exception&) {
        return 0;
    }
}

void leave(std::uint64_t token) noexcept {
    {
        const ScopedLock lock(states_mutex);
        const auto found = states.find(token);
        if (found == states.end()) return;
        found->second->retire();
        states.erase(found);
    }
    leave_states();
}

void forked() noexcept {
    current_needs.store(0);
    TensorObjects::forked();
}

bool describe_tensor(std::uintptr_t impl, void (*take)(const ArrayView&, void*), void* context) noexcept {
    const std::uint32_t needs = current_needs.load(std::memory_order_relaxed);
    try {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): Python passes addresses as integers
        const auto tensor = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(
            reinterpret_cast<c10::TensorImpl*>(impl));
        const c10::IValue value{at::TensorBase(tensor)};
        const c10::ArrayRef<const c10::IValue> one(&value, 1);
        InputValues values;
        if ((needs & kNeedsIdentities) == kNeedsIdentities) {
            values.add_identified(one, std::nullopt);
        } else {
            values.add(one);
        }
        if (!values.values()[0].array().is_defined) return false;
        take(values.values()[0].array(), context);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

bool next_unobserved_thread(char* name, std::uint32_t bytes) noexcept {
    return UnobservedThreads::get().next(name, bytes);
}

bool links_forward() noexcept {
    return profiler::get_fwd_bwd_enabled == nullptr || profiler::get_fwd_bwd_enabled();
}

bool records_waits() noexcept {
    return profiler::get_cuda_sync_enabled != nullptr && profiler::get_cuda_sync_enabled();
}

void set_elements(bool has_ranges, const char* operators) noexcept {
    try {
        ElementRequest::get().set(has_ranges, operators);
    } catch (const std::exception&) {  // then they stay as they were
    }
}

constexpr ObserverTable kTable{
    kObserverTableVersion,  detail::kLayoutNumber, set_needs,     enter,         leave,       forked,
    next_unobserved_thread, describe_tensor,       links_forward, records_waits, set_elements};

}  // namespace

}  // namespace marey::torch

extern "C" __attribute__((visibility("default"))) const marey::torch::ObserverTable* marey_torch_observer() {
    marey::set_current_queue(marey::DeviceType::Cuda, marey::torch::current_cuda_stream);
    return &marey::torch::kTable;
}
