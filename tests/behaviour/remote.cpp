// remote.cpp: two processes over a socket: the callee's events are in the caller's trace, under the call.
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>
#include <marey/assemble.h>
#include <marey/merge.h>
#include <marey/validate.h>

#include "support/remote_wire.h"

namespace {

using marey::Row;

const char* const kProgram = MAREY_TEST_BIN_DIR "/remote_program";

Row find(const marey::Trace& trace, std::string_view name) {
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.range_name(row) == name) return row;
    }
    return marey::kNoRow;
}

const marey::ProcessInfo& process_of(const marey::Trace& trace, Row row) {
    return trace.processes()[trace.threads()[trace.tracks()[trace.track_of(row)].thread].process];
}

std::string parent_name(const marey::Trace& trace, Row row) {
    const Row parent = trace.ranges().parent[row];
    return parent == marey::kNoRow ? "" : std::string(trace.range_name(parent));
}

/// Names of the ranges that remote links lead from and to: "call -> handle".
std::multiset<std::string> links(const marey::Trace& trace) {
    std::multiset<std::string> found;
    for (const marey::LinkInfo& link : trace.links()) {
        if (link.kind != marey::LinkKind::Remote) continue;
        found.insert(std::string(trace.range_name(link.from)) + " -> " +
                     std::string(trace.range_name(link.to)));
    }
    return found;
}

std::string refusal(marey::Session& session, const std::string& message,
                    const marey::RemoteOptions& options = {}) {
    try {
        session.add_events(message, options);
    } catch (const marey::Error& error) {
        return error.what();
    }
    return "";
}

/// A separate server process.
class Server {
  public:
    explicit Server(int node) {
        const int fd = remote_wire::listen_somewhere();
        port_ = remote_wire::port_of(fd);
        const std::string number = std::to_string(fd);
        const std::string node_text = std::to_string(node);
        pid_ = fork();
        if (pid_ == 0) {
            execl(kProgram, kProgram, "serve", number.c_str(), node_text.c_str(), nullptr);
            _exit(127);
        }
        close(fd);
    }
    ~Server() {
        const int fd = remote_wire::connect_to(port_);
        remote_wire::send_text(fd, "stop");
        close(fd);
        int status = 0;
        waitpid(pid_, &status, 0);
        EXPECT_EQ(status, 0);
    }
    int port() const { return port_; }
    pid_t pid() const { return pid_; }

  private:
    int port_ = 0;
    pid_t pid_ = 0;
};

class Remote : public ::testing::Test {
  protected:
    void SetUp() override {
        unsetenv("MAREY");
        char name[] = "/tmp/marey-remote-XXXXXX";
        folder_ = mkdtemp(name);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }

    std::string folder_;
};

// The times of two processes agree to within the precision of their clock readings.
constexpr std::int64_t kSlackNs = 1'000'000;

void expect_within(const marey::Trace& trace, Row inner, Row outer) {
    const marey::RangeColumns ranges = trace.ranges();
    EXPECT_GE(ranges.start_ns[inner], ranges.start_ns[outer] - kSlackNs);
    EXPECT_LE(ranges.start_ns[inner] + ranges.duration_ns[inner],
              ranges.start_ns[outer] + ranges.duration_ns[outer] + kSlackNs);
}

void expect_callee(const marey::Trace& trace, const std::string& prefix, pid_t pid, int node) {
    for (const char* const name : {"handle", "compute", "lookup", "format"}) {
        SCOPED_TRACE(name);
        const Row row = find(trace, prefix + name);
        ASSERT_NE(row, marey::kNoRow);
        EXPECT_NE(trace.ranges().flags[row] & marey::kRemote, 0);
        EXPECT_EQ(process_of(trace, row).pid, pid);
        EXPECT_EQ(process_of(trace, row).node, node);
        const marey::TrackInfo& track = trace.tracks()[trace.track_of(row)];
        EXPECT_EQ(trace.string(trace.threads()[track.thread].name), "server");
    }
    EXPECT_EQ(parent_name(trace, find(trace, prefix + "lookup")), prefix + "compute");
    EXPECT_EQ(parent_name(trace, find(trace, prefix + "compute")), prefix + "handle");
    EXPECT_EQ(parent_name(trace, find(trace, prefix + "handle")), "");
    const auto values = trace.range_arguments(find(trace, prefix + "compute"));
    ASSERT_EQ(values.size(), 2u);
    EXPECT_EQ(trace.string(values[0].key), "rows");
    EXPECT_EQ(values[0].integer, 42);
    EXPECT_EQ(trace.string(values[1].string), "users");
    const marey::SiteInfo& site = trace.sites()[trace.ranges().site[find(trace, prefix + "compute")]];
    EXPECT_EQ(site.scope, marey::Scope::Function);
    ASSERT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(trace.string(trace.sites()[trace.instants().site[0]].name), prefix + "cache miss");
}

