// scope.cpp: the names of scopes.
#include <marey/scope.h>

namespace marey {

const char* scope_name(Scope scope) noexcept {
    switch (scope) {
        case Scope::Function:
            return "function";
        case Scope::BackwardFunction:
            return "backward_function";
        case Scope::ScriptFunction:
            return "script_function";
        case Scope::KernelDtype:
            return "kernel_dtype";
        case Scope::CustomClass:
            return "custom_class";
        case Scope::BuildFeature:
            return "build_feature";
        case Scope::LiteInterpreter:
            return "lite_interpreter";
        case Scope::User:
            return "user";
        case Scope::RuntimeOp:
            return "runtime_op";
        case Scope::RuntimeModel:
            return "runtime_model";
        case Scope::PythonFunction:
            return "python_function";
        case Scope::CFunction:
            return "c_function";
        case Scope::GarbageCollection:
            return "garbage_collection";
        case Scope::Device:
            return "device";
        case Scope::DeviceRuntime:
            return "device_runtime";
        case Scope::Step:
            return "step";
    }
    return "unknown";
}

}  // namespace marey
