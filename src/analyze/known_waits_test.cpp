// known_waits_test.cpp: waiting functions are told from others by their module and name.
#include <marey/known_waits.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analyze/trace_fixture.h"

namespace marey {
namespace {

bool is_wait(const std::string& name, const std::string& file, Scope scope = Scope::PythonFunction) {
    TraceFixture fixture;
    fixture.thread("main", {{name, 0, 10}});
    SiteInfo& site = fixture.data().sites.front();
    site.scope = scope;
    site.file = fixture.string(file);
    const Trace trace = fixture.trace();
    return is_known_wait(trace, trace.sites().front());
}

TEST(KnownWaits, AreSorted) {
    EXPECT_TRUE(std::is_sorted(known_waits().begin(), known_waits().end()));
    EXPECT_TRUE(is_known_wait("time.sleep"));
    EXPECT_FALSE(is_known_wait("time.sleeps"));
}

TEST(KnownWaits, AreFunctionsOfTheStandardLibraryAndOfInstalledPackages) {
    EXPECT_TRUE(is_wait("threading.py(320): Condition.wait", "/usr/lib/python3.11/threading.py"));
    EXPECT_TRUE(is_wait("concurrent/futures/thread.py(65): _worker",
                        "/opt/lib/python3.12/concurrent/futures/thread.py"));
    EXPECT_TRUE(is_wait("gunicorn/arbiter.py(9): Arbiter.sleep", "/v/site-packages/gunicorn/arbiter.py"));
    EXPECT_TRUE(is_wait("execnet/gateway_base.py(529): Popen2IO.read",
                        "/v/site-packages/execnet/gateway_base.py"));  // workers of pytest-xdist
    EXPECT_TRUE(is_wait("select.epoll.poll", "select", Scope::CFunction));
    EXPECT_FALSE(is_wait("threading.py(1): Thread.run", "/usr/lib/python3.11/threading.py"));
    EXPECT_FALSE(is_wait("select.epoll.poll", "", Scope::User));
}

TEST(KnownWaits, AreMarkedRangesWhoseFirstWordSaysSo) {
    for (const char* name : {"wait for room", "Waiting: queue", "wait", "sleep 5", "idle", "IDLE_LOOP"})
        EXPECT_TRUE(is_wait(name, "", Scope::User)) << name;
    for (const char* name : {"await reply", "waiter", "make documents wait", "waits", "idleness", ""})
        EXPECT_FALSE(is_wait(name, "", Scope::User)) << name;
    EXPECT_FALSE(is_wait("wait", "/home/me/shop/queue.py"));
}

TEST(KnownWaits, HaveAPurpose) {
    EXPECT_EQ(wait_kind("time.sleep"), WaitKind::Sleep);
    EXPECT_EQ(wait_kind("_thread.lock.acquire"), WaitKind::Lock);
    EXPECT_EQ(wait_kind("_socket.socket._accept"), WaitKind::Events);
    EXPECT_EQ(wait_kind("time.sleeps"), WaitKind::None);
}

TEST(KnownWaits, AreNeverFunctionsOfTheProgram) {
    EXPECT_FALSE(is_wait("queue.py(3): Queue.get", "/home/me/shop/queue.py"));
}

}  // namespace
}  // namespace marey
