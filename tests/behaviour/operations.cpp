// operations.cpp: the ranges and allocations that observers see, and the values that a session keeps. Numbers
// are those of docs/reference/parity.md.
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>
#include <marey/detail/operator_path.h>

namespace {

thread_local std::uint64_t allocations = 0;

}  // namespace

// For the entire program, including the library.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* const place = std::malloc(bytes)) return place;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    ++allocations;
    return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* place) noexcept {
    std::free(place);
}
[[gnu::noinline]] void operator delete(void* place, std::size_t) noexcept {
    std::free(place);
}

namespace {

using marey::ObservedRange;
using marey::Observer;
using marey::ObserverContext;
using marey::Scope;

const std::int32_t node_at_start = marey::node_id();

class Operations : public ::testing::Test {
  protected:
    void TearDown() override { marey::clear_observers(); }
};
using Allocations = Operations;

struct Shown {
    std::string name;
    Scope scope = Scope::User;
    std::uint64_t id = 0;
    std::int64_t sequence = 0;
    std::uint32_t forward_thread = 0;
    std::int32_t node = 0;
    bool is_async = false;
    std::uint32_t start_thread = 0;
    std::vector<std::int64_t> integers;
    std::map<std::string, std::string> texts;
    std::size_t outputs = 0;
};
std::vector<Shown> shown;  // by end callbacks
Observer showing() {
    struct Held : ObserverContext {
        Shown what;
    };
    return {.start = [](const ObservedRange& range, void*) -> std::unique_ptr<ObserverContext> {
                auto held = std::make_unique<Held>();
                for (const marey::Value& value : range.inputs()) {
                    if (value.kind() == marey::ValueKind::Int) held->what.integers.push_back(value.integer());
                    if (value.kind() == marey::ValueKind::Array)
                        held->what.integers.insert(held->what.integers.end(), value.array().sizes.begin(),
                                                   value.array().sizes.end());
                }
                for (const marey::KeyedValue& each : range.keywords()) {
                    if (each.value.kind() == marey::ValueKind::String)
                        held->what.texts.emplace(each.key, each.value.string());
                }
                return held;
            },
            .end =
                [](const ObservedRange& range, ObserverContext* context, void*) {
                    EXPECT_TRUE(range.inputs().empty());
                    Shown what = static_cast<Held*>(context)->what;
                    what.name = range.name();
                    what.scope = range.scope();
                    what.id = range.id();
                    what.sequence = range.sequence();
                    what.forward_thread = range.forward_thread();
                    what.node = range.node();
                    what.is_async = range.is_async();
                    what.start_thread = range.start_thread();
                    what.outputs = range.outputs().size();
                    shown.push_back(what);
                },
            .needs_inputs = true,
            .needs_outputs = true,
            .needs_ids = true};
}

// R43 R45 R46 R47 R49 R50 R53
TEST_F(Operations, ShowTheirInputsOutputsAndNumbers) {
    shown.clear();
    EXPECT_EQ(node_at_start, -1);
    marey::set_node_id(3);
    EXPECT_THROW(marey::set_node_id(-1), marey::Error);
    marey::add_observer(showing());
    const std::int64_t sizes[] = {2, 5};
    const marey::ArrayView array{.dtype = marey::DType::Float32, .sizes = sizes};
    const marey::KeyedValue keywords[] = {{"mode", "fast"}};
    {
        marey::Operation op(Scope::BackwardFunction);
        const marey::Value inputs[] = {array, 7};
        op.begin(std::string("made at run time ") + "by hand", {.sequence = 11, .forward_thread = 2}, inputs,
                 keywords);
        const marey::Value outputs[] = {1, 2, 3};
        EXPECT_TRUE(op.needs_outputs());
        op.set_outputs(outputs);
        op.end();
    }
    { MAREY_RANGE("plain", "who", "me"); }
    ASSERT_EQ(shown.size(), 2u);
    EXPECT_EQ(shown[0].name, "made at run time by hand");
    EXPECT_EQ(shown[0].scope, Scope::BackwardFunction);
    EXPECT_EQ(shown[0].sequence, 11);
    EXPECT_EQ(shown[0].forward_thread, 2u);
    EXPECT_EQ(shown[0].node, 3);
    EXPECT_EQ(shown[0].integers, (std::vector<std::int64_t>{2, 5, 7}));
    EXPECT_EQ(shown[0].texts.at("mode"), "fast");
    EXPECT_EQ(shown[0].outputs, 3u);
    EXPECT_EQ(shown[0].start_thread, marey::current_thread_id());
    EXPECT_EQ(shown[1].sequence, -1);
    EXPECT_EQ(shown[1].forward_thread, 0u);
    EXPECT_EQ(shown[1].texts.at("who"), "me");
    EXPECT_GT(shown[1].id, shown[0].id);
}

// R34
TEST_F(Operations, AreActiveOnlyWhenTheyWillBeSeen) {
    const auto is_active = [](Scope scope) { return marey::Operation(scope).is_active(); };
    EXPECT_FALSE(is_active(Scope::Function));
    Observer observer = showing();
    observer.scopes = {Scope::BackwardFunction};
    const auto handle = marey::add_observer(observer);
    EXPECT_FALSE(is_active(Scope::Function));
    EXPECT_TRUE(is_active(Scope::BackwardFunction));
    marey::remove_and_drain(handle);
    Observer never = showing();
    never.sampling = 0;
    marey::add_observer(never);
    EXPECT_FALSE(is_active(Scope::Function));
    marey::Session session(marey::SessionOptions{.scopes = {Scope::User}});
    EXPECT_FALSE(is_active(Scope::Function));
    EXPECT_TRUE(is_active(Scope::User));
}

// R61 R63 R69
TEST_F(Operations, OfUsersAcceptATextOrValuesOfEveryKindOrKeywordsOnly) {
    static std::vector<marey::ValueKind> kinds;
    static std::string text;
    Observer observer;
    observer.start = [](const ObservedRange& range, void*) -> std::unique_ptr<ObserverContext> {
        EXPECT_EQ(range.scope(), Scope::User);
        kinds.clear();
        for (const marey::Value& value : range.inputs()) {
            kinds.push_back(value.kind());
            if (value.kind() == marey::ValueKind::String) text = value.string();
        }
        for (const marey::KeyedValue& each : range.keywords()) text = each.key;
        return nullptr;
    };
    marey::add_observer(observer);
    EXPECT_FALSE(marey::Operation(Scope::User).needs_inputs());
    marey::clear_observers();
    observer.needs_inputs = true;
    marey::add_observer(observer);
    {
        marey::Operation op(Scope::User);
        ASSERT_TRUE(op.needs_inputs());
        op.begin("with a text", {}, {marey::Value("epoch=3")});
    }
    using marey::ValueKind;
    EXPECT_EQ(kinds, std::vector{ValueKind::String});
    EXPECT_EQ(text, "epoch=3");
    const marey::ArrayView array{.dtype = marey::DType::Int64};
    const marey::Value items[] = {1, 2};
    const std::span<const marey::Value> list = items;
    {
        marey::Operation op(Scope::User);
        op.begin("with values", {}, {array, true, 1, 0.5, "text", list, nullptr});
    }
    EXPECT_EQ(kinds, (std::vector{ValueKind::Array, ValueKind::Bool, ValueKind::Int, ValueKind::Double,
                                  ValueKind::String, ValueKind::List, ValueKind::None}));
    const marey::KeyedValue keywords[] = {{"only", 1}};
    {
        marey::Operation op(Scope::User);
        op.begin(MAREY_SITE_SCOPE(Scope::User, "with keywords"), {}, {}, keywords);
    }
    EXPECT_TRUE(kinds.empty());
    EXPECT_EQ(text, "only");
}

// R37 R39 R41
TEST_F(Operations, AllocateNothingOnceTheyAreWarm) {
    static int starts;
    const auto work = [] {
        MAREY_RANGE("range");
        const marey::ArrayView array{.dtype = marey::DType::Float32};
        marey::Operation op;
        if (op.needs_inputs()) {
            const marey::Value inputs[] = {array, 7, "text"};
            op.begin(MAREY_SITE("operation"), {}, inputs);
        } else {
            op.begin(MAREY_SITE("operation"));
        }
    };
    const auto allocations_of_work = [&] {
        for (int i = 0; i < 3; ++i) work();
        const std::uint64_t before = allocations;
        for (int i = 0; i < 100; ++i) work();
        return allocations - before;
    };
    EXPECT_EQ(allocations_of_work(), 0u);
    Observer observer;
    observer.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
        ++starts;
        return nullptr;
    };
    observer.needs_inputs = true;
    const std::uint64_t before = allocations;
    marey::add_observer(observer);
    EXPECT_GT(allocations, before);  // the library's allocations are counted
    EXPECT_EQ(allocations_of_work(), 0u);
    for (int i = 1; i < 40; ++i) marey::add_observer(observer);
    starts = 0;
    EXPECT_EQ(allocations_of_work(), 0u);
    EXPECT_EQ(starts, 103 * 2 * 40);
}

