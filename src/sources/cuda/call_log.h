// call_log.h: passes calls from the threads that make them to the thread that decodes them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include <marey/detail/thread_safety.h>

namespace marey::cuda {

struct RecordedCall {
    std::uint32_t domain = 0;    ///< kRuntimeCalls or kDriverCalls
    std::uint32_t callback = 0;  ///< identifies the function
    std::uint32_t correlation = 0;
    std::int32_t result = 0;
    std::uint64_t start = 0;  ///< ticks
    std::uint64_t end = 0;
};

/// Calls of one thread, which writes them; another thread reads them.
struct CallChunk {
    static constexpr std::uint32_t kCalls = 1023;
    CallChunk* next = nullptr;       ///< in the list of all chunks
    CallChunk* next_free = nullptr;  ///< in the list of unused chunks
    std::int32_t os_tid = 0;
    std::uint32_t taken = 0;  ///< used by the reader
    std::atomic<std::uint32_t> written{0};
    std::atomic<bool> is_closed{false};  ///< the thread no longer writes
    RecordedCall calls[kCalls];
};

/// A limited number of chunks, which are kept once allocated. Any thread writes, one reads. A write takes a
/// lock only at the start of a chunk; nothing throws.
class CallLog {
  public:
    explicit CallLog(std::size_t max_bytes) noexcept : most_(max_bytes / sizeof(CallChunk)) {}
    ~CallLog() {
        while (all_ != nullptr) delete std::exchange(all_, all_->next);
    }

    /// Writes into the thread's chunk or, if that is full or missing, into another one, which it stores in
    /// `chunk`. If no chunk is available, counts the call as lost. True: a chunk is full, wake the reader.
    bool write(CallChunk*& chunk, std::int32_t os_tid, const RecordedCall& call) noexcept {
        const bool is_full =
            chunk != nullptr && chunk->written.load(std::memory_order_relaxed) == CallChunk::kCalls;
        if (is_full) close(std::exchange(chunk, nullptr));
        if (chunk == nullptr) chunk = open(os_tid);
        if (chunk == nullptr) {
            count_lost();
            return is_full || has_closed();
        }
        const std::uint32_t place = chunk->written.load(std::memory_order_relaxed);
        chunk->calls[place] = call;
        chunk->written.store(place + 1, std::memory_order_release);
        return is_full;
    }
    void close(CallChunk* chunk) noexcept {
        chunk->is_closed.store(true, std::memory_order_release);
        has_closed_.store(true, std::memory_order_relaxed);
    }
    void count_lost() noexcept { lost_.fetch_add(1, std::memory_order_relaxed); }

    bool has_closed() const noexcept { return has_closed_.load(std::memory_order_relaxed); }
    std::uint64_t take_lost() noexcept { return lost_.exchange(0, std::memory_order_relaxed); }
    /// Calls `visit(os_tid, call)` for every call that was not taken yet. Single-threaded.
    void take(auto&& visit) {
        has_closed_.store(false, std::memory_order_relaxed);
        for (CallChunk* chunk = first(); chunk != nullptr; chunk = chunk->next) {
            const bool is_closed = chunk->is_closed.load(std::memory_order_acquire);  // read before the count
            const std::uint32_t written = chunk->written.load(std::memory_order_acquire);
            for (; chunk->taken < written; ++chunk->taken) visit(chunk->os_tid, chunk->calls[chunk->taken]);
            if (is_closed) recycle(chunk);
        }
    }

  private:
    CallChunk* first() noexcept {
        const ScopedLock lock(mutex_);
        return all_;
    }
    void recycle(CallChunk* chunk) noexcept {
        chunk->taken = 0;
        chunk->written.store(0, std::memory_order_relaxed);
        chunk->is_closed.store(false, std::memory_order_relaxed);
        const ScopedLock lock(mutex_);
        chunk->next_free = std::exchange(free_, chunk);
    }
    CallChunk* open(std::int32_t os_tid) noexcept {
        const ScopedLock lock(mutex_);
        CallChunk* chunk = free_;
        if (chunk != nullptr) {
            free_ = chunk->next_free;
        } else {
            if (count_ >= most_) return nullptr;
            chunk = new (std::nothrow) CallChunk;
            if (chunk == nullptr) return nullptr;
            ++count_;
            chunk->next = std::exchange(all_, chunk);
        }
        chunk->os_tid = os_tid;
        return chunk;
    }

    const std::size_t most_;
    Mutex mutex_;
    CallChunk* all_ MAREY_GUARDED_BY(mutex_) = nullptr;  ///< newest first
    CallChunk* free_ MAREY_GUARDED_BY(mutex_) = nullptr;
    std::size_t count_ MAREY_GUARDED_BY(mutex_) = 0;
    std::atomic<bool> has_closed_{false};
    std::atomic<std::uint64_t> lost_{0};
};

}  // namespace marey::cuda
