// merged_load_test.cpp: reading captures of several processes as one trace.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <marey/error.h>
#include <marey/merge.h>

#include "base/compress.h"
#include "base/process_text.h"
#include "collect/log_fixture.h"
#include "collect/packed_capture.h"
#include "collect/tree_file.h"
#include "trace/trace_damage.h"

namespace marey {
namespace {

using testing::LogWriter;

struct Identity {
    std::uint64_t start = 1;
    std::uint8_t tree = 1;
    std::uint64_t time_namespace = 5;
    std::vector<detail::AncestorRecord> ancestors = {};
    std::uint64_t fork_ticks = 0;
    const char* boot = "boot";
};

void identify(LogWriter& log, const Identity& identity) {
    detail::ProcessIdentityRecord record{};
    record.tree[0] = identity.tree;
    std::snprintf(record.boot_id, sizeof record.boot_id, "%s", identity.boot);
    record.time_namespace = identity.time_namespace;
    record.pid_namespace = 3;
    record.start = identity.start;
    record.fork_ticks = identity.fork_ticks;
    record.fork_thread = identity.fork_ticks != 0 ? 1 : 0;
    record.origin = identity.fork_ticks != 0 ? 1 : 2;
    record.ancestors = static_cast<std::uint32_t>(identity.ancestors.size());
    const auto* const first = reinterpret_cast<const std::byte*>(identity.ancestors.data());
    log.journal(detail::JournalKind::ProcessIdentity, record,
                {first, first + identity.ancestors.size() * sizeof(detail::AncestorRecord)});
}

class MergedLoad : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / ("marey-merged-" + std::to_string(getpid()));
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string write(const std::string& name, const std::vector<std::byte>& bytes) const {
        const std::string path = (folder_ / name).string();
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return path;
    }

    std::filesystem::path folder_;
};

/// A counter of 1 GHz whose nanoseconds are `ns_at_zero` ahead; a range from `start` to `end` in ticks.
LogWriter log_of(const Identity& identity, const std::string& name, std::uint64_t start, std::uint64_t end,
                 std::int64_t ns_at_zero = 0) {
    LogWriter log;
    log.clock_source = detail::ClockSource::Tsc;
    identify(log, identity);
    log.start(1, start - 10).born(1, "main", start - 10);
    const auto ns = [&](std::uint64_t ticks) { return static_cast<std::int64_t>(ticks) + ns_at_zero; };
    log.pair(start - 10, ns(start - 10)).pair(end + 100'000'000, ns(end + 100'000'000));
    log.thread(1).range(name, start, end, 0);
    log.stop(1, end + 10);
    log.finished = true;
    return log;
}

TEST_F(MergedLoad, AForkedProcessIsLinkedToTheRangeThatForkedIt) {
    const std::string parent = write("a.marey", log_of({.start = 7}, "parent", 1000, 5000).file());
    const std::string child = write(
        "b.marey",
        log_of({.start = 8, .ancestors = {{42, 7, 3}}, .fork_ticks = 2000}, "child", 3000, 4000).file());
    const MergedCaptures merged = load_merged({child, parent});
    EXPECT_TRUE(merged.left_out.empty());
    const Trace& trace = merged.trace;
    ASSERT_EQ(find_damage(trace.data()), "");
    ASSERT_EQ(trace.processes().size(), 2U);
    EXPECT_EQ(trace.processes()[1].parent, 0U);
    EXPECT_EQ(trace.processes()[1].origin, ProcessOrigin::Fork);
    EXPECT_EQ(trace.processes()[1].fork_ns, 2000);
    EXPECT_EQ(trace.string(trace.processes()[0].tree), "01000000000000000000000000000000");
    ASSERT_EQ(trace.links().size(), 1U);
    EXPECT_EQ(trace.range_name(trace.links()[0].from), "parent");
    EXPECT_EQ(trace.range_name(trace.links()[0].to), "child");
}

TEST_F(MergedLoad, TimeNamespacesOfOneBootShareTheCounter) {
    const std::string outside = write("a.marey", log_of({.start = 7}, "outside", 1000, 5000).file());
    const std::string more = write("b.marey", log_of({.start = 9}, "more", 1000, 5000).file());
    const std::string inside = write(
        "c.marey", log_of({.start = 8, .time_namespace = 6}, "inside", 3000, 4000, 100'000'000'000).file());
    const Trace trace = load_merged({outside, more, inside}).trace;
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.range_name(row) != "inside") continue;
        EXPECT_EQ(trace.ranges().start_ns[row], 3000);
    }
    EXPECT_TRUE(trace.problems().empty());
    EXPECT_EQ(trace.string(trace.processes()[2].clock), "boot/5");
}

TEST_F(MergedLoad, FilesOfTwoRunsAreRefusedByNameUnlessRequested) {
    const std::string one = write("one.marey", log_of({.start = 7}, "one", 1000, 5000).file());
    const std::string other =
        write("other.marey", log_of({.start = 8, .tree = 2}, "other", 1000, 5000).file());
    try {
        load_merged({one, other});
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("one.marey and "), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("other.marey are from different runs"), std::string::npos);
    }
    EXPECT_EQ(load_merged({one, other}, {.any_tree = true}).trace.processes().size(), 2U);
}

