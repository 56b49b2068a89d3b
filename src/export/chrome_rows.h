// chrome_rows.h: which process id and thread id each process, thread and track gets in a Chrome trace.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <kymo/trace.h>

namespace kymo {

/// A row of the timeline: (pid, tid), unique in the file.
struct ChromeRow {
    std::int64_t pid = 0;
    std::int64_t tid = 0;
};

/// Ids are those of the operating system where they are unique (pids repeat over hosts, tids over time),
/// logical ones otherwise, and numbers no system hands out for rows that are no threads.
struct ChromeRows {
    std::vector<std::int64_t> process;  ///< pid of each process
    std::vector<ChromeRow> thread;      ///< of each thread: its instants and counters
    std::vector<ChromeRow> track;       ///< of each track

    explicit ChromeRows(const Trace& trace) {
        std::set<std::int64_t> pids;
        for (const ProcessInfo& info : trace.processes()) process.push_back(claim_pid(pids, info.pid));
        if (process.empty()) process.push_back(0);

        for (const ThreadInfo& info : trace.threads()) {
            const std::int64_t pid = pid_of(info.process);
            std::int64_t tid = info.os_tid;
            if (tid <= 0 || !rows_.emplace(pid, tid).second) {
                tid = info.id;
                if (tid <= 0 || !rows_.emplace(pid, tid).second) tid = free_tid(pid);
            }
            thread.push_back({pid, tid});
        }
        std::vector<bool> taken(thread.size(), false);
        for (const TrackInfo& info : trace.tracks()) {
            const bool of_thread = info.thread < thread.size();
            const std::int64_t pid = of_thread ? thread[info.thread].pid : process.front();
            if (info.kind == TrackKind::Thread && of_thread && !taken[info.thread]) {
                taken[info.thread] = true;
                track.push_back(thread[info.thread]);
            } else {
                track.push_back({pid, free_tid(pid)});
            }
        }
    }

  private:
    static constexpr std::int64_t kFirstFreeId = 1'000'000'000;  ///< above any pid of Linux, below 2^31

    static std::int64_t claim_pid(std::set<std::int64_t>& pids, std::int64_t pid) {
        while (!pids.insert(pid).second) pid = pid < kFirstFreeId ? kFirstFreeId : pid + 1;
        return pid;
    }
    std::int64_t pid_of(Row row) const { return row < process.size() ? process[row] : process.front(); }
    std::int64_t free_tid(std::int64_t pid) {
        while (!rows_.emplace(pid, next_free_).second) ++next_free_;
        return next_free_++;
    }

    std::set<std::pair<std::int64_t, std::int64_t>> rows_;
    std::int64_t next_free_ = kFirstFreeId;
};

}  // namespace kymo
