// observers.h: the registered observers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "record/observer_snapshot.h"
#include "record/recorder_mutex.h"

namespace marey {

/// All observers of the process.
class Observers {
  public:
    ObserverHandle add(const Observer& observer, bool for_this_thread) MAREY_EXCLUDES(recorder_mutex);
    enum class Removal { Plain, Drained };
    bool remove(ObserverHandle handle, Removal how) MAREY_EXCLUDES(recorder_mutex);
    /// Replaces the calling thread's own list. Takes no lock that threads share.
    void adopt(std::shared_ptr<const ObserverList> list) noexcept;
    bool switch_on(ObserverHandle handle, bool on) noexcept MAREY_EXCLUDES(recorder_mutex);
    void clear(bool global, bool own) noexcept MAREY_EXCLUDES(recorder_mutex);
    bool has_any(bool global, bool own) noexcept MAREY_EXCLUDES(recorder_mutex);
    void seed(std::uint64_t seed) noexcept MAREY_EXCLUDES(recorder_mutex);

    /// Bits of ThreadState::armed that the global observers need.
    std::uint64_t armed() const noexcept MAREY_REQUIRES(recorder_mutex) { return armed_; }
    static std::uint64_t armed_for(const ObserverList& list) noexcept;
    /// Incremented at every change. Any thread.
    static std::uint64_t version() noexcept { return version_.load(std::memory_order_relaxed); }
    static std::uint64_t next_range_id() noexcept {
        return next_range_id_.fetch_add(1, std::memory_order_relaxed);
    }

    /// The calling thread's part, created or updated; null when that cannot be done now.
    ThreadObservers* refresh() noexcept MAREY_EXCLUDES(recorder_mutex);
    void forget_thread(ThreadObservers* thread) noexcept MAREY_REQUIRES(recorder_mutex);
    /// In a forked child: discards the parts of all other threads.
    void keep_only(ThreadObservers* thread) noexcept MAREY_REQUIRES(recorder_mutex);

  private:
    struct HandleOwner {
        std::shared_ptr<ObserverEntry> entry;
        bool is_thread_local = false;
    };
    HandleOwner find(ThreadObservers* thread, ObserverHandle handle) const noexcept
        MAREY_REQUIRES(recorder_mutex);
    ThreadObservers* part_of_this_thread() noexcept MAREY_EXCLUDES(recorder_mutex);
    static void set_thread_list(ThreadObservers& thread, std::shared_ptr<const ObserverList> list) noexcept;
    void change() noexcept MAREY_REQUIRES(recorder_mutex);
    void update(ThreadObservers& thread) noexcept MAREY_EXCLUDES(recorder_mutex);
    void sweep() noexcept MAREY_REQUIRES(recorder_mutex);
    void wait_for_callbacks(const ObserverEntry& entry) MAREY_EXCLUDES(recorder_mutex);

    ObserverList global_ MAREY_GUARDED_BY(recorder_mutex);
    std::vector<std::weak_ptr<ObserverEntry>> all_
        MAREY_GUARDED_BY(recorder_mutex);  ///< those alive: contexts may hold one after its removal
    std::vector<ThreadObservers*> threads_ MAREY_GUARDED_BY(recorder_mutex);
    std::vector<std::unique_ptr<ObserverSnapshot>> orphans_
        MAREY_GUARDED_BY(recorder_mutex);  ///< of ended threads, with ranges open
    std::uint64_t armed_ MAREY_GUARDED_BY(recorder_mutex) = 0;
    std::uint64_t seed_ MAREY_GUARDED_BY(recorder_mutex) = 0;    ///< 0: from entropy
    std::uint64_t seeded_ MAREY_GUARDED_BY(recorder_mutex) = 0;  ///< counts calls of seed()
    std::uint64_t next_handle_ MAREY_GUARDED_BY(recorder_mutex) = 1;
    static std::atomic<std::uint64_t> version_;
    static std::atomic<std::uint64_t> next_range_id_;
};

}  // namespace marey
