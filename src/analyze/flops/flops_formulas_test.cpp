// flops_formulas_test.cpp: the built-in formulas, compared with numbers calculated by hand.
#include "analyze/flops/flops_formulas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include "analyze/flops/operation_fixture.h"

namespace marey {
namespace {

constexpr std::nullopt_t kUnknown = std::nullopt;
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

InputSpec list(Shape values) {
    return InputSpec::list(std::move(values));
}

// F1 F2
TEST(FlopsFormulas, MatrixProductsMatchPyTorch) {
    EXPECT_EQ(flops("aten::mm", {Shape{3, 4}, Shape{4, 5}}), 2 * 3 * 4 * 5);
    EXPECT_EQ(flops("aten::addmm", {Shape{5}, Shape{3, 4}, Shape{4, 5}, 1, 1}), 2 * 3 * 4 * 5);
    EXPECT_EQ(flops("aten::_addmm_activation", {Shape{5}, Shape{3, 4}, Shape{4, 5}}), 120);
    EXPECT_EQ(flops("aten::bmm", {Shape{7, 3, 4}, Shape{7, 4, 5}}), 2 * 7 * 3 * 4 * 5);
    EXPECT_EQ(flops("aten::baddbmm", {Shape{7, 3, 5}, Shape{7, 3, 4}, Shape{7, 4, 5}}), 840);
}

// F4: PyTorch warns and gives 0, which it also gives for arrays without elements.
TEST(FlopsFormulas, ProductsOfNonMatricesAreUnknown) {
    EXPECT_EQ(flops("aten::mm", {Shape{3, 4}}), kUnknown);
    EXPECT_EQ(flops("aten::mm", {Shape{3, 4}, 5}), kUnknown);
    EXPECT_EQ(flops("aten::mm", {Shape{}, Shape{4, 5}}), kUnknown);
    EXPECT_EQ(flops("aten::mm", {Shape{3, -4}, Shape{4, 5}}), kUnknown);
    EXPECT_EQ(flops("aten::addmm", {1, Shape{3, 4}, Shape{4, 5}}), kUnknown);
    EXPECT_EQ(flops("aten::bmm", {Shape{7}, Shape{7, 4, 5}}), kUnknown);
    EXPECT_EQ(flops("aten::mm", {}), kUnknown);
    EXPECT_EQ(flops("aten::mm", {Shape{3, 0}, Shape{0, 5}}), 0);
    EXPECT_EQ(flops("aten::bmm", {Shape{0, 3, 4}, Shape{0, 4, 5}}), 0);
}

TEST(FlopsFormulas, MatmulFollowsTheRulesOfRanks) {
    EXPECT_EQ(flops("aten::matmul", {Shape{6}, Shape{6}}), 2 * 6);
    EXPECT_EQ(flops("aten::matmul", {Shape{3, 4}, Shape{4, 5}}), 120);
    EXPECT_EQ(flops("aten::matmul", {Shape{4}, Shape{4, 5}}), 2 * 4 * 5);
    EXPECT_EQ(flops("aten::matmul", {Shape{3, 4}, Shape{4}}), 2 * 3 * 4);
    EXPECT_EQ(flops("aten::matmul", {Shape{2, 3, 4}, Shape{4}}), 2 * 2 * 3 * 4);
    EXPECT_EQ(flops("aten::matmul", {Shape{4}, Shape{2, 4, 5}}), 2 * 2 * 4 * 5);
    EXPECT_EQ(flops("aten::matmul", {Shape{2, 3, 4}, Shape{4, 5}}), 2 * 120);
    EXPECT_EQ(flops("aten::matmul", {Shape{3, 4}, Shape{2, 4, 5}}), 2 * 120);
    EXPECT_EQ(flops("aten::matmul", {Shape{8, 1, 3, 4}, Shape{7, 4, 5}}), 8 * 7 * 120);
    EXPECT_EQ(flops("aten::matmul", {Shape{8, 3, 4}, Shape{7, 4, 5}}), kUnknown) << "batches do not fit";
    EXPECT_EQ(flops("aten::matmul", {Shape{3, 4}, Shape{5, 4}}), kUnknown) << "inner sizes do not fit";
    EXPECT_EQ(flops("aten::matmul", {Shape{}, Shape{4}}), kUnknown);
    EXPECT_EQ(flops("aten::matmul", {Shape{3, 0}, Shape{0, 5}}), 0);
    EXPECT_EQ(flops("aten::mv", {Shape{3, 4}, Shape{4}}), 24);
    EXPECT_EQ(flops("aten::addmv", {Shape{3}, Shape{3, 4}, Shape{4}}), 24);
    EXPECT_EQ(flops("aten::addmv", {nullptr, Shape{3, 4}, Shape{4}}), kUnknown);
    EXPECT_EQ(flops("aten::addbmm", {Shape{3, 5}, Shape{7, 3, 4}, Shape{7, 4, 5}}), 840);
    EXPECT_EQ(flops("aten::dot", {Shape{9}, Shape{9}}), 18);
    EXPECT_EQ(flops("aten::outer", {Shape{3}, Shape{4}}), 12);
    EXPECT_EQ(flops("aten::outer", {Shape{3, 1}, Shape{4}}), kUnknown);
}

TEST(FlopsFormulas, LinearMultipliesEveryRowByTheWeight) {
    EXPECT_EQ(flops("aten::linear", {Shape{8, 16}, Shape{32, 16}, Shape{32}}), 2 * 8 * 16 * 32);
    EXPECT_EQ(flops("aten::linear", {Shape{2, 3, 16}, Shape{32, 16}, nullptr}), 2 * 6 * 16 * 32);
    EXPECT_EQ(flops("aten::linear", {Shape{16}, Shape{32, 16}}), 2 * 16 * 32);
    EXPECT_EQ(flops("aten::linear", {Shape{8, 16}, Shape{16}}), 2 * 8 * 16);
    EXPECT_EQ(flops("aten::linear", {Shape{8, 16}, Shape{32, 17}}), kUnknown);
    EXPECT_EQ(flops("aten::linear", {Shape{8, 16}, Shape{2, 32, 16}}), kUnknown);
}

// F1 F5: out = (28 + 2 - 2 - 1) / 2 + 1 = 14 and (30 + 0 - 4 - 1) / 1 + 1 = 26.
TEST(FlopsFormulas, Conv2dMatchesPyTorch) {
    const std::vector<InputSpec> inputs = {Shape{4, 6, 28, 30}, Shape{8, 3, 3, 3}, nullptr, list({2, 1}),
                                           list({1, 0}),        list({1, 2}),      2};
    EXPECT_EQ(flops("aten::conv2d", inputs), 2.0 * 4 * 14 * 26 * 3 * 3 * 6 * 8 / 2);
}

// F3, except that convolutions which PyTorch can compute but not count are counted.
TEST(FlopsFormulas, Conv2dAcceptsAnyValidConvolution) {
    auto conv = [](const InputSpec& input, const InputSpec& stride, const InputSpec& padding,
                   const InputSpec& groups = 1) {
        return flops("aten::conv2d",
                     {input, Shape{8, 3, 3, 3}, nullptr, stride, padding, list({1, 1}), groups});
    };
    const double same = 2.0 * 10 * 10 * 9 * 3 * 8, valid = 2.0 * 8 * 8 * 9 * 3 * 8;
    EXPECT_EQ(conv(Shape{1, 3, 10, 10}, list({1, 1}), list({0, 0})), valid);
    EXPECT_EQ(conv(Shape{3, 10, 10}, list({1, 1}), list({0, 0})), valid) << "no batch";
    EXPECT_EQ(conv(Shape{1, 3, 10, 10}, 1, 1), same);
    EXPECT_EQ(conv(Shape{1, 3, 10, 10}, list({1}), "same"), same);
    EXPECT_EQ(conv(Shape{1, 3, 10, 10}, list({1, 1}), "valid"), valid);
    EXPECT_EQ(conv(Shape{1, 3, 10, 10}, "[1, 1]", "[0, 0]", "1"), valid) << "as imported traces have it";
    EXPECT_EQ(conv(Shape{0, 3, 10, 10}, list({1, 1}), list({0, 0})), 0) << "an empty batch";
    EXPECT_EQ(conv(Shape{1, 3, 10, 10}, list({1, 0}), list({0, 0})), kUnknown) << "no stride";
    EXPECT_EQ(conv(Shape{1, 3, 10, 10}, list({1, 1}), list({0, -1})), kUnknown);
    EXPECT_EQ(conv(Shape{1, 3, 10, 10}, list({1, 1, 1}), list({0, 0})), kUnknown);
    EXPECT_EQ(conv(Shape{1, 3, 10, 10}, list({1, 1}), "around"), kUnknown);
    EXPECT_EQ(conv(Shape{1, 3, 10, 10}, list({1, 1}), list({0, 0}), 0), kUnknown) << "no groups";
    EXPECT_EQ(conv(Shape{1, 3, 2, 10}, list({1, 1}), list({0, 0})), kUnknown) << "smaller than the kernel";
    EXPECT_EQ(conv(Shape{10, 10}, list({1, 1}), list({0, 0})), kUnknown);
    EXPECT_EQ(conv(Shape{1, 3, 10, 10}, InputSpec::left_out(ValueKind::List), list({0, 0})), kUnknown)
        << "values were not recorded";
    EXPECT_EQ(flops("aten::conv2d", {Shape{1, 3, 10, 10}, Shape{8, 3, 3, 3}}), kUnknown);
    EXPECT_EQ(flops("aten::conv2d", {Shape{1, 3, 10}, Shape{8, 3, 3}, nullptr, 1, 0, 1, 1}), kUnknown)
        << "that is conv1d";
}

TEST(FlopsFormulas, ConvolutionsHaveOneToThreeDimensions) {
    EXPECT_EQ(
        flops("aten::conv1d", {Shape{2, 3, 10}, Shape{4, 3, 3}, nullptr, list({2}), list({1}), list({1}), 1}),
        2.0 * 2 * 5 * 3 * 3 * 4);
    EXPECT_EQ(flops("aten::conv3d", {Shape{2, 3, 4, 5, 6}, Shape{4, 3, 3, 3, 3}, nullptr, list({1, 1, 1}),
                                     list({0, 0, 0}), list({1, 1, 1}), 1}),
              2.0 * 2 * (2 * 3 * 4) * 27 * 3 * 4);
    EXPECT_EQ(flops("aten::convolution", {Shape{2, 3, 10}, Shape{4, 3, 3}, nullptr, list({2}), list({1}),
                                          list({1}), false, list({0}), 1}),
              2.0 * 2 * 5 * 3 * 3 * 4);
    EXPECT_EQ(flops("aten::_convolution", {Shape{2, 3, 10}, Shape{4, 3, 3}, nullptr, list({2}), list({1}),
                                           list({1}), false, list({0}), 1, true, true, true, true}),
              720);
    EXPECT_EQ(flops("aten::cudnn_convolution",
                    {Shape{2, 3, 10}, Shape{4, 3, 3}, list({1}), list({2}), list({1}), 1, true, true, true}),
              720);
    for (const char* name : {"aten::mkldnn_convolution", "aten::miopen_convolution"})
        EXPECT_EQ(flops(name, {Shape{2, 3, 10}, Shape{4, 3, 3}, nullptr, list({1}), list({2}), list({1}), 1}),
                  720);
}

TEST(FlopsFormulas, TransposedConvolutionsSpreadEveryInputElement) {
    const Shape weight{6, 4, 3, 3};  // in, out / groups, kernel
    EXPECT_EQ(flops("aten::conv_transpose2d", {Shape{2, 6, 5, 7}, weight, nullptr, list({2, 2})}),
              2.0 * 2 * 5 * 7 * 6 * 4 * 9);
    EXPECT_EQ(flops("aten::conv_transpose1d", {Shape{2, 6, 5}, Shape{6, 4, 3}}), 2.0 * 2 * 5 * 6 * 4 * 3);
    EXPECT_EQ(flops("aten::conv_transpose3d", {Shape{2, 6, 5, 5, 5}, Shape{6, 4, 2, 2, 2}}),
              2.0 * 2 * 125 * 6 * 4 * 8);
    EXPECT_EQ(flops("aten::convolution", {Shape{2, 6, 5, 7}, weight, nullptr, list({2, 2}), list({0, 0}),
                                          list({1, 1}), true, list({0, 0}), 3}),
              2.0 * 2 * 5 * 7 * 6 * 4 * 9);
    EXPECT_EQ(flops("aten::convolution", {Shape{2, 6, 5, 7}, weight, nullptr, list({2, 2}), list({0, 0}),
                                          list({1, 1}), nullptr, list({0, 0}), 3}),
              kUnknown)
        << "transposed or not was not recorded";
    EXPECT_EQ(flops("aten::conv_transpose2d", {Shape{2, 6, 5}, Shape{6, 4, 3}}), kUnknown);
}

TEST(FlopsFormulas, TheBackwardHalfOfAConvolutionIsOneForEachGradient) {
    auto backward = [](Shape wanted, bool transposed) {
        return flops("aten::convolution_backward",
                     {Shape{2, 4, 5}, Shape{2, 3, 10}, Shape{4, 3, 3}, nullptr, list({2}), list({1}),
                      list({1}), transposed, list({0}), 1, list(std::move(wanted))});
    };
    EXPECT_EQ(backward({1, 1, 1}, false), 1440);
    EXPECT_EQ(backward({0, 1, 1}, false), 720);
    EXPECT_EQ(backward({0, 0, 1}, false), 0);
    EXPECT_EQ(backward({1, 1, 0}, true), 2 * 2.0 * 2 * 10 * 3 * 3 * 3);
    EXPECT_EQ(backward({1, 1}, false), kUnknown);
}

TEST(FlopsFormulas, AttentionIsTwoProductsOfEveryQueryWithEveryKey) {
    const Shape query{2, 8, 10, 16}, key{2, 8, 20, 16}, value{2, 8, 20, 32};
    const double pairs = 2 * 8 * 10 * 20;
    for (const char* name :
         {"aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math",
          "aten::_scaled_dot_product_cudnn_attention", "aten::_scaled_dot_product_efficient_attention",
          "aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_flash_attention_for_cpu"}) {
        EXPECT_EQ(flops(name, {query, key, value, nullptr, 0.0, true}), 2 * pairs * (16 + 32)) << name;
        EXPECT_EQ(flops(name, {query, key, key}), 4 * pairs * 16) << name;
    }
    EXPECT_EQ(flops("aten::scaled_dot_product_attention", {query, Shape{2, 2, 20, 16}, Shape{2, 2, 20, 16}}),
              4 * pairs * 16)
        << "shared heads of keys";
    EXPECT_EQ(flops("aten::scaled_dot_product_attention", {Shape{10, 16}, Shape{20, 16}, Shape{20, 16}}),
              4 * 10 * 20 * 16);
    for (const char* name : {"aten::_flash_attention_forward", "aten::_efficient_attention_forward"})
        EXPECT_EQ(flops(name, {Shape{2, 10, 8, 16}, Shape{2, 20, 8, 16}, Shape{2, 20, 8, 16}}),
                  4 * pairs * 16);
    EXPECT_EQ(flops("aten::_flash_attention_forward", {Shape{10, 8, 16}, Shape{20, 8, 16}, Shape{20, 8, 16}}),
              kUnknown)
        << "packed sequences of many lengths";
    EXPECT_EQ(flops("aten::scaled_dot_product_attention", {query, key}), kUnknown);
    EXPECT_EQ(flops("aten::scaled_dot_product_attention", {query, value, value}), kUnknown);
    EXPECT_EQ(flops("aten::scaled_dot_product_attention", {query, key, Shape{2, 8, 21, 16}}), kUnknown);
    EXPECT_EQ(flops("aten::scaled_dot_product_attention", {Shape{16}, Shape{16}, Shape{16}}), kUnknown);
}

TEST(FlopsFormulas, TheBackwardHalfOfAttentionIsFiveProducts) {
    const Shape query{2, 8, 10, 16}, key{2, 8, 20, 16}, value{2, 8, 20, 32}, out{2, 8, 10, 32};
    const double pairs = 2 * 8 * 10 * 20;
    for (const char* name : {"aten::_scaled_dot_product_cudnn_attention_backward",
                             "aten::_scaled_dot_product_efficient_attention_backward",
                             "aten::_scaled_dot_product_flash_attention_backward",
                             "aten::_scaled_dot_product_flash_attention_for_cpu_backward"})
        EXPECT_EQ(flops(name, {out, query, key, value}), 2 * pairs * (3 * 16 + 2 * 32)) << name;
    const Shape many{2, 10, 8, 16};
    for (const char* name : {"aten::_flash_attention_backward", "aten::_efficient_attention_backward"})
        EXPECT_EQ(flops(name, {many, many, many, many}), 2.0 * 2 * 8 * 10 * 10 * 5 * 16) << name;
}

// F1: the first operand counts, whatever the second is.
TEST(FlopsFormulas, MulAndAddCountTheFirstOperandAsPyTorchDoes) {
    for (const char* name : {"aten::mul", "aten::add", "aten::mul_", "aten::add_"}) {
        EXPECT_EQ(flops(name, {Shape{3, 4}, Shape{3, 4}}), 12) << name;
        EXPECT_EQ(flops(name, {Shape{4}, Shape{3, 4}}), 4) << name;
        EXPECT_EQ(flops(name, {Shape{}, Shape{3, 4}}), 1) << name;
        EXPECT_EQ(flops(name, {Shape{3, 4}, 2.5}), 12) << name;
        EXPECT_EQ(flops(name, {2.5, Shape{3, 4}}), kUnknown) << name;
    }
}

TEST(FlopsFormulas, ElementwiseOperationsCountTheirOutput) {
    for (const char* name : {"aten::sub", "aten::div_", "aten::pow", "aten::maximum", "aten::atan2"}) {
        EXPECT_EQ(flops(name, {Shape{3, 4}, Shape{3, 4}}), 12) << name;
        EXPECT_EQ(flops(name, {Shape{4}, Shape{3, 1}}), 12) << name;
        EXPECT_EQ(flops(name, {2, Shape{3, 4}}), 12) << name;
        EXPECT_EQ(flops(name, {Shape{3, 4}, InputSpec::left_out(ValueKind::Double)}), 12) << name;
        EXPECT_EQ(flops(name, {Shape{3, 4}, "0.5"}), 12) << name;
        EXPECT_EQ(flops(name, {Shape{3, 4}, Shape{3, 5}}), kUnknown) << name;
        EXPECT_EQ(flops(name, {Shape{3, 4}}), kUnknown) << name;
        EXPECT_EQ(flops(name, {Shape{3, 4}, "wide"}), kUnknown) << name;
        EXPECT_EQ(flops(name, {2, 3}), kUnknown) << name;
    }
    for (const char* name : {"aten::relu", "aten::relu_", "aten::exp", "aten::gelu", "aten::clamp"}) {
        EXPECT_EQ(flops(name, {Shape{3, 4}, nullptr}), 12) << name;
        EXPECT_EQ(flops(name, {7}), kUnknown) << name;
    }
    EXPECT_EQ(flops("aten::addcmul", {Shape{3, 1}, Shape{4}, Shape{2, 1, 1}, 1}), 24);
    EXPECT_EQ(flops("aten::lerp", {Shape{3}, Shape{3}, 0.5}), 3);
}

TEST(FlopsFormulas, ReductionsCountTheirInput) {
    for (const char* name :
         {"aten::sum", "aten::mean", "aten::amax", "aten::norm", "aten::var", "aten::max"}) {
        EXPECT_EQ(flops(name, {Shape{3, 4}}), 12) << name;
        EXPECT_EQ(flops(name, {Shape{3, 4}, list({1}), false}), 12) << name;
        EXPECT_EQ(flops(name, {list({1})}), kUnknown) << name;
    }
    EXPECT_EQ(flops("aten::max", {Shape{3, 1}, Shape{4}}), 12) << "of two arrays";
    EXPECT_EQ(flops("aten::min", {Shape{3, 1}, Shape{4}}), 12);
}

// F5: PyTorch's numbers wrap around.
TEST(FlopsFormulas, NumbersThatDoNotFitAreLargeOrUnknownAndNeverWrong) {
    EXPECT_EQ(flops("aten::mm", {Shape{kHuge, kHuge}, Shape{kHuge, kHuge}}), 2 * std::pow(0x1p62, 3));
    const Shape most(20, kHuge);
    EXPECT_EQ(flops("aten::mul", {most}), kUnknown);
    EXPECT_EQ(flops("aten::mul", {Shape{kHuge, kHuge, kHuge, kHuge, kHuge, 0}}), 0);
    Shape empty = most;
    empty.push_back(0);
    EXPECT_EQ(flops("aten::mul", {empty}), 0);
    const auto huge = [](std::int64_t value) { return list({value, value}); };
    EXPECT_EQ(flops("aten::conv2d", {Shape{1, kHuge, kHuge, kHuge}, Shape{kHuge, kHuge, kHuge, kHuge},
                                     nullptr, huge(kHuge), huge(kHuge), huge(kHuge), 1}),
              kUnknown);
    EXPECT_GT(flops("aten::conv2d", {Shape{1, kHuge, 8, 8}, Shape{kHuge, kHuge, 1, 1}, nullptr, huge(kHuge),
                                     huge(kHuge), huge(kHuge), 1}),
              1e30);
}

TEST(FlopsFormulas, AreSortedAndNamedOnce) {
    std::set<std::string> names;
    std::string last;
    for (const BuiltInFlops& entry : built_in_flops()) {
        EXPECT_TRUE(names.insert(entry.name).second) << entry.name << " twice";
        EXPECT_LT(last, entry.name);
        last = entry.name;
    }
}

/// The names in the table of docs/reference/flops.md.
std::set<std::string> documented_names() {
    std::ifstream file(std::string(MAREY_SOURCE_DIR) + "/docs/reference/flops.md");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::set<std::string> words;
    for (std::size_t at = text.find('`'); at != text.npos;) {
        const std::size_t end = text.find('`', at + 1);
        if (end == text.npos) break;
        words.insert(text.substr(at + 1, end - at - 1));
        at = text.find('`', end + 1);
    }
    return words;
}

TEST(FlopsFormulas, AreDocumented) {
    const std::set<std::string> documented = documented_names();
    for (const BuiltInFlops& entry : built_in_flops()) {
        std::string name = entry.name.substr(std::string("aten::").size());
        if (name.ends_with("_") && documented.count(name) == 0) name.pop_back();  // in place
        if (name.find("attention") != name.npos || name.starts_with("conv_transpose"))
            continue;  // in patterns
        EXPECT_EQ(documented.count(name), 1u) << name << " is not in docs/reference/flops.md";
    }
}

/// Any formula gives a sane answer for any inputs.
TEST(FlopsFormulas, SurviveAnyInputs) {
    const std::vector<InputSpec> pool = {Shape{},
                                         Shape{0},
                                         Shape{3, 4},
                                         Shape{2, 3, 4},
                                         Shape{kHuge, 1, kHuge, 2},
                                         Shape{-1, 2},
                                         5,
                                         -7,
                                         2.5,
                                         true,
                                         "same",
                                         "[1, 1]",
                                         "[",
                                         list({1, 1}),
                                         list({}),
                                         list({-kHuge, 0}),
                                         list({1, 1, 1}),
                                         nullptr,
                                         Shape{1, 2, 3, 4, 5}};
    std::uint64_t state = 1;
    auto next = [&](std::size_t limit) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::size_t>(state >> 33) % limit;
    };
    for (const BuiltInFlops& entry : built_in_flops()) {
        for (int round = 0; round < 60; ++round) {
            std::vector<InputSpec> inputs;
            for (std::size_t i = next(12); i > 0; --i) inputs.push_back(pool[next(pool.size())]);
            const std::optional<double> count = flops(entry.name, inputs);
            if (count) {
                EXPECT_TRUE(std::isfinite(*count) && *count >= 0) << entry.name;
            }
        }
    }
}

}  // namespace
}  // namespace marey
