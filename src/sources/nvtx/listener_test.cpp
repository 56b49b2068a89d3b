// listener_test.cpp: the records and return values of NVTX calls.
#include "sources/nvtx/listener.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <marey/emit.h>
#include <marey/nvtx.h>
#include <marey/observe.h>
#include <marey/range.h>
#include <marey/session.h>

#include "sources/nvtx/category_names.h"
#include "sources/nvtx/nvtx_fixture.h"

namespace marey {
namespace {

using Lines = std::vector<std::string>;
using nvtx_protocol::EventAttributes;
using nvtx_protocol::kCore;
using nvtx_protocol::kCore2;
using nvtx_protocol::kError;
using nvtx_protocol::kNotTracked;

class NvtxListener : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(FakeNvtx::attach()); }
};

TEST_F(NvtxListener, RecordsNestedRangesAndReturnsTheirDepths) {
    Session session;
    session.start();
    EXPECT_EQ(push("outer"), 0);
    {
        MAREY_RANGE("ours");
        EXPECT_EQ(push("inner"), 1);
        EXPECT_EQ(pop(), 1);
    }
    EXPECT_EQ(pop(), 0);
    EXPECT_EQ(described(session.stop()), (Lines{"nvtx:outer", ".:ours", "..nvtx:inner"}));
}

TEST_F(NvtxListener, ReturnsDepthsWithoutASessionAndRecordsNothing) {
    EXPECT_EQ(push("before"), 0);
    EXPECT_EQ(push("inner"), 1);
    EXPECT_EQ(pop(), 1);
    mark("mark");
    const std::uint64_t first = start("started");
    const std::uint64_t second = start("started");
    EXPECT_NE(first, 0u);
    EXPECT_NE(first, second);
    end(first);
    Session session;
    session.start();
    EXPECT_EQ(push("during"), 1);
    EXPECT_EQ(pop(), 1);
    EXPECT_EQ(pop(), 0);  // pushed before the session: no end without a begin
    end(second);
    const Trace trace = session.stop();
    EXPECT_EQ(described(trace), (Lines{"nvtx:during"}));
    EXPECT_EQ(trace.instants().size(), 0u);
}

TEST_F(NvtxListener, ShowsRangesThatAreOpenAtStartsAndStops) {
    Session outer;
    outer.start();
    push("over all");
    Session inner;
    inner.start();
    const std::uint64_t started = start("started");
    EXPECT_EQ(described(inner.stop()),
              (Lines{"nvtx:over all unfinished began before", "nvtx:started async unfinished"}));
    pop();
    end(started);
    EXPECT_EQ(described(outer.stop()), (Lines{"nvtx:over all", "nvtx:started async"}));
}

TEST_F(NvtxListener, AnswersAPopWithoutAPushWithAnError) {
    Session session;
    session.start();
    {
        MAREY_RANGE("ours");
        EXPECT_EQ(pop(), kError);
        EXPECT_EQ(pop(domain("never pushed")), kError);
        end(0);
        end(12345);
    }
    EXPECT_EQ(described(session.stop()), (Lines{":ours"}));
}

TEST_F(NvtxListener, KeepsAStackForEachDomainSoThatTheirRangesMayCross) {
    Session session;
    session.start();
    const std::uintptr_t one = domain("one");
    EXPECT_EQ(domain("one"), one);
    const EventAttributes a = attributes("a"), b = attributes("b");
    EXPECT_EQ(push(one, &a), 0);
    EXPECT_EQ(push("default"), 0);
    EXPECT_EQ(push(one, &b), 1);
    EXPECT_EQ(pop(one), 1);
    EXPECT_EQ(pop(one), 0);  // before the range that was pushed inside it
    EXPECT_EQ(pop(), 0);
    FakeNvtx::call<void>(kCore2, nvtx_protocol::kDomainDestroy, one);
    Lines lines = described(session.stop());
    std::sort(lines.begin(), lines.end());
    EXPECT_EQ(lines, (Lines{".one:b", "nvtx:default", "one:a async"}));
}

