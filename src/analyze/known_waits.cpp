// known_waits.cpp: the table of functions that only wait.
#include <marey/known_waits.h>

#include <algorithm>
#include <iterator>

#include "analyze/averages/site_groups.h"

namespace marey {
namespace {

// Sorted. Where calls into C are not recorded, the Python function that makes such a call has its time: that
// of an event loop written in C (uvloop) is asyncio.runners.Runner.run.
constexpr std::string_view kKnownWaits[] = {
    "_multiprocessing.SemLock.__enter__",
    "_multiprocessing.SemLock.acquire",
    "_queue.SimpleQueue.get",
    "_socket.socket._accept",
    "_socket.socket.connect",
    "_socket.socket.recv",
    "_socket.socket.recv_into",
    "_socket.socket.recvfrom",
    "_socket.socket.recvfrom_into",
    "_socket.socket.recvmsg",
    "_socket.socket.recvmsg_into",
    "_ssl._SSLSocket.read",
    "_thread.RLock.__enter__",
    "_thread.RLock.acquire",
    "_thread._ThreadHandle.join",
    "_thread.lock.__enter__",
    "_thread.lock.acquire",
    "asyncio.runners.Runner.run",
    "asyncio.unix_events.ThreadedChildWatcher._do_waitpid",
    "asyncio.unix_events._PidfdChildWatcher._do_wait",
    "asyncio.unix_events._ThreadedChildWatcher._do_waitpid",
    "builtins.input",
    "concurrent.futures._base.Future.exception",
    "concurrent.futures._base.Future.result",
    "concurrent.futures._base.as_completed",
    "concurrent.futures._base.wait",
    "concurrent.futures.process._ExecutorManagerThread.wait_result_broken_or_wakeup",
    "concurrent.futures.thread._worker",
    "execnet.gateway_base.Popen2IO.read",
    "fcntl.flock",
    "fcntl.lockf",
    "gunicorn.arbiter.Arbiter.sleep",
    "gunicorn.arbiter.Arbiter.stop",
    "gunicorn.arbiter.Arbiter.wait_for_signals",
    "gunicorn.http.unreader.SocketUnreader.chunk",
    "gunicorn.util.close_graceful",
    "gunicorn.workers.sync.SyncWorker.wait",
    "multiprocessing.connection.Connection._poll",
    "multiprocessing.connection.Connection._recv",
    "multiprocessing.connection.SocketListener.accept",
    "multiprocessing.connection.wait",
    "multiprocessing.managers.BaseManager.join",
    "multiprocessing.pool.Pool._handle_tasks",
    "multiprocessing.popen_fork.Popen.poll",
    "multiprocessing.popen_fork.Popen.wait",
    "multiprocessing.queues.Queue.get",
    "multiprocessing.queues.SimpleQueue.get",
    "multiprocessing.resource_tracker.main",
    "multiprocessing.synchronize.Condition.wait",
    "multiprocessing.synchronize.SemLock.__enter__",
    "posix.wait",
    "posix.wait3",
    "posix.wait4",
    "posix.waitid",
    "posix.waitpid",
    "queue.Queue.get",
    "queue.Queue.join",
    "queue.Queue.put",
    "queue._PySimpleQueue.get",
    "select.epoll.poll",
    "select.poll.poll",
    "select.select",
    "selectors.EpollSelector.select",
    "selectors.PollSelector.select",
    "selectors.SelectSelector.select",
    "selectors._PollLikeSelector.select",
    "signal.pause",
    "signal.sigtimedwait",
    "signal.sigwait",
    "signal.sigwaitinfo",
    "socket.SocketIO.readinto",
    "socket.create_connection",
    "socket.socket.accept",
    "ssl.SSLSocket.read",
    "ssl.SSLSocket.recv",
    "ssl.SSLSocket.recv_into",
    "subprocess.Popen._communicate",
    "subprocess.Popen._try_wait",
    "subprocess.Popen._wait",
    "subprocess.Popen.communicate",
    "subprocess.Popen.wait",
    "threading.Barrier._wait",
    "threading.Barrier.wait",
    "threading.Condition.wait",
    "threading.Condition.wait_for",
    "threading.Event.wait",
    "threading.Semaphore.acquire",
    "threading.Thread._wait_for_tstate_lock",
    "threading.Thread.join",
    "threading._shutdown",
    "time.sleep",
    "zmq.sugar.poll.Poller.poll",
};
static_assert(std::ranges::is_sorted(kKnownWaits));

}  // namespace

std::span<const std::string_view> known_waits() noexcept {
    return kKnownWaits;
}

bool is_known_wait(std::string_view name) noexcept {
    return std::binary_search(std::begin(kKnownWaits), std::end(kKnownWaits), name);
}

bool is_known_wait(const Trace& trace, const SiteInfo& site) {
    const std::string_view name = trace.string(site.name);
    if (site.scope == Scope::CFunction) return is_known_wait(name);
    if (site.scope != Scope::PythonFunction || is_program_file(trace.string(site.file))) return false;
    const auto [path, function] = parse_python_name(name);
    return !path.empty() && is_known_wait(module_of(path) + "." + std::string(function));
}

}  // namespace marey