// The node that the caller gives a callee is not the callee's own.
TEST_F(Remote, ACallLeadsToTheCalleesOwnCaptureIfThatIsThere) {
    {
        setenv("MAREY", ("out=" + path("far.marey")).c_str(), 1);
        const Server far(4);
        setenv("MAREY", ("out=" + path("server.marey")).c_str(), 1);
        const Server server(3);
        unsetenv("MAREY");
        marey::Session session({.output = path("client.marey")});
        for (const std::string& request : {std::string("work"), "forward " + std::to_string(far.port())}) {
            MAREY_RANGE("client call");
            const marey::RemoteCall call;
            const std::string answer = remote_wire::call(server.port(), request);
            session.add_events(answer, {.prefix = "remote: ", .node = 9, .call = &call});
        }
        session.stop();
    }
    const std::multiset<std::string> wanted{"client call -> handle", "client call -> handle",
                                            "rpc_sync#work(middle -> far) -> handle"};
    const marey::MergeOptions any{.any_tree = true};
    const marey::Trace merged =
        marey::load_merged({path("client.marey"), path("server.marey"), path("far.marey")}, any).trace;
    EXPECT_EQ(links(merged), wanted);
    int computed = 0;
    for (Row row = 0; row < merged.ranges().size(); ++row) {
        EXPECT_EQ(merged.ranges().flags[row] & marey::kRemote, 0) << merged.range_name(row);
        computed += merged.range_name(row) == "compute" ? 1 : 0;
    }
    EXPECT_EQ(computed, 2);
    EXPECT_EQ(marey::validate(merged).size(), 0u);
    // Without the callee's capture, its events are those that the caller has.
    const marey::Trace alone = marey::load_merged({path("client.marey"), path("far.marey")}, any).trace;
    EXPECT_EQ(links(alone).count("client call -> remote: handle"), 2u);
}

// L21 L22 L23 L25
TEST_F(Remote, ACalleesEventsAppearUnderTheCall) {
    const Server server(3);
    marey::Session session({.output = path("caller.marey")});
    const std::string top = "rpc_sync#work(caller -> callee)";
    {
        MAREY_RANGE("outside");
        MAREY_RANGE_DYNAMIC(top);
        marey::RemoteCall call;
        const std::string answer = remote_wire::call(server.port(), "work");
        call.end();
        session.add_events(answer, {.prefix = top + "#remote_op: ", .call = &call});
    }
    const marey::Trace trace = session.stop();
    const std::string prefix = top + "#remote_op: ";
    expect_callee(trace, prefix, server.pid(), 3);
    EXPECT_EQ(links(trace), std::multiset<std::string>{top + " -> " + prefix + "handle"});
    expect_within(trace, find(trace, prefix + "handle"), find(trace, top));
    EXPECT_EQ(trace.ranges().flags[find(trace, top)] & marey::kRemote, 0);
    EXPECT_TRUE(trace.problems().empty());

    // From the file, compacted, and saved: the same.
    marey::compact_capture(path("caller.marey"), path("compact.marey"));
    trace.save(path("saved.marey"));
    for (const char* const name : {"caller.marey", "compact.marey", "saved.marey"}) {
        SCOPED_TRACE(name);
        const marey::Trace loaded = marey::Trace::load(path(name));
        expect_callee(loaded, prefix, server.pid(), 3);
        EXPECT_EQ(links(loaded), links(trace));
        EXPECT_EQ(marey::result_json(marey::info_result(loaded)),
                  marey::result_json(marey::info_result(trace)));
    }
}