// R50 R59
TEST_F(Operations, ThreadIdsStartAtOneAndAreNeverReused) {
    std::set<std::uint32_t> ids{marey::current_thread_id()};
    EXPECT_EQ(marey::current_thread_id(), *ids.begin());
    EXPECT_GE(*ids.begin(), 1u);
    for (int i = 0; i < 20; ++i) {
        std::thread([&] { EXPECT_TRUE(ids.insert(marey::current_thread_id()).second); }).join();
    }
}

// R51 R69
TEST_F(Operations, IdsAreAssignedOnlyWhenRequested) {
    static std::vector<std::uint64_t> ids;
    ids.clear();
    Observer observer{.start = [](const ObservedRange& range, void*) -> std::unique_ptr<ObserverContext> {
        ids.push_back(range.id());
        return nullptr;
    }};
    marey::add_observer(observer);
    { MAREY_RANGE("r"); }
    EXPECT_EQ(ids, (std::vector<std::uint64_t>{0}));
    Observer with_ids;
    with_ids.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> { return nullptr; };
    with_ids.needs_ids = true;
    marey::add_observer(with_ids);
    std::set<std::uint64_t> unique;
    for (int i = 0; i < 100; ++i) {
        MAREY_RANGE("r");
        EXPECT_TRUE(unique.insert(ids.back()).second);
        EXPECT_NE(ids.back(), 0u);
    }
}

