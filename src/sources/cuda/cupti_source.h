// cupti_source.h: GPU work as reported by CUPTI.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <marey/detail/thread_safety.h>
#include <marey/device.h>

#include "sources/cuda/activity_decoder.h"
#include "sources/cuda/call_recorder.h"
#include "sources/cuda/clock_probe.h"
#include "sources/cuda/cuda_libraries.h"

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

/// CUPTI's own iteration takes a lock that launches take too. All records of a kind have the same size, which
/// this class learns from the first two adjacent ones; from then on it does not call CUPTI.
class RecordIterator {
  public:
    explicit RecordIterator(const Cupti& cupti) noexcept : cupti_(cupti) {}

    /// Moves to the record after `record` (null: the first), or returns false at the end.
    bool next(std::uint8_t* buffer, std::size_t bytes, ActivityRecord*& record) noexcept {
        std::uint8_t* const end = buffer + bytes;
        if (record != nullptr && record->kind < kKinds && sizes_[record->kind] != 0) {
            std::uint8_t* const following = reinterpret_cast<std::uint8_t*>(record) + sizes_[record->kind];
            if (following == end) return false;
            if (following + sizeof(ActivityRecord) <= end) {
                auto* const found = reinterpret_cast<ActivityRecord*>(following);
                if (found->kind != 0 && found->kind < kKinds) {
                    record = found;
                    return true;
                }
            }
        }
        ActivityRecord* const before = record;
        if (bytes == 0 || cupti_.next_record(buffer, bytes, &record) != kCuptiSuccess) return false;
        if (before != nullptr && before->kind < kKinds) {
            sizes_[before->kind] = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(record) -
                                                            reinterpret_cast<std::uint8_t*>(before));
        }
        return true;
    }

  private:
    static constexpr std::uint32_t kKinds = 64;
    const Cupti& cupti_;
    std::size_t sizes_[kKinds] = {};
};

/// One per process, never destroyed: CUPTI calls back until the process ends. A worker thread writes the
/// buffers' records to the log; once a second it flushes CUPTI's buffers and measures the clocks.
class CuptiSource final : public DeviceActivitySource {
  public:
    /// `linger`: how long CUPTI stays enabled after the last session. If CUPTI is disabled while a thread
    /// launches work, it sometimes stops reporting that thread's kernels. The delay avoids this for sessions
    /// that follow one another.
    explicit CuptiSource(std::chrono::milliseconds linger = std::chrono::seconds(1));

    std::string record(const DeviceNeeds& needs, DeviceLog& log) noexcept override;
    bool flush(std::uint64_t timeout_ns, bool wait_for_work) noexcept override;
    void forked() noexcept override;

    /// Called when the program initialises CUDA: starts the recording that was requested before.
    void begins() noexcept;
    /// Called at the end of the program, while CUDA still works: writes the buffered records to the log.
    void finish() noexcept;

  private:
    static CuptiSource* instance_;  ///< for CUPTI's callbacks, which have no user data
    static std::uint64_t timestamp();
    static void request_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records);
    static void complete_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                                std::size_t valid_bytes);

    std::string start() MAREY_REQUIRES(kinds_mutex_);
    std::string adapt() MAREY_REQUIRES(kinds_mutex_);
    std::string register_buffers() MAREY_REQUIRES(kinds_mutex_);
    void stop() noexcept MAREY_REQUIRES(kinds_mutex_);
    void switch_off() noexcept;
    void disable_all() noexcept MAREY_REQUIRES(kinds_mutex_);
    CuptiResult enable(const DeviceNeeds& needs) MAREY_REQUIRES(kinds_mutex_);
    CuptiResult enable_kind(std::uint32_t kind) MAREY_REQUIRES(kinds_mutex_);
    void enable_unified_memory() MAREY_REQUIRES(kinds_mutex_);
    void configure_unified_memory(int device) MAREY_REQUIRES(kinds_mutex_);

    void run_worker();
    void wait_for_work_or(std::chrono::steady_clock::time_point next_flush) MAREY_REQUIRES(pool_.mutex);
    void flush_on_worker(bool wait_for_work, bool measure_clocks);
    void write_device_facts(DeviceLog& log);
    void deliver_records(std::uint32_t which);
    std::uint64_t take_lost();
    void decode_filled();
    void discard_filled();
    void wake_worker() noexcept;
    void measure_soon() noexcept;
    void count_dropped(void* context, std::uint32_t stream);

    const std::chrono::milliseconds linger_;
    const Cupti& cupti_;
    const CuptiClock clock_;
    BufferPool pool_;
    CallRecorder calls_;

    /// Held while kinds are enabled or disabled; CUPTI makes callbacks during that time.
    Mutex kinds_mutex_;
    DeviceNeeds needs_ MAREY_GUARDED_BY(kinds_mutex_);
    bool is_started_ MAREY_GUARDED_BY(kinds_mutex_) = false;
    std::atomic<bool> has_begun_{false};  ///< the driver has reported that CUDA is initialised
    std::vector<std::uint32_t> enabled_ MAREY_GUARDED_BY(kinds_mutex_);  ///< kinds
    /// Devices for which unified memory was configured.
    std::set<int> configured_ MAREY_GUARDED_BY(kinds_mutex_);
    bool has_unified_memory_ MAREY_GUARDED_BY(kinds_mutex_) = false;
    std::atomic<bool> has_buffers_{false};  ///< CUPTI has our buffer functions; the worker runs until the end
    bool is_forked_ = false;                ///< set in the child of a fork, which has one thread then
    std::atomic<bool> was_cuda_used_{false};  ///< then CUDA does not work in a forked child

    // Used by the worker alone:
    RecordIterator records_;
    ActivityDecoder decoder_;
    ClockProbe probe_;

    /// Written with the pool's mutex. The worker reads it without: it is set before the worker starts, and
    /// another log comes only after a fork.
    DeviceLog* log_ = nullptr;
    bool is_on_ MAREY_GUARDED_BY(pool_.mutex) = false;           ///< something is recorded
    bool awaits_context_ MAREY_GUARDED_BY(pool_.mutex) = false;  ///< no context has been seen since the start
    bool measures_soon_ MAREY_GUARDED_BY(pool_.mutex) = false;
    bool has_started_ MAREY_GUARDED_BY(pool_.mutex) = false;  ///< since the worker last checked
    /// When to disable CUPTI, if pending.
    std::optional<std::chrono::steady_clock::time_point> off_at_ MAREY_GUARDED_BY(pool_.mutex);
    std::uint64_t flushes_requested_ MAREY_GUARDED_BY(pool_.mutex) = 0;
    std::uint64_t flushes_done_ MAREY_GUARDED_BY(pool_.mutex) = 0;
    bool flush_waits_ MAREY_GUARDED_BY(pool_.mutex) = false;
    std::uint64_t lost_ MAREY_GUARDED_BY(pool_.mutex) = 0;  ///< work whose record was taken before it ended
    std::string sync_error_ MAREY_GUARDED_BY(pool_.mutex);
    std::atomic<bool> is_over_{false};  ///< CUDA is shutting down
};

}  // namespace marey::cuda
