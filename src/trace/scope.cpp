// scope.cpp: the names of scopes.
#include <marey/scope.h>

#include <iterator>

#include "base/enum_names.h"

namespace marey {

const char* scope_name(Scope scope) noexcept {
    static constexpr const char* kNames[] = {"function",           "backward_function",
                                             "script_function",    "kernel_dtype",
                                             "custom_class",       "build_feature",
                                             "lite_interpreter",   "user",
                                             "runtime_op",         "runtime_model",
                                             "python_function",    "c_function",
                                             "garbage_collection", "device",
                                             "device_runtime",     "step"};
    static_assert(std::size(kNames) == kScopeCount);
    return name_at(kNames, scope);
}

}  // namespace marey
