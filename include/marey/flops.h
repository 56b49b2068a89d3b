// flops.h: the number of floating-point operations (FLOPs) of an operation, computed from its recorded
// inputs.
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

/// The recorded inputs of one range, by position, for formulas. Inputs that are missing, of another kind, or
/// truncated are nullopt. Valid as long as the trace.
class MAREY_API OperationInputs {
  public:
    OperationInputs(const Trace& trace, Row range) noexcept
        : OperationInputs(trace, trace.range_arguments(range)) {}
    OperationInputs(const Trace& trace, std::span<const Argument> arguments) noexcept;

    std::size_t size() const noexcept { return inputs_.size(); }
    /// The kind of an input; None if it is missing or was passed as none.
    ValueKind kind(std::size_t input) const noexcept;
    /// The sizes of an array, none of them negative. Empty for jagged and undefined arrays.
    std::optional<std::span<const std::int64_t>> shape(std::size_t input) const noexcept;
    std::optional<DType> dtype(std::size_t input) const noexcept;
    /// An integer or a boolean (0 or 1). Text that represents an integer counts too, since traces of other
    /// tools have values as text.
    std::optional<std::int64_t> integer(std::size_t input) const noexcept;
    /// A list of integers; a single integer counts as a list of one.
    std::optional<std::vector<std::int64_t>> integers(std::size_t input) const;
    std::optional<std::string_view> text(std::size_t input) const noexcept;
    /// Whether the input is a number, even if its value was not recorded.
    bool is_number(std::size_t input) const noexcept;

  private:
    const Argument* at(std::size_t input) const noexcept;
    std::optional<std::int64_t> integer_of(const Argument& argument) const noexcept;

    const Trace* trace_;
    std::span<const Argument> inputs_;
};

/// Returns the FLOPs of an operation, or nullopt if the inputs are not sufficient. Called from any thread.
using FlopsFormula = std::function<std::optional<double>(const OperationInputs&)>;

/// Sets the formula for operations with exactly this name and replaces any previous formula. An empty formula
/// makes the FLOPs unknown. Thread-safe.
MAREY_API void register_flops(std::string_view name, FlopsFormula formula);
/// Removes a formula set by register_flops(), so that a built-in formula for the name applies again. Returns
/// false if none was set. Thread-safe.
MAREY_API bool unregister_flops(std::string_view name);
/// Returns the current formula for a name; empty if there is none. To reuse a formula for another operation:
/// register_flops("my::gemm", flops_formula("aten::mm")).
MAREY_API FlopsFormula flops_formula(std::string_view name);
/// Returns the names of all current formulas, sorted.
MAREY_API std::vector<std::string> flops_names();

/// Returns the FLOPs of a range, including the ranges inside it. nullopt if there is no formula for its name,
/// or if its inputs were not recorded or do not fit. Never negative or infinite.
MAREY_API std::optional<double> flops_of(const Trace& trace, Row range);

/// A range with known FLOPs.
struct RangeFlops {
    Row range = kNoRow;
    double flops = 0;
    bool is_nested = false;  ///< already included in the FLOPs of a range around it; skip it in sums
};
/// Returns all ranges with known FLOPs, sorted by range. Takes linear time.
MAREY_API std::vector<RangeFlops> all_flops(const Trace& trace);

}  // namespace marey
