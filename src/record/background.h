// background.h: hands out blocks, and keeps more of them ready on the recorder's own thread.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <utility>

#include "record/session_table.h"

namespace marey {

/// The recorder's thread faults in blocks ahead of recording and takes a clock pair every second. It ends
/// when there is nothing to record, or no other thread. recorder_mutex is held for all calls.
class Background {
  public:
    Background(LogStore& store, JournalWriter& journal, SessionTable& sessions) noexcept
        : store_(store), journal_(journal), sessions_(sessions) {}

    /// A run of 1 or kLargeBlocks blocks of the current store, which is extended if it has none free. Null:
    /// there is no space, and `error` has the reason.
    Block* take(std::size_t blocks, int& error) noexcept MAREY_REQUIRES(recorder_mutex);
    /// A session starts.
    void start() noexcept MAREY_REQUIRES(recorder_mutex);
    /// A thread has filled its first chunk.
    void be_ready() noexcept MAREY_REQUIRES(recorder_mutex) {
        if (std::exchange(is_waiting_, false)) begin_thread();
    }
    /// Ends the thread; after the fork, take() starts it again. Lets go of the lock meanwhile. A process that
    /// forks should have no thread that the program did not start: Python warns about such threads.
    void before_fork() noexcept MAREY_REQUIRES(recorder_mutex);
    void after_fork_in_parent() noexcept MAREY_REQUIRES(recorder_mutex) { is_forking_ = false; }
    /// The same, for the rest of the process.
    void stop_for_good() noexcept MAREY_REQUIRES(recorder_mutex);
    /// Waits until the thread is not in the store, so that it can be closed.
    void wait_for_extension() MAREY_REQUIRES(recorder_mutex);
    /// The last session has ended: the next one starts small.
    void reset() noexcept MAREY_REQUIRES(recorder_mutex) { ahead_ = kFirstAhead; }
    /// In the child of a fork, which does not have the thread. Many children end soon, so that nothing is
    /// prepared ahead until be_ready().
    void forked() noexcept MAREY_REQUIRES(recorder_mutex);

  private:
    static constexpr std::size_t kFirstAhead = 2;
    void begin_thread() noexcept MAREY_REQUIRES(recorder_mutex);
    void stop() noexcept MAREY_REQUIRES(recorder_mutex);
    void run() noexcept MAREY_EXCLUDES(recorder_mutex);
    bool extend() noexcept MAREY_REQUIRES(recorder_mutex);
    void leave(bool is_last) noexcept MAREY_REQUIRES(recorder_mutex);
    std::size_t missing_blocks(std::size_t ahead) noexcept MAREY_REQUIRES(recorder_mutex);
    bool needs_extent() noexcept MAREY_REQUIRES(recorder_mutex);

    LogStore& store_;
    JournalWriter& journal_;
    SessionTable& sessions_;
    RecorderCondition changed_;
    pthread_t thread_ MAREY_GUARDED_BY(recorder_mutex) = {};
    bool runs_ MAREY_GUARDED_BY(recorder_mutex) = false;
    bool must_end_ MAREY_GUARDED_BY(recorder_mutex) = false;
    bool is_forbidden_ MAREY_GUARDED_BY(recorder_mutex) = false;  ///< the process ends
    bool is_forking_ MAREY_GUARDED_BY(recorder_mutex) = false;
    bool is_idle_ MAREY_GUARDED_BY(recorder_mutex) =
        false;  ///< no session runs: it waits a second, then ends
    bool is_waiting_ MAREY_GUARDED_BY(recorder_mutex) = false;    ///< for be_ready()
    bool is_extending_ MAREY_GUARDED_BY(recorder_mutex) = false;  ///< it maps or warms without the lock
    sigset_t starter_mask_
        MAREY_GUARDED_BY(recorder_mutex) = {};  ///< signals blocked in the thread that started it
    std::size_t ahead_ MAREY_GUARDED_BY(recorder_mutex) = kFirstAhead;  ///< large blocks to keep ready
};

}  // namespace marey