// L24
TEST_F(Remote, ANestedCallsEventsArePassedOutward) {
    const Server far(8);
    const Server middle(7);
    marey::Session session(marey::SessionOptions{});
    {
        MAREY_RANGE("call");
        const marey::RemoteCall call;
        const std::string answer = remote_wire::call(middle.port(), "forward " + std::to_string(far.port()));
        session.add_events(answer, {.prefix = "m: ", .call = &call});
    }
    const marey::Trace trace = session.stop();
    const std::string prefix = "m: rpc_sync#work(middle -> far)#remote_op: ";
    expect_callee(trace, prefix, far.pid(), 8);
    const Row handle = find(trace, "m: handle");
    ASSERT_NE(handle, marey::kNoRow);
    EXPECT_EQ(process_of(trace, handle).pid, middle.pid());
    EXPECT_EQ(process_of(trace, handle).node, 7);
    EXPECT_EQ(trace.processes().size(), 3u);
    EXPECT_EQ(links(trace),
              (std::multiset<std::string>{"call -> m: handle",
                                          "m: rpc_sync#work(middle -> far) -> " + prefix + "handle"}));
    trace.save(path("saved.marey"));
    EXPECT_EQ(links(marey::Trace::load(path("saved.marey"))), links(trace));
}

// L23
TEST_F(Remote, AddedEventsSurviveTheDeathOfTheCaller) {
    const Server server(3);
    int out[2];
    ASSERT_EQ(pipe(out), 0);
    const std::string port = std::to_string(server.port());
    const std::string capture = path("killed.marey");
    const pid_t client = fork();
    if (client == 0) {
        dup2(out[1], STDOUT_FILENO);
        execl(kProgram, kProgram, "client", port.c_str(), capture.c_str(), nullptr);
        _exit(127);
    }
    close(out[1]);
    char ready[6] = {};
    ASSERT_EQ(read(out[0], ready, 6), 6);
    close(out[0]);
    kill(client, SIGKILL);
    int status = 0;
    waitpid(client, &status, 0);
    const marey::Trace trace = marey::Trace::load(capture);
    EXPECT_FALSE(trace.window().finished);
    expect_callee(trace, "server: ", server.pid(), 9);
    EXPECT_EQ(links(trace), std::multiset<std::string>{"rpc_sync#work(client -> server) -> server: handle"});
    expect_within(trace, find(trace, "server: handle"), find(trace, "still open"));
}

