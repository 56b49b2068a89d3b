// modules.h: calls of modules and optimizers: which ranges they are, what is known of each object, and inside
// which modules a range ran.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// A parameter of a module or an optimizer, as it was at the first call. Arguments are of the trace's own.
struct ModuleParameter {
    std::string_view name;  ///< empty: it has none
    Argument array;
    Argument gradient;  ///< kind None: there was none
    struct State {
        std::string_view name;
        Argument array;
    };
    std::vector<State> state;  ///< of an optimizer
};

/// An object whose calls are recorded under a name of its own: "nn.Module: Linear_0".
struct ModuleInfo {
    bool is_optimizer = false;
    std::string_view class_name;
    std::uint32_t number = 0;  ///< among the objects of that class name, in order of their first calls
    std::uint64_t self = 0;    ///< addresses: of the object and of its class
    std::uint64_t cls = 0;
    std::string_view function;  ///< whose calls are its calls
    std::vector<ModuleParameter> parameters;
};

/// The modules of a trace. Cheap to copy; may be read from several threads.
class MAREY_API ModuleTable {
  public:
    explicit ModuleTable(Trace trace);

    bool empty() const noexcept;
    /// True when a session asked for modules: exports then say the hierarchy of ranges.
    bool has_parts() const noexcept;
    /// Of the object that a range is a call of; null: it is no such call.
    const ModuleInfo* find(Row range) const noexcept;
    const ModuleInfo* find_site(std::uint32_t site) const noexcept;
    /// The modules in whose calls a range ran, the outermost first, its own included:
    /// "TOP(Net)::forward.fc1(Linear)::forward". What the parts of a module are called is known when the
    /// session asked for modules (SessionOptions::with_modules); else they are called by their class and
    /// number. Empty: in none.
    std::string hierarchy(Row range) const;

  private:
    struct Impl;
    std::shared_ptr<const Impl> impl_;
};

/// ModuleTable::hierarchy() of one range.
MAREY_API std::string module_hierarchy(const Trace& trace, Row range);

/// Under which keys values of role Site say these things.
namespace module_keys {
inline constexpr std::string_view kKind = "module.kind";  ///< "module" or "optimizer"
inline constexpr std::string_view kClass = "module.class";
inline constexpr std::string_view kNumber = "module.number";
inline constexpr std::string_view kSelf = "module.self";
inline constexpr std::string_view kClassAddress = "module.cls";
inline constexpr std::string_view kFunction = "module.function";
/// A list: name, array, gradient or nothing, then name and array of each state. Once for each parameter.
inline constexpr std::string_view kParameter = "module.parameter";
/// True when the parts are known; without parts too.
inline constexpr std::string_view kHasParts = "module.has_parts";
/// A list: name, address. Once for each part.
inline constexpr std::string_view kChild = "module.child";
}  // namespace module_keys

}  // namespace marey
