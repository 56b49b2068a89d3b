// flops.cpp: the registry of formulas, and their application to a trace.
#include <marey/detail/thread_safety.h>
#include <marey/flops.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "analyze/flops/flops_formulas.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// Formulas set by users override the built-in ones.
class FormulaRegistry {
  public:
    /// Never destroyed, because threads may use it until the process exits.
    static FormulaRegistry& get() {
        static FormulaRegistry& registry = *new FormulaRegistry;
        return registry;
    }

    void set(std::string_view name, FlopsFormula formula) {
        const ScopedLock lock(mutex_);
        own_.insert_or_assign(std::string(name), std::move(formula));
    }
    bool remove(std::string_view name) {
        const ScopedLock lock(mutex_);
        const auto found = own_.find(name);
        if (found == own_.end()) return false;
        own_.erase(found);
        return true;
    }
    /// `of_pytorch`: only for operators that PyTorch's profiler counts, or that have a formula of a user.
    FlopsFormula find(std::string_view name, bool of_pytorch = false) const {
        {
            const ScopedLock lock(mutex_);
            if (const auto found = own_.find(name); found != own_.end()) return found->second;
        }
        if (of_pytorch && !is_counted_by_pytorch(name)) return {};
        const std::span<const BuiltInFlops> known = built_in_flops();
        const auto place = std::ranges::lower_bound(known, name, {}, &BuiltInFlops::name);
        if (place == known.end() || place->name != name) return {};
        return place->formula;
    }
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        const ScopedLock lock(mutex_);
        for (const BuiltInFlops& entry : built_in_flops()) {
            if (own_.find(entry.name) == own_.end()) names.emplace_back(entry.name);
        }
        for (const auto& [name, formula] : own_) {
            if (formula) names.push_back(name);
        }
        std::ranges::sort(names);
        return names;
    }

  private:
    mutable Mutex mutex_;
    std::map<std::string, FlopsFormula, std::less<>> own_ MAREY_GUARDED_BY(mutex_);
};

FlopsFormula formula_in(const Trace& trace, std::string_view name) {
    return FormulaRegistry::get().find(name, trace.window().has_pytorch_flops);
}

std::optional<double> evaluate(const FlopsFormula& formula, const OperationInputs& inputs) {
    if (!formula || inputs.size() == 0) return std::nullopt;
    const std::optional<double> flops = formula(inputs);
    if (!flops || !std::isfinite(*flops) || *flops < 0) return std::nullopt;
    return flops;
}

/// Parses one integer or boolean, optionally surrounded by spaces.
std::optional<std::int64_t> read_integer(std::string_view text) noexcept {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    if (text == "True" || text == "true") return 1;
    if (text == "False" || text == "false") return 0;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Parses "[1, 2]".
std::optional<std::vector<std::int64_t>> read_integers(std::string_view text) {
    if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
    text = text.substr(1, text.size() - 2);
    std::vector<std::int64_t> values;
    if (text.find_first_not_of(' ') == text.npos) return values;
    for (;;) {
        const std::size_t comma = text.find(',');
        const std::optional<std::int64_t> value = read_integer(text.substr(0, comma));
        if (!value) return std::nullopt;
        values.push_back(*value);
        if (comma == text.npos) return values;
        text.remove_prefix(comma + 1);
    }
}

}  // namespace

// Inputs are adjacent (other values may come before or after them).
OperationInputs::OperationInputs(const Trace& trace, std::span<const Argument> arguments) noexcept
    : trace_(&trace) {
    const auto is_input = [](const Argument& argument) { return argument.role == ArgumentRole::Input; };
    const auto first = std::ranges::find_if(arguments, is_input);
    const auto last = std::find_if_not(first, arguments.end(), is_input);
    inputs_ = arguments.subspan(static_cast<std::size_t>(first - arguments.begin()),
                                static_cast<std::size_t>(last - first));
}

const Argument* OperationInputs::at(std::size_t input) const noexcept {
    return input < inputs_.size() ? &inputs_[input] : nullptr;
}

ValueKind OperationInputs::kind(std::size_t input) const noexcept {
    const Argument* const argument = at(input);
    return argument == nullptr ? ValueKind::None : argument->kind;
}

std::optional<std::span<const std::int64_t>> OperationInputs::shape(std::size_t input) const noexcept {
    const Argument* const argument = at(input);
    const ArrayInfo* const array =
        argument == nullptr || argument->truncated ? nullptr : array_of(*trace_, *argument);
    if (array == nullptr || !array->is_defined || array->layout == Layout::Jagged) return std::nullopt;
    const std::span<const std::int64_t> sizes = extents_of(*trace_, *array, false);
    if (sizes.size() != array->dimensions) return std::nullopt;
    if (std::ranges::any_of(sizes, [](std::int64_t size) { return size < 0; })) return std::nullopt;
    return sizes;
}

