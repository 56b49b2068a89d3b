// member_packing.h: packs the captures of processes that have ended while the program of a run goes on.
#pragma once

#include <chrono>
#include <set>
#include <thread>

#include <marey/detail/thread_safety.h>
#include <marey/merge.h>
#include <marey/process_end.h>

#include "cli/run_summary.h"

namespace marey::cli {

/// A thread of low priority that packs the captures of ended processes, and notes which processes it sees
/// and how they end.
/// The program's own capture, and those of processes that run, stay as they are.
class MemberPacking {
  public:
    /// `before`: captures that existed before the run. Does nothing that neither `packs` nor `summarizes`
    /// needs, except that it keeps `watch` up to date.
    MemberPacking(std::string output, std::string tree, ProcessWatch& watch,
                  const std::vector<std::string>& before, bool packs, bool summarizes);
    ~MemberPacking() { stop(); }
    MemberPacking(const MemberPacking&) = delete;
    MemberPacking& operator=(const MemberPacking&) = delete;

    /// `program`: the process id of the program. Call with the signals blocked that the thread must not
    /// handle.
    void start(int program);
    void stop();

    // After stop().
    RunPacker& packer() { return packer_; }
    MemberFacts& facts() { return facts_; }

  private:
    void work();
    bool waits_for_look();
    void look();
    void look_at(std::int64_t pid);
    void pack_ended();
    bool has_ended(const std::string& capture) const;

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

/// Appends how its process ended to a capture. False: the watch does not know it.
bool note_end(const std::string& capture, const ProcessWatch& watch);

}  // namespace marey::cli
