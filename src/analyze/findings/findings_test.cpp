// findings_test.cpp: hand-made traces with one planted cause each, and traces in which nothing stands out.
#include <marey/findings.h>

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include <marey/merge.h>
#include <marey/results.h>

#include "analyze/gpu/gpu_fixture.h"
#include "analyze/ranks/job_fixture.h"
#include "analyze/trace_fixture.h"

namespace marey {
namespace {

using testing::GpuFixture;

constexpr std::int64_t kUsNs = 1000, kMsNs = 1'000'000;

/// "calls.tiny function.self".
std::string ids_of(const std::vector<Finding>& findings) {
    std::string text;
    for (const Finding& finding : findings) text += (text.empty() ? "" : " ") + finding.id;
    return text;
}
std::string ids_of(const Trace& trace) {
    return ids_of(explain(trace));
}

/// The first finding, which must be complete.
Finding first_of(const Trace& trace) {
    const std::vector<Finding> findings = explain(trace);
    if (findings.empty()) return {};
    for (const Finding& finding : findings) {
        EXPECT_FALSE(finding.evidence.empty()) << finding.id;
        EXPECT_FALSE(finding.claim.empty() || finding.advice.empty()) << finding.id;
        EXPECT_NE(finding.command.find("FILE"), std::string::npos) << finding.id;
        EXPECT_LE(finding.gain_share, 1) << finding.id;
        const auto has_id = [&](const FindingRule& rule) { return rule.id == finding.id; };
        EXPECT_TRUE(std::ranges::any_of(finding_rules(), has_id)) << finding.id;
    }
    return findings.front();
}
std::string evidence_of(const Finding& finding) {
    std::string text;
    for (const FindingEvidence& each : finding.evidence) text += each.text + "\n";
    return text;
}

/// Steps of 10 ms that are one after another; `change` may change the ranges in each.
Trace steps_trace(int count, const std::function<void(int, std::vector<RangeSpec>&)>& change,
                  std::int64_t gap_ns = 0) {
    TraceFixture fixture;
    std::vector<RangeSpec> steps;
    std::int64_t now = 0;
    for (int i = 0; i < count; ++i) {
        std::vector<RangeSpec> inside = {{"forward", now, 4 * kMsNs},
                                         {"backward", now + 4 * kMsNs, 6 * kMsNs}};
        change(i, inside);
        std::int64_t end = now;
        for (const RangeSpec& range : inside) end = std::max(end, range.start + range.duration);
        steps.push_back({"ProfilerStep#" + std::to_string(i), now, end - now, inside});
        now = end + gap_ns;
    }
    fixture.site("forward", Scope::User);
    fixture.thread("main", steps);
    return fixture.trace();
}

/// Four threads with work of 1 ms each in turns: even work in small functions.
TraceFixture even_work(int threads, int count) {
    TraceFixture fixture;
    for (int thread = 0; thread < threads; ++thread) {
        std::vector<RangeSpec> ranges;
        for (int i = 0; i < count; ++i)
            ranges.push_back({"part" + std::to_string(i % 5), i * kMsNs, kMsNs - 1000});
        fixture.thread("worker " + std::to_string(thread), ranges);
    }
    return fixture;
}

TEST(Explain, ReportsNothingAboutEvenWork) {
    EXPECT_EQ(ids_of(Trace()), "");
    EXPECT_EQ(ids_of(even_work(1, 100).trace()), "");
    EXPECT_EQ(ids_of(even_work(4, 100).trace()), "");
    EXPECT_EQ(ids_of(steps_trace(30, [](int, auto&) {})), "function.self");  // backward: 60% is true
}

TEST(Explain, ReportsLostEvents) {
    TraceFixture fixture = even_work(1, 100);
    fixture.data().threads[0].dropped = 50;
    const Finding finding = first_of(fixture.trace());
    EXPECT_EQ(finding.id, "recording.lost");
    EXPECT_TRUE(finding.is_fault);
    ASSERT_EQ(finding.evidence.size(), 2u);
    EXPECT_EQ(finding.evidence[1].count, 50);
    TraceFixture few = even_work(1, 100);
    few.data().threads[0].dropped = 1;
    EXPECT_EQ(ids_of(few.trace()), "");
    TraceFixture cut = even_work(1, 100);
    cut.data().problems.push_back({"truncated", "The capture is truncated.", 1});
    EXPECT_EQ(first_of(cut.trace()).id, "recording.lost");
}

TEST(Explain, ReportsTheOverheadOfTheRecordingLast) {
    TraceFixture fixture;
    std::vector<RangeSpec> ranges;
    for (int i = 0; i < 20'000; ++i) ranges.push_back({"part" + std::to_string(i % 10), i * 1000, 400});
    fixture.thread("main", ranges);
    fixture.data().costs.push_back({"range", 400});
    const std::vector<Finding> findings = explain(fixture.trace());
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings.back().id, "recording.overhead");
    EXPECT_EQ(findings.back().gain_ns, 0);
}

TEST(Explain, SubtractsTheCostOfRecordingFromSelfTimes) {
    const auto trace_with_cost = [](double cost_ns) {
        TraceFixture fixture;
        std::vector<RangeSpec> inside;
        for (int i = 0; i < 9'000; ++i) inside.push_back({"part" + std::to_string(i % 10), i * 1000, 500});
        fixture.thread("main", {{"loop", 0, 9 * kMsNs, inside}});
        fixture.data().costs.push_back({"range", cost_ns});
        return fixture.trace();
    };
    EXPECT_EQ(first_of(trace_with_cost(0)).name, "loop");
    EXPECT_EQ(ids_of(trace_with_cost(240)), "");
}

TEST(Explain, ReportsASpecialFindingInsteadOfTheSelfTimeOfItsName) {
    TraceFixture fixture;
    std::vector<RangeSpec> ranges;
    for (int i = 0; i < 20'000; ++i) ranges.push_back({"get", i * kUsNs, 900});
    fixture.thread("main", ranges);
    const Finding finding = first_of(fixture.trace());
    EXPECT_EQ(finding.id, "calls.tiny");
    EXPECT_EQ(finding.claim, "get is called 20,000 times, for 0.9 us each: 90% of the time");
}

TEST(Explain, ReportsRangesRepeatedWithEqualTexts) {
    const auto trace_with = [](const std::function<Argument(TraceFixture&, int)>& value,
                               const char* key = "path") {
        TraceFixture fixture;
        std::vector<RangeSpec> inside;
        for (int i = 0; i < 20; ++i) inside.push_back({"read", i * kMsNs, kMsNs / 2});
        fixture.thread("main", {{"all", 0, 20 * kMsNs, inside}});
        for (int i = 0; i < 20; ++i) {
            Argument argument = value(fixture, i);
            argument.key = fixture.string(key);
            fixture.data().range_arguments.push_back(
                {static_cast<Row>(i + 1), static_cast<std::uint32_t>(fixture.data().arguments.size()), 1});
            fixture.data().arguments.push_back(argument);
        }
        return fixture.trace();
    };
    const auto text = [](TraceFixture& fixture, const std::string& value) {
        Argument argument;
        argument.set_string(fixture.string(value));
        return argument;
    };
    const Finding finding = first_of(trace_with([&](TraceFixture& f, int) { return text(f, "a.csv"); }));
    EXPECT_EQ(finding.id, "calls.repeated");
    EXPECT_EQ(finding.certainty, FindingCertainty::Possible);
    EXPECT_EQ(finding.gain_ns, 19 * kMsNs / 2);
    EXPECT_EQ(finding.evidence[0].text, "path=a.csv");
    const auto ids_with = [&](const auto& value) { return ids_of(trace_with(value)); };
    EXPECT_EQ(ids_with([&](TraceFixture& f, int i) { return text(f, std::to_string(i)); }), "function.self");
    EXPECT_EQ(ids_with([](TraceFixture&, int) {
                  Argument number;
                  number.set_integer(4096);  // sizes are often equal
                  return number;
              }),
              "function.self");
    const auto place = [&](TraceFixture& f, int) { return text(f, "app.py"); };  // as py-spy has it
    EXPECT_EQ(ids_of(trace_with(place, "filename")), "function.self");
}

TEST(Explain, ReportsOneThreadThatWorksAlone) {
    TraceFixture fixture;
    for (int thread = 0; thread < 4; ++thread) {
        std::vector<RangeSpec> ranges = {{"load", 0, 20 * kMsNs}};
        if (thread == 0) {
            for (int i = 0; i < 8; ++i)
                ranges.push_back({"merge" + std::to_string(i), (20 + i * 10) * kMsNs, 10 * kMsNs});
        }
        fixture.thread("worker " + std::to_string(thread), ranges);
    }
    const Finding finding = first_of(fixture.trace());
    EXPECT_EQ(finding.id, "threads.serial");
    EXPECT_EQ(finding.gain_ns, 60 * kMsNs);
    EXPECT_EQ(finding.thread, 0u);
}

TEST(Explain, ReportsSlowFirstSteps) {
    const Finding finding = first_of(steps_trace(20, [](int i, auto& inside) {
        if (i == 0) inside.push_back({"compile", 10 * kMsNs, 100 * kMsNs});
    }));
    EXPECT_EQ(finding.id, "step.first");
    EXPECT_EQ(finding.gain_ns, 100 * kMsNs);
    EXPECT_NE(evidence_of(finding).find("more time in compile"), std::string::npos);
}

TEST(Explain, ReportsOutliersWithOneCauseOnly) {
    const auto add = [](std::vector<RangeSpec>& inside, const std::string& name) {
        inside.push_back({name, inside.back().start + inside.back().duration, 50 * kMsNs});
    };
    const Finding finding = first_of(steps_trace(40, [&](int i, auto& inside) {
        if (i % 10 == 7) add(inside, "save");
    }));
    EXPECT_EQ(finding.id, "step.outlier");
    EXPECT_EQ(finding.gain_ns, 200 * kMsNs);
    EXPECT_EQ(finding.claim, "4 of 40 steps take up to 60.0 ms instead of 10.0 ms, most of it in save");
    const Trace disturbed = steps_trace(40, [&](int i, auto& inside) {
        if (i % 10 == 7) add(inside, "part" + std::to_string(i));
    });
    EXPECT_EQ(ids_of(disturbed).find("step.outlier"), std::string::npos);
}

TEST(Explain, ReportsTheTimeBetweenStepsAndLoadersOnTheirThread) {
    const Trace between = steps_trace(
        20, [](int, auto&) {}, 15 * kMsNs);
    const Finding finding = first_of(between);
    EXPECT_EQ(finding.id, "step.between");
    EXPECT_EQ(finding.gain_ns, 19 * 15 * kMsNs);
    const Finding input = first_of(steps_trace(20, [](int, auto& inside) {
        inside.push_back({"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                          inside.back().start + inside.back().duration, 15 * kMsNs});
    }));
    EXPECT_EQ(input.id, "step.input");
    EXPECT_EQ(input.gain_ns, 20 * 15 * kMsNs);
}

TEST(Explain, ReportsMemoryThatGrowsWithEachStep) {
    const auto trace_with = [](std::int64_t kept_per_step) {
        TraceFixture fixture;
        std::vector<RangeSpec> steps;
        for (int i = 0; i < 20; ++i)
            steps.push_back(
                {"ProfilerStep#" + std::to_string(i),
                 i * kMsNs,
                 kMsNs,
                 {{"forward", i * kMsNs + 100, 400'000}, {"backward", i * kMsNs + 500'000, 300'000}}});
        fixture.thread("main", steps);
        std::int64_t total = 0;
        TraceData& data = fixture.data();
        const auto report = [&](std::int64_t time_ns, std::uint64_t address, std::int64_t bytes) {
            total += bytes;
            data.memory_time_ns.push_back(time_ns);
            data.memory_thread.push_back(0);
            data.memory_address.push_back(address);
            data.memory_bytes.push_back(bytes);
            data.memory_total_allocated.push_back(total);
            data.memory_total_reserved.push_back(total);
            data.memory_device.push_back({});
            data.memory_out_of_memory.push_back(0);
        };
        for (int i = 0; i < 20; ++i) {
            const auto address = static_cast<std::uint64_t>(i + 1) << 32;
            report(i * kMsNs + 200, address, 8 << 20);
            if (kept_per_step > 0) report(i * kMsNs + 300, address + (1 << 30), kept_per_step);
            report(i * kMsNs + 600'000, address, -(8 << 20));
        }
        return fixture.trace();
    };
    const std::vector<Finding> findings = explain(trace_with(1 << 20));
    const auto growth = std::ranges::find(findings, "memory.growth", &Finding::id);
    ASSERT_NE(growth, findings.end());
    EXPECT_EQ(growth->claim, "memory on cpu grows by 1.0 MiB per step");
    EXPECT_EQ(growth->name, "forward");
    EXPECT_EQ(ids_of(trace_with(0)).find("memory"), std::string::npos);
    const auto refused = [&](std::int64_t asked) {
        Trace trace = trace_with(0);
        TraceData data = trace.data();
        data.memory_out_of_memory.back() = 1;
        data.memory_bytes.back() = asked;
        return first_of(Trace(std::make_shared<const TraceData>(std::move(data)))).claim;
    };
    EXPECT_EQ(refused(3 << 20), "out of memory on cpu: 3.0 MiB were refused, with 0.0 KiB allocated");
    EXPECT_EQ(refused(-5), "out of memory on cpu: a request was refused, with 0.0 KiB allocated");
}

/// `count` iterations of 1 ms: a launch after `idle` us, then the device works for the rest.
GpuFixture gpu_iterations(int count, std::int64_t idle_us) {
    GpuFixture gpu;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t start = (i * 1000 + idle_us) * kUsNs;
        gpu.range(start - 4 * kUsNs, 3 * kUsNs, "aten::add");
        gpu.kernel(start, (1000 - idle_us) * kUsNs, "k", gpu.call(start - 3 * kUsNs, kUsNs));
    }
    return gpu;
}

TEST(Explain, ReportsAStarvedDevice) {
    GpuFixture gpu = gpu_iterations(100, 400);
    const Finding finding = first_of(gpu.trace());
    EXPECT_EQ(finding.id, "gpu.starved");
    EXPECT_EQ(finding.gain_ns, 99 * 400 * kUsNs);
    EXPECT_GE(finding.start_ns, 0);
    EXPECT_EQ(ids_of(gpu_iterations(100, 5).trace()), "");
}

TEST(Explain, ReportsTheLineThatWaitsForADevice) {
    GpuFixture gpu;
    constexpr std::int64_t kStep = 10 * kMsNs;
    for (std::int64_t i = 0; i < 30; ++i) {
        const std::int64_t start = i * kStep;
        gpu.python(start, kStep, "train.py(10): train_step");
        gpu.kernel(start + 20 * kUsNs, 5 * kMsNs, "gemm", gpu.call(start + 10 * kUsNs, kUsNs));
        const auto item = gpu.range(start + 20 * kUsNs, 5 * kMsNs + 20 * kUsNs, "aten::item");
        gpu.integer(item, "line", 17);
        gpu.call(start + 30 * kUsNs, 5 * kMsNs, "cudaStreamSynchronize");
    }
    const std::vector<Finding> findings = explain(gpu.trace());
    const auto sync = std::ranges::find(findings, "gpu.sync", &Finding::id);
    ASSERT_NE(sync, findings.end()) << ids_of(findings);
    EXPECT_NE(evidence_of(*sync).find("waits at train.py(17): train_step"), std::string::npos)
        << evidence_of(*sync);
}

TEST(Explain, ReportsPageableCopies) {
    GpuFixture gpu;
    for (std::int64_t i = 0; i < 50; ++i) {
        const std::int64_t start = i * kMsNs;
        gpu.copy(start, 300 * kUsNs, 1 << 20, "Memcpy HtoD (Pageable -> Device)",
                 gpu.call(start - 10 * kUsNs, kUsNs));
        gpu.kernel(start + 300 * kUsNs, 700 * kUsNs, "k", gpu.call(start - 5 * kUsNs, kUsNs));
    }
    const Trace trace = gpu.trace();
    EXPECT_EQ(ids_of(trace), "gpu.copies gpu.pageable");
    EXPECT_EQ(first_of(trace).gain_ns, 50 * 300 * kUsNs);
}

TEST(Explain, ReportsTheRankThatOthersWaitFor) {
    const auto trace_of = [](PlantedCause cause, double delay_ns) {
        return merge_traces(SimulatedJob({.ranks = 4,
                                          .ranks_per_host = 4,
                                          .steps = 20,
                                          .cause = cause,
                                          .slow_rank = 2,
                                          .delay_ns = delay_ns,
                                          .has_exchanges = false},
                                         1)
                                .traces());
    };
    const Finding finding = first_of(trace_of(PlantedCause::Kernels, 3e6));
    EXPECT_EQ(finding.id, "rank.slow_kernels");
    EXPECT_EQ(finding.name, "rank 2");
    EXPECT_EQ(first_of(trace_of(PlantedCause::Input, 3e6)).id, "rank.late_input");
    EXPECT_EQ(ids_of(trace_of(PlantedCause::None, 0)).find("rank."), std::string::npos);
}

TEST(Explain, ShowsOnlyFindingsThatMentionAName) {
    const Trace trace = steps_trace(20, [](int i, auto& inside) {
        if (i == 0) inside.push_back({"compile", 10 * kMsNs, 100 * kMsNs});
    });
    EXPECT_EQ(ids_of(explain(trace, {.about = "COMPILE"})), "step.first");
    EXPECT_EQ(ids_of(explain(trace, {.about = "step."})), "step.first");
    EXPECT_EQ(ids_of(explain(trace, {.about = "absent"})), "");
}

TEST(Explain, HasAResultWhoseEvidenceRefersToFindings) {
    const Trace trace = steps_trace(20, [](int i, auto& inside) {
        if (i == 0) inside.push_back({"compile", 10 * kMsNs, 100 * kMsNs});
    });
    const Result result = make_result(trace, "explain");
    const ResultTable& findings = result.table("findings");
    const ResultTable& evidence = result.table("finding_evidence");
    ASSERT_GT(findings.rows, 0u);
    EXPECT_EQ(std::get<std::string_view>(findings.cell(0, findings.column("id"))), "step.first");
    std::set<std::int64_t> numbers;
    for (std::size_t row = 0; row < evidence.rows; ++row)
        numbers.insert(std::get<std::int64_t>(evidence.cell(row, evidence.column("finding"))));
    EXPECT_EQ(numbers.size(), findings.rows);
}

}  // namespace
}  // namespace marey