TEST_F(NvtxListener, TreatsUnknownHandlesAsTheDefaultDomain) {
    Session session;
    session.start();
    EventAttributes event = attributes("text");
    for (const std::uintptr_t wrong :
         {std::uintptr_t{0xdeadbeefcafe}, ~std::uintptr_t{0}, std::uintptr_t{0xfffffff}}) {
        EXPECT_EQ(push(wrong, &event), 0);
        EXPECT_EQ(pop(wrong), 0);
    }
    event.message_type = nvtx_protocol::kMessageRegistered;
    for (const std::uintptr_t wrong : {std::uintptr_t{0}, std::uintptr_t{0xfffffe}, ~std::uintptr_t{0}}) {
        event.message.registered = reinterpret_cast<const void*>(wrong);
        EXPECT_EQ(push(0, &event), 0);
        EXPECT_EQ(pop(), 0);
    }
    EXPECT_EQ(described(session.stop()), (Lines{"nvtx:text", "nvtx:text", "nvtx:text", "nvtx:(unnamed)",
                                                "nvtx:(unnamed)", "nvtx:(unnamed)"}));
}

TEST_F(NvtxListener, RecordsRegisteredStringsUnderTheirDomain) {
    const std::uintptr_t one = domain("one");
    const std::uintptr_t text = registered(one, "kept");
    EXPECT_NE(text, 0u);
    EXPECT_EQ(registered(one, "kept"), text);
    EXPECT_NE(registered(0, "kept"), text);
    Session session;
    session.start();
    EventAttributes event = attributes();
    event.message_type = nvtx_protocol::kMessageRegistered;
    event.message.registered = reinterpret_cast<const void*>(text);
    push(one, &event);
    pop(one);
    EXPECT_EQ(described(session.stop()), (Lines{"one:kept"}));
}

TEST_F(NvtxListener, KeepsCategoryColorAndPayload) {
    const std::uintptr_t one = domain("one");
    FakeNvtx::call<void>(kCore2, nvtx_protocol::kDomainNameCategoryA, one, 2u, "second");
    FakeNvtx::call<void>(kCore, nvtx_protocol::kNameCategoryW, 3u, static_cast<const wchar_t*>(L"drei"));
    Session session;
    session.start();
    EventAttributes event = attributes("a");
    event.category = 2;
    event.color_type = nvtx_protocol::kColorArgb;
    event.color = 0xff00a0ff;
    event.payload_type = nvtx_protocol::kPayloadDouble;
    event.payload.real64 = 0.5;
    push(one, &event);
    event.color_type = 0;
    event.payload_type = nvtx_protocol::kPayloadUnsigned64;
    event.payload.unsigned64 = 7;
    push(0, &event);  // its category has a name in the other domain only
    event.category = 3;
    event.payload.unsigned64 = ~std::uint64_t{0};
    FakeNvtx::call<void>(kCore, nvtx_protocol::kMarkEx, static_cast<const EventAttributes*>(&event));
    pop();
    pop(one);
    const Trace trace = session.stop();
    EXPECT_EQ(described(trace), (Lines{"one:a category=second color=#ff00a0ff payload=0.500000",
                                       ".nvtx:a category=2 payload=7"}));
    ASSERT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(described(trace, trace.instant_arguments(0)), " category=drei payload=18446744073709551615");
}

TEST_F(NvtxListener, LeavesValuesOutIfTheSessionDoesNotRecordThem) {
    Session session(SessionOptions{.record_values = false});
    EventAttributes event = attributes("a");
    event.category = 2;
    push(0, &event);
    pop();
    EXPECT_EQ(described(session.stop()), (Lines{"nvtx:a"}));
}

TEST_F(NvtxListener, DistinguishesTextsThatTheirOwnerChanges) {
    Session session;
    session.start();
    char buffer[] = "a";
    for (const char c : {'x', 'y', 'x'}) {
        buffer[0] = c;
        push(buffer);
        pop();
    }
    EXPECT_EQ(described(session.stop()), (Lines{"nvtx:x", "nvtx:y", "nvtx:x"}));
}

TEST_F(NvtxListener, JoinsRangesThatEndOnAnotherThread) {
    Session session;
    session.start();
    const std::uint64_t range = start("moved");
    std::thread([range] { end(range); }).join();
    end(range);  // again
    EXPECT_EQ(described(session.stop()), (Lines{"nvtx:moved async"}));
}

