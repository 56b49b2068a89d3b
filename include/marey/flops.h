// flops.h: how many floating-point operations an operation took, from the inputs that were recorded with it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The inputs of one range, as a formula sees them: by position, and only as far as they were recorded. What
/// is missing, of another kind, or was cut short is nullopt. Valid as long as the trace.
class MAREY_API OperationInputs {
  public:
    OperationInputs(const Trace& trace, Row range) noexcept
        : OperationInputs(trace, trace.range_arguments(range)) {}
    OperationInputs(const Trace& trace, std::span<const Argument> arguments) noexcept;

    std::size_t size() const noexcept { return inputs_.size(); }
    /// None for what is missing, and for what was given as nothing.
    ValueKind kind(std::size_t input) const noexcept;
    /// Sizes of an array, none of them negative. An array of ragged rows has none, nor has an undefined one.
    std::optional<std::span<const std::int64_t>> shape(std::size_t input) const noexcept;
    std::optional<DType> dtype(std::size_t input) const noexcept;
    /// An integer or a boolean (0 or 1). Traces of other tools have values as text: text that reads as one is
    /// one.
    std::optional<std::int64_t> integer(std::size_t input) const noexcept;
    /// A list of those; a single one is a list of one.
    std::optional<std::vector<std::int64_t>> integers(std::size_t input) const;
    std::optional<std::string_view> text(std::size_t input) const noexcept;
    /// Whether it is a number, or was one whose value was not recorded.
    bool is_number(std::size_t input) const noexcept;

  private:
    const Argument* at(std::size_t input) const noexcept;
    std::optional<std::int64_t> integer_of(const Argument& argument) const noexcept;

    const Trace* trace_;
    std::span<const Argument> inputs_;
};

/// Gives the floating-point operations, or nullopt when the inputs do not tell. Called from any thread.
using FlopsFormula = std::function<std::optional<double>(const OperationInputs&)>;

/// Sets the formula of the operation of that exact name, in the place of any before it. An empty formula
/// makes the operation's flops unknown. Thread-safe.
MAREY_API void register_flops(std::string_view name, FlopsFormula formula);
/// Takes back what register_flops set, so that a built-in formula of that name holds again. False: none was
/// set. Thread-safe.
MAREY_API bool unregister_flops(std::string_view name);
/// The formula in force for a name; empty when there is none. To give an operation of one's own a known one:
/// register_flops("my::gemm", flops_formula("aten::mm")).
MAREY_API FlopsFormula flops_formula(std::string_view name);
/// The names of all formulas in force, sorted.
MAREY_API std::vector<std::string> flops_names();

/// The floating-point operations of a range, those of the ranges inside it included: nullopt when there is no
/// formula for its name, or its inputs were not recorded or do not fit. Never negative, never infinite.
MAREY_API std::optional<double> flops_of(const Trace& trace, Row range);

struct RangeFlops {
    Row range = kNoRow;
    double flops = 0;
    bool is_nested = false;  ///< a range around it has flops too, which hold these: a sum of all must skip it
};
/// All ranges whose flops are known, sorted by range. Linear.
MAREY_API std::vector<RangeFlops> all_flops(const Trace& trace);

}  // namespace marey
