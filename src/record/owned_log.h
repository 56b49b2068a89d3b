// owned_log.h: writes into logs that are not threads.
#pragma once

#include <cstring>
#include <span>

#include <marey/detail/thread_safety.h>

#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey {

/// Whether ranges of this log's owner are recorded now.
inline bool is_recording(const detail::ThreadState& state) noexcept {
    return (detail::load_relaxed(state.armed) & detail::kArmedRecorder) != 0;
}

/// Runs `append(state)` on the log, one writer at a time, if something records. False: nothing records, or
/// `append` returned false.
bool with_owned_log(ThreadEntry& entry, auto append) noexcept {
    check_process();
    const ScopedLock lock(entry.log_lock);
    if ((detail::load_relaxed(entry.state->armed) & detail::kArmedAttention) != 0)
        Recorder::get().handle_log_attention(entry);
    return is_recording(*entry.state) && append(*entry.state);
}

/// The fixed words of a long record.
struct LongWords {
    detail::RecordKind kind;
    std::uint8_t flags;
    std::uint32_t site;
    std::uint64_t time;
    std::uint64_t word2;
    std::uint32_t depth;
};

/// Appends it with its payload; it is counted as dropped if there is no space.
inline bool write_long(detail::ThreadState& state, const LongWords& words,
                       std::span<const std::byte> payload) noexcept {
    const std::size_t bytes = (sizeof(detail::LongRecord) + payload.size() + detail::kRecordUnit - 1) /
                              detail::kRecordUnit * detail::kRecordUnit;
    if (!ensure_room(state, bytes, words.time)) {
        count_dropped(state, state.depth);
        return false;
    }
    Recorder::get().journal().use_site(words.site);
    detail::LongRecord* const record = append_long(state, words.kind, payload.size());
    record->flags = words.flags;
    record->site = words.site;
    record->time = words.time;
    record->word2 = words.word2;
    record->depth = words.depth;
    if (!payload.empty()) std::memcpy(record + 1, payload.data(), payload.size());
    commit(state);
    return true;
}

}  // namespace marey
