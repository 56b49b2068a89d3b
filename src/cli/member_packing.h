// member_packing.h: packs the captures of processes that have ended while the program of a run goes on.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <thread>

#include <marey/detail/thread_safety.h>
#include <marey/error.h>
#include <marey/merge.h>
#include <marey/process_end.h>

#include "base/process_stat.h"
#include "cli/capture_files.h"
#include "cli/run_summary.h"

namespace marey::cli {

/// Appends how its process ended to a capture. False: the watch does not know it.
inline bool note_end(const std::string& capture, const ProcessWatch& watch) {
    const std::optional<ProcessEnd> end = watch.find(capture).end;
    return end && append_process_end(capture, capture_origin(capture).pid, *end);
}

/// A thread of low priority that packs the captures of ended processes, and notes which processes it sees
/// and how they end.
/// The program's own capture, and those of processes that run, stay as they are.
class MemberPacking {
  public:
    /// `before`: captures that existed before the run. Does nothing that neither `packs` nor `summarizes`
    /// needs, except that it keeps `watch` up to date.
    MemberPacking(std::string output, std::string tree, ProcessWatch& watch,
                  const std::vector<std::string>& before, bool packs, bool summarizes)
        : output_(std::move(output)),
          tree_(std::move(tree)),
          watch_(watch),
          left_alone_(before.begin(), before.end()),
          packs_(packs),
          summarizes_(summarizes),
          packer_(output_) {
        left_alone_.insert(output_);
    }
    ~MemberPacking() { stop(); }

    /// `program`: the process id of the program. Call with the signals blocked that the thread must not
    /// handle.
    void start(int program) {
        program_ = program;
        thread_ = std::thread([this] { work(); });
    }
    void stop() {
        {
            const ScopedLock lock(mutex_);
            is_over_ = true;
        }
        over_.notify_all();
        if (!thread_.joinable()) return;
        thread_.join();
        watch_.update();
    }

    // After stop().
    RunPacker& packer() { return packer_; }
    MemberFacts& facts() { return facts_; }

  private:
    using Time = std::chrono::steady_clock;

    static constexpr std::chrono::milliseconds kLookPeriod{250};
    static constexpr std::chrono::milliseconds kPackPeriod{1000};
    static constexpr int kMaxShare = 20;  // at most one part in so many of the time
    static constexpr int kNiceness = 10;
    // Larger captures are packed when the program has ended: a low priority cannot be raised again, and the
    // user would wait for it.
    static constexpr std::uintmax_t kMaxBytes = std::uintmax_t{64} << 20;
    static constexpr std::size_t kMaxProcesses = 100'000;

    /// Of the calling thread.
    static std::chrono::nanoseconds cpu_time() {
        timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    }

    void work() {
        // On Linux, a priority is that of one thread.
        if (::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNiceness) != 0) errno = 0;
        Time::time_point next_packing = Time::now() + kPackPeriod;
        while (waits_for_look()) {
            watch_.update();
            look();
            if (const Time::time_point begin = Time::now(); packs_ && begin >= next_packing) {
                pack_ended();
                next_packing =
                    Time::now() + std::max<Time::duration>(kPackPeriod, kMaxShare * (Time::now() - begin));
            }
        }
    }
    /// False: it is over.
    bool waits_for_look() {
        const ScopedLock lock(mutex_);
        const Time::time_point end = Time::now() + kLookPeriod;
        while (!is_over_ && over_.wait_until(mutex_, end)) {
        }
        return !is_over_;
    }
    /// Looks for processes if it is time to. Neither the time for packing counts, nor that for which others
    /// had the core: processes that end until the next look are not seen.
    void look() {
        if (!summarizes_ || Time::now() < next_look_) return;
        const std::chrono::nanoseconds begin = cpu_time();
        look_at(program_);
        next_look_ =
            Time::now() + std::max<Time::duration>(kLookPeriod / 2, kMaxShare * (cpu_time() - begin));
    }
    /// Notes the processes that a process has started, and those that they have started.
    void look_at(std::int64_t pid) {
        std::error_code error;
        const std::string folder = "/proc/" + std::to_string(pid);
        for (std::filesystem::directory_iterator task(folder + "/task", error), end; !error && task != end;
             task.increment(error)) {
            std::ifstream children(task->path() / "children");
            for (std::int64_t child = 0; children >> child && known_.size() < kMaxProcesses;) {
                const ProcessKey key{child, ProcessStat(child).start()};
                if (key.second == 0) continue;
                if (known_.insert(key).second) {
                    const std::string name =
                        read_small_file(("/proc/" + std::to_string(child) + "/comm").c_str());
                    facts_.saw(key, name.substr(0, name.find('\n')));
                }
                look_at(child);
            }
        }
    }
    void pack_ended() {
        if (::access(output_.c_str(), F_OK) != 0)
            return;  // without it, the captures stay as they are at the end, too
        for (const std::string& capture : captures_of(output_)) {
            std::error_code error;
            if (left_alone_.contains(capture) || std::filesystem::file_size(capture, error) > kMaxBytes)
                continue;
            bool is_added = false;
            try {
                if (!has_ended(capture)) continue;
                try {
                    note_end(capture, watch_);
                } catch (
                    const Error&) {  // the disk is full: then its end is unknown, but its records count more
                }
                if (summarizes_) facts_.add(capture);
                is_added = true;
                packer_.pack(capture);
            } catch (const Error&) {  // at the end of the run, it is tried again, and the reason is said
                left_alone_.insert(capture);
                if (is_added) facts_.keep(capture);
            }
            look();
            const ScopedLock lock(mutex_);
            if (is_over_) return;
        }
    }
    /// Whether it is of this run, and its process is gone. The program's own process may have several
    /// captures, to which its end is appended.
    bool has_ended(const std::string& capture) const {
        const CaptureOrigin origin = capture_origin(capture);
        if (origin.tree != tree_ || origin.pid <= 0 || origin.pid == program_) return false;
        const WatchedProcess process = watch_.find(capture);
        if (process.is_running || process.has_ended) return process.has_ended;
        return ::kill(static_cast<pid_t>(origin.pid), 0) != 0 && errno == ESRCH;
    }

    const std::string output_, tree_;
    ProcessWatch& watch_;               ///< used by the thread, while it runs
    std::set<std::string> left_alone_;  ///< captures of other runs, and those that cannot be packed
    const bool packs_, summarizes_;
    int program_ = 0;
    RunPacker packer_;
    MemberFacts facts_;
    std::set<ProcessKey> known_;
    std::chrono::steady_clock::time_point next_look_{};
    Mutex mutex_;
    Condition over_;
    bool is_over_ MAREY_GUARDED_BY(mutex_) = false;
    std::thread thread_;
};

}  // namespace marey::cli
