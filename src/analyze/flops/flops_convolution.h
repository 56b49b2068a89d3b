// flops_convolution.h: FLOP formulas for convolutions, by the input order of each operator.
#pragma once

#include <optional>

#include <marey/flops.h>

namespace marey {

std::optional<double> conv1d_flops(const OperationInputs& inputs);
std::optional<double> conv2d_flops(const OperationInputs& inputs);
std::optional<double> conv3d_flops(const OperationInputs& inputs);
std::optional<double> conv_transpose1d_flops(const OperationInputs& inputs);
std::optional<double> conv_transpose2d_flops(const OperationInputs& inputs);
std::optional<double> conv_transpose3d_flops(const OperationInputs& inputs);
std::optional<double> convolution_flops(const OperationInputs& inputs);
std::optional<double> convolution_backward_flops(const OperationInputs& inputs);
std::optional<double> cudnn_convolution_flops(const OperationInputs& inputs);
std::optional<double> mkldnn_convolution_flops(const OperationInputs& inputs);

}  // namespace marey
