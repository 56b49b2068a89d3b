// c_api.cpp: the C functions and the writer table.
#include <marey/c.h>

#include <cstring>
#include <new>
#include <utility>

#include <marey/context.h>
#include <marey/memory.h>
#include <marey/range.h>

#include "record/clocks/clock.h"
#include "record/observers.h"
#include "record/owned_log.h"
#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey {
namespace {

using detail::kNotOpen;
using detail::load_relaxed;
using detail::RecordKind;
using detail::store_relaxed;
using detail::ThreadState;

constexpr std::uint8_t kObjectless = detail::kSlotObjectless;

bool is_on() noexcept {
    return (load_relaxed(detail::current_thread->armed) &
            (detail::kArmedRecorder | detail::kArmedObservers | detail::kArmedAttention)) != 0;
}

bool is_objectless(const detail::OpenSlot& slot) noexcept {
    return (load_relaxed(slot.what) >> detail::kSiteBits & kObjectless) != 0;
}

// The innermost slot opened by begin() (of `site`, unless that is 0), or kNotOpen.
std::uint32_t innermost_begin(ThreadState& state, std::uint32_t site) noexcept {
    for (std::uint32_t index = state.depth; index-- != 0;) {
        const detail::OpenSlot& slot = *Recorder::get().threads().slot(state, index);
        if (is_objectless(slot) && (site == 0 || site_of(slot) == site)) return index;
    }
    return kNotOpen;
}

// The observers of a begin are kept at the slot that it will have.
ObserverFrame* observe_begin(std::uint32_t site) noexcept {
    if (site == 0 || (load_relaxed(detail::current_thread->armed) & detail::kArmedObservers) == 0)
        return nullptr;
    const Scope scope = Recorder::get().names().site(site).scope;
    ObserverFrame* const frame = begin_frame(site, scope);
    if (frame == nullptr) return nullptr;
    run_starts(*frame);
    auto* const part = static_cast<ThreadObservers*>(detail::current_thread->observers);
    part->objectless.push_back({detail::current_thread->depth, frame});
    return frame;
}

void observe_end(std::uint32_t index) noexcept {
    auto* const part = static_cast<ThreadObservers*>(detail::current_thread->observers);
    if (part == nullptr) return;
    // The slots above it have been ended, or will never be.
    while (!part->objectless.empty() && part->objectless.back().index >= index) {
        ObserverFrame* const frame = part->objectless.back().frame;
        part->objectless.pop_back();
        end_frame(frame);
    }
}

// `side`: its values on the side stack.
void push_begin(std::uint32_t site, std::uint32_t side) noexcept {
    SlowPath path;
    if (!path) return;
    ThreadState* state = detail::current_thread;
    if (state->owner == nullptr && !is_on()) {
        ++unregistered_off_begins;  // only counted, so that its end finds it
        return;
    }
    state = ready_thread();
    if (state == nullptr) return;
    const bool records = (load_relaxed(state->armed) & detail::kArmedRecorder) != 0;
    if (!records) drop_side(*state, std::exchange(side, 0));
    push_open(*state, records ? site : 0, kObjectless, side);
}

void begin(std::uint32_t site) noexcept {
    const ObserverFrame* const frame = observe_begin(site);
    push_begin(site, frame != nullptr ? push_range_id(frame->range.id(), {}) : 0);
}

// Returns the index that it had, or kNotOpen.
std::uint32_t pop_begin(std::uint32_t site) noexcept {
    if (!may_read_clock()) return kNotOpen;
    const std::uint64_t now = Clock::now();
    SlowPath path(kNoRecord);
    if (!path) return kNotOpen;
    ThreadState* state = detail::current_thread;
    if (state->owner == nullptr) {
        if (unregistered_off_begins != 0) --unregistered_off_begins;
        return kNotOpen;
    }
    state = ending_thread();
    if (state == nullptr) return kNotOpen;
    const std::uint32_t index = innermost_begin(*state, site);
    if (index == kNotOpen) {
        if (state->off_begins != 0) {
            --state->off_begins;
        } else if (static_cast<ThreadEntry*>(state->owner)->left_parent == 0) {
            store_relaxed(state->resyncs, state->resyncs + 1);
        }
        return kNotOpen;
    }
    if (site != 0 && index + 1 != state->depth) {
        store_relaxed(state->resyncs, state->resyncs + 1);
        while (state->depth > index + 1) pop_open(*state, state->depth - 1, now, detail::kRecordUnfinished);
    }
    pop_open(*state, index, now, 0);
    return index;
}

void end(std::uint32_t site) noexcept {
    const ScopedEnable enabled;
    const std::uint32_t index = pop_begin(site);
    if (index != kNotOpen) observe_end(index);
}

// Runs `append(state)` on the given log, or on the calling thread's, if something records there.
int with_log(marey_log* log, auto append) noexcept {
    if (log != nullptr) return with_owned_log(*reinterpret_cast<ThreadEntry*>(log), append) ? 1 : 0;
    if (!is_on()) return 0;
    SlowPath path;
    if (!path) return 0;
    ThreadState* const state = ready_thread();
    return state != nullptr && is_recording(*state) && append(*state) ? 1 : 0;
}

bool write_at(ThreadState& state, RecordKind kind, marey_site site, std::uint64_t ticks, std::uint64_t word2,
              std::span<const std::byte> payload) noexcept {
    return write_long(state, {kind, 0, site, ticks, word2, state.depth}, payload);
}

int write_range_at(marey_log* log, marey_site site, std::uint64_t start, std::uint64_t end_ticks,
                   std::uint32_t depth) noexcept {
    if (site == 0) return 0;
    return with_log(log, [&](ThreadState& state) {
        const std::uint64_t dropped = state.dropped;
        if (end_ticks < start) {
            end_ticks = start;
            store_relaxed(state.clamped, state.clamped + 1);
        }
        write_range(state, {start, end_ticks, depth, site, 0, {}});
        return state.dropped == dropped;
    });
}

int write_instant_at(marey_log* log, marey_site site, std::uint64_t ticks) noexcept {
    if (site == 0) return 0;
    return with_log(log, [&](ThreadState& state) {
        return write_at(state, RecordKind::LongInstant, site, ticks, 0, {});
    });
}

int write_counter_at(marey_log* log, marey_site site, std::uint64_t ticks, double value) noexcept {
    if (site == 0) return 0;
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return with_log(
        log, [&](ThreadState& state) { return write_at(state, RecordKind::Counter, site, ticks, bits, {}); });
}

int write_blob_at(marey_log* log, marey_site site, std::uint64_t ticks, std::uint64_t tag, const void* data,
                  std::size_t bytes) noexcept {
    if (bytes > detail::kMaxPayloadBytes) return 0;
    const std::span payload(static_cast<const std::byte*>(data), bytes);
    return with_log(log, [&](ThreadState& state) {
        return write_at(state, RecordKind::Blob, site, ticks, tag, payload);
    });
}

marey_log* create_log(const char* name) noexcept {
    return reinterpret_cast<marey_log*>(Recorder::get().make_log(name != nullptr ? name : ""));
}

void close_log(marey_log* log) noexcept {
    if (log != nullptr) Recorder::get().end_log(reinterpret_cast<ThreadEntry*>(log));
}

std::uint64_t now() noexcept {
    return Clock::now();
}

constexpr marey_writer kWriter = {
    MAREY_WRITER_VERSION,
    sizeof(marey_writer),
    now,
    marey_intern,
    marey_begin,
    marey_end,
    create_log,
    close_log,
    write_range_at,
    write_instant_at,
    write_counter_at,
    write_blob_at,
};

}  // namespace
}  // namespace marey

