// work_meter.h: counts the work of a long operation for the WatchedWork of its thread.
#pragma once

#include <marey/progress.h>

namespace marey {

/// One operation, from the thread that calls it. Counts nothing if nobody watches, or if the operation is
/// part of another one that counts.
class WorkMeter {
  public:
    explicit WorkMeter(std::uint64_t total) noexcept;
    ~WorkMeter();
    WorkMeter(const WorkMeter&) = delete;
    WorkMeter& operator=(const WorkMeter&) = delete;

    /// From any thread.
    void add(std::uint64_t work) noexcept {
        if (progress_ != nullptr) progress_->done.fetch_add(work, std::memory_order_relaxed);
    }
    /// After each row of a loop over all rows of a table; counts them in blocks.
    void add_row(std::uint64_t row) noexcept {
        constexpr std::uint64_t kBlock = 4096;
        if ((row + 1) % kBlock == 0) add(kBlock);
    }
    /// Null: nobody watches.
    WorkProgress* progress() const noexcept { return progress_; }

  private:
    WorkProgress* progress_;
};

}  // namespace marey
