// read_inputs.h: reads operator inputs and outputs as PyTorch writes them: four lists, one entry per input.
#pragma once

#include <marey/trace.h>

#include "trace/trace_assembler.h"

namespace marey {

/// The JSON texts of "Input Dims", "Input type", "Input Strides" and "Concrete Inputs"; empty: missing.
struct ChromeInputTexts {
    std::string_view dims, types, strides, concrete;
};

/// Returns one value per input. A known element type makes an array; "TensorList" a list of arrays; "Scalar"
/// and "ScalarList" numbers, or None without a text; any other entry with a text becomes a string. Invalid
/// entries become None.
std::vector<Argument> read_chrome_inputs(TraceAssembler& assembler, const ChromeInputTexts& texts,
                                         ArgumentRole role);

/// The element type for a name used by PyTorch, NumPy or Marey ("long int", "c10::Half", "float32").
DType dtype_of_name(std::string_view name);

}  // namespace marey
