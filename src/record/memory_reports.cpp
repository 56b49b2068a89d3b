// memory_reports.cpp: what allocators say, into the log and to observers.
#include <kymo/memory.h>

#include <algorithm>
#include <cstring>

#include "record/clock.h"
#include "record/observers.h"
#include "record/recorder.h"
#include "record/thread_log.h"

namespace kymo::detail {

void report_memory(const MemoryReport& report) noexcept {
    const std::uint64_t armed = load_relaxed(current_thread->armed);
    // Observers may be those of this thread or all of them: they know.
    if ((armed & (kArmedMemoryObservers | kArmedAttention)) != 0) observe_memory(report);
    if ((armed & (kArmedMemoryRecorder | kArmedAttention)) == 0) return;
    const SlowPath path;
    if (!path) return;
    ThreadState* const state = ready_thread();
    if (state == nullptr || (load_relaxed(state->armed) & kArmedMemoryRecorder) == 0) return;
    const std::uint64_t now = Clock::now();
    constexpr std::size_t kBytes = sizeof(LongRecord) + sizeof(MemoryPayload);
    if (!ensure_room(*state, kBytes, now)) return count_dropped(*state, state->depth);
    LongRecord* const record = append_long(*state, RecordKind::Memory, sizeof(MemoryPayload));
    record->time = now;
    record->word2 = reinterpret_cast<std::uintptr_t>(report.address);
    record->depth = state->depth;
    MemoryPayload payload{};
    payload.bytes = report.bytes;
    payload.total_allocated = report.total_allocated;
    payload.total_reserved = report.total_reserved;
    payload.device_index = report.device.index;
    payload.device_type = static_cast<std::uint8_t>(report.device.type);
    payload.out_of_memory = report.is_out_of_memory ? 1 : 0;
    std::memcpy(record + 1, &payload, sizeof payload);
    commit(*state);
}

}  // namespace kymo::detail
