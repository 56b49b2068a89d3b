// progress.h: how far a long operation is.
#pragma once

#include <atomic>
#include <cstdint>

#include <marey/detail/export.h>

namespace marey {

/// How far an operation is. Any thread may read the numbers.
struct WorkProgress {
    std::atomic<std::uint64_t> done{0};
    std::atomic<std::uint64_t> total{0};  ///< in the unit of `done`; 0: not known
};

/// For its lifetime, the long operations that this thread calls (loading, exporting, compacting, merging)
/// count into `progress`, which must outlive it. Only one such object per thread at a time.
class MAREY_API WatchedWork {
  public:
    explicit WatchedWork(WorkProgress& progress) noexcept;
    ~WatchedWork();
    WatchedWork(const WatchedWork&) = delete;
    WatchedWork& operator=(const WatchedWork&) = delete;
};

}  // namespace marey
