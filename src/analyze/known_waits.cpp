// known_waits.cpp: the table of functions that only wait.
#include <marey/known_waits.h>

#include <algorithm>
#include <utility>

#include "analyze/averages/site_groups.h"

namespace marey {
namespace {

// The functions of modules and classes. Where calls into C are not recorded, the Python function that makes
// such a call has its time: that of an event loop written in C (uvloop) is asyncio.runners.Runner.run.
namespace wait_rows {
using enum WaitKind;

struct Waits {
    WaitKind kind;
    const char* place;
    std::string_view functions;
};
constexpr Waits kWaits[] = {
    {Lock, "_multiprocessing.SemLock", "__enter__ acquire"},
    {Queue, "_queue.SimpleQueue", "get"},
    {Events, "_socket.socket", "_accept"},
    {Network, "_socket.socket", "connect recv recv_into recvfrom recvfrom_into recvmsg recvmsg_into"},
    {Network, "_ssl._SSLSocket", "read"},
    {Lock, "_thread.RLock", "__enter__ acquire"},
    {Work, "_thread._ThreadHandle", "join"},
    {Lock, "_thread.lock", "__enter__ acquire"},
    {Events, "asyncio.runners.Runner", "run"},
    {Process, "asyncio.unix_events.ThreadedChildWatcher", "_do_waitpid"},
    {Process, "asyncio.unix_events._PidfdChildWatcher", "_do_wait"},
    {Process, "asyncio.unix_events._ThreadedChildWatcher", "_do_waitpid"},
    {Events, "builtins", "input"},
    {Work, "concurrent.futures._base", "as_completed wait"},
    {Work, "concurrent.futures._base.Future", "exception result"},
    {Work, "concurrent.futures.process._ExecutorManagerThread", "wait_result_broken_or_wakeup"},
    {Work, "concurrent.futures.thread", "_worker"},
    {Events, "execnet.gateway_base.Popen2IO", "read"},
    {Lock, "fcntl", "flock lockf"},
    {Events, "gunicorn.arbiter.Arbiter", "sleep stop wait_for_signals"},
    {Events, "gunicorn.http.unreader.SocketUnreader", "chunk"},
    {Events, "gunicorn.util", "close_graceful"},
    {Events, "gunicorn.workers.sync.SyncWorker", "wait"},
    {Work, "multiprocessing.connection", "wait"},
    {Work, "multiprocessing.connection.Connection", "_poll _recv"},
    {Events, "multiprocessing.connection.SocketListener", "accept"},
    {Process, "multiprocessing.managers.BaseManager", "join"},
    {Work, "multiprocessing.pool.Pool", "_handle_tasks"},
    {Process, "multiprocessing.popen_fork.Popen", "poll wait"},
    {Queue, "multiprocessing.queues.Queue", "get"},
    {Queue, "multiprocessing.queues.SimpleQueue", "get"},
    {Events, "multiprocessing.resource_tracker", "main"},
    {Work, "multiprocessing.synchronize.Condition", "wait"},
    {Lock, "multiprocessing.synchronize.SemLock", "__enter__"},
    {Process, "posix", "wait wait3 wait4 waitid waitpid"},
    {Queue, "queue.Queue", "get join put"},
    {Queue, "queue._PySimpleQueue", "get"},
    {Events, "select", "select"},
    {Events, "select.epoll", "poll"},
    {Events, "select.poll", "poll"},
    {Events, "selectors.EpollSelector", "select"},
    {Events, "selectors.PollSelector", "select"},
    {Events, "selectors.SelectSelector", "select"},
    {Events, "selectors._PollLikeSelector", "select"},
    {Events, "signal", "pause sigtimedwait sigwait sigwaitinfo"},
    {Network, "socket", "create_connection"},
    {Network, "socket.SocketIO", "readinto"},
    {Events, "socket.socket", "accept"},
    {Network, "ssl.SSLSocket", "read recv recv_into"},
    {Process, "subprocess.Popen", "_communicate _try_wait _wait communicate wait"},
    {Work, "threading", "_shutdown"},
    {Work, "threading.Barrier", "_wait wait"},
    {Work, "threading.Condition", "wait wait_for"},
    {Work, "threading.Event", "wait"},
    {Lock, "threading.Semaphore", "acquire"},
    {Work, "threading.Thread", "_wait_for_tstate_lock join"},
    {Sleep, "time", "sleep"},
    {Events, "zmq.sugar.poll.Poller", "poll"},
};

}  // namespace wait_rows

/// The whole names, sorted, and their kinds.
struct WaitTable {
    std::vector<std::string> names;
    std::vector<WaitKind> kinds;

    WaitTable() {
        std::vector<std::pair<std::string, WaitKind>> rows;
        for (auto [kind, place, functions] : wait_rows::kWaits) {
            while (!functions.empty()) {
                const std::string_view function = functions.substr(0, functions.find(' '));
                rows.emplace_back(place + ("." + std::string(function)), kind);
                functions.remove_prefix(std::min(function.size() + 1, functions.size()));
            }
        }
        std::ranges::sort(rows);
        for (auto& [name, kind] : rows) {
            names.push_back(std::move(name));
            kinds.push_back(kind);
        }
    }
};

const WaitTable& wait_table() {
    static const WaitTable& table = *new WaitTable();
    return table;
}

/// Of a range that the program marked: its first word says it, as in "wait for workers".
WaitKind marked_wait_kind(std::string_view name) {
    const auto starts_with_word = [&](std::string_view word) {
        const auto is_equal = [](char lower, char b) { return lower == (b | 0x20); };  // also in capitals
        return name.size() >= word.size() && std::equal(word.begin(), word.end(), name.begin(), is_equal) &&
               (name.size() == word.size() ||
                std::string_view(" _-:.([").find(name[word.size()]) != name.npos);
    };
    if (starts_with_word("wait") || starts_with_word("waiting")) return WaitKind::Work;
    if (starts_with_word("sleep") || starts_with_word("sleeping")) return WaitKind::Sleep;
    return starts_with_word("idle") ? WaitKind::Events : WaitKind::None;
}

}  // namespace

std::span<const std::string> known_waits() {
    return wait_table().names;
}

WaitKind wait_kind(std::string_view name) {
    const WaitTable& table = wait_table();
    const auto found = std::ranges::lower_bound(table.names, name);
    if (found == table.names.end() || *found != name) return WaitKind::None;
    return table.kinds[static_cast<std::size_t>(found - table.names.begin())];
}

WaitKind wait_kind(const Trace& trace, const SiteInfo& site) {
    const std::string_view name = trace.string(site.name);
    if (site.scope == Scope::CFunction) return wait_kind(name);
    if (site.scope == Scope::User) return marked_wait_kind(name);
    if (site.scope != Scope::PythonFunction || is_program_file(trace.string(site.file)))
        return WaitKind::None;
    const auto [path, function] = parse_python_name(name);
    return path.empty() ? WaitKind::None : wait_kind(module_of(path) + "." + std::string(function));
}

bool is_known_wait(std::string_view name) {
    return wait_kind(name) != WaitKind::None;
}

bool is_known_wait(const Trace& trace, const SiteInfo& site) {
    return wait_kind(trace, site) != WaitKind::None;
}

}  // namespace marey
