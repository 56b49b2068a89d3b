// known_waits.cpp: the table of functions that only wait.
#include <marey/known_waits.h>

#include <algorithm>
#include <utility>

#include "analyze/averages/site_groups.h"

namespace marey {
namespace {

// The functions of modules and classes. Where calls into C are not recorded, the Python function that makes
// such a call has its time: that of an event loop written in C (uvloop) is asyncio.runners.Runner.run.
constexpr std::pair<const char*, std::string_view> kWaits[] = {
    {"_multiprocessing.SemLock", "__enter__ acquire"},
    {"_queue.SimpleQueue", "get"},
    {"_socket.socket", "_accept connect recv recv_into recvfrom recvfrom_into recvmsg recvmsg_into"},
    {"_ssl._SSLSocket", "read"},
    {"_thread.RLock", "__enter__ acquire"},
    {"_thread._ThreadHandle", "join"},
    {"_thread.lock", "__enter__ acquire"},
    {"asyncio.runners.Runner", "run"},
    {"asyncio.unix_events.ThreadedChildWatcher", "_do_waitpid"},
    {"asyncio.unix_events._PidfdChildWatcher", "_do_wait"},
    {"asyncio.unix_events._ThreadedChildWatcher", "_do_waitpid"},
    {"builtins", "input"},
    {"concurrent.futures._base", "as_completed wait"},
    {"concurrent.futures._base.Future", "exception result"},
    {"concurrent.futures.process._ExecutorManagerThread", "wait_result_broken_or_wakeup"},
    {"concurrent.futures.thread", "_worker"},
    {"execnet.gateway_base.Popen2IO", "read"},
    {"fcntl", "flock lockf"},
    {"gunicorn.arbiter.Arbiter", "sleep stop wait_for_signals"},
    {"gunicorn.http.unreader.SocketUnreader", "chunk"},
    {"gunicorn.util", "close_graceful"},
    {"gunicorn.workers.sync.SyncWorker", "wait"},
    {"multiprocessing.connection", "wait"},
    {"multiprocessing.connection.Connection", "_poll _recv"},
    {"multiprocessing.connection.SocketListener", "accept"},
    {"multiprocessing.managers.BaseManager", "join"},
    {"multiprocessing.pool.Pool", "_handle_tasks"},
    {"multiprocessing.popen_fork.Popen", "poll wait"},
    {"multiprocessing.queues.Queue", "get"},
    {"multiprocessing.queues.SimpleQueue", "get"},
    {"multiprocessing.resource_tracker", "main"},
    {"multiprocessing.synchronize.Condition", "wait"},
    {"multiprocessing.synchronize.SemLock", "__enter__"},
    {"posix", "wait wait3 wait4 waitid waitpid"},
    {"queue.Queue", "get join put"},
    {"queue._PySimpleQueue", "get"},
    {"select", "select"},
    {"select.epoll", "poll"},
    {"select.poll", "poll"},
    {"selectors.EpollSelector", "select"},
    {"selectors.PollSelector", "select"},
    {"selectors.SelectSelector", "select"},
    {"selectors._PollLikeSelector", "select"},
    {"signal", "pause sigtimedwait sigwait sigwaitinfo"},
    {"socket", "create_connection"},
    {"socket.SocketIO", "readinto"},
    {"socket.socket", "accept"},
    {"ssl.SSLSocket", "read recv recv_into"},
    {"subprocess.Popen", "_communicate _try_wait _wait communicate wait"},
    {"threading", "_shutdown"},
    {"threading.Barrier", "_wait wait"},
    {"threading.Condition", "wait wait_for"},
    {"threading.Event", "wait"},
    {"threading.Semaphore", "acquire"},
    {"threading.Thread", "_wait_for_tstate_lock join"},
    {"time", "sleep"},
    {"zmq.sugar.poll.Poller", "poll"},
};

/// The whole names, sorted.
std::vector<std::string> whole_names() {
    std::vector<std::string> names;
    for (auto [place, functions] : kWaits) {
        while (!functions.empty()) {
            const std::string_view function = functions.substr(0, functions.find(' '));
            names.push_back(place + ("." + std::string(function)));
            functions.remove_prefix(std::min(function.size() + 1, functions.size()));
        }
    }
    std::ranges::sort(names);
    return names;
}

}  // namespace

std::span<const std::string> known_waits() {
    static const std::vector<std::string>& names = *new std::vector<std::string>(whole_names());
    return names;
}

bool is_known_wait(std::string_view name) {
    return std::ranges::binary_search(known_waits(), name);
}

bool is_known_wait(const Trace& trace, const SiteInfo& site) {
    const std::string_view name = trace.string(site.name);
    if (site.scope == Scope::CFunction) return is_known_wait(name);
    if (site.scope != Scope::PythonFunction || is_program_file(trace.string(site.file))) return false;
    const auto [path, function] = parse_python_name(name);
    return !path.empty() && is_known_wait(module_of(path) + "." + std::string(function));
}

}  // namespace marey
