// buffer_pool.h: the buffers that CUPTI fills and Marey's worker thread reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <marey/detail/thread_safety.h>

namespace marey::cuda {

/// A full buffer, or one that was returned early by a flush.
struct FilledBuffer {
    std::uint8_t* data = nullptr;
    std::size_t bytes = 0;
    void* context = nullptr;
    std::uint32_t stream = 0;
};

/// Provides buffers up to a limit. Any thread.
class BufferPool {
  public:
    static constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

    explicit BufferPool(std::size_t max_bytes) noexcept : most_(max_bytes / kBufferBytes) {}

    /// Null: the limit is reached; CUPTI then drops records and counts them.
    std::uint8_t* take() noexcept {
        const ScopedLock lock(mutex);
        if (!free_.empty()) {
            std::uint8_t* const data = free_.back();
            free_.pop_back();
            return data;
        }
        if (owned_.size() >= most_) return nullptr;
        std::unique_ptr<Buffer> buffer(new (std::nothrow) Buffer);
        if (buffer == nullptr) return nullptr;
        owned_.push_back(std::move(buffer));
        return owned_.back()->bytes;
    }
    void put_filled(const FilledBuffer& filled) noexcept {
        {
            const ScopedLock lock(mutex);
            filled_.push_back(filled);
        }
        changed.notify_all();
    }
    /// The next filled buffer; false: there is none now.
    bool next(FilledBuffer& filled) noexcept {
        const ScopedLock lock(mutex);
        if (filled_.empty()) return false;
        filled = filled_.front();
        filled_.pop_front();
        return true;
    }
    void recycle(std::uint8_t* data) noexcept {
        const ScopedLock lock(mutex);
        free_.push_back(data);
    }

    bool has_filled() const noexcept MAREY_REQUIRES(mutex) { return !filled_.empty(); }

    Mutex mutex;  ///< also guards what its owner shares with the worker
    Condition changed;

  private:
    struct Buffer {
        alignas(64) std::uint8_t bytes[kBufferBytes];
    };
    const std::size_t most_;
    std::vector<std::unique_ptr<Buffer>> owned_ MAREY_GUARDED_BY(mutex);
    std::vector<std::uint8_t*> free_ MAREY_GUARDED_BY(mutex);
    std::deque<FilledBuffer> filled_ MAREY_GUARDED_BY(mutex);
};

}  // namespace marey::cuda
