// device_property_test.cpp: random programs with random calls and work, against the simplest reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include <marey/validate.h>

#include "collect/device_fixture.h"
#include "collect/random_log_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"

namespace marey {
namespace {

using testing::ExpectedRange;
using testing::kDevice;
using testing::LogWriter;
using testing::put_call;
using testing::put_work;

struct ExpectedCall {
    std::string name;
    std::uint64_t start, end;
    std::uint32_t thread;
    int outer = -1;
    std::uint32_t correlation = 0;
};
struct ExpectedWork {
    std::string name;
    std::uint32_t correlation;
    std::uint64_t start, end;
};

struct Program {
    std::vector<std::vector<ExpectedRange>> ranges;  ///< by thread - 1
    std::vector<ExpectedCall> calls;
    std::vector<ExpectedWork> work;
    std::uint64_t start, stop;
};

/// Calls of one thread follow one another, some with others inside.
void make_calls(Program& program, std::uint32_t thread, std::mt19937& random) {
    std::uint64_t now = 1'000'000 + random() % 50'000;
    const std::uint64_t mean = 1 + random() % 100'000;
    for (int i = 0; i < 60; ++i) {
        now += random() % mean;
        ExpectedCall call{"call " + std::to_string(program.calls.size()), now, now + random() % mean, thread};
        call.correlation = static_cast<std::uint32_t>(program.calls.size() + 1);
        now = call.end + (random() % 4 == 0 ? 0 : 1);
        const int outer = static_cast<int>(program.calls.size());
        program.calls.push_back(call);
        std::uint64_t at = call.start;
        for (std::uint32_t inner = random() % 3; inner-- != 0 && at < call.end;) {
            ExpectedCall inside{"call " + std::to_string(program.calls.size()), 0, 0, thread, outer};
            inside.start = at + random() % (call.end - at);
            inside.end = inside.start + random() % (call.end - inside.start + 1);
            // One that covers all of it would be taken for the outer one.
            if (inside.start == call.start && inside.end == call.end) continue;
            at = inside.end + 1;
            program.calls.push_back(inside);
        }
    }
}

Program make_program(LogWriter& log, std::mt19937& random) {
    Program program{{}, {}, {}, 1'000'000 + random() % 500'000, 2'000'000 + random() % 4'000'000};
    for (std::uint32_t thread = 1; thread <= 2; ++thread) {
        log.born(thread, "thread", 1, 100 + thread);
        program.ranges.push_back(
            testing::run_program(log, thread, random, 10 + static_cast<int>(random() % 300)));
    }
    for (std::uint32_t thread = 1; thread <= 3; ++thread) make_calls(program, thread, random);  // 3: unknown
    for (const ExpectedCall& call : program.calls) {
        if (call.correlation == 0) continue;
        for (std::uint32_t i = random() % 3; i-- != 0;) {
            const std::uint64_t start = call.end + random() % 100'000;  // a call that is cut ends no later
            program.work.push_back({"work " + std::to_string(program.work.size()), call.correlation, start,
                                    start + random() % 80'000});
        }
    }
    // Devices deliver in any order.
    std::vector<std::size_t> order(program.calls.size() + program.work.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
        if (i < program.calls.size()) {
            const ExpectedCall& call = program.calls[i];
            put_call(log, kDevice,
                     {.name = call.name,
                      .start = call.start,
                      .end = call.end,
                      .os_tid = 100 + call.thread,
                      .correlation = call.correlation,
                      .result = random() % 8 == 0 ? 3 : 0});
        } else {
            const ExpectedWork& work = program.work[i - program.calls.size()];
            put_work(log, kDevice,
                     {.name = work.name,
                      .start = work.start,
                      .end = work.end,
                      .correlation = work.correlation,
                      .stream = static_cast<std::uint32_t>(random() % 3)});
        }
    }
    log.start(5, program.start, testing::device_session());
    for (std::uint32_t thread = 1; thread <= 2; ++thread) {
        for (const ExpectedRange& range : program.ranges[thread - 1]) {
            if (range.start <= program.stop && range.end > program.stop)
                log.open_at_stop(5, thread, range.name, range.start, range.depth);
        }
    }
    log.stop(5, program.stop);
    return program;
}

bool is_in(const Program& program, std::uint64_t start, std::uint64_t end) {
    return start <= program.stop && end >= program.start;
}

/// The innermost range around the middle of a call, as an index; -1: none.
int around(const Program& program, const ExpectedCall& call) {
    if (call.thread > program.ranges.size()) return -1;
    const std::uint64_t end = std::min(call.end, program.stop);
    const std::uint64_t start = std::max(call.start, program.start);
    const std::uint64_t middle = start + (end - start) / 2;
    const std::vector<ExpectedRange>& ranges = program.ranges[call.thread - 1];
    int found = -1;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        if (is_in(program, ranges[i].start, ranges[i].end) && ranges[i].start <= middle &&
            std::min(ranges[i].end, program.stop) >= middle)
            found = static_cast<int>(i);
    }
    return found;
}

/// Whether a range begins or ends within it.
bool is_crossed(const Program& program, const ExpectedCall& call) {
    if (call.thread > program.ranges.size()) return false;
    const auto& ranges = program.ranges[call.thread - 1];
    return std::any_of(ranges.begin(), ranges.end(), [&](const ExpectedRange& range) {
        const auto is_inside = [&](std::uint64_t time) { return time >= call.start && time <= call.end; };
        return is_inside(range.start) || is_inside(std::min(range.end, program.stop));
    });
}

class Checker {
  public:
    Checker(const Program& program, const Trace& trace) : program_(program), trace_(trace) {}

    void check() {
        ASSERT_EQ(testing::find_fault(trace_), "");
        // Made-up values of ranges have made-up numbers, which are neither unique nor in order.
        for (const Violation& violation : validate(trace_)) {
            if (violation.rule != "ids" && violation.rule != "backward_before_forward" &&
                violation.rule != "sequence")
                ADD_FAILURE() << violation.rule << ": " << violation.example;
        }
        for (Row row = 0; row < trace_.ranges().size(); ++row) {
            const std::string name(trace_.range_name(row));
            if (name.rfind("site", 0) == 0) continue;
            EXPECT_TRUE(rows_.emplace(name, row).second) << name << " twice";
        }
        check_ranges();
        check_calls();
        check_work();
        check_self_times();
    }

  private:
    std::optional<Row> row_of(const std::string& name) const {
        const auto found = rows_.find(name);
        return found == rows_.end() ? std::nullopt : std::optional(found->second);
    }
    bool is_call(Row row) const { return trace_.range_name(row).rfind("call", 0) == 0; }

    // As if there were no calls.
    void check_ranges() {
        for (std::uint32_t thread = 1; thread <= program_.ranges.size(); ++thread) {
            std::vector<Row> rows;
            for (const TrackInfo& track : trace_.tracks()) {
                if (track.kind != TrackKind::Thread || trace_.threads()[track.thread].id != thread) continue;
                for (Row i = 0; i < track.range_count; ++i) {
                    if (!is_call(track.first_range + i)) rows.push_back(track.first_range + i);
                }
            }
            std::size_t next = 0;
            std::vector<Row> of_truth;
            for (const ExpectedRange& range : program_.ranges[thread - 1]) {
                of_truth.push_back(kNoRow);
                if (!is_in(program_, range.start, range.end)) continue;
                ASSERT_LT(next, rows.size());
                const Row row = of_truth.back() = rows[next++];
                EXPECT_EQ(trace_.range_name(row), range.name);
                EXPECT_EQ(trace_.ranges().start_ns[row], static_cast<std::int64_t>(range.start));
                EXPECT_EQ(trace_.ranges().parent[row],
                          range.parent < 0 ? kNoRow : of_truth[static_cast<std::size_t>(range.parent)]);
            }
            EXPECT_EQ(next, rows.size());
            range_rows_.push_back(of_truth);
        }
    }

    void check_calls() {
        for (const ExpectedCall& call : program_.calls) {
            const auto row = row_of(call.name);
            ASSERT_EQ(row.has_value(), is_in(program_, call.start, call.end)) << call.name;
            if (!row) continue;
            Row parent = kNoRow;
            const auto outer = call.outer < 0
                                   ? std::nullopt
                                   : row_of(program_.calls[static_cast<std::size_t>(call.outer)].name);
            const int range = around(program_, call);
            if (outer) {
                parent = *outer;
            } else if (range >= 0) {
                parent = range_rows_[call.thread - 1][static_cast<std::size_t>(range)];
            }
            EXPECT_EQ(trace_.ranges().parent[*row], parent) << call.name;
            if (is_crossed(program_, call) || call.outer >= 0) continue;
            EXPECT_EQ(trace_.ranges().start_ns[*row], static_cast<std::int64_t>(call.start)) << call.name;
            EXPECT_EQ(trace_.ranges().start_ns[*row] + trace_.ranges().duration_ns[*row],
                      static_cast<std::int64_t>(std::min(call.end, program_.stop)));
        }
    }

    void check_work() {
        std::map<std::string, std::vector<std::string>> launchers;
        for (const LinkInfo& link : trace_.links())
            launchers[std::string(trace_.range_name(link.to))].emplace_back(trace_.range_name(link.from));
        for (const ExpectedWork& work : program_.work) {
            const auto row = row_of(work.name);
            ASSERT_EQ(row.has_value(), is_in(program_, work.start, work.end)) << work.name;
            if (!row) continue;
            const ExpectedCall& call = program_.calls[work.correlation - 1];
            std::vector<std::string> expected;
            if (is_in(program_, call.start, call.end)) expected.push_back(call.name);
            EXPECT_EQ(launchers[work.name], expected) << work.name;
        }
    }

    void check_self_times() {
        std::vector<std::int64_t> covered(trace_.ranges().size(), 0);
        for (Row row = 0; row < covered.size(); ++row) {
            const Row parent = trace_.ranges().parent[row];
            if (parent != kNoRow) covered[parent] += trace_.clipped_duration_ns(row);
        }
        for (Row row = 0; row < covered.size(); ++row)
            EXPECT_EQ(trace_.ranges().self_ns[row], trace_.clipped_duration_ns(row) - covered[row]);
    }

    const Program& program_;
    const Trace& trace_;
    std::map<std::string, Row> rows_;           ///< of calls and work
    std::vector<std::vector<Row>> range_rows_;  ///< by thread - 1 and true range
};

TEST(DeviceProperty, CallsAndWorkAreWhereTheReferencePutsThem) {
    for (std::uint32_t seed = 1; seed <= 150; ++seed) {
        std::mt19937 random(seed);
        LogWriter log;
        const Program program = make_program(log, random);
        const Trace trace = build_trace(log.raw(), {.session = 5});
        Checker(program, trace).check();
        if (HasFailure()) FAIL() << "seed " << seed;
    }
}

TEST(DeviceProperty, AnyRecordsGiveAConsistentTrace) {
    for (std::uint32_t seed = 1; seed <= 400; ++seed) {
        std::mt19937 random(seed);
        LogWriter log = testing::random_log(seed);
        testing::add_random_device_records(log, kDevice, random, 60);
        const Trace trace = build_trace(log.raw());
        ASSERT_EQ(testing::find_fault(trace), "") << seed;
    }
}

}  // namespace
}  // namespace marey