using namespace marey;

struct marey_context {
    Context context;
};

struct marey_adoption {
    explicit marey_adoption(const Context& adopted) noexcept : context(adopted), adoption(context) {}
    Context context;  // so that the caller may free its own
    ContextAdoption adoption;
};

extern "C" {

marey_site marey_intern(const char* name, const char* file, std::uint32_t line, std::uint8_t scope) {
    if (name == nullptr || scope >= kScopeCount) return 0;
    SlowPath path(kNoRecord);
    if (!path) return 0;
    return Recorder::get().journal().intern_site(name, file != nullptr ? file : "", line,
                                                 static_cast<Scope>(scope));
}

void marey_begin(marey_site site) {
    begin(site);
}

void marey_begin_named(const char* name) {
    const bool wanted = name != nullptr && is_on();
    const std::uint32_t site = wanted ? detail::dynamic_site(name, Scope::User) : 0;
    begin(site);
}

void marey_end(void) {
    end(0);
}

void marey_end_site(marey_site site) {
    if (site != 0) end(site);
}

std::uint64_t marey_async_begin(marey_site site) {
    if (site == 0 || !is_on()) return 0;
    SlowPath path;
    if (!path) return 0;
    ThreadState* const state = ready_thread();
    if (state == nullptr || (load_relaxed(state->armed) & detail::kArmedRecorder) == 0) return 0;
    const std::uint64_t id = next_async_id(*state);
    return write_at(*state, RecordKind::AsyncBegin, site, Clock::now(), id, {}) ? id : 0;
}

void marey_async_end(marey_site site, std::uint64_t id) {
    if (id == 0 || (!is_on() && !Recorder::get().has_open_session())) return;
    SlowPath path(kNoRecord);
    if (!path) return;
    ThreadState* const state = ending_thread();
    if (state != nullptr && writes_ends(*state)) {
        write_at(*state, RecordKind::AsyncEnd, site, Clock::now(), id, {});
    }
}

void marey_instant(const char* name) {
    if (name != nullptr) instant(name);
}

void marey_counter_double(const char* name, double value) {
    if (name != nullptr) counter(name, value);
}

void marey_counter_int(const char* name, std::int64_t value) {
    if (name != nullptr) counter(name, value);
}

void marey_report_allocation(const void* address, std::int64_t bytes, std::int64_t total_allocated,
                             std::int64_t total_reserved, std::uint8_t device_type,
                             std::int32_t device_index) {
    report_allocation(address, bytes, total_allocated, total_reserved,
                      {static_cast<DeviceType>(device_type), device_index});
}

void marey_report_out_of_memory(std::int64_t bytes, std::int64_t total_allocated, std::int64_t total_reserved,
                                std::uint8_t device_type, std::int32_t device_index) {
    report_out_of_memory(bytes, total_allocated, total_reserved,
                         {static_cast<DeviceType>(device_type), device_index});
}

void marey_thread_name(const char* name) {
    if (name != nullptr) thread_name(name);
}

int marey_is_recording(void) {
    return is_recording() ? 1 : 0;
}

std::uint64_t marey_session_start(const char* options, char* error, std::size_t error_bytes) {
    try {
        return Recorder::get().start(parse_options(options != nullptr ? options : "")).id;
    } catch (const std::exception& failure) {
        if (error != nullptr && error_bytes != 0) {
            std::strncpy(error, failure.what(), error_bytes - 1);
            error[error_bytes - 1] = '\0';
        }
        return 0;
    }
}

marey_context* marey_context_capture(void) {
    try {
        return new marey_context{Context::current()};
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void marey_context_free(marey_context* context) {
    delete context;
}

marey_adoption* marey_context_adopt(const marey_context* context) {
    return new (std::nothrow) marey_adoption(context != nullptr ? context->context : Context());
}

void marey_context_restore(marey_adoption* adoption) {
    delete adoption;
}

void marey_session_stop(std::uint64_t session) {
    Recorder::get().discard(session);
}

const marey_writer* marey_writer_table(std::uint32_t version) {
    return version <= MAREY_WRITER_VERSION ? &kWriter : nullptr;
}

}  // extern "C"
