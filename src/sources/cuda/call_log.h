// call_log.h: calls on their way from the threads that make them to the one that decodes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace kymo::cuda {

struct RecordedCall {
    std::uint32_t domain = 0;    ///< kRuntimeCalls or kDriverCalls
    std::uint32_t callback = 0;  ///< which function
    std::uint32_t correlation = 0;
    std::int32_t result = 0;
    std::uint64_t start = 0;  ///< ticks
    std::uint64_t end = 0;
};

/// Calls of one thread: it writes, somebody else reads.
struct CallChunk {
    static constexpr std::uint32_t kCalls = 1023;
    std::int32_t os_tid = 0;
    std::uint32_t taken = 0;  ///< the reader's
    std::atomic<std::uint32_t> written{0};
    RecordedCall calls[kCalls];
};

/// Chunks up to a ceiling. Any thread writes, one reads; a write takes no lock.
class CallLog {
  public:
    explicit CallLog(std::size_t most_bytes) noexcept : most_(most_bytes / sizeof(CallChunk)) {}

    /// Writes into the thread's chunk, or into the next one, which it sets. False: the ceiling is reached;
    /// the call is counted as lost. `is_full`: a chunk was filled, which the reader should know.
    bool write(CallChunk*& chunk, std::int32_t os_tid, const RecordedCall& call, bool& is_full) noexcept {
        is_full = false;
        if (chunk == nullptr || chunk->written.load(std::memory_order_relaxed) == CallChunk::kCalls) {
            is_full = chunk != nullptr;
            if (chunk != nullptr) close(chunk);
            chunk = open(os_tid);
            if (chunk == nullptr) {
                count_lost();
                return false;
            }
        }
        const std::uint32_t place = chunk->written.load(std::memory_order_relaxed);
        chunk->calls[place] = call;
        chunk->written.store(place + 1, std::memory_order_release);
        return true;
    }
    /// The thread writes no more into it.
    void close(CallChunk* chunk) noexcept {
        std::lock_guard lock(mutex_);
        std::erase(open_, chunk);
        closed_.push_back(chunk);
        has_closed_.store(true, std::memory_order_relaxed);
    }

    void count_lost() noexcept { lost_.fetch_add(1, std::memory_order_relaxed); }
    bool has_closed() const noexcept { return has_closed_.load(std::memory_order_relaxed); }
    std::uint64_t take_lost() noexcept { return lost_.exchange(0, std::memory_order_relaxed); }
    /// Calls `visit(os_tid, call)` for every call that was not taken yet. One thread.
    template <class Visit>
    void take(Visit&& visit) {
        std::vector<CallChunk*> closed, open;
        {
            std::lock_guard lock(mutex_);
            closed.swap(closed_);
            open = open_;
            has_closed_.store(false, std::memory_order_relaxed);
        }
        for (const auto* const chunks : {&closed, &open}) {
            for (CallChunk* const chunk : *chunks) {
                const std::uint32_t written = chunk->written.load(std::memory_order_acquire);
                for (; chunk->taken < written; ++chunk->taken)
                    visit(chunk->os_tid, chunk->calls[chunk->taken]);
            }
        }
        std::lock_guard lock(mutex_);
        free_.insert(free_.end(), closed.begin(), closed.end());
    }

  private:
    CallChunk* open(std::int32_t os_tid) noexcept {
        std::lock_guard lock(mutex_);
        if (free_.empty()) {
            if (owned_.size() >= most_) return nullptr;
            std::unique_ptr<CallChunk> made(new (std::nothrow) CallChunk);
            if (made == nullptr) return nullptr;
            free_.push_back(made.get());
            owned_.push_back(std::move(made));
        }
        CallChunk* const chunk = free_.back();
        free_.pop_back();
        chunk->os_tid = os_tid;
        chunk->taken = 0;
        chunk->written.store(0, std::memory_order_relaxed);
        open_.push_back(chunk);
        return chunk;
    }

    const std::size_t most_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<CallChunk>> owned_;
    std::vector<CallChunk*> open_;    ///< that threads write into
    std::vector<CallChunk*> closed_;  ///< not freed before they are read
    std::vector<CallChunk*> free_;
    std::atomic<bool> has_closed_{false};
    std::atomic<std::uint64_t> lost_{0};
};

}  // namespace kymo::cuda