TEST_F(MergedLoad, UnusableFilesAreNamedAndTheRestIsMerged) {
    const std::vector<std::byte> good = log_of({.start = 7}, "good", 1000, 5000).file();
    const std::string path = write("good.marey", good);
    std::vector<std::byte> newer = good;
    newer[8] = std::byte{99};
    const std::string later = write("newer.marey", newer);
    const std::string empty = write("empty.marey", {});
    const MergedCaptures merged = load_merged({path, later, path, empty});
    EXPECT_EQ(merged.trace.processes().size(), 1U);
    ASSERT_EQ(merged.left_out.size(), 3U);
    EXPECT_EQ(merged.left_out[0].path, path);
    EXPECT_EQ(merged.left_out[0].reason, "given twice");
    EXPECT_EQ(merged.left_out[1].reason, "written by a newer Marey (format 99)");
    EXPECT_EQ(merged.trace.problems().size(), 3U);
    EXPECT_THROW(load_merged({later}), Error);
}

TEST_F(MergedLoad, ATreeFileHoldsItsIntactProcesses) {
    if (!can_compress()) GTEST_SKIP() << "this build has no zstd";
    std::vector<std::byte> file = tree_header("01000000000000000000000000000000");
    const auto add = [&](std::int64_t pid, const std::string& name) {
        const LogWriter log = log_of({.start = static_cast<std::uint64_t>(pid)}, name, 1000, 5000);
        const std::vector<std::byte> section = tree_section(pid, pack_capture(log.raw()));
        file.insert(file.end(), section.begin(), section.end());
    };
    add(11, "first");
    const std::size_t second = file.size();
    add(12, "second");
    const std::size_t third = file.size();
    add(13, "third");
    const std::string path = write("tree.marey", file);
    EXPECT_EQ(capture_origin(path).tree, "01000000000000000000000000000000");
    EXPECT_EQ(Trace::load(path).processes().size(), 3U);

    file[second + 100] ^= std::byte{1};
    file.resize(third + 50);
    const MergedCaptures merged = load_merged({write("damaged.marey", file)});
    EXPECT_EQ(merged.trace.processes().size(), 1U);
    EXPECT_EQ(merged.trace.range_name(0), "first");
    ASSERT_EQ(merged.left_out.size(), 2U);
    EXPECT_EQ(merged.left_out[0].reason, "process 12: damaged");
    EXPECT_EQ(merged.left_out[1].reason, "cut off, or damaged, after 1 processes");
}

}  // namespace
}  // namespace marey
