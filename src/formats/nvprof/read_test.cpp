// read_test.cpp: nvprof databases, rule by rule.
#if MAREY_HAVE_SQLITE

#include <map>
#include <random>

#include <marey/analyze.h>

#include "base/golden_fixture.h"
#include "formats/sqlite_fixture.h"

namespace marey {
namespace {

/// Only the columns that PyTorch's reader uses: no threads, no flags.
constexpr const char* kOldSchema =
    "CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(_id_ INTEGER PRIMARY KEY, id INT, name INT, timestamp INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(_id_ INTEGER PRIMARY KEY, cbid INT, start INT, end INT,"
    "  correlationId INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(_id_ INTEGER PRIMARY KEY, start INT, end INT,"
    "  correlationId INT, name INT);"
    "INSERT INTO StringTable VALUES (1, 'outer'), (2, 'inner'), (3, 'kernel');";

std::string name_of(const Trace& trace, Row row) {
    return row == kNoRow ? "none" : std::string(trace.range_name(row));
}

/// The innermost marker of each kernel, found through its launch call.
std::map<Row, Row> markers_of_kernels(const Trace& trace) {
    std::map<Row, Row> markers;
    for (const LinkInfo& link : trace.links()) {
        Row row = trace.ranges().parent[link.from];
        while (row != kNoRow && trace.sites()[trace.ranges().site[row]].scope != Scope::User)
            row = trace.ranges().parent[row];
        markers[link.to] = row;
    }
    return markers;
}

TEST(Nvprof, TheSampleIsReadCompletely) {
    SqliteSample sample;
    sample.run_file("nvprof_schema").run_file("nvprof_rows");
    expect_golden(profile_text(sample.read()), "import/nvprof.txt");
}

TEST(Nvprof, MarkersNestAndSumUp) {
    const Trace trace = profile_of(
        kOldSchema,
        "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, 10, 1, 0), (2, 20, 2, 100), (3, 20, 0, 400),"
        "(4, 30, 2, 500), (5, 30, 0, 600), (6, 10, 0, 1000)");
    ASSERT_EQ(trace.ranges().size(), 3u);
    EXPECT_EQ(name_of(trace, trace.ranges().parent[1]), "outer");
    EXPECT_EQ(name_of(trace, trace.ranges().parent[2]), "outer");
    EXPECT_EQ(trace.ranges().self_ns[0], 600);  // nanoseconds, unchanged
    const Averages averages = key_averages(trace);
    ASSERT_EQ(averages.rows.size(), 2u);  // averages can be computed over the tree
    EXPECT_EQ(trace.processes().size(), 1u);
    EXPECT_EQ(trace.threads().size(), 1u);
    EXPECT_TRUE(trace.problems().empty());
}

TEST(Nvprof, AKernelBelongsToTheInnermostMarkerOnly) {
    const Trace trace = profile_of(
        kOldSchema,
        "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, 10, 1, 0), (2, 20, 2, 100), (3, 20, 0, 400),"
        "(4, 10, 0, 1000);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 211, 200, 300, 7), (2, 211, 500, 600, 8),"
        "(3, 211, 1200, 1300, 9);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (1, 2000, 2100, 7, 3),"
        "(2, 2200, 2300, 8, 3), (3, 2400, 2500, 9, 3)");
    ASSERT_EQ(trace.links().size(), 3u);
    std::string text;
    for (const auto& [kernel, marker] : markers_of_kernels(trace)) text += name_of(trace, marker) + " ";
    EXPECT_EQ(text, "inner outer none ");
    for (const LinkInfo& link : trace.links()) EXPECT_EQ(link.kind, LinkKind::Launch);
}

TEST(Nvprof, KernelsOfOtherCallsAreCountedAndTheCallsAreKept) {
    const Trace trace = profile_of(
        kOldSchema,
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 13, 200, 300, 7), (2, 4711, 500, 600, 8),"
        "(3, 20, 700, 710, 9);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (1, 2000, 2100, 7, 3),"
        "(2, 2200, 2300, 7, 3), (3, 2400, 2500, 8, 3)");
    EXPECT_EQ(trace.range_name(0), "cudaLaunch");
    EXPECT_EQ(trace.range_name(1), "CUDA runtime call 4711");
    EXPECT_EQ(trace.range_name(2), "cudaMalloc");
    EXPECT_EQ(trace.links().size(), 3u);
    EXPECT_EQ(problem_count(trace, "other_launch"), 3u);
    ASSERT_EQ(trace.problems().size(), 2u);
    EXPECT_EQ(trace.problems()[0].text,
              "Kernels were launched by cudaLaunch (cbid 13), not by cudaLaunchKernel.");
}

TEST(Nvprof, ADuplicateMarkerIsAnError) {
    SqliteSample starts, ends;
    starts.run(kOldSchema)
        .run(
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, 10, 1, 0), (2, 10, 2, 100),"
            "(3, 10, 0, 400)");
    EXPECT_EQ(starts.failure(), starts.path() + ": marker 10 ('outer') starts more than once");
    ends.run(kOldSchema)
        .run(
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, 10, 1, 0), (2, 10, 0, 100),"
            "(3, 10, 0, 400)");
    EXPECT_EQ(ends.failure(), ends.path() + ": marker 10 ends more than once");
}

