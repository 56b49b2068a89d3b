// sick_job_fixture.h: simulated jobs that hang, crash, get out of step or are only slow, for tests.
#pragma once

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "analyze/trace_fixture.h"

namespace marey {

enum class JobKind : std::uint8_t {
    Balanced,
    Straggler,
    SlowInput,  ///< of one rank
    Hang,
    Crash,
    Disagreement,
    AbsentRank,
    UnequalSteps,
    NotSynchronised,
};

/// A job with everything that its seed decides: ranks, hosts, steps, collectives, and who is the victim.
class SickJob {
  public:
    SickJob(JobKind kind, std::uint64_t seed) : kind_(kind), random_(seed) {
        ranks = 2 + pick(7);
        if (kind == JobKind::AbsentRank) ranks = std::max(ranks, 3);  // two of them are given
        hosts = 1 + pick(2);
        steps = 10 + pick(30);
        collectives = 1 + pick(3);
        has_steps = pick(4) != 0 || kind == JobKind::UnequalSteps;
        is_numbered = pick(2) == 0;
        loads_between_steps = pick(2) == 0;
        victim = pick(ranks);
        fault_step = 1 + pick(steps - 2);
        fault_part = pick(collectives);
        has_world_size = pick(4) != 0 || kind == JobKind::AbsentRank;
        knows_signals = pick(2) == 0;
        is_running = kind == JobKind::Hang && pick(3) == 0;
        hangs_after_disagreement = !is_numbered || pick(2) == 0;
        absent_is_slow = kind == JobKind::AbsentRank && pick(2) == 0;
        wait_ns = uniform(3e9, 60e9);
        delay_ns = uniform(1e6, 4e6);
        for (int host = 0; host < hosts; ++host) offset_.push_back(std::floor(uniform(1e12, 1e14)));
        rank_.resize(static_cast<std::size_t>(ranks));
        for (Rank& rank : rank_) rank.now = rank.start = uniform(1e6, 3e9);  // ranks are launched one by one
    }

    int ranks, hosts, steps, collectives, victim, fault_step, fault_part;
    bool has_steps, is_numbered, loads_between_steps, has_world_size, knows_signals, is_running,
        hangs_after_disagreement, absent_is_slow;
    double wait_ns, delay_ns;

    std::vector<Trace> traces() {
        for (int step = 0; step < steps && !is_over_; ++step) run_step(step);
        for (Rank& rank : rank_) end_step(rank, 0);
        std::vector<Trace> result;
        for (int i = 0; i < ranks; ++i) {
            if (kind_ != JobKind::AbsentRank || i != victim) result.push_back(trace_of(i));
        }
        return result;
    }

    /// The number of the collective at which the job fails, in its group, which is "world".
    int fault_number() const { return fault_step * collectives + fault_part; }
    std::string fault_place() const {
        if (is_numbered) return "world #" + std::to_string(fault_number());
        if (has_steps) return "#" + std::to_string(fault_part) + " in step " + std::to_string(fault_step);
        return "#" + std::to_string(fault_number());
    }

  private:
    struct Numbered {
        Row row;
        int number;
    };
    struct Rank {
        double now = 0, start = 0, end = 0;
        int step = -1;  ///< open; -1: none
        double step_start = 0;
        bool is_dead = false;           ///< no longer part of the job
        std::vector<RangeSpec> inside;  ///< of the step, or of the whole recording
        std::vector<RangeSpec> ranges;
        std::vector<int> numbers;  ///< of its collectives, in order
        bool is_closed = true;
        int signal = -1, exit_code = -1;
    };

    int pick(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }
    double uniform(double from, double to) {
        return std::uniform_real_distribution<double>(from, to)(random_);
    }
    double noisy(double ns) { return ns * uniform(0.98, 1.02); }
    Rank& rank(int i) { return rank_[static_cast<std::size_t>(i)]; }
    std::int64_t local(int i, double ns) const {
        return static_cast<std::int64_t>(offset_[static_cast<std::size_t>(i % hosts)] + ns);
    }
    bool is_victim(int i, int step, int part) const {
        return i == victim && step == fault_step && part == fault_part;
    }

    void add(int i, const char* name, double ns, std::uint16_t flags = 0) {
        Rank& own = rank(i);
        const std::int64_t from = local(i, own.now);
        own.inside.push_back({name, from, local(i, own.now + ns) - from, {}, flags});
        own.now += ns;
    }
    void begin_step(int i, int step) {
        Rank& own = rank(i);
        own.step = step;
        own.step_start = own.now;
        if (!has_steps) return;
        own.ranges.insert(own.ranges.end(), own.inside.begin(), own.inside.end());
        own.inside.clear();
    }
    void end_step(Rank& own, std::uint16_t flags) {
        const auto i = static_cast<int>(&own - rank_.data());
        if (!has_steps || own.step < 0) {
            own.ranges.insert(own.ranges.end(), own.inside.begin(), own.inside.end());
        } else {
            const std::int64_t from = local(i, own.step_start);
            own.ranges.push_back({"ProfilerStep#" + std::to_string(own.step), from, local(i, own.now) - from,
                                  std::move(own.inside), flags});
        }
        own.inside.clear();
        own.step = -1;
    }

    void load(int i) {
        const bool is_slow = kind_ == JobKind::SlowInput && i == victim;
        add(i, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            noisy(300e3) + (is_slow ? delay_ns * collectives : 0));
    }

