// arguments_test.cpp: decoding and encoding of values, and which of them a session shows.
#include "collect/arguments.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>

#include <marey/detail/value_encoder.h>

#include "collect/log_fixture.h"
#include "collect/packed_capture.h"
#include "collect/random_log_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"
#include "record/stack_numbers.h"

namespace marey {
namespace {

using namespace detail;
using testing::find_fault;
using testing::LogWriter;
using testing::problem_codes;
using testing::Values;

/// A trace of one range with these values.
Trace build_values(LogWriter& log, const Values& values, std::uint32_t option_bits = LogWriter::kAllOptions) {
    log.start(1, 0, {.option_bits = option_bits}).stop(1, 100);
    log.thread(1).long_range("a", 1, 10, 0, 0, values.bytes());
    Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    return trace;
}

std::vector<std::int64_t> extents(const Trace& trace, const ArrayInfo& array) {
    const auto first = trace.array_extents().subspan(array.first_extent);
    const std::size_t count = array.dimensions * (array.has_strides ? 2u : 1u);
    return {first.begin(), first.begin() + static_cast<std::ptrdiff_t>(count)};
}

// C13, C16
TEST(Arguments, AnArrayKeepsItsSizesStridesTypeLayoutDeviceAndStorage) {
    LogWriter log;
    const Trace trace = build_values(log, log.values().input().array("", {.sizes = {2, 0, 7},
                                                                          .strides = {21, -7, 1},
                                                                          .dtype = DType::BFloat16,
                                                                          .layout = Layout::Blocked,
                                                                          .device = {DeviceType::Cuda, 3},
                                                                          .storage = 0xffff'8000'0000'1000,
                                                                          .storage_id = 77}));
    const auto arguments = trace.range_arguments(0);
    ASSERT_EQ(arguments.size(), 1u);
    ASSERT_EQ(arguments[0].kind, ValueKind::Array);
    EXPECT_EQ(arguments[0].role, ArgumentRole::Input);
    const ArrayInfo& array = trace.arrays()[arguments[0].array];
    EXPECT_EQ(extents(trace, array), (std::vector<std::int64_t>{2, 0, 7, 21, -7, 1}));
    EXPECT_EQ(array.dtype, DType::BFloat16);
    EXPECT_EQ(array.layout, Layout::Blocked);
    EXPECT_EQ(array.device, (Device{DeviceType::Cuda, 3}));
    EXPECT_EQ(array.storage, 0xffff'8000'0000'1000u);
    EXPECT_EQ(array.storage_id, 77u);
    EXPECT_EQ(array.object, 0u);
    EXPECT_EQ(array.access, ArrayAccess::Unknown);
    EXPECT_TRUE(array.is_defined);
}

// C16, C20
TEST(Arguments, AnArrayKeepsItsObjectAndItsUse) {
    LogWriter log;
    const auto add = [&](std::uint32_t flags, std::uint64_t word) {
        return log.values().input().array("", {.sizes = {4}, .storage_id = word, .flags = flags});
    };
    Trace trace = build_values(log, add(detail::kArrayObject | detail::kArrayWritten, 0x0002'aaaa'0000'1000));
    EXPECT_EQ(trace.arrays()[0].object, 0x0002'aaaa'0000'1000u);
    EXPECT_EQ(trace.arrays()[0].storage_id, 0u);
    EXPECT_EQ(trace.arrays()[0].access, ArrayAccess::Write);
    LogWriter other;
    trace =
        build_values(other, other.values().input().array("", {.sizes = {4}, .flags = detail::kArrayRead}));
    EXPECT_EQ(trace.arrays()[0].object, 0u);
    EXPECT_EQ(trace.arrays()[0].access, ArrayAccess::Read);
}

// C15
TEST(Arguments, AnUndefinedArrayIsOneWithoutMetadata) {
    LogWriter log;
    const Trace trace = build_values(log, log.values().input().array("", {.sizes = {}, .is_defined = false}));
    const ArrayInfo& array = trace.arrays()[trace.range_arguments(0)[0].array];
    EXPECT_FALSE(array.is_defined);
    EXPECT_EQ(array.dimensions, 0u);
    EXPECT_FALSE(array.has_strides);
}

// C14, C18
TEST(Arguments, InputsOutputsAndKeywordsKeepTheirOrderAndAreDistinguished) {
    LogWriter log;
    auto values = log.values();
    values.input().integer("", 1).integer("k", 2).output().array("", {.sizes = {4}});
    values.input().list("", 2).array("", {.sizes = {1}}).array("", {.sizes = {2, 3}});
    values.input().none("", ValueKind::String);
    const Trace trace = build_values(log, values);
    const auto arguments = trace.range_arguments(0);
    ASSERT_EQ(arguments.size(), 5u);
    EXPECT_EQ(arguments[0].role, ArgumentRole::Input);
    EXPECT_EQ(arguments[1].role, ArgumentRole::Keyword);
    EXPECT_EQ(trace.string(arguments[1].key), "k");
    EXPECT_EQ(arguments[2].role, ArgumentRole::Output);
    ASSERT_EQ(arguments[3].kind, ValueKind::List);
    const auto items = trace.list_items().subspan(arguments[3].list.first, arguments[3].list.count);
    ASSERT_EQ(items.size(), 2u);
    EXPECT_EQ(extents(trace, trace.arrays()[items[1].array]), (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(items[1].role, ArgumentRole::Input);
    EXPECT_EQ(arguments[4].kind, ValueKind::None);
    EXPECT_EQ(arguments[4].left_out, ValueKind::String);
}

TEST(Arguments, FactsBecomeTheRangesDetailAndNotAnArgument) {
    LogWriter log;
    const Trace trace = build_values(
        log, log.values().integer("n", 1).facts(1ll << 60, 0xfffffff0, ~0ull).integer("m", 2), 0);
    EXPECT_EQ(trace.range_arguments(0).size(), 0u);  // facts stay whatever was requested
    ASSERT_NE(trace.range_detail(0), nullptr);
    EXPECT_EQ(trace.range_detail(0)->sequence, 1ll << 60);
    EXPECT_EQ(trace.range_detail(0)->forward_thread, 0xfffffff0u);
    EXPECT_EQ(trace.range_detail(0)->id, ~0ull);
}

TEST(Arguments, EmptyFactsMakeNoDetail) {
    LogWriter log;
    EXPECT_EQ(build_values(log, log.values().facts(-1)).range_detail(0), nullptr);
}

TEST(Arguments, AForwardThreadThatNoThreadCanHaveIsDamage) {
    LogWriter log;
    const Trace trace = build_values(log, log.values().facts(3, 1ull << 32 | 1).integer("n", 1));
    EXPECT_EQ(trace.range_detail(0), nullptr);
    EXPECT_EQ(trace.range_arguments(0).size(), 1u);
    EXPECT_EQ(problem_codes(trace), "damaged_values");
}

std::vector<std::string> stack_of(const Trace& trace, Row range) {
    std::vector<std::string> texts;
    for (const Argument& value : trace.range_arguments(range)) {
        if (trace.string(value.key) != "Call stack") continue;
        EXPECT_EQ(value.kind, ValueKind::List);
        for (const Argument& item : trace.list_items().subspan(value.list.first, value.list.count))
            texts.emplace_back(trace.string(item.string));
    }
    return texts;
}

constexpr std::uint64_t native(std::uint64_t module, std::uint64_t offset) {
    return kFrameNative | module << kFrameModuleShift | offset;
}

TEST(Arguments, AStackBecomesTheTextsOfItsFrames) {
    LogWriter log;
    const std::uint64_t site = log.site("pkg/x.py(10): f", Scope::PythonFunction, "/a/pkg/x.py", 10);
    log.module("/lib/a.so", "abcd", 0x1000);
    log.module("/lib/a.so", "ef01", 0x9000);
    const std::vector<std::uint64_t> frames = {site | 12ull << kFrameLineShift,
                                               site,
                                               native(1, 0x12ab),
                                               native(2, 0x10),
                                               native(9, 0x20),
                                               native(0, 0xffff),
                                               0,
                                               77ull};
    const Trace trace = build_values(log, log.values().integer("n", 1).stack(frames, true).integer("m", 2));
    EXPECT_EQ(stack_of(trace, 0),
              (std::vector<std::string>{"pkg/x.py(12): f", "pkg/x.py(10): f", "/lib/a.so+0x12ab",
                                        "/lib/a.so@ef01+0x10", "0x20", "0xffff", "??", "??"}));
    EXPECT_EQ(trace.range_arguments(0).size(), 3u);  // values after a stack are read too
    EXPECT_TRUE(trace.range_arguments(0)[1].truncated);
    ASSERT_EQ(trace.metadata().size(), 1u);
    EXPECT_EQ(trace.metadata()[0].key, "native_modules");
    EXPECT_NE(trace.metadata()[0].json.find("\"build_id\":\"ef01\""), std::string::npos)
        << trace.metadata()[0].json;
}

/// A value that is the stack with a number.
std::vector<std::byte> numbered(std::uint32_t number) {
    const ValueHeader head{number, kValueStackNumber, 0, 0};
    const auto* const bytes = reinterpret_cast<const std::byte*>(&head);
    return {bytes, bytes + sizeof head};
}

TEST(Arguments, EqualNumbersShareTheFramesOfTheirStack) {
    LogWriter log;
    log.module("/lib/a.so", "abcd");
    log.start(1, 0, {.option_bits = LogWriter::kAllOptions}).stop(1, 100);
    const std::vector<std::uint32_t> stacks{3, 2, 3, 4, 0, 7, ~0u, 6};
    std::uint64_t begin = 1;
    for (const std::uint32_t number : stacks) {
        log.thread(1).long_range("a", begin, begin + 1, 0, 0,
                                 log.values().raw(numbered(number)).integer("n", 1).bytes());
        begin += 2;
    }
    RawLog raw = log.raw();
    // 4 was not complete, 6 says that it is around itself.
    const std::vector<StackNode> nodes{{native(1, 0x10), 0, 1}, {native(1, 0x20), 1, 1},
                                       {native(1, 0x30), 2, 1}, {native(1, 0x40), 3, 0},
                                       {native(1, 0x50), 4, 1}, {native(1, 0x60), 6, 1}};
    append_stack_nodes(raw.names, 3, std::span(nodes).subspan(2));  // in any order
    append_stack_nodes(raw.names, 1, std::span(nodes).first(2));
    append_stack_nodes(raw.names, 0xffffff00, nodes);  // beyond all others
    append_stack_nodes(raw.names, 0, nodes);
    const Trace trace = build_trace(raw);
    EXPECT_EQ(find_fault(trace), "");
    using Texts = std::vector<std::string>;
    const Texts three{"/lib/a.so+0x30", "/lib/a.so+0x20", "/lib/a.so+0x10"};
    EXPECT_EQ(stack_of(trace, 0), three);
    EXPECT_EQ(stack_of(trace, 1), (Texts{"/lib/a.so+0x20", "/lib/a.so+0x10"}));
    EXPECT_EQ(stack_of(trace, 2), three);
    EXPECT_EQ(stack_of(trace, 7), Texts{"/lib/a.so+0x60"});
    EXPECT_EQ(trace.list_items().size(), 6u);
    for (const Row lost : {3, 4, 5, 6}) EXPECT_EQ(trace.range_arguments(lost).size(), 1u);  // and "n"
    EXPECT_EQ(problem_codes(trace), "");
    const std::vector<std::byte> packed = pack_capture(raw);
    EXPECT_EQ(stack_of(build_trace(unpack_capture(packed, "packed")), 2), three);
}

TEST(Arguments, ASessionWithoutValuesHasNoStacks) {
    LogWriter log;
    log.module("/lib/a.so", "abcd");
    const Trace trace = build_values(log, log.values().stack({native(1, 0x10)}), 0);
    EXPECT_EQ(trace.range_arguments(0).size(), 0u);
    EXPECT_EQ(trace.metadata().size(), 0u);
    EXPECT_EQ(problem_codes(trace), "");
}

TEST(Arguments, ATruncatedStackIsDamage) {
    LogWriter log;
    Values values = log.values().integer("n", 1).stack({1, 2, 3});
    std::vector<std::byte> bytes = values.bytes();
    bytes.resize(bytes.size() - 8);
    log.start(1, 0, {.option_bits = LogWriter::kAllOptions}).stop(1, 100);
    log.thread(1).long_range("a", 1, 10, 0, 0, bytes);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    EXPECT_EQ(trace.range_arguments(0).size(), 1u);
    EXPECT_EQ(problem_codes(trace), "damaged_values");
}

/// One of each: an array, a scalar, a list of scalars and one of arrays as inputs, and two keywords.
Values everything(LogWriter& log) {
    auto values = log.values();
    values.input().array("", {.sizes = {2, 3}}).input().text("", "secret");
    values.input().list("", 2).integer("", 5).integer("", 6);
    values.input().list("", 2).array("", {.sizes = {1}}).integer("", 9);
    values.output().real("", 2.5).integer("n", 7).array("grid", {.sizes = {8}});
    values.list("mixed", 2).array("", {.sizes = {3}}).integer("", 4);
    return values;
}

TEST(Arguments, WithoutShapesThereAreNoArraysInputsOrOutputs) {
    LogWriter log;
    const Trace trace = build_values(log, everything(log), kOptionValues | kOptionConcreteInputs);
    const auto arguments = trace.range_arguments(0);
    ASSERT_EQ(arguments.size(), 2u);
    EXPECT_EQ(arguments[0].integer, 7);
    ASSERT_EQ(arguments[1].kind, ValueKind::List);  // positions in a list stay
    const auto items = trace.list_items().subspan(arguments[1].list.first, arguments[1].list.count);
    EXPECT_EQ(items[0].kind, ValueKind::None);
    EXPECT_EQ(items[0].left_out, ValueKind::Array);
    EXPECT_EQ(items[1].integer, 4);
    EXPECT_TRUE(trace.arrays().empty());
    EXPECT_TRUE(trace.array_extents().empty());
}

// C17
TEST(Arguments, WithoutConcreteInputsOnlyTheirKindsAreKnownAndArraysStay) {
    LogWriter log;
    const Trace trace = build_values(log, everything(log), kOptionShapes);
    const auto arguments = trace.range_arguments(0);
    ASSERT_EQ(arguments.size(), 5u);
    EXPECT_EQ(arguments[0].kind, ValueKind::Array);
    EXPECT_EQ(arguments[1].kind, ValueKind::None);
    EXPECT_EQ(arguments[1].left_out, ValueKind::String);
    EXPECT_EQ(arguments[2].kind, ValueKind::None);
    EXPECT_EQ(arguments[2].left_out, ValueKind::List);
    ASSERT_EQ(arguments[3].kind, ValueKind::List);
    const auto items = trace.list_items().subspan(arguments[3].list.first, arguments[3].list.count);
    EXPECT_EQ(items[0].kind, ValueKind::Array);
    EXPECT_EQ(items[1].left_out, ValueKind::Int);
    EXPECT_EQ(arguments[4].left_out, ValueKind::Double);
    EXPECT_EQ(arguments[4].role, ArgumentRole::Output);
    EXPECT_EQ(trace.arrays().size(), 2u);
    for (StringId id = 0; id < trace.string_count(); ++id) EXPECT_NE(trace.string(id), "secret");
}

TEST(Arguments, TextsOfScalarsCountAsScalars) {
    std::array<std::byte, 256> place;
    ValueEncoder encoder(place.data(), place.data() + place.size());
    const Value complex = Value::scalar_text(ValueKind::Double, "1.+2.j");
    encoder.add(0, kValueInput, complex, {true, true});
    encoder.add(0, kValueInput, complex, {true, false});
    encoder.add(0, kValueInput, Value("text"), {true, true});
    encoder.add(0, kValueInput, Value::shown_as("cuda:0"), {true, true});
    const std::span<const std::byte> bytes(place.data(), encoder.end());
    for (const std::uint32_t options :
         {std::uint32_t{kOptionShapes | kOptionConcreteInputs}, std::uint32_t{kOptionShapes}}) {
        LogWriter log;
        const bool is_kept = (options & kOptionConcreteInputs) != 0;
        const Trace trace = build_values(log, Values(log).raw(bytes), options);
        const auto arguments = trace.range_arguments(0);
        ASSERT_EQ(arguments.size(), 4u);
        EXPECT_EQ(arguments[0].kind, is_kept ? ValueKind::String : ValueKind::None);
        EXPECT_EQ(arguments[0].left_out, ValueKind::Double);
        EXPECT_EQ(arguments[1].kind, ValueKind::None);
        EXPECT_EQ(arguments[1].left_out, ValueKind::Double);
        EXPECT_EQ(arguments[2].left_out, is_kept ? ValueKind::None : ValueKind::String);
        EXPECT_EQ(arguments[3].kind, ValueKind::None);
        EXPECT_EQ(arguments[3].left_out, ValueKind::None);
    }
}

TEST(Arguments, TheDirectRoadsOfIntegersAndNothingWriteTheSameBytesAsTheGeneralOne) {
    constexpr ValueNeeds kEverything{true, true};
    for (const std::size_t room : {0u, 8u, 16u, 24u, 40u, 100u, 2000u}) {
        for (const std::size_t count : {0u, 1u, 2u, 30u, 31u}) {
            std::vector<std::int64_t> integers(count);
            std::iota(integers.begin(), integers.end(), -1);
            const std::vector<Value> values(integers.begin(), integers.end());
            std::vector<std::byte> direct(room), general(room);
            ValueEncoder one(direct.data(), direct.data() + room);
            ValueEncoder other(general.data(), general.data() + room);
            for (int repeat = 0; repeat < 2; ++repeat) {
                one.add_none(0, kValueInput);
                one.add_integers(0, kValueInput, integers, [](std::int64_t integer) { return integer; });
                other.add(0, kValueInput, Value(), kEverything);
                other.add(0, kValueInput, Value(std::span<const Value>(values)), kEverything);
            }
            EXPECT_EQ(one.end() - direct.data(), other.end() - general.data()) << room << " " << count;
            EXPECT_EQ(direct, general) << room << " " << count;
        }
    }
}

TEST(Arguments, WithoutValuesThereAreNoKeywords) {
    LogWriter log;
    const Trace trace = build_values(log, everything(log), kOptionShapes | kOptionConcreteInputs);
    const auto arguments = trace.range_arguments(0);
    ASSERT_EQ(arguments.size(), 5u);
    for (const Argument& argument : arguments) EXPECT_NE(argument.role, ArgumentRole::Keyword);
    EXPECT_EQ(trace.string(arguments[1].string), "secret");
}

TEST(Arguments, EachOfTwoSessionsOfOneLogShowsWhatItRequested) {
    LogWriter log;
    log.start(1, 0, {.option_bits = 0}).start(2, 0, {.option_bits = LogWriter::kAllOptions});
    log.thread(1).long_range("a", 1, 10, 0, 0, everything(log).bytes());
    EXPECT_EQ(build_trace(log.raw(), {.session = 1}).range_arguments(0).size(), 0u);
    EXPECT_EQ(build_trace(log.raw(), {.session = 2}).range_arguments(0).size(), 8u);
}

TEST(Arguments, ATruncatedPayloadGivesItsCompleteValues) {
    LogWriter names;
    const std::vector<std::byte> whole = everything(names).bytes();
    for (std::size_t length = 0; length < whole.size(); length += 8) {
        for (const std::uint32_t bits : {0u, LogWriter::kAllOptions, std::uint32_t{kOptionShapes}}) {
            LogWriter log;
            log.start(1, 0, {.option_bits = bits});
            log.thread(1).long_range("a", 1, 10, 0, 0,
                                     {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
            const Trace trace = build_trace(log.raw());
            ASSERT_EQ(find_fault(trace), "") << length;
            EXPECT_LE(trace.range_arguments(0).size(), 8u);
            std::size_t items = 0, arrays = 0;
            for (const Argument& argument : trace.range_arguments(0)) {
                items += argument.kind == ValueKind::List ? argument.list.count : 0;
                arrays += argument.kind == ValueKind::Array ? 1 : 0;
            }
            for (const Argument& item : trace.list_items()) arrays += item.kind == ValueKind::Array ? 1 : 0;
            EXPECT_EQ(trace.list_items().size(), items) << length;
            EXPECT_EQ(trace.arrays().size(), arrays) << length;
        }
    }
}

TEST(Arguments, MissingSizesAreDamageAndTakeNoMemory) {
    LogWriter log;
    auto values = log.values();
    values.input().array("", {.sizes = {1, 2}});
    std::vector<std::byte> bytes = values.bytes();
    const std::uint16_t count = 0xffff;
    std::memcpy(bytes.data() + offsetof(ValueHeader, count), &count, sizeof count);
    log.start(1, 0, {.option_bits = LogWriter::kAllOptions});
    log.thread(1).long_range("a", 1, 10, 0, 0, bytes);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(problem_codes(trace), "damaged_values");
    EXPECT_TRUE(trace.array_extents().empty());
    EXPECT_TRUE(trace.arrays().empty());
}

TEST(Arguments, RandomBytesAreSurvivedUnderAnyOptions) {
    std::mt19937 random(3);
    for (int round = 0; round < 3000; ++round) {
        LogWriter log;
        std::vector<std::byte> bytes = testing::random_values(log, random);
        for (std::uint32_t i = random() % 4; i-- != 0 && !bytes.empty();)
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        log.start(1, 0, {.option_bits = static_cast<std::uint32_t>(random() % 16)});
        log.thread(1).long_range("a", 1, 10, 0, 0, bytes);
        ASSERT_EQ(find_fault(build_trace(log.raw())), "") << round;
    }
}

}  // namespace
}  // namespace marey
