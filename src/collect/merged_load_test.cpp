// merged_load_test.cpp: reading captures of several processes as one trace.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include <marey/error.h>
#include <marey/host_clocks.h>
#include <marey/merge.h>
#include <marey/remote.h>
#include <marey/token.h>

#include "base/compress.h"
#include "base/process_text.h"
#include "collect/log_fixture.h"
#include "collect/packed_capture.h"
#include "collect/run_file.h"
#include "trace/trace_assembler.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

using testing::LogWriter;

struct Identity {
    std::uint64_t start = 1;
    std::uint8_t tree = 1;
    std::uint64_t time_namespace = 5;
    std::vector<detail::AncestorRecord> ancestors = {};
    std::uint64_t fork_ticks = 0;
    std::string boot = "boot";
    std::uint32_t wall_error_us = 0;
    std::uint64_t session = 1;
    bool stops = true;  ///< its session
};

void identify(LogWriter& log, const Identity& identity) {
    detail::ProcessIdentityRecord record{};
    record.tree[0] = identity.tree;
    std::snprintf(record.boot_id, sizeof record.boot_id, "%s", identity.boot.c_str());
    record.time_namespace = identity.time_namespace;
    record.pid_namespace = 3;
    record.start = identity.start;
    record.fork_ticks = identity.fork_ticks;
    record.fork_thread = identity.fork_ticks != 0 ? 1 : 0;
    record.wall_error_us = identity.wall_error_us;
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

/// A counter of 1 GHz whose nanoseconds are `ns_at_zero` ahead; a range from `start` to `end` in ticks, and
/// one in it if `inside` names it.
LogWriter log_of(const Identity& identity, const std::string& name, std::uint64_t start, std::uint64_t end,
                 std::int64_t ns_at_zero = 0, const std::string& inside = "") {
    LogWriter log;
    log.clock_source = detail::ClockSource::Tsc;
    identify(log, identity);
    log.start(identity.session, start - 10).born(1, "main", start - 10);
    const auto ns = [&](std::uint64_t ticks) { return static_cast<std::int64_t>(ticks) + ns_at_zero; };
    log.pair(start - 10, ns(start - 10)).pair(end + 100'000'000, ns(end + 100'000'000));
    if (!inside.empty()) log.thread(1).range(inside, start + 10, start + 20, 1);
    log.thread(1).range(name, start, end, 0);
    if (identity.stops) log.stop(identity.session, end + 10);
    log.finished = identity.stops;
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

TEST_F(MergedLoad, TheTracesOfOneProcessStandTogether) {
    const auto nested = [this](const std::string& name, std::uint64_t process, std::uint64_t start) {
        return write(name + ".marey",
                     log_of({.start = process}, name, start, start + 100, 0, name + " inside").file());
    };
    std::vector<std::string> paths{nested("late", 7, 9000), nested("between", 8, 4000),
                                   nested("early", 7, 1000)};
    for (std::uint64_t i = 0; i < 20; ++i)
        paths.push_back(nested("other " + std::to_string(i), 100 + i, 30'000 - i * 1000));
    const Trace trace = load_merged(paths).trace;
    ASSERT_EQ(find_damage(trace.data()), "");
    ASSERT_EQ(trace.processes().size(), 22U);
    ASSERT_EQ(trace.ranges().size(), 2 * paths.size());
    EXPECT_EQ(trace.tracks()[0].range_count, 4U);
    EXPECT_EQ(trace.range_name(0), "early");
    EXPECT_EQ(trace.range_name(2), "late");
    EXPECT_EQ(trace.range_name(4), "between");
    for (Row row = 0; row < trace.ranges().size(); row += 2) {
        EXPECT_EQ(trace.ranges().parent[row + 1], row);
        EXPECT_EQ(trace.range_name(row + 1), std::string(trace.range_name(row)) + " inside");
        if (row > 4) {
            EXPECT_LT(trace.ranges().start_ns[row - 2], trace.ranges().start_ns[row]);
        }
    }
}

TEST_F(MergedLoad, SessionsOfOneProcessThatRanAtTheSameTimeAreNotAddedUp) {
    if (!can_compress()) GTEST_SKIP() << "this build has no zstd";
    std::vector<std::byte> file = tree_header("01000000000000000000000000000000");
    const auto add = [&](const Identity& identity, const std::string& name, std::uint64_t start,
                         std::uint64_t end) {
        const std::vector<std::byte> section =
            tree_section(static_cast<std::int64_t>(identity.start),
                         pack_capture(log_of(identity, name, start, end).raw()));
        file.insert(file.end(), section.begin(), section.end());
    };
    add({.start = 7, .session = 2}, "shorter", 1000, 5000);
    add({.start = 7}, "longer", 500, 6000);
    add({.start = 7, .session = 3}, "later", 7000, 8000);
    add({.start = 8}, "other process", 1000, 5000);
    const std::string path = write("tree.marey", file);
    const auto names = [](const Trace& trace) {
        std::set<std::string> found;
        for (Row row = 0; row < trace.ranges().size(); ++row) found.emplace(trace.range_name(row));
        return found;
    };
    const MergedCaptures merged = load_merged({path});
    EXPECT_EQ(names(merged.trace), (std::set<std::string>{"longer", "later", "other process"}));
    ASSERT_EQ(merged.left_out.size(), 1U);
    EXPECT_EQ(merged.left_out[0].path, path + ": process 7");
    EXPECT_TRUE(merged.left_out[0].reason.starts_with("its session 2 ran during session 1"));
    EXPECT_EQ(merged.trace.problems().back().code, "left_out");

    EXPECT_EQ(names(Trace::load(path, 2)), (std::set<std::string>{"shorter"}));
    EXPECT_EQ(names(Trace::load(path, 1)), (std::set<std::string>{"longer", "other process"}));
    EXPECT_EQ(list_sessions(path).size(), 3U);  // of one process id
    EXPECT_THROW(Trace::load(path, 9), Error);
}

TEST_F(MergedLoad, AProgramThatReplacedItselfIsShownBesideTheOneThatItBecame) {
    const std::string before =
        write("a.marey", log_of({.start = 7, .stops = false}, "before exec", 1000, 5000).file());
    const std::string after = write("b.marey", log_of({.start = 7}, "after exec", 6000, 8000).file());
    const std::string later =
        write("c.marey", log_of({.start = 7, .session = 2}, "later", 9000, 9500).file());
    const MergedCaptures merged = load_merged({before, after, later});
    EXPECT_TRUE(merged.left_out.empty());
    EXPECT_EQ(merged.trace.ranges().size(), 3U);
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

TEST_F(MergedLoad, ARunFileHoldsItsIntactProcesses) {
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

/// A host whose clock runs 20 ppm fast or slow and began at another time.
struct Host {
    std::string name;
    std::int64_t offset_ns = 0;
    double rate = 0;
    std::int64_t local(std::int64_t true_ns) const {
        return offset_ns + true_ns + std::llround(rate * static_cast<double>(true_ns));
    }
};
const Host kAlpha{"alpha", 7'000'000'000, -11e-6}, kBeta{"beta", 90'000'000'000'000, 20e-6},
    kGamma{"gamma", 500'000'000, 9e-6};
constexpr std::int64_t kMs = 1'000'000;

/// A capture of a host: a range from `start` to `end`, in true time.
LogWriter log_on(const Host& host, std::uint64_t start, std::uint64_t end, std::uint32_t wall_error_us = 0) {
    const auto local = [&](std::uint64_t ns) {
        return static_cast<std::uint64_t>(host.local(static_cast<std::int64_t>(ns)));
    };
    LogWriter log = log_of({.start = 5, .boot = host.name, .wall_error_us = wall_error_us}, "on " + host.name,
                           local(start), local(end));
    log.host = host.name;
    return log;
}

/// Bursts of exchanges in two seconds, over a link whose fastest messages take 20 us.
void add_exchanges(LogWriter& log, const Host& own, const Host& peer, unsigned seed) {
    std::mt19937 random(seed);
    std::exponential_distribution<double> extra(1 / 5000.0);
    const auto delay = [&] { return 20'000 + std::llround(extra(random)); };
    for (std::int64_t at = 0; at < 2000 * kMs; at += 10 * kMs) {
        const std::int64_t arrived = at + delay(), answered = arrived + 500, received = answered + delay();
        log.exchange(peer.name, own.local(at), peer.local(arrived), peer.local(answered),
                     own.local(received));
    }
}

const HostClockInfo& clock_of(const Trace& trace, std::string_view host) {
    const auto found =
        std::find_if(trace.host_clocks().begin(), trace.host_clocks().end(),
                     [&](const HostClockInfo& clock) { return trace.string(clock.host) == host; });
    EXPECT_NE(found, trace.host_clocks().end()) << host;
    return *found;
}

/// The distance of a host's range from where it belongs on the clock of `reference`.
std::int64_t error_of(const Trace& trace, const Host& host, const Host& reference, std::int64_t start) {
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.range_name(row) == "on " + host.name)
            return std::abs(trace.ranges().start_ns[row] - reference.local(start));
    }
    ADD_FAILURE() << host.name;
    return 0;
}

TEST_F(MergedLoad, ExchangesPutHostsOnOneClock) {
    LogWriter beta = log_on(kBeta, 300 * kMs, 1500 * kMs);
    add_exchanges(beta, kBeta, kAlpha, 1);
    const std::string first = write("a.marey", log_on(kAlpha, 100 * kMs, 1900 * kMs).file());
    const std::string second = write("b.marey", beta.file());
    const Trace trace = load_merged({first, second}).trace;
    ASSERT_EQ(find_damage(trace.data()), "");
    EXPECT_TRUE(trace.problems().empty());
    ASSERT_EQ(trace.host_clocks().size(), 2U);
    EXPECT_EQ(trace.string(clock_of(trace, "alpha").method), "reference");
    const HostClockInfo& clock = clock_of(trace, "beta");
    EXPECT_EQ(trace.string(clock.reference), "alpha");
    EXPECT_EQ(trace.string(clock.method), "exchange");
    EXPECT_EQ(trace.string(clock.evidence), "200 exchanges");
    EXPECT_LE(clock.error_ns, 25'000);  // half of the fastest round trip, and more at both ends
    EXPECT_NEAR(clock.rate, -31e-6, 2e-6);
    EXPECT_LE(error_of(trace, kBeta, kAlpha, 300 * kMs), clock.error_ns);
    EXPECT_LE(error_of(trace, kAlpha, kAlpha, 100 * kMs), 1);
    // All four times of an exchange are on the same clock.
    ASSERT_EQ(trace.clock_exchanges().size(), 200U);
    for (const ClockExchangeInfo& each : trace.clock_exchanges()) {
        EXPECT_LT(each.sent_ns, each.arrived_ns);
        EXPECT_LT(each.answered_ns, each.received_ns);
        EXPECT_LT(each.received_ns - each.sent_ns, 10 * kMs);
    }
}

TEST_F(MergedLoad, MessagesInBothDirectionsPutHostsOnOneClock) {
    LogWriter logs[] = {log_on(kAlpha, 100 * kMs, 1900 * kMs), log_on(kBeta, 300 * kMs, 1500 * kMs)};
    const Host* const hosts[] = {&kAlpha, &kBeta};
    for (std::uint64_t number = 1; number <= 40; ++number) {
        const std::size_t from = number % 2, to = 1 - from;
        const std::int64_t sent = 400 * kMs + static_cast<std::int64_t>(number) * 20 * kMs;
        const Token token{77 + from, number, 0};
        const auto* const first = reinterpret_cast<const std::byte*>(&token);
        const std::vector<std::byte> bytes(first, first + sizeof token);
        logs[from].thread(1).blob(detail::kBlobSend, bytes,
                                  static_cast<std::uint64_t>(hosts[from]->local(sent)));
        logs[to].thread(1).blob(detail::kBlobReceive, bytes,
                                static_cast<std::uint64_t>(hosts[to]->local(sent + 30'000)));
    }
    const std::string first = write("a.marey", logs[0].file()), second = write("b.marey", logs[1].file());
    const Trace trace = load_merged({first, second}).trace;
    const HostClockInfo& clock = clock_of(trace, "beta");
    EXPECT_EQ(trace.string(clock.method), "message");
    EXPECT_EQ(trace.string(clock.evidence), "40 messages");
    EXPECT_LE(clock.error_ns, 60'000);  // the last message is 300 ms before the end
    EXPECT_LE(error_of(trace, kBeta, kAlpha, 300 * kMs), clock.error_ns);
    for (const MessageInfo& message : trace.messages()) {
        if (message.is_received) continue;
        const auto received = std::find_if(
            trace.messages().begin(), trace.messages().end(),
            [&](const MessageInfo& other) { return other.is_received && other.number == message.number; });
        ASSERT_NE(received, trace.messages().end());
        EXPECT_LE(message.time_ns, received->time_ns);
    }
}

TEST_F(MergedLoad, ForgedExchangesAreLeftOutAndCounted) {
    LogWriter beta = log_on(kBeta, 300 * kMs, 1500 * kMs);
    add_exchanges(beta, kBeta, kAlpha, 2);
    for (const std::int64_t at : {700 * kMs, 900 * kMs}) {
        const std::int64_t answered = kAlpha.local(at + 1000 * kMs);
        beta.exchange("alpha", kBeta.local(at), answered, answered, kBeta.local(at + 40'000));
    }
    const std::string first = write("a.marey", log_on(kAlpha, 100 * kMs, 1900 * kMs).file());
    const Trace trace = load_merged({first, write("b.marey", beta.file())}).trace;
    ASSERT_EQ(trace.problems().size(), 1U);
    EXPECT_EQ(trace.problems()[0].code, "clock_contradiction");
    EXPECT_GE(trace.problems()[0].count, 2U);
    EXPECT_LE(trace.problems()[0].count, 4U);
    const HostClockInfo& clock = clock_of(trace, "beta");
    EXPECT_LE(clock.error_ns, 25'000);
    EXPECT_LE(error_of(trace, kBeta, kAlpha, 300 * kMs), clock.error_ns);
}

TEST_F(MergedLoad, RemoteCallsPutHostsOnOneClock) {
    const auto message = [](std::int64_t start_ns, std::int64_t end_ns) {
        TraceAssembler sender;
        sender.set_window(start_ns, end_ns);
        ProcessInfo process;
        process.pid = 7;
        process.host = sender.string("alpha");
        sender.add_process(process);
        return pack_events(sender.finish());
    };
    LogWriter beta = log_on(kBeta, 300 * kMs, 1500 * kMs);
    for (const std::int64_t at : {400 * kMs, 900 * kMs, 1400 * kMs}) {
        const std::int64_t start_ns = kAlpha.local(at + 15'000), end_ns = kAlpha.local(at + 2 * kMs);
        detail::RemoteEventsRecord record{};
        record.session = 1;
        record.node = -1;
        record.call_start = static_cast<std::uint64_t>(kBeta.local(at));
        record.call_end = static_cast<std::uint64_t>(kBeta.local(at + 2 * kMs + 25'000));
        beta.remote(record, "", message(start_ns, end_ns));
        // Recorded long before the call: proves nothing.
        beta.remote(record, "", message(start_ns - 100 * kMs, end_ns));
    }
    const std::string first = write("a.marey", log_on(kAlpha, 100 * kMs, 1900 * kMs).file());
    const Trace trace = load_merged({first, write("b.marey", beta.file())}).trace;
    ASSERT_EQ(find_damage(trace.data()), "");
    EXPECT_TRUE(trace.problems().empty());
    const HostClockInfo& clock = clock_of(trace, "beta");
    EXPECT_EQ(trace.string(clock.method), "exchange");
    EXPECT_EQ(trace.string(clock.evidence), "3 exchanges");
    EXPECT_LE(clock.error_ns, 40'000);
    EXPECT_LE(error_of(trace, kBeta, kAlpha, 300 * kMs), clock.error_ns);
}

TEST_F(MergedLoad, SynchronisedWallClocksBoundHostsThatNothingElseRelates) {
    const std::string first = write("a.marey", log_on(kAlpha, 100 * kMs, 1900 * kMs, 400).file());
    const std::string second = write("b.marey", log_on(kBeta, 300 * kMs, 1500 * kMs, 250).file());
    const Trace trace = load_merged({first, second}).trace;
    ASSERT_EQ(find_damage(trace.data()), "");
    EXPECT_TRUE(trace.problems().empty());
    const HostClockInfo& clock = trace.string(clock_of(trace, "beta").method) == "reference"
                                     ? clock_of(trace, "alpha")
                                     : clock_of(trace, "beta");
    EXPECT_EQ(trace.string(clock.method), "wall_clock");
    EXPECT_EQ(trace.string(clock.evidence), "1 wall clock");
    EXPECT_GE(clock.error_ns, 650'000);
    EXPECT_LE(clock.error_ns, 4 * kMs);  // rates may differ by 1,000 ppm
    EXPECT_EQ(trace.processes()[0].realtime_error_ns + trace.processes()[1].realtime_error_ns, 650'000);
}

TEST_F(MergedLoad, HostsWithoutAPathAreNamed) {
    LogWriter beta = log_on(kBeta, 300 * kMs, 1500 * kMs);
    add_exchanges(beta, kBeta, kAlpha, 3);
    const std::string first = write("a.marey", log_on(kAlpha, 100 * kMs, 1900 * kMs).file());
    const std::string third = write("c.marey", log_on(kGamma, 200 * kMs, 700 * kMs).file());
    const Trace trace = load_merged({first, third, write("b.marey", beta.file())}).trace;
    ASSERT_EQ(trace.host_clocks().size(), 3U);
    EXPECT_LE(error_of(trace, kBeta, kAlpha, 300 * kMs), clock_of(trace, "beta").error_ns);
    EXPECT_EQ(trace.string(clock_of(trace, "gamma").method), "none");
    EXPECT_EQ(clock_of(trace, "gamma").error_ns, kUnknownClockError);
    ASSERT_EQ(trace.problems().size(), 1U);
    EXPECT_EQ(trace.problems()[0].code, "clock_unknown");
    EXPECT_NE(trace.problems()[0].text.find(": gamma."), std::string::npos);
}

TEST_F(MergedLoad, AMergedFileCanBeMergedWithOneOfAnotherHost) {
    LogWriter beta = log_on(kBeta, 300 * kMs, 1500 * kMs), gamma = log_on(kGamma, 200 * kMs, 700 * kMs);
    add_exchanges(beta, kBeta, kAlpha, 4);
    add_exchanges(gamma, kGamma, kAlpha, 5);
    const std::string first = write("a.marey", log_on(kAlpha, 100 * kMs, 1900 * kMs).file());
    const std::string both = (folder_ / "both.marey").string();
    load_merged({first, write("b.marey", beta.file())}).trace.save(both);
    const Trace trace = load_merged({both, write("c.marey", gamma.file())}).trace;
    EXPECT_TRUE(trace.problems().empty());
    ASSERT_EQ(trace.host_clocks().size(), 3U);
    EXPECT_EQ(trace.string(clock_of(trace, "beta").evidence), "200 exchanges");
    EXPECT_EQ(trace.string(clock_of(trace, "gamma").reference), "alpha");
    EXPECT_LE(error_of(trace, kBeta, kAlpha, 300 * kMs), clock_of(trace, "beta").error_ns);
    EXPECT_LE(error_of(trace, kGamma, kAlpha, 200 * kMs), clock_of(trace, "gamma").error_ns);

    std::vector<Trace> parts;  // cut by process, and merged again
    for (Row row = 0; row < trace.processes().size(); ++row) parts.push_back(select_processes(trace, {row}));
    const Trace again = merge_traces(std::move(parts));
    EXPECT_EQ(again.host_clocks().size(), 3U);
    EXPECT_EQ(again.clock_exchanges().size(), trace.clock_exchanges().size());
    for (const Host* host : {&kAlpha, &kBeta, &kGamma})
        EXPECT_EQ(clock_of(again, host->name).error_ns, clock_of(trace, host->name).error_ns);
    EXPECT_EQ(again.ranges().start_ns[0], trace.ranges().start_ns[0]);
}

}  // namespace
}  // namespace marey
