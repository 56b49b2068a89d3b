// flops_test.cpp: the registry of formulas, the inputs they receive, and the FLOPs of a whole trace.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "analyze/flops/operation_fixture.h"
#include "analyze/trace_fixture.h"

namespace marey {
namespace {

constexpr std::nullopt_t kNoFlops = std::nullopt;

TEST(Flops, AreUnknownWithoutAFormulaAndWithoutInputs) {
    EXPECT_EQ(flops("my::thing", {Shape{3, 4}}), kNoFlops);
    EXPECT_EQ(flops("mm", {Shape{3, 4}, Shape{4, 5}}), kNoFlops) << "names are exact";
    EXPECT_EQ(flops("aten::mul", {}), kNoFlops);
    EXPECT_EQ(flops_of(TraceFixture().thread("t", {{"aten::mm", 0, 1}}).trace(), 0), kNoFlops);
}

TEST(Flops, UserFormulasApplyUntilTheyAreRemoved) {
    const std::vector<InputSpec> inputs = {Shape{3, 4}, Shape{4, 5}};
    register_flops("aten::mm", [](const OperationInputs& in) { return in.size() * 100.0; });
    EXPECT_EQ(flops("aten::mm", inputs), 200);
    register_flops("aten::mm", [](const OperationInputs&) { return 7.0; });
    EXPECT_EQ(flops("aten::mm", inputs), 7);
    register_flops("aten::mm", {});
    EXPECT_EQ(flops("aten::mm", inputs), kNoFlops) << "an empty formula hides the one built in";
    EXPECT_TRUE(unregister_flops("aten::mm"));
    EXPECT_FALSE(unregister_flops("aten::mm"));
    EXPECT_EQ(flops("aten::mm", inputs), 120);
}

TEST(Flops, OfATraceInPytorchsFormCountEachOperationOnce) {
    TraceChanges changes;
    changes.has_pytorch_flops = true;
    const auto flops_in = [&](const char* name, const std::vector<InputSpec>& inputs) {
        return flops_of(Trace::changed(operation(name, inputs), changes), 0);
    };
    const std::vector<InputSpec> inputs = {Shape{3, 4}, Shape{4, 5}};
    EXPECT_EQ(flops_in("aten::mm", inputs), 120);
    EXPECT_EQ(flops_in("aten::matmul", inputs), kNoFlops) << "it calls aten::mm";
    EXPECT_EQ(flops("aten::matmul", inputs), 120);
    register_flops("my::gemm", flops_formula("aten::mm"));
    EXPECT_EQ(flops_in("my::gemm", inputs), 120);
    unregister_flops("my::gemm");
}

TEST(Flops, AKnownFormulaCanBeGivenToAnotherName) {
    register_flops("my::gemm", flops_formula("aten::mm"));
    EXPECT_EQ(flops("my::gemm", {Shape{3, 4}, Shape{4, 5}}), 120);
    const std::vector<std::string> names = flops_names();
    EXPECT_TRUE(std::binary_search(names.begin(), names.end(), "my::gemm"));
    EXPECT_TRUE(std::binary_search(names.begin(), names.end(), "aten::mm"));
    EXPECT_TRUE(unregister_flops("my::gemm"));
    EXPECT_FALSE(flops_formula("my::gemm"));
}

TEST(Flops, AnInvalidCountIsUnknown) {
    for (const double bad : {std::nan(""), HUGE_VAL, -1.0}) {
        register_flops("my::bad", [bad](const OperationInputs&) { return bad; });
        EXPECT_EQ(flops("my::bad", {1}), kNoFlops) << bad;
    }
    unregister_flops("my::bad");
}

TEST(Flops, AFormulaSeesInputsByPositionAndKind) {
    const Trace trace = operation(
        "op", {Shape{3, 4}, 5, true, 2.5, "text", InputSpec::list({6, 7}), nullptr, "[8, -9]", "True", "12"});
    const OperationInputs inputs(trace, 0);
    ASSERT_EQ(inputs.size(), 10u);
    const auto sizes = inputs.shape(0);
    ASSERT_TRUE(sizes);
    EXPECT_EQ(Shape(sizes->begin(), sizes->end()), (Shape{3, 4}));
    EXPECT_EQ(inputs.dtype(0), DType::Other);
    EXPECT_EQ(inputs.integer(1), 5);
    EXPECT_EQ(inputs.integer(2), 1);
    EXPECT_EQ(inputs.integer(3), kNoFlops);
    EXPECT_TRUE(inputs.is_number(3));
    EXPECT_EQ(inputs.text(4), "text");
    EXPECT_FALSE(inputs.is_number(4));
    EXPECT_EQ(inputs.integers(5), (Shape{6, 7}));
    EXPECT_EQ(inputs.integers(1), (Shape{5}));
    EXPECT_EQ(inputs.kind(6), ValueKind::None);
    EXPECT_EQ(inputs.integers(7), (Shape{8, -9}));
    EXPECT_EQ(inputs.integer(8), 1);
    EXPECT_EQ(inputs.integer(9), 12);
    for (std::size_t i : {1u, 4u, 6u, 10u, 99u}) EXPECT_FALSE(inputs.shape(i)) << i;
    for (std::size_t i : {0u, 3u, 4u, 6u, 10u}) EXPECT_FALSE(inputs.integers(i)) << i;
    EXPECT_EQ(inputs.kind(99), ValueKind::None);
    EXPECT_FALSE(inputs.dtype(1));
}

TEST(Flops, TextThatIsNotAListOfIntegersIsNone) {
    for (const char* text :
         {"", "[", "]", "[1", "1]", "[1,]", "[,1]", "[1 2]", "[x]", "[99999999999999999999]"})
        EXPECT_FALSE(OperationInputs(operation("op", {text}), 0).integers(0)) << text;
    EXPECT_EQ(OperationInputs(operation("op", {"[ ]"}), 0).integers(0), Shape{});
    EXPECT_EQ(OperationInputs(operation("op", {"[ 1 , 2 ]"}), 0).integers(0), (Shape{1, 2}));
}

// F4
TEST(Flops, ArraysWithoutRecordedSizesHaveNone) {
    ArrayInfo undefined, ragged;
    undefined.is_defined = false;
    ragged.layout = Layout::Jagged;
    EXPECT_EQ(flops("aten::mul", {InputSpec::array(undefined, {3})}), kNoFlops);
    EXPECT_EQ(flops("aten::mul", {InputSpec::array(ragged, {3, 4})}), kNoFlops);
    EXPECT_EQ(flops("aten::mul", {InputSpec(Shape{3, 4}).cut_short()}), kNoFlops);
    EXPECT_FALSE(OperationInputs(operation("op", {InputSpec::list({1}).cut_short()}), 0).integers(0));
}

TEST(Flops, KeywordsAndOutputsAreNotInputs) {
    TraceAssembler assembler;
    const std::uint32_t lane = assembler.add_lane({.thread = assembler.add_thread({})});
    const auto range =
        assembler.add_range(lane, 0, 10, assembler.site({.name = assembler.string("aten::mul")}));
    Argument keyword;
    keyword.kind = ValueKind::Int;
    keyword.key = assembler.string("n");
    assembler.add_values(range, std::span(&keyword, 1));
    add_input(assembler, range, Shape{3, 4});
    keyword.role = ArgumentRole::Output;
    assembler.add_values(range, std::span(&keyword, 1));
    const Trace trace = assembler.finish();
    EXPECT_EQ(OperationInputs(trace, 0).size(), 1u);
    EXPECT_EQ(flops_of(trace, 0), 12);
}

TEST(Flops, AllRangesShowsWhichAreInsideOthers) {
    TraceAssembler assembler;
    const std::uint32_t lane = assembler.add_lane({.thread = assembler.add_thread({})});
    auto range = [&](const char* name, std::int64_t start, std::int64_t duration,
                     const std::vector<Shape>& shapes) {
        const auto id =
            assembler.add_range(lane, start, duration, assembler.site({.name = assembler.string(name)}));
        for (const Shape& shape : shapes) add_input(assembler, id, shape);
    };
    range("step", 0, 100, {});
    range("aten::linear", 10, 50, {{8, 16}, {32, 16}});
    range("wrapper", 15, 40, {});
    range("aten::addmm", 20, 30, {{32}, {8, 16}, {16, 32}});
    range("aten::relu", 70, 10, {{8, 32}});
    range("unknown", 85, 10, {{8, 32}});
    const Trace trace = assembler.finish();
    const std::vector<RangeFlops> all = all_flops(trace);
    ASSERT_EQ(all.size(), 3u);
    double sum = 0;
    for (const RangeFlops& row : all) {
        EXPECT_EQ(flops_of(trace, row.range), row.flops);
        if (!row.is_nested) sum += row.flops;
    }
    EXPECT_EQ(trace.range_name(all[1].range), "aten::addmm");
    EXPECT_TRUE(all[1].is_nested);
    EXPECT_EQ(sum, 2 * 8 * 16 * 32 + 8 * 32);
    EXPECT_TRUE(all_flops(Trace()).empty());
}

TEST(Flops, TheRegistryServesManyThreads) {
    const Trace trace = operation("my::shared", {Shape{3, 4}});
    std::atomic<bool> go_on = true;
    std::thread changer([&] {
        for (int i = 0; i < 2000; ++i) {
            register_flops("my::shared", [i](const OperationInputs&) { return i + 1.0; });
            unregister_flops("my::shared");
        }
        go_on = false;
    });
    while (go_on) {
        const std::optional<double> count = flops_of(trace, 0);
        if (count) {
            EXPECT_GE(*count, 1);
        }
    }
    changer.join();
    EXPECT_EQ(flops_of(trace, 0), kNoFlops);
}

}  // namespace
}  // namespace marey
