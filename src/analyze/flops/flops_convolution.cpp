// flops_convolution.cpp: FLOP formulas for convolutions.
#include "analyze/flops/flops_convolution.h"

#include <cmath>

#include "analyze/flops/flops_shapes.h"

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

}  // namespace

std::optional<double> conv1d_flops(const OperationInputs& inputs) {
    return conv<1>(inputs);
}
std::optional<double> conv2d_flops(const OperationInputs& inputs) {
    return conv<2>(inputs);
}
std::optional<double> conv3d_flops(const OperationInputs& inputs) {
    return conv<3>(inputs);
}
std::optional<double> conv_transpose1d_flops(const OperationInputs& inputs) {
    return conv_transpose<1>(inputs);
}
std::optional<double> conv_transpose2d_flops(const OperationInputs& inputs) {
    return conv_transpose<2>(inputs);
}
std::optional<double> conv_transpose3d_flops(const OperationInputs& inputs) {
    return conv_transpose<3>(inputs);
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

// (input, weight, padding, stride, dilation, groups, ...)
std::optional<double> cudnn_convolution_flops(const OperationInputs& inputs) {
    const auto convolution = read_convolution(inputs, 0, 1, inputs.integer(5));
    if (!convolution) return std::nullopt;
    return forward(inputs, *convolution, {.stride = 3, .padding = 2, .dilation = 4});
}

// (input, weight, bias, padding, stride, dilation, groups)
std::optional<double> mkldnn_convolution_flops(const OperationInputs& inputs) {
    const auto convolution = read_convolution(inputs, 0, 1, inputs.integer(6));
    if (!convolution) return std::nullopt;
    return forward(inputs, *convolution, {.stride = 4, .padding = 3, .dilation = 5});
}

}  // namespace marey