TEST_F(NvtxListener, NamesThreads) {
    Session session;
    session.start();
    std::thread([] {
        FakeNvtx::call<void>(kCore, nvtx_protocol::kNameOsThreadA,
                             static_cast<std::uint32_t>(syscall(SYS_gettid)), "worker");
        push("work");
        pop();
    }).join();
    push("main's");
    pop();
    const auto main_thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
    std::thread([main_thread] {  // one thread names another
        FakeNvtx::call<void>(kCore, nvtx_protocol::kNameOsThreadW, main_thread,
                             static_cast<const wchar_t*>(L"first"));
        FakeNvtx::call<void>(kCore, nvtx_protocol::kNameOsThreadA, 4'000'000'000u, "unknown");
    })
        .join();
    const Trace trace = session.stop();
    std::map<std::string, std::string> thread_of;
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        const TrackInfo& track = trace.tracks()[trace.track_of(row)];
        thread_of[std::string(trace.range_name(row))] = trace.string(trace.threads()[track.thread].name);
    }
    EXPECT_EQ(thread_of, (std::map<std::string, std::string>{{"work", "worker"}, {"main's", "first"}}));
}

// NVTX calls that an observer or emitter makes for a recorded range must not be recorded again.
TEST_F(NvtxListener, IgnoresCallsMadeByItsOwnObservers) {
    static int inside = 0;
    Observer observer;
    observer.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
        inside = push("from the observer");
        return nullptr;
    };
    const ObserverHandle handle = add_observer(observer);
    Session session;
    session.start();
    EXPECT_EQ(push("recorded"), 0);
    EXPECT_EQ(pop(), 0);
    EXPECT_EQ(inside, kNotTracked);
    remove_observer(handle);
    EXPECT_EQ(described(session.stop()), (Lines{"nvtx:recorded"}));
}

TEST_F(NvtxListener, RecordsNothingOnAThreadThatIsSwitchedOff) {
    Session session;
    session.start();
    push("on");
    set_enabled(false);
    EXPECT_EQ(push("off"), 1);
    EXPECT_EQ(pop(), 1);
    EXPECT_EQ(pop(), 0);
    set_enabled(true);
    EXPECT_EQ(described(session.stop()), (Lines{"nvtx:on"}));
}

TEST_F(NvtxListener, KeepsEveryRangeOfEightThreads) {
    constexpr int kThreads = 8, kRounds = 20'000;
    Session session;
    session.start();
    const std::uintptr_t one = domain("one");
    const EventAttributes event = attributes("inner");
    std::vector<std::uint64_t> started(kThreads);
    std::vector<std::thread> threads;
    std::vector<int> wrong(kThreads);
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
            const std::string name = "outer " + std::to_string(i);
            started[static_cast<std::size_t>(i)] = start("started");
            int& count = wrong[static_cast<std::size_t>(i)];
            for (int round = 0; round < kRounds; ++round) {
                count += push(name.c_str()) != 0;
                count += push(one, &event) != 0;
                if (round % 100 == 0) mark("mark");
                count += pop(one) != 0;
                count += pop() != 0;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::uint64_t each : started) end(each);
    const Trace trace = session.stop();
    EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
    std::map<std::string, int> counts;
    for (const std::string& line : described(trace)) ++counts[line];
    std::map<std::string, int> expected{{".one:inner", kThreads * kRounds}, {"nvtx:started async", kThreads}};
    for (int i = 0; i < kThreads; ++i) expected["nvtx:outer " + std::to_string(i)] = kRounds;
    EXPECT_EQ(counts, expected);
    EXPECT_EQ(trace.instants().size(), static_cast<std::size_t>(kThreads * kRounds / 100));
    EXPECT_TRUE(trace.problems().empty());
}

