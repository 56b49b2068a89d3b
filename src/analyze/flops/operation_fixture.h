// operation_fixture.h: hand-made operations with inputs, for tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <marey/flops.h>

#include "trace/trace_assembler.h"

namespace marey {

using Shape = std::vector<std::int64_t>;

/// One input: an array with a shape, a number, a boolean, a text, a list of integers, or nothing.
struct InputSpec {
    InputSpec(Shape sizes) : kind(ValueKind::Array), integers(std::move(sizes)) {}
    InputSpec(int value) : kind(ValueKind::Int), integers{value} {}
    InputSpec(double value) : kind(ValueKind::Double), real(value) {}
    InputSpec(bool value) : kind(ValueKind::Bool), integers{value ? 1 : 0} {}
    InputSpec(const char* value) : kind(ValueKind::String), text(value) {}
    InputSpec(std::nullptr_t) {}

    static InputSpec list(Shape values) {
        InputSpec spec(std::move(values));
        spec.kind = ValueKind::List;
        return spec;
    }
    static InputSpec array(ArrayInfo info, Shape sizes) {
        InputSpec spec(std::move(sizes));
        spec.info = info;
        return spec;
    }
    static InputSpec left_out(ValueKind kind) {
        InputSpec spec(nullptr);
        spec.missing = kind;
        return spec;
    }
    InputSpec cut_short() const {
        InputSpec spec(*this);
        spec.truncated = true;
        return spec;
    }

    ValueKind kind = ValueKind::None;
    ValueKind missing = ValueKind::None;
    bool truncated = false;
    Shape integers;
    double real = 0;
    std::string text;
    ArrayInfo info;
};

/// Adds `spec` as an input of the range.
inline void add_input(TraceAssembler& assembler, TraceAssembler::RangeId range, const InputSpec& spec) {
    Argument argument;
    argument.kind = spec.kind;
    argument.role = ArgumentRole::Input;
    argument.truncated = spec.truncated;
    argument.left_out = spec.missing;
    if (spec.kind == ValueKind::Array) {
        ArrayInfo info = spec.info;
        info.dimensions = static_cast<std::uint32_t>(spec.integers.size());
        argument.array = assembler.add_array(info, spec.integers);
    } else if (spec.kind == ValueKind::Int) {
        argument.integer = spec.integers[0];
    } else if (spec.kind == ValueKind::Bool) {
        argument.boolean = spec.integers[0] != 0;
    } else if (spec.kind == ValueKind::Double) {
        argument.real = spec.real;
    } else if (spec.kind == ValueKind::String) {
        argument.string = assembler.string(spec.text);
    } else if (spec.kind == ValueKind::List) {
        std::vector<Argument> items(spec.integers.size());
        for (std::size_t i = 0; i < items.size(); ++i) {
            items[i].kind = ValueKind::Int;
            items[i].integer = spec.integers[i];
        }
        argument.list = assembler.add_list(items);
    }
    assembler.add_values(range, std::span(&argument, 1));
}

/// A trace of one range with these inputs.
inline Trace operation(const std::string& name, const std::vector<InputSpec>& inputs) {
    TraceAssembler assembler;
    const std::uint32_t lane = assembler.add_lane({.thread = assembler.add_thread({})});
    const auto range = assembler.add_range(lane, 0, 10, assembler.site({.name = assembler.string(name)}));
    for (const InputSpec& input : inputs) add_input(assembler, range, input);
    return assembler.finish();
}

/// The FLOPs of one operation.
inline std::optional<double> flops(const std::string& name, const std::vector<InputSpec>& inputs) {
    return flops_of(operation(name, inputs), 0);
}

}  // namespace marey