// R10
TEST_F(Operations, AScopeThatAnotherThreadEndsIsAsyncAlsoWhereNothingRecords) {
    static bool was_async = false;
    marey::add_observer(
        {.end = [](const ObservedRange& range, ObserverContext*, void*) { was_async = range.is_async(); }});
    auto operation = std::make_unique<marey::Operation>(Scope::User);
    operation->begin("passed on");
    std::thread([&] { operation.reset(); }).join();
    EXPECT_TRUE(was_async);
    operation = std::make_unique<marey::Operation>(Scope::User);
    operation->begin("stays");
    operation.reset();
    EXPECT_FALSE(was_async);
}

// R9 R10 R54 R69
TEST_F(Operations, AMovableRangeIsAsyncAndMayEndOnAnotherThread) {
    static std::thread::id end_thread;
    static bool was_async = false;
    static std::uint32_t start_thread = 0;
    static std::thread::id death_thread;
    struct Held : ObserverContext {
        ~Held() override { death_thread = std::this_thread::get_id(); }
    };
    marey::add_observer({.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
                             return std::make_unique<Held>();
                         },
                         .end =
                             [](const ObservedRange& range, ObserverContext*, void*) {
                                 end_thread = std::this_thread::get_id();
                                 was_async = range.is_async();
                                 start_thread = range.start_thread();
                             }});
    marey::Range range("moves");
    EXPECT_TRUE(range.is_open());
    std::thread other([moved = std::move(range)]() mutable { moved.end(); });
    const std::thread::id expected = other.get_id();
    other.join();
    EXPECT_EQ(end_thread, expected);
    EXPECT_EQ(death_thread, expected);
    EXPECT_TRUE(was_async);
    EXPECT_EQ(start_thread, marey::current_thread_id());
}

// R57
TEST_F(Operations, SequenceNumbersCountPerThread) {
    const std::int64_t before = marey::peek_sequence();
    EXPECT_EQ(marey::peek_sequence(), before);
    EXPECT_EQ(marey::take_sequence(), before);
    EXPECT_EQ(marey::peek_sequence(), before + 1);
    std::thread([] { EXPECT_EQ(marey::peek_sequence(), 0); }).join();
}

// ---- allocations ----

// How many ranges of that name have `count` arguments.
int ranges_with(const marey::Trace& trace, std::string_view name, std::size_t count) {
    int found = 0;
    for (marey::Row row = 0; row < trace.ranges().size(); ++row)
        found += trace.range_name(row) == name && trace.range_arguments(row).size() == count ? 1 : 0;
    return found;
}

TEST_F(Operations, ThatEndOutOfOrderKeepTheirValuesIndefinitely) {
    constexpr int kTimes = 5000;
    marey::Session session{marey::SessionOptions{}};
    const marey::KeyedValue values[] = {{"a", 11}, {"b", "twenty-two"}};
    for (int i = 0; i < kTimes; ++i) {
        marey::Operation first;
        first.begin("first", {}, {}, values);
        marey::Operation second;
        second.begin("second", {}, {}, values);
        first.end();
        second.end();
    }
    const marey::Trace trace = session.stop();
    EXPECT_EQ(ranges_with(trace, "first", 2), kTimes);
    EXPECT_EQ(ranges_with(trace, "second", 2), kTimes);
}