TEST_F(NvtxListener, WorksInAForkedChild) {
    Session session;
    session.start();
    push("over the fork");
    const std::uint64_t started = start("started");
    const pid_t child = fork();
    if (child == 0) {
        const bool is_right = push("inner") == 1 && pop() == 1 && pop() == 0 && pop() == kError;
        end(started);
        Session own;
        own.start();
        push("of the child");
        pop();
        end(start("started"));
        const Trace trace = own.stop();
        _exit(is_right && described(trace) == Lines{"nvtx:of the child", "nvtx:started async"} ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(pop(), 0);
    end(started);
    EXPECT_EQ(described(session.stop()), (Lines{"nvtx:over the fork", "nvtx:started async"}));
}

TEST_F(NvtxListener, ClosesRangesThatAThreadLeavesOpen) {
    Session session;
    session.start();
    std::thread([] { push("left open"); }).join();
    EXPECT_EQ(described(session.stop()), (Lines{"nvtx:left open end inferred"}));
}

TEST_F(NvtxListener, OutlivesManyDomains) {
    Session session;
    session.start();
    const EventAttributes event = attributes("range");
    EXPECT_EQ(push("over all"), 0);
    for (int i = 0; i < 1000; ++i) {
        const std::uintptr_t made = domain(("domain " + std::to_string(i)).c_str());
        EXPECT_EQ(push(made, &event), 0);
        EXPECT_EQ(pop(made), 0);
    }
    EXPECT_EQ(pop(), 0);
    const Trace trace = session.stop();
    EXPECT_EQ(trace.ranges().size(), 1001u);
    EXPECT_EQ(described(trace).back(), ".domain 999:range");
}

TEST(NvtxListening, RejectsUnsupportedTables) {
    EXPECT_FALSE(attach_nvtx(nullptr));
    EXPECT_FALSE(attach_nvtx([](std::uint32_t) -> const void* { return nullptr; }));
    EXPECT_FALSE(attach_nvtx([](std::uint32_t) -> const void* {
        static const nvtx_protocol::CallbacksTable none{8, FakeNvtx::functions};
        return &none;
    }));
    EXPECT_FALSE(attach_nvtx([](std::uint32_t) -> const void* {
        static const nvtx_protocol::CallbacksTable none{
            sizeof none, [](int, nvtx_protocol::FunctionTable*, unsigned*) { return 0; }};
        return &none;
    }));
}

// An older NVTX with fewer functions works with those that it has.
TEST(NvtxListening, FillsInOnlyExistingSlots) {
    static nvtx_protocol::Function functions[4] = {};
    static nvtx_protocol::Function* places[4] = {nullptr, &functions[1], nullptr, &functions[3]};
    EXPECT_TRUE(attach_nvtx([](std::uint32_t) -> const void* {
        static const nvtx_protocol::CallbacksTable few{
            sizeof few, [](int module, nvtx_protocol::FunctionTable* table, unsigned* slots) {
                if (module != kCore) return 0;
                *table = places;
                *slots = 3;
                return 1;
            }};
        return &few;
    }));
    EXPECT_NE(functions[1], nullptr);
    EXPECT_EQ(functions[3], nullptr);
}

TEST(NvtxListening, ASessionThatExpectsNvtxReportsWhenItIsNotListening) {
    const auto problems = [](bool with_nvtx) {
        Session session(SessionOptions{.with_nvtx = with_nvtx});
        std::string text;
        const Trace trace = session.stop();
        for (const ProblemInfo& problem : trace.problems()) text += problem.code + ": " + problem.text;
        return text;
    };
    nvtx_attached = false;  // other tests have attached
    unsetenv("NVTX_INJECTION64_PATH");
    EXPECT_FALSE(nvtx::is_listening());
    EXPECT_EQ(problems(false), "");
    EXPECT_NE(problems(true).find("nvtx_not_listening: NVTX ranges are not recorded"), std::string::npos);
    setenv("NVTX_INJECTION64_PATH", "/opt/other/libother.so", 1);
    EXPECT_NE(problems(true).find("/opt/other/libother.so"), std::string::npos);
    setenv("NVTX_INJECTION64_PATH", nvtx::library_path().c_str(), 1);
    EXPECT_TRUE(nvtx::is_listening());
    EXPECT_EQ(problems(true), "");
    unsetenv("NVTX_INJECTION64_PATH");
    ASSERT_TRUE(FakeNvtx::attach());
    EXPECT_TRUE(nvtx::is_listening());
    EXPECT_EQ(problems(true), "");
}

TEST(CategoryNames, AreFoundByDomainAndNumberAndMayChange) {
    static constinit CategoryNames names;  // must live as long as the process
    EXPECT_EQ(names.find(0, 1), 0u);
    for (std::uint32_t i = 1; i <= 1000; ++i) names.set(i % 3, i, i + 5);
    names.set(1, 1, 99);
    EXPECT_EQ(names.find(1, 1), 99u);
    EXPECT_EQ(names.find(2, 1), 0u);
    for (std::uint32_t i = 2; i <= 1000; ++i) EXPECT_EQ(names.find(i % 3, i), i + 5);
}

}  // namespace
}  // namespace marey
