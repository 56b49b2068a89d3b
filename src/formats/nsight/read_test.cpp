// read_test.cpp: Nsight Systems exports of current and older versions.
#if MAREY_HAVE_SQLITE

#include <algorithm>
#include <map>

#include "base/golden_fixture.h"
#include "formats/sqlite_fixture.h"
#include "json/strict_json_fixture.h"

namespace marey {
namespace {

/// Minimal columns for each table, as in old or reduced exports.
constexpr const char* kFewColumns =
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, globalTid INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, nameId INT, globalTid INT, correlationId "
    "INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, shortName INT, correlationId INT);"
    "INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel'), (2, 'kernel');";

TEST(Nsight, TheSampleIsReadCompletely) {
    SqliteSample sample;
    sample.run_file("nsight_schema").run_file("nsight_rows");
    expect_golden(profile_text(sample.read()), "import/nsight.txt");
}

TEST(Nsight, MetadataIsStrictJson) {
    SqliteSample sample;
    sample.run_file("nsight_schema")
        .run_file("nsight_rows")
        .run("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (CAST(x'ff00' AS TEXT), x'c3'), ('\"', 1e400)");
    const Trace trace = sample.read();
    EXPECT_GT(trace.metadata().size(), 4u);
    for (const MetadataInfo& fact : trace.metadata()) {
        StrictJson::Value value;
        EXPECT_EQ(StrictJson::parse(fact.json, value), "") << fact.key << ": " << fact.json;
    }
}

TEST(Nsight, MissingColumnsOfOtherVersionsAreAccepted) {
    const Trace trace =
        profile_of(kFewColumns,
                   "INSERT INTO NVTX_EVENTS VALUES (0, 1000, 59, 'outer', 1), (100, 500, 59, NULL, 1);"
                   "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (200, 300, 1, 1, 7);"
                   "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (400, 600, 2, 7)");
    ASSERT_EQ(trace.ranges().size(), 4u);
    EXPECT_EQ(trace.range_name(1), "");
    EXPECT_EQ(trace.range_name(3), "kernel");
    ASSERT_EQ(trace.links().size(), 1u);
    EXPECT_EQ(trace.ranges().parent[trace.links()[0].from], 1u);
    EXPECT_TRUE(trace.problems().empty());
}

TEST(Nsight, EqualCorrelationIdsOfTwoProcessesStaySeparate) {
    SqliteSample sample;
    sample.run_file("nsight_schema").run_file("nsight_rows");
    const Trace trace = sample.read();
    std::map<std::string, std::int64_t> callers;  // pid of the call, by kernel
    for (const LinkInfo& link : trace.links()) {
        const Row thread = trace.tracks()[trace.track_of(link.from)].thread;
        callers[std::string(trace.range_name(link.to))] =
            trace.processes()[trace.threads()[thread].process].pid;
    }
    EXPECT_EQ(callers["gemm(float*, float*, int)"], 500);
    EXPECT_EQ(callers["other(int)"], 600);
}

TEST(Nsight, LibrariesAreRecognizedByTheFormOfTheirTables) {
    const Trace trace = profile_of(
        kFewColumns,
        "CREATE TABLE CUBLAS_EVENTS(start INT, end INT, globalTid INT, nameId INT);"
        "CREATE TABLE MPI_P2P_EVENTS(start INT, end INT, globalTid INT, textId INT, size INT);"
        "CREATE TABLE PROFILER_OVERHEAD(start INT, end INT, globalTid INT, nameId INT);"
        "CREATE TABLE GPU_METRICS(timestamp INT, value INT);"
        "INSERT INTO StringIds VALUES (3, 'cublasGemmEx'), (4, 'MPI_Send'), (5, 'flush');"
        "INSERT INTO CUBLAS_EVENTS VALUES (0, 100, 5, 3); INSERT INTO MPI_P2P_EVENTS VALUES (200, 300, "
        "5, 4, 8);"
        "INSERT INTO PROFILER_OVERHEAD VALUES (50, 250, 5, 5); INSERT INTO GPU_METRICS VALUES (1, 2), "
        "(3, 4)");
    ASSERT_EQ(trace.ranges().size(), 3u);
    std::map<std::string, std::string> categories;
    for (Row row = 0; row < 3; ++row) {
        categories[std::string(trace.range_name(row))] =
            std::string(trace.string(trace.sites()[trace.ranges().site[row]].category));
    }
    EXPECT_EQ(categories["cublasGemmEx"], "cublas");
    EXPECT_EQ(categories["MPI_Send"], "mpi_p2p");
    EXPECT_EQ(categories["flush"], "overhead");
    ASSERT_EQ(trace.problems().size(), 1u);
    EXPECT_EQ(trace.problems()[0].code, "unread_table");
    EXPECT_EQ(trace.problems()[0].text, "The table GPU_METRICS is not read: 2 rows.");
    EXPECT_EQ(trace.problems()[0].count, 2u);
}

TEST(Nsight, VersionSuffixesAreRemovedFromCallNames) {
    const Trace trace = profile_of(
        kFewColumns,
        "INSERT INTO StringIds VALUES (3, 'cudaMalloc_v3020'), (4, 'cuMemFree_v2'), (5, 'cudaX_vY'), (6, "
        "'_v');"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 1, 3, 1, 1), (2, 3, 4, 1, 2), (4, 5, 5, 1, "
        "3),"
        "(6, 7, 6, 1, 4)");
    EXPECT_EQ(trace.range_name(0), "cudaMalloc");
    EXPECT_EQ(trace.string(trace.sites()[trace.ranges().site[0]].raw_name), "cudaMalloc_v3020");
    EXPECT_EQ(trace.string(trace.sites()[trace.ranges().site[0]].category), "cuda_runtime");
    EXPECT_EQ(trace.range_name(1), "cuMemFree");
    EXPECT_EQ(trace.string(trace.sites()[trace.ranges().site[1]].category), "cuda_driver");
    EXPECT_EQ(trace.range_name(2), "cudaX_vY");
    EXPECT_EQ(trace.range_name(3), "_v");
}

TEST(Nsight, KernelsWithoutAReadableNameGetOneFromTheirSymbol) {
    SqliteSample sample;
    sample.run(
        "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, demangledName INT, mangledName INT);"
        "INSERT INTO StringIds VALUES (1, '_Z4gemmPfS_i');"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 1, 99, 1), (2, 3, 1, NULL), (4, 5, NULL, NULL)");
    const Trace trace = sample.read();
    ASSERT_EQ(trace.ranges().size(), 3u);
    for (Row row = 0; row < 2; ++row) {
        EXPECT_EQ(trace.range_name(row), "gemm(float*, float*, int)");
        EXPECT_EQ(trace.string(trace.sites()[trace.ranges().site[row]].raw_name), "_Z4gemmPfS_i");
    }
    EXPECT_EQ(trace.range_name(2), "");
    EXPECT_EQ(problem_count(trace, "unknown_name"), 1u);
}

TEST(Nsight, RowsWithoutTimesAreSkippedAndCountedByTable) {
    SqliteSample sample;
    sample.run_file("nsight_schema").run_file("nsight_rows");
    const std::size_t whole = sample.read().ranges().size();
    const std::string kernels = sample.query("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").at(0);
    sample.run(
        "CREATE TABLE kept AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL;"
        "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL;"
        "ALTER TABLE kept RENAME TO CUPTI_ACTIVITY_KIND_KERNEL;"
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'abc', end = NULL");
    const Trace trace = sample.read();
    EXPECT_EQ(trace.ranges().size(), whole - std::stoul(kernels));
    EXPECT_EQ(std::to_string(problem_count(trace, "bad_time")), kernels);
}

TEST(Nsight, HostRowsNeedTimesToo) {
    const Trace trace = profile_of(
        kFewColumns,
        "CREATE TABLE OSRT_API(start INT, end INT, nameId INT, globalTid INT);"
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INT, globalPid INT, bytes INT);"
        "INSERT INTO OSRT_API VALUES (500, 600, 2, 1), (NULL, 600, 2, 1), (500, 'x', 2, 1), (500, NULL, "
        "2, 1);"
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (500, 1, 8), (NULL, 1, 8);"
        "INSERT INTO NVTX_EVENTS VALUES (500, 'x', 59, 'bad end', 1), (500, 'x', 34, 'mark', 1);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, NULL, 1, 1, 7), (1.5, 600, 1, 1, 8)");
    EXPECT_EQ(trace.ranges().size(), 2u);
    EXPECT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(trace.memory().size(), 1u);
    EXPECT_EQ(trace.window().start_ns, 500);
    EXPECT_EQ(problem_count(trace, "bad_time"), 6u);
    const auto problems = trace.problems();
    EXPECT_EQ(std::count_if(problems.begin(), problems.end(),
                            [](const ProblemInfo& each) { return each.code == "bad_time"; }),
              4);  // one for each table
}

TEST(Nsight, OddRowsAreCounted) {
    const Trace trace = profile_of(
        kFewColumns,
        "INSERT INTO NVTX_EVENTS VALUES (NULL, NULL, 59, 'null', NULL), (500, 100, 59, 'backwards', -1),"
        "(9223372036854775807, -9223372036854775808, 60, 'far', 9223372036854775807),"
        "('x', 'y', 34, x'00ff', 'z'), (1, 2, NULL, 'typeless', 1);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (NULL, NULL, NULL, NULL), (1, 2, 77, 78)");
    EXPECT_EQ(trace.ranges().size(), 3u);
    EXPECT_EQ(trace.instants().size(), 0u);
    EXPECT_EQ(problem_count(trace, "bad_time"), 3u);
    EXPECT_EQ(problem_count(trace, "unfinished"), 0u);
    EXPECT_EQ(problem_count(trace, "clamped"), 2u);
    EXPECT_EQ(problem_count(trace, "unreachable_times"), 2u);
    EXPECT_EQ(problem_count(trace, "unread_nvtx"), 1u);
    EXPECT_EQ(problem_count(trace, "kernel_without_call"), 1u);
}

TEST(Nsight, EmptyTablesGiveAnEmptyTrace) {
    SqliteSample sample;
    const Trace trace = sample.run_file("nsight_schema").read();
    EXPECT_EQ(trace.ranges().size(), 0u);
    EXPECT_TRUE(trace.problems().empty());
}

TEST(Nsight, RowsInTheWriteAheadLogBelongToTheTrace) {
    SqliteSample sample;
    sample.run("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0")
        .run(kFewColumns)
        .run("INSERT INTO NVTX_EVENTS VALUES (0, 1000, 59, 'outer', 1)");
    EXPECT_EQ(sample.read().ranges().size(), 1u);
}

}  // namespace
}  // namespace marey

#endif
