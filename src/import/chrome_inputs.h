// chrome_inputs.h: inputs and outputs of operators as PyTorch writes them: four lists, one entry per input.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <marey/trace.h>

#include "trace/trace_assembler.h"

namespace marey {

/// The JSON texts of "Input Dims", "Input type", "Input Strides" and "Concrete Inputs"; empty: not there.
struct ChromeInputTexts {
    std::string_view dims, types, strides, concrete;
};

/// One value per input. What is there decides: a known type of elements makes an array; "TensorList" a list
/// of arrays; "Scalar" and "ScalarList" numbers, or None where their text is not there; anything else with a
/// text a string. An entry that makes no sense is None.
std::vector<Argument> read_chrome_inputs(TraceAssembler& assembler, const ChromeInputTexts& texts,
                                         ArgumentRole role);

/// The element type of a name as PyTorch, NumPy or Marey write it ("long int", "c10::Half", "float32").
DType dtype_of_name(std::string_view name);

}  // namespace marey
