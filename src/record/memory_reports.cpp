// memory_reports.cpp: allocation reports, into the log and to observers.
#include <marey/memory.h>

#include <cstring>

#include "record/clocks/clock.h"
#include "record/observer_snapshot.h"
#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey::detail {

namespace {

constexpr std::size_t kBytes = sizeof(LongRecord) + sizeof(MemoryPayload);

// There is space for it, and the thread is marked busy.
void write_report(ThreadState& state, const MemoryReport& report, std::uint64_t now) noexcept {
    auto* const record = reinterpret_cast<LongRecord*>(state.cursor);
    *record = LongRecord{
        static_cast<std::uint8_t>(RecordKind::Memory),    0,           kBytes / kRecordUnit, 0, now,
        reinterpret_cast<std::uintptr_t>(report.address), state.depth, sizeof(MemoryPayload)};
    const MemoryPayload payload{report.bytes,
                                report.total_allocated,
                                report.total_reserved,
                                report.device.index,
                                static_cast<std::uint8_t>(report.device.type),
                                static_cast<std::uint8_t>(report.is_out_of_memory ? 1 : 0),
                                0};
    std::memcpy(record + 1, &payload, sizeof payload);
    state.cursor += kBytes;
    commit(state);
}

[[gnu::noinline]] void report_slow(const MemoryReport& report) noexcept {
    const std::uint64_t armed = load_relaxed(current_thread->armed);
    // Observers of this thread or of all threads: their own filters decide.
    if ((armed & (kArmedMemoryObservers | kArmedAttention)) != 0) observe_memory(report);
    if ((armed & (kArmedMemoryRecorder | kArmedAttention)) == 0) return;
    const SlowPath path;
    if (!path) return;
    ThreadState* const state = ready_thread();
    if (state == nullptr || (load_relaxed(state->armed) & kArmedMemoryRecorder) == 0) return;
    const std::uint64_t now = Clock::now();
    if (!ensure_room(*state, kBytes, now)) return count_dropped(*state, state->depth);
    write_report(*state, report, now);
}

}  // namespace

void report_memory(const MemoryReport& report) noexcept {
    ThreadState& state = *current_thread;
    constexpr std::uint64_t kMemoryBits = kArmedMemoryRecorder | kArmedMemoryObservers;
    if (is_usual(&state) && (load_relaxed(state.armed) & kMemoryBits) == kArmedMemoryRecorder) [[likely]] {
        const BusyScope busy(&state);
        if (static_cast<std::size_t>(state.limit - state.cursor) >= kBytes)
            return write_report(state, report, read_counter());
    }
    report_slow(report);
}

}  // namespace marey::detail