TEST_F(Operations, ThatACallbackLeavesOpenKeepTheirValues) {
    struct Held : ObserverContext {
        marey::Operation operation;
    };
    marey::add_observer(
        {.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
             auto held = std::make_unique<Held>();
             const marey::KeyedValue values[] = {{"a", 11}, {"b", 22}};
             held->operation.begin("held", {}, {}, values);
             return held;
         },
         .end = [](const ObservedRange&, ObserverContext*, void*) { MAREY_RANGE("at the end", "c", 33); },
         .needs_inputs = true});
    marey::Session session{marey::SessionOptions{}};
    for (int i = 0; i < 3; ++i) {
        MAREY_RANGE("watched", "d", 44, "e", "five", "f", 6);
        const marey::Range movable("movable", "g", 7);
    }
    marey::clear_observers();
    const marey::Trace trace = session.stop();
    EXPECT_EQ(ranges_with(trace, "held", 2), 6);
    EXPECT_EQ(ranges_with(trace, "at the end", 1), 6);
    EXPECT_EQ(ranges_with(trace, "watched", 3), 3);
    EXPECT_EQ(ranges_with(trace, "movable", 1), 3);
    EXPECT_TRUE(trace.problems().empty());
}

TEST_F(Operations, ReportThatMoreWasGivenThanIsKept) {
    marey::SessionOptions options;
    options.concrete_inputs = true;
    marey::Session session(options);
    const std::vector<marey::KeyedValue> keywords(20, {"k", 1});
    const std::vector<marey::Value> inputs(5000, marey::Value("some text"));
    {
        marey::Operation many;
        many.begin("keywords", {}, {}, keywords);
    }
    {
        marey::Operation many;
        many.begin("inputs", {}, inputs);
    }
    const marey::Trace trace = session.stop();
    ASSERT_EQ(trace.ranges().size(), 2u);
    for (marey::Row row = 0; row < 2; ++row) {
        const auto arguments = trace.range_arguments(row);
        ASSERT_GT(arguments.size(), 10u);
        EXPECT_TRUE(arguments.back().truncated) << trace.range_name(row);
        EXPECT_FALSE(arguments.front().truncated) << trace.range_name(row);
    }
}

TEST_F(Operations, HaveTheScopeTheyWereMadeWithWhateverTheSitesScope) {
    marey::Session session(marey::SessionOptions{.scopes = {Scope::BackwardFunction}});
    {
        marey::Operation op(Scope::BackwardFunction);
        op.begin(MAREY_SITE("mm"), {}, {marey::Value(1)});
    }
    EXPECT_EQ(session.stop().ranges().size(), 1u);
}

// C55 C56 C58
TEST_F(Allocations, ReachObserversOfEveryThread) {
    static std::vector<std::int64_t> bytes;
    bytes.clear();
    Observer observer;
    observer.memory = [](const marey::MemoryReport& report, void*) { bytes.push_back(report.bytes); };
    EXPECT_FALSE(marey::is_recording_memory());
    const auto handle = marey::add_observer(observer);
    EXPECT_TRUE(marey::is_recording_memory());
    int block = 0;
    marey::report_allocation(&block, 64, 64, 128);
    std::thread([&] { marey::report_allocation(&block, -64, 0, 128); }).join();
    marey::report_out_of_memory(1 << 20, 0, 128, {marey::DeviceType::Cuda, 1});
    EXPECT_EQ(bytes, (std::vector<std::int64_t>{64, -64, 1 << 20}));
    marey::remove_and_drain(handle);
    marey::report_allocation(&block, 1, 1, 1);
    EXPECT_EQ(bytes.size(), 3u);
}

// C55 C56 C58
TEST_F(Allocations, ReachSessionsOfEitherKindThatRequestThem) {
    marey::Session all(marey::SessionOptions{.profile_memory = true});
    marey::Session mine(marey::SessionOptions{.threads = marey::Threads::Tasks, .profile_memory = true});
    marey::Session unasked(marey::SessionOptions{});
    int block = 0;
    {
        MAREY_RANGE("work");
        marey::report_allocation(&block, 64, 64, 128);
    }
    std::thread([&] {
        EXPECT_TRUE(marey::is_recording_memory());
        marey::report_allocation(&block, -64, 0, 128, {marey::DeviceType::Cuda, 1});
        marey::report_out_of_memory(1 << 20, 0, 128);
    }).join();
    EXPECT_EQ(unasked.stop().memory().size(), 0u);
    EXPECT_EQ(mine.stop().memory().size(), 1u);
    const marey::Trace trace = all.stop();
    EXPECT_FALSE(marey::is_recording_memory());
    const marey::MemoryColumns memory = trace.memory();
    ASSERT_EQ(memory.size(), 3u);
    EXPECT_EQ(std::vector(memory.bytes.begin(), memory.bytes.end()),
              (std::vector<std::int64_t>{64, -64, 1 << 20}));
    EXPECT_EQ(memory.address[0], reinterpret_cast<std::uintptr_t>(&block));
    EXPECT_EQ(memory.total_allocated[0], 64);
    EXPECT_EQ(memory.total_reserved[1], 128);
    EXPECT_EQ(memory.device[1], (marey::Device{marey::DeviceType::Cuda, 1}));
    EXPECT_EQ(memory.out_of_memory[1], 0);
    EXPECT_EQ(memory.out_of_memory[2], 1);
    EXPECT_NE(memory.thread[0], memory.thread[1]);
}

