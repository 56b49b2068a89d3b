// operation_values.cpp: the values of operators that a session keeps. Numbers refer to the rows in
// docs/reference/parity.md.
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>

namespace {

using marey::Scope;

std::string chrome_text(const marey::Trace& trace) {
    std::ostringstream stream;
    marey::write_chrome_json(trace, stream);
    return stream.str();
}

// C14 C17 C18 C19 C21 R65
TEST(OperationValues, OfAnyThreadHaveShapesAndConcreteInputsInASessionThatRequestsThem) {
    marey::Session shapes(marey::SessionOptions{.record_shapes = true});
    marey::Session all(marey::SessionOptions{.record_shapes = true, .concrete_inputs = true});
    marey::Session neither(marey::SessionOptions{});
    std::thread([] {
        const std::int64_t sizes[] = {2, 5};
        const std::int64_t strides[] = {5, 1};
        const marey::ArrayView array{.dtype = marey::DType::Float32, .sizes = sizes, .strides = strides};
        const marey::ArrayView scalar{.dtype = marey::DType::Int64};
        std::vector<marey::Value> numbers(31, marey::Value(4));
        std::vector<marey::Value> arrays(31, marey::Value(scalar));
        const std::span<const marey::Value> some = numbers;
        const std::span<const marey::Value> many = arrays;
        const marey::Value inputs[] = {array, 7, some.first(30), some, many.first(30), many};
        const marey::KeyedValue keywords[] = {{"mode", "fast"}};
        marey::Operation op;
        ASSERT_TRUE(op.needs_inputs());
        op.begin("op", {}, inputs, keywords);
        const marey::Value outputs[] = {array};
        op.set_outputs(outputs);
    }).join();

    const marey::Trace trace = all.stop();
    ASSERT_EQ(trace.ranges().size(), 1u);
    const auto arguments = trace.range_arguments(0);
    ASSERT_EQ(arguments.size(), 8u);
    const marey::ArrayInfo& array = trace.arrays()[arguments[0].array];
    EXPECT_EQ(array.dtype, marey::DType::Float32);
    EXPECT_EQ(array.dimensions, 2u);
    EXPECT_EQ(trace.array_extents()[array.first_extent + 1], 5);
    EXPECT_EQ(arguments[1].integer, 7);
    for (const std::size_t list : {2u, 3u, 4u, 5u}) {
        EXPECT_EQ(arguments[list].list.count, 30u);
        EXPECT_EQ(arguments[list].truncated, list % 2 == 1) << list;
    }
    EXPECT_EQ(arguments[6].role, marey::ArgumentRole::Keyword);
    EXPECT_EQ(arguments[7].role, marey::ArgumentRole::Output);
    const std::string text = chrome_text(trace);
    EXPECT_NE(
        text.find(R"("Input type":["float","Scalar","ScalarList","ScalarList","TensorList","TensorList"])"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find(R"("Input Dims":[[2,5],[],[],[],[[],[],)"), std::string::npos);
    EXPECT_NE(text.find(R"([],[]],[]],"Input type")"), std::string::npos);  // 31 arrays: none
    EXPECT_NE(text.find(R"(4, 4, ...]")"), std::string::npos);
    EXPECT_NE(text.find(R"("Output Dims":[[2,5]])"), std::string::npos);

    const marey::Trace less = shapes.stop();
    ASSERT_EQ(less.range_arguments(0).size(), 8u);
    EXPECT_EQ(less.range_arguments(0)[0].kind, marey::ValueKind::Array);
    EXPECT_EQ(less.range_arguments(0)[1].left_out, marey::ValueKind::Int);
    EXPECT_EQ(less.range_arguments(0)[2].left_out, marey::ValueKind::List);
    ASSERT_EQ(neither.stop().range_arguments(0).size(), 1u);
}

// C20
TEST(OperationValues, KeepNoneOfTheirInputsAlive) {
    marey::Session session(marey::SessionOptions{.record_shapes = true, .concrete_inputs = true});
    auto elements = std::make_shared<std::vector<float>>(12);
    auto sizes = std::make_unique<std::vector<std::int64_t>>(std::vector<std::int64_t>{3, 4});
    const std::weak_ptr<std::vector<float>> watched = elements;
    const auto address = reinterpret_cast<std::uintptr_t>(elements->data());
    for (const std::uint64_t storage_id : {1u, 2u}) {  // two lifetimes of one address
        const marey::ArrayView array{.dtype = marey::DType::Float32,
                                     .sizes = *sizes,
                                     .storage = elements->data(),
                                     .storage_id = storage_id};
        marey::Operation op;
        op.begin("op", {}, {marey::Value(array)});
        const marey::Value outputs[] = {array};
        op.set_outputs(outputs);
        op.end();
        EXPECT_EQ(elements.use_count(), 1);
    }
    elements.reset();
    sizes.reset();
    EXPECT_TRUE(watched.expired());
    const marey::Trace trace = session.stop();
    ASSERT_EQ(trace.arrays().size(), 4u);
    EXPECT_EQ(trace.arrays()[0].storage, address);
    EXPECT_EQ(trace.arrays()[2].storage, address);
    EXPECT_EQ(trace.arrays()[0].storage_id, 1u);
    EXPECT_EQ(trace.arrays()[2].storage_id, 2u);
    EXPECT_EQ(trace.array_extents()[trace.arrays()[2].first_extent + 1], 4);
}

// C16 C20
TEST(OperationValues, RecordTheIdentityAndUseOfArrays) {
    marey::Session session(marey::SessionOptions{.record_shapes = true});
    const marey::ArrayView read{.object = 0x0003'aaaa'bbbb'cccc, .access = marey::ArrayAccess::Read};
    const marey::ArrayView written{.storage_id = 7, .object = 5, .access = marey::ArrayAccess::Write};
    marey::Operation op;
    op.begin("op", {}, {marey::Value(read), marey::Value(written)});
    op.end();
    const marey::Trace trace = session.stop();
    ASSERT_EQ(trace.arrays().size(), 2u);
    EXPECT_EQ(trace.arrays()[0].object, read.object);
    EXPECT_EQ(trace.arrays()[0].access, marey::ArrayAccess::Read);
    EXPECT_EQ(trace.arrays()[1].object, 0u);  // the number of its memory is more precise
    EXPECT_EQ(trace.arrays()[1].storage_id, 7u);
    EXPECT_EQ(trace.arrays()[1].access, marey::ArrayAccess::Write);
}

// C31 R57 R59
TEST(OperationValues, OfTwoHalvesAreLinkedByForwardThreadAndSequence) {
    marey::Session session(marey::SessionOptions{});
    const std::uint32_t forward_thread = marey::current_thread_id();
    std::int64_t sequence = 0;
    {
        marey::Operation op;
        op.begin("mul", {.sequence = marey::peek_sequence()});
        sequence = marey::take_sequence();
    }
    {
        marey::Operation op;
        op.begin("later", {.sequence = marey::peek_sequence()});
    }
    std::thread([&] {
        marey::Operation op(Scope::BackwardFunction);
        op.begin("MulBackward", {.sequence = sequence, .forward_thread = forward_thread});
    }).join();
    const marey::Trace trace = session.stop();
    ASSERT_EQ(trace.links().size(), 1u);
    EXPECT_EQ(trace.range_name(trace.links()[0].from), "mul");
    EXPECT_EQ(trace.range_name(trace.links()[0].to), "MulBackward");
}

}  // namespace
