// modules.h: calls of modules and optimizers: their ranges, facts about each object, and the modules around a
// range.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// A parameter of a module or an optimizer, as it was at the first call. Its arguments refer to the trace.
struct ModuleParameter {
    std::string_view name;  ///< empty: none
    Argument array;
    Argument gradient;  ///< kind None: no gradient
    struct State {
        std::string_view name;
        Argument array;
    };
    std::vector<State> state;  ///< for optimizers
};

/// An object whose calls are recorded under a separate name, such as "nn.Module: Linear_0".
struct ModuleInfo {
    bool is_optimizer = false;
    std::string_view class_name;
    std::uint32_t number = 0;   ///< among the objects of that class name, in order of their first calls
    std::uint64_t self = 0;     ///< address of the object
    std::uint64_t cls = 0;      ///< address of its class
    std::string_view function;  ///< the function whose calls count as calls of the object
    std::vector<ModuleParameter> parameters;
};

/// The modules of a trace. Cheap to copy; safe to read from several threads.
class MAREY_API ModuleTable {
  public:
    explicit ModuleTable(Trace trace);

    bool empty() const noexcept;
    /// True if a session recorded modules (with_modules); exports then include the hierarchy of ranges.
    bool has_parts() const noexcept;
    /// The object that a range is a call of; null if the range is not such a call.
    const ModuleInfo* find(Row range) const noexcept;
    const ModuleInfo* find_site(std::uint32_t site) const noexcept;
    /// The modules whose calls are around a range, outermost first, including its own:
    /// "TOP(Net)::forward.fc1(Linear)::forward". The names of submodules are known if the session recorded
    /// modules (SessionOptions::with_modules); otherwise they are named by class and number. Empty: none.
    std::string hierarchy(Row range) const;

  private:
    struct Impl;
    std::shared_ptr<const Impl> impl_;
};

/// ModuleTable::hierarchy() of one range.
MAREY_API std::string module_hierarchy(const Trace& trace, Row range);

/// The keys of the values of role Site that describe modules.
namespace module_keys {
inline constexpr std::string_view kKind = "module.kind";  ///< "module" or "optimizer"
inline constexpr std::string_view kClass = "module.class";
inline constexpr std::string_view kNumber = "module.number";
inline constexpr std::string_view kSelf = "module.self";
inline constexpr std::string_view kClassAddress = "module.cls";
inline constexpr std::string_view kFunction = "module.function";
/// A list: name, array, gradient or none, then name and array of each state. Once for each parameter.
inline constexpr std::string_view kParameter = "module.parameter";
/// True if the submodules are known, even if there are none.
inline constexpr std::string_view kHasParts = "module.has_parts";
/// A list: name, address. Once for each submodule.
inline constexpr std::string_view kChild = "module.child";
}  // namespace module_keys

}  // namespace marey