TEST(Nvprof, ALaunchOfSeveralKernelsInAMarkerIsAnError) {
    SqliteSample sample;
    sample.run(kOldSchema)
        .run(
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, 10, 1, 0), (2, 20, 2, 10), (3, 20, 0, 20),"
            "(4, 10, 0, 1000);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 211, 200, 300, 7);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (1, 2000, 2100, 7, 3),"
            "(2, 2200, 2300, 7, 3)");
    EXPECT_EQ(sample.failure(), sample.path() +
                                    ": marker 10 ('outer') contains runtime call 7, which launched 2 "
                                    "kernels instead of one");
    // Calls outside every marker are not checked.
    sample.run("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = 1100, end = 1200");
    EXPECT_EQ(sample.read().links().size(), 2u);
}

TEST(Nvprof, ThreadsComeFromMarkersAndCalls) {
    SqliteSample sample;
    sample.run_file("nvprof_schema")
        .run(
            "INSERT INTO StringTable VALUES (1, 'm');"
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER(flags, timestamp, id, objectKind, objectId, name, domain)"
            " VALUES (2, 0, 1, 2, x'01000000FEFFFFFF', 1, 0), (4, 100, 1, 2, x'01000000FEFFFFFF', 0, 0);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME(cbid, start, end, processId, threadId, correlationId,"
            " returnValue) VALUES (211, 10, 20, 1, -2, 5, 0), (211, 30, 40, 1, 3, 6, 0)");
    const Trace trace = sample.read();
    ASSERT_EQ(trace.ranges().size(), 3u);
    EXPECT_EQ(trace.threads().size(), 2u);
    EXPECT_EQ(trace.threads()[0].os_tid, 0xfffffffe);
    EXPECT_EQ(name_of(trace, trace.ranges().parent[1]), "m") << "the number is the same with a sign";
    EXPECT_EQ(trace.ranges().parent[2], kNoRow) << "on another thread";
}

TEST(Nvprof, MarkersWithoutAPartnerAreKeptAndCounted) {
    const Trace trace = profile_of(
        kOldSchema,
        "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, 10, 1, 0), (2, 20, 2, 100), (3, 20, 0, 400),"
        "(4, 30, 0, 500)");
    ASSERT_EQ(trace.ranges().size(), 2u);
    EXPECT_EQ(trace.ranges().flags[0], kUnfinished);
    EXPECT_EQ(trace.ranges().duration_ns[0], trace.window().end_ns);
    EXPECT_EQ(problem_count(trace, "unfinished"), 1u);
    EXPECT_EQ(problem_count(trace, "end_without_start"), 1u);
}

TEST(Nvprof, DamagedRowsAreCounted) {
    const Trace trace = profile_of(
        kOldSchema,
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 211, 300, 200, 7), (2, 211, NULL, NULL, "
        "NULL),"
        "(3, 211, -9223372036854775808, 9223372036854775807, 8), (4, 211, 'text', 10.7, 7), (5, 211, "
        "300, 400, 7);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (1, -50, -20, 7, 99),"
        "(2, 0, 1, 12345, 3)");
    EXPECT_EQ(trace.ranges().size(), 5u);
    EXPECT_EQ(problem_count(trace, "bad_time"), 2u);
    EXPECT_EQ(problem_count(trace, "clamped"), 1u);
    EXPECT_EQ(problem_count(trace, "unreachable_times"), 2u);
    EXPECT_EQ(problem_count(trace, "unknown_name"), 1u);
    EXPECT_EQ(problem_count(trace, "kernel_without_call"), 1u);
    EXPECT_EQ(problem_count(trace, "repeated_correlation"), 1u);
    EXPECT_GT(trace.window().end_ns - trace.window().start_ns, 0);
}

TEST(Nvprof, RowsWithoutTimesAreSkippedAndCountedByTable) {
    const Trace trace = profile_of(
        kOldSchema,
        "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, 10, 1, 500), (2, 10, 0, 900), (3, 20, 2, "
        "NULL),"
        "(4, 20, 0, 'x');"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 211, 600, 700, 7);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (1, 'abc', NULL, 7, 3), (2, 800, 850, "
        "7, 3)");
    EXPECT_EQ(trace.ranges().size(), 3u);
    EXPECT_EQ(trace.window().start_ns, 500);
    std::vector<std::string> texts;
    for (const ProblemInfo& problem : trace.problems())
        texts.push_back(std::to_string(problem.count) + " " + problem.text);
    EXPECT_EQ(
        texts,
        (std::vector<std::string>{
            "2 Rows of the table CUPTI_ACTIVITY_KIND_MARKER were skipped: their times are not integers.",
            "1 Rows of the table CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL were skipped: their times are not "
            "integers."}));
}

