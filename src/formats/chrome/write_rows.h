// write_rows.h: assigns process and thread ids of a Chrome trace to processes, threads, devices and tracks.
#pragma once

#include <set>
#include <utility>

#include <marey/trace.h>

namespace marey {

/// A row of the timeline: (pid, tid), unique in the file.
struct ChromeRow {
    std::int64_t pid = 0;
    std::int64_t tid = 0;
    friend bool operator==(const ChromeRow&, const ChromeRow&) = default;
};

/// Whether a track's ranges ran on a device.
inline bool is_of_device(const TrackInfo& track) noexcept {
    return track.kind == TrackKind::Device ||
           (track.device.type != DeviceType::Cpu && track.device.type != DeviceType::None);
}

/// "pid":1,"tid":2,"ts":
inline std::string chrome_row_text(ChromeRow row) {
    return "\"pid\":" + std::to_string(row.pid) + ",\"tid\":" + std::to_string(row.tid) + ",\"ts\":";
}

/// Processes and threads keep their operating system ids if these are unique (pids repeat across hosts, tids
/// over time); otherwise they get logical ids. Rows that are not threads get numbers that no system uses. As
/// in PyTorch traces, a device is a process whose id is its number, and a stream is a thread with the
/// stream's id.
class ChromeRows {
  public:
    struct DeviceProcess {
        Row process = 0;
        Device device{};
        std::int64_t pid = 0;
        bool shares_pid = false;  ///< a process of the trace has the same number
    };

    std::vector<std::int64_t> process;  ///< pid of each process
    std::vector<ChromeRow> thread;      ///< row of each thread's instants and counters
    std::vector<ChromeRow> track;       ///< of each track
    std::vector<DeviceProcess> devices;
    std::vector<bool> is_device_thread;  ///< per thread: it has only device tracks

    explicit ChromeRows(const Trace& trace) {
        for (const ProcessInfo& info : trace.processes()) process.push_back(claim_pid(info.pid));
        if (process.empty()) process.push_back(claim_pid(0));
        claim_threads(trace);
        std::vector<bool> taken(thread.size(), false), has_queue(thread.size(), false);
        for (const TrackInfo& info : trace.tracks()) {
            const bool of_thread = info.thread < thread.size();
            const std::int64_t pid = of_thread ? thread[info.thread].pid : process.front();
            if (is_of_device(info)) {
                track.push_back(claim_device_row(trace, info));
                if (!of_thread || !is_device_thread[info.thread]) continue;
                // The row of its first stream or, without streams, of its first track.
                const bool is_queue = info.kind == TrackKind::Device;
                if (is_queue ? has_queue[info.thread] : taken[info.thread]) continue;
                if (is_queue) has_queue[info.thread] = true;
                taken[info.thread] = true;
                thread[info.thread] = track.back();
            } else if (info.kind == TrackKind::Thread && of_thread && !taken[info.thread]) {
                taken[info.thread] = true;
                track.push_back(thread[info.thread]);
            } else {
                track.push_back({pid, free_tid(pid)});
            }
        }
    }

    ChromeRow of_thread(Row row) const {
        return row < thread.size() ? thread[row] : ChromeRow{process.front(), 0};
    }

  private:
    static constexpr std::int64_t kFirstFreeId = 1'000'000'000;  ///< above any Linux pid, below 2^31

    std::int64_t claim_pid(std::int64_t pid) {
        while (!pids_.insert(pid).second) pid = pid < kFirstFreeId ? kFirstFreeId : pid + 1;
        return pid;
    }
    std::int64_t pid_of(Row row) const { return row < process.size() ? process[row] : process.front(); }
    std::int64_t free_tid(std::int64_t pid) {
        while (!rows_.emplace(pid, next_free_).second) ++next_free_;
        return next_free_++;
    }

    void claim_threads(const Trace& trace) {
        is_device_thread.assign(trace.threads().size(), false);
        for (const TrackInfo& info : trace.tracks()) {
            if (info.thread < is_device_thread.size() && is_of_device(info))
                is_device_thread[info.thread] = trace.threads()[info.thread].os_tid == 0;
        }
        for (const TrackInfo& info : trace.tracks()) {
            if (info.thread < is_device_thread.size() && !is_of_device(info))
                is_device_thread[info.thread] = false;
        }
        for (std::size_t i = 0; i < trace.threads().size(); ++i) {
            const ThreadInfo& info = trace.threads()[i];
            const std::int64_t pid = pid_of(info.process);
            std::int64_t tid = info.os_tid;
            if (is_device_thread[i]) {
                tid = 0;  // set by its first track
            } else if (tid <= 0 || !rows_.emplace(pid, tid).second) {
                tid = info.id;
                if (tid <= 0 || !rows_.emplace(pid, tid).second) tid = free_tid(pid);
            }
            thread.push_back({pid, tid});
        }
    }

    /// The first process that uses a device number keeps it; devices of other processes get new numbers.
    std::int64_t device_pid(const Trace& trace, const TrackInfo& info) {
        const Row owner = info.thread < trace.threads().size() ? trace.threads()[info.thread].process : 0;
        for (const DeviceProcess& known : devices) {
            if (known.process == owner && known.device == info.device) return known.pid;
        }
        const std::int64_t number = info.device.index < 0 ? 0 : info.device.index;
        DeviceProcess made{owner, info.device, number, false};
        bool is_taken = false;
        for (const DeviceProcess& known : devices) is_taken |= known.pid == number;
        if (is_taken) {
            made.pid = claim_pid(kFirstFreeId);
        } else {
            made.shares_pid = !pids_.insert(number).second;
        }
        devices.push_back(made);
        return made.pid;
    }

    ChromeRow claim_device_row(const Trace& trace, const TrackInfo& info) {
        const std::int64_t pid = device_pid(trace, info);
        const bool has_number = info.stream >= 0 && info.stream < kFirstFreeId;
        if (has_number && info.kind == TrackKind::Device && rows_.emplace(pid, info.stream).second)
            return {pid, info.stream};
        return {pid, free_tid(pid)};
    }

    std::set<std::int64_t> pids_;
    std::set<std::pair<std::int64_t, std::int64_t>> rows_;
    std::int64_t next_free_ = kFirstFreeId;
};

}  // namespace marey