// C57
TEST_F(Allocations, AreRecordedAsReportedWhateverCameBefore) {
    int block = 0;
    marey::report_allocation(&block, 64, 64, 128);  // not requested
    marey::Session session(marey::SessionOptions{.profile_memory = true});
    testing::internal::CaptureStderr();
    marey::report_allocation(&block, -64, 0, 128);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    const marey::Trace trace = session.stop();
    ASSERT_EQ(trace.memory().size(), 1u);
    EXPECT_EQ(trace.memory().bytes[0], -64);
}

TEST_F(Operations, OfOneNameAreDistinguishedByTheirOverloads) {
    marey::Session session;
    session.start();
    for (const char* const overload : {"Tensor", "Scalar", "Tensor"}) {
        marey::Operation operation;
        operation.begin(marey::detail::operator_site("add", overload, Scope::Function));
    }
    const marey::Trace trace = session.stop();
    std::multiset<std::string> overloads;
    for (const std::uint32_t site : trace.ranges().site) {
        EXPECT_EQ(trace.string(trace.sites()[site].name), "add");
        EXPECT_EQ(trace.sites()[site].file, 0u);
        overloads.emplace(trace.string(trace.sites()[site].overload));
    }
    EXPECT_EQ(overloads, (std::multiset<std::string>{"Scalar", "Tensor", "Tensor"}));
}

TEST_F(Operations, ClosedInlineKeepTheirFactsWhereverTheChunkEnds) {
    constexpr int kCount = 20000;  // several chunks
    marey::Session session;
    session.start();
    const std::uint32_t site = marey::detail::dynamic_site("inline", Scope::Function);
    { MAREY_RANGE("first"); }
    for (int i = 0; i < kCount; ++i) {
        const marey::detail::Opened opened = marey::detail::open_range(site, Scope::Function);
        ASSERT_NE(opened.index, marey::detail::kNotOpen);
        marey::detail::close_with_facts(opened, marey::detail::thread_number(), {i, 0, 0});
    }
    const marey::Trace trace = session.stop();
    std::int64_t next = 0;
    for (const marey::RangeDetail& detail : trace.range_details()) EXPECT_EQ(detail.sequence, next++);
    EXPECT_EQ(next, kCount);
}

TEST_F(Operations, OpenedWithInputsKeepThemAndTheirFactsWhereverTheChunkEnds) {
    constexpr std::int64_t kCount = 5000;  // several chunks
    marey::Session session(marey::SessionOptions{.record_shapes = true});
    const std::uint32_t site = marey::detail::dynamic_site("inline", Scope::Function);
    { MAREY_RANGE("first"); }
    ASSERT_TRUE(marey::detail::may_open_with_inputs(marey::detail::current_thread, Scope::Function));
    for (std::int64_t i = 0; i < kCount; ++i) {
        const std::int64_t sizes[] = {i, 3};
        marey::ArrayView array;
        array.sizes = sizes;
        const marey::Value inputs[] = {array, i};
        const auto opened = marey::detail::open_with_inputs(site, Scope::Function, {i, 0, 0}, inputs);
        ASSERT_NE(opened.index, marey::detail::kNotOpen);
        marey::detail::close_with_inputs(opened, marey::detail::thread_number());
    }
    const marey::Trace trace = session.stop();
    std::int64_t next = 0;
    for (const marey::RangeDetail& detail : trace.range_details()) {
        EXPECT_EQ(detail.sequence, next);
        const auto inputs = trace.range_arguments(detail.range);
        ASSERT_EQ(inputs.size(), 2u);
        const marey::ArrayInfo& array = trace.arrays()[inputs[0].array];
        EXPECT_EQ(trace.array_extents()[array.first_extent], next++);
    }
    EXPECT_EQ(next, kCount);
}

}  // namespace