TEST(Nvprof, NamesMayContainAnyBytes) {
    SqliteSample sample;
    sample.run(kOldSchema)
        .run(
            "UPDATE StringTable SET value = CAST(x'ff0041c328' AS TEXT) WHERE _id_ = 1;"
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, 10, 1, 0), (2, 10, 0, 1)");
    EXPECT_EQ(sample.read().range_name(0), std::string_view("\xff\0A\xc3(", 5));
}

TEST(Nvprof, EmptyAndMissingTablesGiveAnEmptyTrace) {
    SqliteSample empty, almost_nothing;
    EXPECT_EQ(empty.run_file("nvprof_schema").read().ranges().size(), 0u);
    const Trace trace = almost_nothing.run("CREATE TABLE StringTable(a)").read();
    EXPECT_EQ(trace.ranges().size(), 0u);
    EXPECT_TRUE(trace.problems().empty());
}

TEST(Nvprof, KernelSumsByMarkerMatchSql) {
    std::mt19937 random(11);
    for (int round = 0; round < 20; ++round) {
        SqliteSample sample;
        sample.run(kOldSchema).run("BEGIN");
        int marker = 0, call = 0, kernel = 0;
        // Nested markers, and calls between any two of their ends.
        std::int64_t time = 0;
        std::vector<int> open;
        for (int step = 0; step < 200; ++step) {
            time += 1 + static_cast<std::int64_t>(random() % 5);
            const auto row = [&](int id, int name) {
                sample.run("INSERT INTO CUPTI_ACTIVITY_KIND_MARKER(id, name, timestamp) VALUES (" +
                           std::to_string(id) + "," + std::to_string(name) + "," + std::to_string(time) +
                           ")");
            };
            switch (random() % 4) {
                case 0:
                    open.push_back(++marker);
                    row(marker, 1 + marker % 2);
                    break;
                case 1:
                    if (open.empty()) break;
                    row(open.back(), 0);
                    open.pop_back();
                    break;
                default: {
                    const std::int64_t start = time;
                    time += 1 + static_cast<std::int64_t>(random() % 9);
                    sample.run(
                        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME(cbid, start, end, correlationId) VALUES "
                        "(211," +
                        std::to_string(start) + "," + std::to_string(time) + "," + std::to_string(++call) +
                        ")");
                    if (random() % 4 == 0) break;
                    sample.run(
                        "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(start, end, correlationId, name) "
                        "VALUES (" +
                        std::to_string(100'000 + kernel) + "," +
                        std::to_string(100'000 + kernel + static_cast<int>(random() % 100)) + "," +
                        std::to_string(call) + ",3)");
                    kernel += 100;
                }
            }
        }
        for (; !open.empty(); open.pop_back()) {
            sample.run("INSERT INTO CUPTI_ACTIVITY_KIND_MARKER(id, name, timestamp) VALUES (" +
                       std::to_string(open.back()) + ", 0, " + std::to_string(++time) + ")");
        }
        sample.run("COMMIT");
        const std::vector<std::string> truth = sample.query(
            "WITH m AS (SELECT s.id, s.timestamp a, e.timestamp b FROM CUPTI_ACTIVITY_KIND_MARKER s"
            "  JOIN CUPTI_ACTIVITY_KIND_MARKER e ON s.id = e.id WHERE s.name != 0 AND e.name = 0),"
            " k AS (SELECT k.end - k.start d, (SELECT a FROM m WHERE a < r.start AND r.end < b"
            "  ORDER BY a DESC LIMIT 1) marker FROM CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL k"
            "  JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId)"
            " SELECT marker, sum(d) FROM k GROUP BY marker");
        const Trace trace = sample.read();
        std::map<std::string, std::int64_t> expected, actual;
        for (const std::string& row : truth)
            expected[row.substr(0, row.find('|'))] = std::stoll(row.substr(row.find('|') + 1));
        for (const auto& [kernel_row, marker_row] : markers_of_kernels(trace)) {
            const std::string key =
                marker_row == kNoRow ? "NULL" : std::to_string(trace.ranges().start_ns[marker_row]);
            actual[key] += trace.ranges().duration_ns[kernel_row];
        }
        EXPECT_EQ(actual, expected) << "round " << round;
    }
}

}  // namespace
}  // namespace marey

#endif