    void run_step(int step) {
        for (int i = 0; i < ranks; ++i) {
            if (rank(i).is_dead) continue;
            if (kind_ == JobKind::UnequalSteps && i == victim && step == fault_step) {
                rank(i).is_dead = true;
                continue;
            }
            if (loads_between_steps) load(i);
            begin_step(i, step);
            if (!loads_between_steps) load(i);
        }
        for (int part = 0; part < collectives && !is_over_; ++part) {
            for (int i = 0; i < ranks; ++i) {
                if (rank(i).is_dead) continue;
                const bool is_slow = i == victim && (kind_ == JobKind::Straggler || absent_is_slow);
                add(i, "forward.py(3): prepare", noisy(200e3) + (is_slow ? delay_ns : 0));
                add(i, "aten::mm", noisy(2e6));
            }
            meet(step, part);
        }
        if (is_over_) return;
        for (Rank& own : rank_) {
            if (!own.is_dead) end_step(own, 0);
        }
    }

    void meet(int step, int part) {
        const bool is_fault = step == fault_step && part == fault_part;
        if (is_fault && (kind_ == JobKind::Hang || kind_ == JobKind::Crash)) return fail(step, part);
        const bool disagrees = is_fault && kind_ == JobKind::Disagreement;
        if (disagrees && hangs_after_disagreement) return fail(step, part);
        double last = 0;
        for (const Rank& own : rank_) {
            if (!own.is_dead) last = std::max(last, own.now);
        }
        for (int i = 0; i < ranks; ++i) {
            Rank& own = rank(i);
            if (own.is_dead) continue;
            const double from = kind_ == JobKind::NotSynchronised ? own.now : last;
            own.numbers.push_back(step * collectives + part);
            add(i, disagrees && i == victim ? "all_gather" : "all_reduce", from + noisy(150e3) - own.now);
        }
    }

    /// The last event of the job: nobody gets any further.
    void fail(int step, int part) {
        is_over_ = true;
        double end = wait_ns;
        for (const Rank& own : rank_) end = std::max(end, own.now + wait_ns);
        if (kind_ == JobKind::Crash && pick(2) == 0) end -= wait_ns - uniform(20e6, 4e9);  // soon ended
        for (int i = 0; i < ranks; ++i) {
            Rank& own = rank(i);
            // Of a process that was killed, the last second is not known.
            const double own_end = is_running ? end : end - uniform(0, 0.9e9) * (end - own.now > 2e9 ? 1 : 0);
            own.is_closed = false;
            if (is_victim(i, step, part) && kind_ == JobKind::Crash) {
                add(i, "ctypes/__init__.py(5): string_at", uniform(0, 3e6), kUnfinished);
                own.signal = knows_signals ? SIGSEGV : -1;
            } else if (is_victim(i, step, part) && kind_ == JobKind::Hang) {
                add(i, "train.py(12): load_batch", own_end - own.now, kUnfinished);
                own.signal = knows_signals && !is_running ? SIGKILL : -1;
            } else {
                own.numbers.push_back(step * collectives + part);
                add(i, kind_ == JobKind::Disagreement && i == victim ? "all_gather" : "all_reduce",
                    own_end - own.now, kUnfinished);
                const int ended_by = kind_ == JobKind::Crash ? SIGTERM : SIGKILL;
                own.signal = knows_signals && !is_running ? ended_by : -1;
            }
            end_step(own, kUnfinished);
        }
    }

    Trace trace_of(int i) {
        Rank& own = rank(i);
        TraceFixture fixture;
        TraceData& data = fixture.data();
        ProcessInfo& process = data.processes[0];
        process.node = i;
        process.host = fixture.string("node" + std::to_string(i % hosts));
        process.clock = fixture.string("boot" + std::to_string(i % hosts) + "/1");
        process.exit_signal = own.signal;
        if (!is_numbered) {
            for (RangeSpec& range : own.ranges) rename(range);
        }
        fixture.site("aten::mm", Scope::Function);
        fixture.window(local(i, own.start - 1e6), local(i, own.now));
        fixture.thread("main", own.ranges, process.pid);
        if (is_numbered) number(fixture, own);
        if (!own.is_closed) fixture.problem(is_running ? "running" : "crashed", "It did not end.");
        if (has_world_size)
            data.metadata.push_back(
                {"distributedInfo",
                 "{\"rank\":" + std::to_string(i) + ",\"world_size\":" + std::to_string(ranks) + "}"});
        data.clock.max_error_ns = 30;
        return fixture.trace();
    }
    /// Without numbers, only the names of collectives are known.
    static void rename(RangeSpec& range) {
        if (range.name.starts_with("all_")) range.name = "gloo:" + range.name;
        for (RangeSpec& inside : range.inside) rename(inside);
    }
    void number(TraceFixture& fixture, const Rank& own) const {
        TraceData& data = fixture.data();
        std::size_t next = 0;
        for (Row row = 0; row < data.range_start_ns.size(); ++row) {
            if (!data.strings[data.sites[data.range_site[row]].name].starts_with("all_")) continue;
            data.range_arguments.push_back({row, static_cast<std::uint32_t>(data.arguments.size()), 2});
            Argument group, sequence;
            group.key = fixture.string("group");
            group.kind = ValueKind::String;
            group.string = fixture.string("world");
            sequence.key = fixture.string("sequence");
            sequence.kind = ValueKind::Int;
            sequence.integer = own.numbers[next++];
            data.arguments.push_back(group);
            data.arguments.push_back(sequence);
        }
    }

    JobKind kind_;
    std::mt19937_64 random_;
    std::vector<double> offset_;  ///< of the clocks of hosts
    std::vector<Rank> rank_;
    bool is_over_ = false;
};

}  // namespace marey
