// flops_formulas.cpp: FLOP formulas for matrix products, convolutions, attention, elementwise operations and
// reductions, and the table of all formulas. docs/reference/flops.md lists them.
#include "analyze/flops/flops_formulas.h"

#include <cmath>

namespace marey {
namespace {

/// The parameters of a convolution. Inputs without a batch dimension are a batch of one.
struct Convolution {
    double batch = 1;
    double in_channels = 0;
    Sizes in_space;
    Sizes weight;  ///< out, in / groups, kernel ...; transposed: in, out / groups, kernel ...
    Sizes kernel;
    std::int64_t groups = 1;
};

std::optional<Convolution> read_convolution(const OperationInputs& inputs, std::size_t input,
                                            std::size_t weight, std::optional<std::int64_t> groups) {
    const auto in = inputs.shape(input), weights = inputs.shape(weight);
    if (!in || !weights || weights->size() < 3 || !groups || *groups < 1) return std::nullopt;
    const std::size_t space = weights->size() - 2;
    if (in->size() != space + 2 && in->size() != space + 1) return std::nullopt;
    Convolution convolution;
    const bool has_batch = in->size() == space + 2;
    if (has_batch) convolution.batch = static_cast<double>((*in)[0]);
    convolution.in_channels = static_cast<double>((*in)[has_batch ? 1 : 0]);
    convolution.in_space = in->last(space);
    convolution.weight = *weights;
    convolution.kernel = weights->last(space);
    convolution.groups = *groups;
    return convolution;
}

/// One number per spatial dimension; a single number applies to all.
std::optional<std::vector<std::int64_t>> per_dimension(const OperationInputs& inputs, std::size_t input,
                                                       std::size_t space, std::int64_t least) {
    std::optional<std::vector<std::int64_t>> values = inputs.integers(input);
    if (!values) return std::nullopt;
    if (values->size() == 1) values->resize(space, values->front());
    if (values->size() != space) return std::nullopt;
    for (const std::int64_t value : *values) {
        if (value < least) return std::nullopt;
    }
    return values;
}

/// The positions of the inputs that determine an operator's output size.
struct Places {
    std::size_t stride, padding, dilation;
};

/// (in + 2 padding - dilation (kernel - 1) - 1) / stride + 1, for every dimension.
std::optional<double> output_elements(const OperationInputs& inputs, const Convolution& convolution,
                                      const Places& places) {
    const std::size_t space = convolution.kernel.size();
    const auto stride = per_dimension(inputs, places.stride, space, 1);
    const auto dilation = per_dimension(inputs, places.dilation, space, 1);
    if (!stride || !dilation) return std::nullopt;
    const std::optional<std::string_view> word = inputs.text(places.padding);
    if (word == "same") return elements(convolution.in_space);  // allows only stride 1
    const auto padding =
        word == "valid" ? std::vector<std::int64_t>(space) : per_dimension(inputs, places.padding, space, 0);
    if (!padding) return std::nullopt;
    double count = 1;
    for (std::size_t i = 0; i < space; ++i) {
        const double reach =
            static_cast<double>((*dilation)[i]) * (static_cast<double>(convolution.kernel[i]) - 1);
        const double room =
            static_cast<double>(convolution.in_space[i]) + 2 * static_cast<double>((*padding)[i]) - reach - 1;
        if (room < 0 || convolution.kernel[i] == 0) return std::nullopt;  // not a valid convolution
        count *= std::floor(room / static_cast<double>((*stride)[i])) + 1;
    }
    return count;
}

/// Every output element of every channel sums kernel x in_channels / groups products.
std::optional<double> forward(const OperationInputs& inputs, const Convolution& convolution,
                              const Places& places) {
    const std::optional<double> outputs = output_elements(inputs, convolution, places);
    if (!outputs) return std::nullopt;
    return 2 * convolution.batch * *outputs * elements(convolution.kernel) * convolution.in_channels *
           static_cast<double>(convolution.weight[0]) / static_cast<double>(convolution.groups);
}

/// Every input element is multiplied, kernel times, into each output channel of its group. Stride, padding
/// and dilation only determine where the products are added.
double transposed(const Convolution& convolution) {
    return 2 * convolution.batch * elements(convolution.in_space) * convolution.in_channels *
           static_cast<double>(convolution.weight[1]) * elements(convolution.kernel);
}

/// aten::conv<n>d(input, weight, bias, stride, padding, dilation, groups).
template <std::size_t kSpace>
std::optional<double> conv(const OperationInputs& inputs) {
    const auto convolution = read_convolution(inputs, 0, 1, inputs.integer(6));
    if (!convolution || convolution->kernel.size() != kSpace) return std::nullopt;
    return forward(inputs, *convolution, {.stride = 3, .padding = 4, .dilation = 5});
}

/// aten::conv_transpose<n>d(input, weight, ...).
template <std::size_t kSpace>
std::optional<double> conv_transpose(const OperationInputs& inputs) {
    const auto convolution = read_convolution(inputs, 0, 1, 1);
    if (!convolution || convolution->kernel.size() != kSpace) return std::nullopt;
    return transposed(*convolution);
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, ...)
std::optional<double> convolution_flops(const OperationInputs& inputs) {
    const auto convolution = read_convolution(inputs, 0, 1, inputs.integer(8));
    const std::optional<std::int64_t> is_transposed = inputs.integer(6);
    if (!convolution || !is_transposed) return std::nullopt;
    if (*is_transposed != 0) return transposed(*convolution);
    return forward(inputs, *convolution, {.stride = 3, .padding = 4, .dilation = 5});
}

// (grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
// output_mask): the gradient of the input costs as much as the forward pass, and so does that of the weight.
std::optional<double> convolution_backward_flops(const OperationInputs& inputs) {
    const auto convolution = read_convolution(inputs, 1, 2, inputs.integer(9));
    const std::optional<std::int64_t> is_transposed = inputs.integer(7);
    const std::optional<std::vector<std::int64_t>> wanted = inputs.integers(10);
    if (!convolution || !is_transposed || !wanted || wanted->size() != 3) return std::nullopt;
    const std::optional<double> once =
        *is_transposed != 0 ? transposed(*convolution)
                            : forward(inputs, *convolution, {.stride = 4, .padding = 5, .dilation = 6});
    if (!once) return std::nullopt;
    return *once * (((*wanted)[0] != 0 ? 1 : 0) + ((*wanted)[1] != 0 ? 1 : 0));
}

/// The convolution of a library: (input, weight, [bias,] padding, stride, dilation, groups, ...).
template <std::size_t kPadding>
std::optional<double> library_convolution(const OperationInputs& inputs) {
    const auto convolution = read_convolution(inputs, 0, 1, inputs.integer(kPadding + 3));
    if (!convolution) return std::nullopt;
    return forward(inputs, *convolution,
                   {.stride = kPadding + 1, .padding = kPadding, .dilation = kPadding + 2});
}

using Flops = std::optional<double>;

// ---- matrix products

/// 2 x elements(a) / K x elements(b), where K is the last size of a: F1 to F4 of PyTorch, which does not
/// check whether the sizes match. With `batched`, b has a batch dimension too.
template <std::size_t kA, std::size_t kB, bool kBatched>
Flops product(const OperationInputs& inputs) {
    if (kA > 0 && !inputs.shape(0)) return std::nullopt;  // the matrix that is added
    const auto a = inputs.shape(kA), b = inputs.shape(kB);
    if (!a || !b || a->empty() || (kBatched && a->size() < 2)) return std::nullopt;
    if (elements(*a) == 0 || elements(*b) == 0) return 0;
    const Sizes rows = a->first(a->size() - 1);
    return 2 * elements(kBatched ? rows.subspan(1) : rows) * elements(*b);
}

/// Follows torch.matmul: a vector is a row on the left and a column on the right, the last two sizes are the
/// matrices, and the sizes before them are a batch that is broadcast.
template <std::size_t kA, std::size_t kB>
Flops matmul(const OperationInputs& inputs) {
    const auto a = inputs.shape(kA), b = inputs.shape(kB);
    if (!a || !b || a->empty() || b->empty()) return std::nullopt;
    const std::int64_t inner = a->back();
    const bool b_is_vector = b->size() == 1;
    if ((b_is_vector ? b->front() : (*b)[b->size() - 2]) != inner) return std::nullopt;
    const double rows = a->size() == 1 ? 1 : static_cast<double>((*a)[a->size() - 2]);
    const double columns = b_is_vector ? 1 : static_cast<double>(b->back());
    const auto batch =
        broadcast(a->first(a->size() < 2 ? 0 : a->size() - 2), b->first(b->size() < 2 ? 0 : b->size() - 2));
    if (!batch) return std::nullopt;
    return 2 * elements(*batch) * rows * static_cast<double>(inner) * columns;
}

/// A product that is added to the first input; addbmm sums those of all matrices in the batch.
Flops added_matmul(const OperationInputs& inputs) {
    return inputs.shape(0) ? matmul<1, 2>(inputs) : std::nullopt;
}

/// (input, weight, bias): the weight is (out, in), or (in) for one output.
Flops linear(const OperationInputs& inputs) {
    const auto in = inputs.shape(0), weight = inputs.shape(1);
    if (!in || !weight || in->empty() || weight->empty() || weight->size() > 2) return std::nullopt;
    if (in->back() != weight->back()) return std::nullopt;
    return 2 * elements(*in) * (weight->size() == 2 ? static_cast<double>(weight->front()) : 1);
}

/// One product for each pair.
Flops outer(const OperationInputs& inputs) {
    const auto a = inputs.shape(0), b = inputs.shape(1);
    if (!a || !b || a->size() != 1 || b->size() != 1) return std::nullopt;
    return elements(*a) * elements(*b);
}

// ---- attention

/// The sizes in attention products: each query with each key.
struct Attention {
    double pairs = 0;
    double key_size = 0;
    double value_size = 0;
};

/// Queries, keys and values start at input `first`: (..., heads, length, size), or with `kHeadsLast` (batch,
/// length, heads, size). If there are fewer key heads than query heads, they are shared.
template <bool kHeadsLast>
std::optional<Attention> read_attention(const OperationInputs& inputs, std::size_t first) {
    const auto query = inputs.shape(first), key = inputs.shape(first + 1), value = inputs.shape(first + 2);
    if (!query || !key || !value) return std::nullopt;
    const std::size_t rank = query->size();
    if (rank < 2 || key->size() != rank || value->size() != rank || (kHeadsLast && rank != 4))
        return std::nullopt;
    const std::size_t length = kHeadsLast ? 1 : rank - 2;
    if (query->back() != key->back() || (*key)[length] != (*value)[length]) return std::nullopt;
    return Attention{elements(query->first(rank - 1)) * static_cast<double>((*key)[length]),
                     static_cast<double>(key->back()), static_cast<double>(value->back())};
}

/// Query x key and weights x value. Softmax, mask and scale are not counted, and a causal mask saves nothing.
template <bool kHeadsLast>
Flops attention(const OperationInputs& inputs) {
    const auto sizes = read_attention<kHeadsLast>(inputs, 0);
    if (!sizes) return std::nullopt;
    return 2 * sizes->pairs * (sizes->key_size + sizes->value_size);
}

/// (grad_output, query, key, value, ...): query x key once more, and the gradients of weights, value, query
/// and key.
template <bool kHeadsLast>
Flops attention_backward(const OperationInputs& inputs) {
    const auto sizes = read_attention<kHeadsLast>(inputs, 1);
    if (!sizes) return std::nullopt;
    return 2 * sizes->pairs * (3 * sizes->key_size + 2 * sizes->value_size);
}

// ---- elementwise operations and reductions

/// One for each element of the first input, as PyTorch counts aten::mul and aten::add.
Flops first_elements(const OperationInputs& inputs) {
    const auto sizes = inputs.shape(0);
    return sizes ? Flops(elements(*sizes)) : std::nullopt;
}

/// One for each element of the broadcast shape of the first inputs. Scalars broadcast with everything.
template <std::size_t kOperands>
Flops elementwise(const OperationInputs& inputs) {
    std::vector<std::int64_t> together;
    bool any = false;
    for (std::size_t i = 0; i < kOperands; ++i) {
        const auto sizes = inputs.shape(i);
        if (!sizes) {
            if (!inputs.is_number(i)) return std::nullopt;
            continue;
        }
        auto wider = broadcast(together, *sizes);
        if (!wider) return std::nullopt;
        together = std::move(*wider);
        any = true;
    }
    return any ? Flops(elements(together)) : std::nullopt;
}

/// max and min reduce a single array, and are elementwise for two.
Flops extreme(const OperationInputs& inputs) {
    return inputs.kind(1) == ValueKind::Array ? elementwise<2>(inputs) : first_elements(inputs);
}

// ---- the table

std::vector<BuiltInFlops> single_formulas() {
    return {
        {"aten::mm", product<0, 1, false>},
        {"aten::addmm", product<1, 2, false>},
        {"aten::_addmm_activation", product<1, 2, false>},
        {"aten::bmm", product<0, 1, true>},
        {"aten::baddbmm", product<1, 2, true>},
        {"aten::addbmm", added_matmul},
        {"aten::addmv", added_matmul},
        {"aten::matmul", matmul<0, 1>},
        {"aten::mv", matmul<0, 1>},
        {"aten::dot", matmul<0, 1>},
        {"aten::vdot", matmul<0, 1>},
        {"aten::linear", linear},
        {"aten::outer", outer},
        {"aten::ger", outer},
        {"aten::conv1d", conv<1>},
        {"aten::conv2d", conv<2>},
        {"aten::conv3d", conv<3>},
        {"aten::conv_transpose1d", conv_transpose<1>},
        {"aten::conv_transpose2d", conv_transpose<2>},
        {"aten::conv_transpose3d", conv_transpose<3>},
        {"aten::convolution", convolution_flops},
        {"aten::_convolution", convolution_flops},
        {"aten::convolution_backward", convolution_backward_flops},
        {"aten::cudnn_convolution", library_convolution<2>},
        {"aten::miopen_convolution", library_convolution<3>},
        {"aten::mkldnn_convolution", library_convolution<3>},
        {"aten::scaled_dot_product_attention", attention<false>},
        {"aten::_scaled_dot_product_attention_math", attention<false>},
        {"aten::_scaled_dot_product_cudnn_attention", attention<false>},
        {"aten::_scaled_dot_product_efficient_attention", attention<false>},
        {"aten::_scaled_dot_product_flash_attention", attention<false>},
        {"aten::_scaled_dot_product_flash_attention_for_cpu", attention<false>},
        {"aten::_flash_attention_forward", attention<true>},
        {"aten::_efficient_attention_forward", attention<true>},
        {"aten::_scaled_dot_product_cudnn_attention_backward", attention_backward<false>},
        {"aten::_scaled_dot_product_efficient_attention_backward", attention_backward<false>},
        {"aten::_scaled_dot_product_flash_attention_backward", attention_backward<false>},
        {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward<false>},
        {"aten::_flash_attention_backward", attention_backward<true>},
        {"aten::_efficient_attention_backward", attention_backward<true>},
        {"aten::mul", first_elements},
        {"aten::add", first_elements},
        {"aten::mul_", first_elements},
        {"aten::add_", first_elements},
        {"aten::max", extreme},
        {"aten::min", extreme},
    };
}

/// Elementwise operations: `name` and, in place, `name_`.
struct Family {
    std::optional<double> (*formula)(const OperationInputs&);
    bool in_place;
    std::vector<std::string_view> names;
};

std::vector<Family> families() {
    return {
        {elementwise<1>,
         true,
         {"abs",        "neg",       "sign",      "square",      "sqrt",     "rsqrt",     "reciprocal",
          "exp",        "exp2",      "expm1",     "log",         "log2",     "log10",     "log1p",
          "sin",        "cos",       "tan",       "asin",        "acos",     "atan",      "sinh",
          "cosh",       "tanh",      "erf",       "erfc",        "sigmoid",  "logit",     "relu",
          "relu6",      "gelu",      "silu",      "mish",        "elu",      "selu",      "celu",
          "leaky_relu", "hardtanh",  "hardswish", "hardsigmoid", "softplus", "threshold", "clamp",
          "clamp_min",  "clamp_max", "floor",     "ceil",        "round",    "trunc"}},
        {elementwise<2>,
         true,
         {"sub", "rsub", "div", "true_divide", "floor_divide", "remainder", "fmod", "pow", "atan2"}},
        {elementwise<2>, false, {"maximum", "minimum", "fmax", "fmin"}},
        {elementwise<3>, true, {"addcmul", "addcdiv", "lerp"}},
        {first_elements,
         false,
         {"sum", "nansum", "mean", "nanmean", "prod", "amax", "amin", "argmax", "argmin", "norm",
          "linalg_vector_norm", "var", "std", "logsumexp", "cumsum", "cumprod"}},
    };
}

std::vector<BuiltInFlops> all_formulas() {
    std::vector<BuiltInFlops> all = single_formulas();
    for (const Family& family : families()) {
        for (const std::string_view name : family.names) {
            all.push_back({"aten::" + std::string(name), family.formula});
            if (family.in_place) all.push_back({all.back().name + "_", family.formula});
        }
    }
    std::ranges::sort(all, {}, &BuiltInFlops::name);
    return all;
}

}  // namespace

std::span<const BuiltInFlops> built_in_flops() {
    static const std::vector<BuiltInFlops>& all = *new std::vector<BuiltInFlops>(all_formulas());
    return all;
}

bool is_counted_by_pytorch(std::string_view name) noexcept {
    constexpr std::string_view kCounted[] = {"aten::add",    "aten::addmm", "aten::baddbmm", "aten::bmm",
                                             "aten::conv2d", "aten::mm",    "aten::mul"};
    return std::ranges::find(kCounted, name) != std::end(kCounted);
}

}  // namespace marey