std::optional<DType> OperationInputs::dtype(std::size_t input) const noexcept {
    const Argument* const argument = at(input);
    const ArrayInfo* const array = argument == nullptr ? nullptr : array_of(*trace_, *argument);
    return array == nullptr ? std::nullopt : std::optional(array->dtype);
}

std::optional<std::int64_t> OperationInputs::integer_of(const Argument& argument) const noexcept {
    if (argument.kind == ValueKind::Int) return argument.integer;
    if (argument.kind == ValueKind::Bool) return argument.boolean ? 1 : 0;
    if (argument.kind == ValueKind::String && !argument.truncated)
        return read_integer(trace_->string(argument.string));
    return std::nullopt;
}

std::optional<std::int64_t> OperationInputs::integer(std::size_t input) const noexcept {
    const Argument* const argument = at(input);
    return argument == nullptr ? std::nullopt : integer_of(*argument);
}

std::optional<std::vector<std::int64_t>> OperationInputs::integers(std::size_t input) const {
    const Argument* const argument = at(input);
    if (argument == nullptr) return std::nullopt;
    if (const std::optional<std::int64_t> single = integer_of(*argument)) return std::vector{*single};
    if (argument->truncated) return std::nullopt;
    if (argument->kind == ValueKind::String) return read_integers(trace_->string(argument->string));
    if (argument->kind != ValueKind::List) return std::nullopt;
    std::vector<std::int64_t> values;
    for (const Argument& item : items_of(*trace_, *argument)) {
        const std::optional<std::int64_t> value = integer_of(item);
        if (!value) return std::nullopt;
        values.push_back(*value);
    }
    return values;
}

std::optional<std::string_view> OperationInputs::text(std::size_t input) const noexcept {
    const Argument* const argument = at(input);
    if (argument == nullptr || argument->kind != ValueKind::String || argument->truncated)
        return std::nullopt;
    return trace_->string(argument->string);
}

bool OperationInputs::is_number(std::size_t input) const noexcept {
    const Argument* const argument = at(input);
    if (argument == nullptr) return false;
    const ValueKind kind = argument->kind == ValueKind::None ? argument->left_out : argument->kind;
    if (kind == ValueKind::Int || kind == ValueKind::Double || kind == ValueKind::Bool) return true;
    if (argument->kind != ValueKind::String || argument->truncated) return false;
    const std::string_view text = trace_->string(argument->string);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_real = error == std::errc() && end == text.data() + text.size();
    return is_real || read_integer(text).has_value();
}

void register_flops(std::string_view name, FlopsFormula formula) {
    FormulaRegistry::get().set(name, std::move(formula));
}

bool unregister_flops(std::string_view name) {
    return FormulaRegistry::get().remove(name);
}

FlopsFormula flops_formula(std::string_view name) {
    return FormulaRegistry::get().find(name);
}

std::vector<std::string> flops_names() {
    return FormulaRegistry::get().names();
}

std::optional<double> flops_of(const Trace& trace, Row range) {
    return evaluate(formula_in(trace, trace.range_name(range)), OperationInputs(trace, range));
}

std::vector<RangeFlops> all_flops(const Trace& trace) {
    const TraceData& data = trace.data();
    const RangeColumns ranges = trace.ranges();
    std::vector<FlopsFormula> of_site(data.sites.size());
    for (std::size_t i = 0; i < of_site.size(); ++i)
        of_site[i] = formula_in(trace, trace.string(data.sites[i].name));
    std::vector<RangeFlops> all;
    for (const ArgumentSlice& slice : data.range_arguments) {
        const FlopsFormula& formula = of_site[ranges.site[slice.row]];
        if (!formula) continue;
        const std::span<const Argument> arguments =
            std::span(data.arguments).subspan(slice.first, slice.count);
        if (const std::optional<double> flops = evaluate(formula, OperationInputs(trace, arguments)))
            all.push_back({slice.row, *flops, false});
    }
    // Whether a range or one that encloses it has FLOPs; parents come before their children.
    std::vector<bool> counted(all.empty() ? 0 : ranges.size());
    auto next = all.begin();
    for (Row row = 0; row < counted.size(); ++row) {
        const Row parent = ranges.parent[row];
        counted[row] = parent != kNoRow && counted[parent];
        if (next == all.end() || next->range != row) continue;
        next->is_nested = counted[row];
        counted[row] = true;
        ++next;
    }
    return all;
}

}  // namespace marey