TEST_F(Remote, AMessageLargerThanABlockOfTheFileIsKept) {
    const Server server(3);
    marey::Session whole({.output = path("whole.marey")});
    marey::Session part({.output = path("part.marey")});
    const std::string answer = remote_wire::call(server.port(), "burst 20000");
    ASSERT_GT(answer.size(), 1'000'000u);
    whole.add_events(answer);
    part.add_events(answer);
    { MAREY_RANGE("after"); }
    for (marey::Session* const session : {&part, &whole}) {
        const marey::Trace trace = session->stop();
        EXPECT_EQ(trace.ranges().size(), 60'002u);
        const marey::Trace loaded = marey::Trace::load(session->output_path());
        EXPECT_EQ(loaded.ranges().size(), 60'002u);
        EXPECT_EQ(loaded.instants().size(), 20'000u);
        EXPECT_TRUE(loaded.problems().empty());
    }
}

TEST_F(Remote, OnlyTheSessionThatAddedThemHasThem) {
    const Server server(3);
    marey::Session other({.output = path("other.marey")});
    marey::Session one({.output = path("one.marey")});
    one.add_events(remote_wire::call(server.port(), "work"));
    EXPECT_NE(find(one.snapshot(), "handle"), marey::kNoRow);
    one.stop();
    EXPECT_EQ(find(other.stop(), "handle"), marey::kNoRow);
    EXPECT_NE(find(marey::Trace::load(path("one.marey")), "handle"), marey::kNoRow);
    EXPECT_EQ(find(marey::Trace::load(path("other.marey")), "handle"), marey::kNoRow);
}

TEST_F(Remote, AnotherHostsClockIsAlignedWithTheCall) {
    const Server server(3);
    marey::Session session(marey::SessionOptions{});
    // A trace that was made by hand names no clock; its times begin at 0.
    marey::DescribedEvent event;
    event.name = "handle";
    event.duration_ns = 1000;
    const std::string message = marey::pack_events(marey::assemble_trace({&event, 1}).trace);
    {
        MAREY_RANGE("call");
        marey::RemoteCall call;
        remote_wire::call(server.port(), "work");
        call.end();
        session.add_events(message, {.call = &call});
        EXPECT_TRUE(session.snapshot().problems().empty());
        session.add_events(message, {.prefix = "guessed "});
    }
    const marey::Trace trace = session.stop();
    ASSERT_NE(find(trace, "handle"), marey::kNoRow);
    expect_within(trace, find(trace, "handle"), find(trace, "call"));
    EXPECT_NE(find(trace, "guessed handle"), marey::kNoRow);
    ASSERT_EQ(trace.problems().size(), 1u);
    EXPECT_EQ(trace.problems()[0].code, "remote_clock");
}

TEST_F(Remote, SomeOfASessionsEventsCanBeSent) {
    marey::Session session(marey::SessionOptions{});
    {
        MAREY_RANGE("outer");
        { MAREY_RANGE_SCOPE(marey::Scope::Function, "inner"); }
        marey::instant("mark");
    }
    const marey::Trace trace = session.stop();
    const auto names = [&](const marey::EventFilter& filter) {
        const marey::Trace sent = marey::unpack_events(marey::pack_events(trace, filter));
        std::vector<std::string> found;
        for (Row row = 0; row < sent.ranges().size(); ++row) found.emplace_back(sent.range_name(row));
        for (const std::uint32_t site : sent.instants().site)
            found.emplace_back(sent.string(sent.sites()[site].name));
        return found;
    };
    using Names = std::vector<std::string>;
    EXPECT_EQ(names({}), (Names{"outer", "inner", "mark"}));
    EXPECT_EQ(names({.scopes = {marey::Scope::Function}}), (Names{"inner"}));
    EXPECT_EQ(names({.names = {"mark", "outer"}}), (Names{"outer", "mark"}));
    EXPECT_EQ(names({.ranges = [](Row row) { return row == 1; }, .marks = false}), (Names{"inner"}));
}

// L7
TEST_F(Remote, ASessionThatIsNotRunningAcceptsNothing) {
    const std::string message = marey::pack_events({});
    const std::string no = "events cannot be added to a session that is not running";
    marey::Session session;
    EXPECT_EQ(refusal(session, message), no);
    session.start();
    EXPECT_EQ(refusal(session, message), "");
    session.stop();
    EXPECT_EQ(refusal(session, message), no);
}

TEST_F(Remote, ARejectedMessageLeavesTheSessionUnchanged) {
    const Server server(3);
    marey::Session session({.max_bytes = 4000});
    const std::string answer = remote_wire::call(server.port(), "work");
    std::string newer = answer;
    newer[8] = 9;
    EXPECT_EQ(refusal(session, newer), "event message: saved by a newer Marey (saved trace 9)");
    std::string damaged = answer;
    damaged[answer.size() / 2] ^= 4;
    EXPECT_NE(refusal(session, damaged).find("damaged"), std::string::npos);
    EXPECT_NE(refusal(session, answer.substr(0, answer.size() - 1)), "");
    EXPECT_NE(refusal(session, answer.substr(0, 20)).find("truncated"), std::string::npos);
    EXPECT_NE(refusal(session, std::string((256u << 20) + 1, 'x')).find("limit of 256 MiB"),
              std::string::npos);
    EXPECT_NE(refusal(session, answer, {.prefix = std::string(1025, 'x')}).find("prefix"), std::string::npos);
    EXPECT_EQ(session.snapshot().ranges().size(), 0u);
    int taken = 0;
    while (refusal(session, answer).empty()) ++taken;
    EXPECT_GT(taken, 0);
    EXPECT_NE(refusal(session, answer).find("max_bytes"), std::string::npos);
    EXPECT_EQ(session.stop().ranges().size(), static_cast<std::size_t>(4 * taken));
}

// L20: a call is a value; its answer may come to another thread, in any order.
TEST_F(Remote, AnswersThatComeOutOfOrderFindTheirCalls) {
    const Server server(3);
    marey::Session session(marey::SessionOptions{});
    marey::Range first("first");
    marey::RemoteCall first_call;
    marey::Range second("second");
    marey::RemoteCall second_call;
    const std::string second_answer = remote_wire::call(server.port(), "work");
    const std::string first_answer = remote_wire::call(server.port(), "work");
    first_call.end();
    first.end();
    session.add_events(first_answer, {.prefix = "1 ", .call = &first_call});
    second_call.end();
    second.end();
    session.add_events(second_answer, {.prefix = "2 ", .call = &second_call});
    const marey::Trace trace = session.stop();
    EXPECT_EQ(links(trace), (std::multiset<std::string>{"first -> 1 handle", "second -> 2 handle"}));
    EXPECT_EQ(trace.processes().size(), 2u);  // one server, whatever the number of its answers
}

}  // namespace
