// scope.h: the kinds of range, and sets of them.
#pragma once

#include <cstdint>
#include <initializer_list>

#include <marey/detail/export.h>

namespace marey {

/// The kind of a range. The first ten have the numbers of PyTorch's RecordScope; the others are Marey's. The
/// numbers are part of the capture format: never reuse one. At most 32 fit (one bit each in a thread's armed
/// word).
enum class Scope : std::uint8_t {
    Function = 0,          ///< an operator or a function
    BackwardFunction = 1,  ///< the backward half of one
    ScriptFunction = 2,
    KernelDtype = 3,
    CustomClass = 4,
    BuildFeature = 5,
    LiteInterpreter = 6,
    User = 7,  ///< marked by hand; the default of MAREY_RANGE
    RuntimeOp = 8,
    RuntimeModel = 9,
    PythonFunction = 10,  ///< a call of a Python function
    CFunction = 11,       ///< a call from Python into C
    GarbageCollection = 12,
    Device = 13,         ///< device work: a kernel, a copy
    DeviceRuntime = 14,  ///< a host call into a device's runtime or driver
    Step = 15,           ///< one step of a loop being profiled
};
inline constexpr int kScopeCount = 16;

/// Returns the name shown to users ("user", "function", ...); "unknown" for unknown numbers. Never null.
MAREY_API const char* scope_name(Scope scope) noexcept;

/// A set of scopes, one bit each.
class ScopeSet {
  public:
    constexpr ScopeSet() noexcept = default;
    constexpr ScopeSet(std::initializer_list<Scope> scopes) noexcept {
        for (Scope scope : scopes) bits_ |= bit(scope);
    }
    static constexpr ScopeSet all() noexcept { return from_bits(~0u); }
    static constexpr ScopeSet from_bits(std::uint32_t bits) noexcept {
        ScopeSet set;
        set.bits_ = bits;
        return set;
    }
    constexpr bool contains(Scope scope) const noexcept { return (bits_ & bit(scope)) != 0; }
    constexpr bool empty() const noexcept { return bits_ == 0; }
    constexpr std::uint32_t bits() const noexcept { return bits_; }
    friend constexpr bool operator==(ScopeSet left, ScopeSet right) noexcept {
        return left.bits_ == right.bits_;
    }

  private:
    static constexpr std::uint32_t bit(Scope scope) noexcept {
        return std::uint32_t{1} << static_cast<unsigned>(scope);
    }
    std::uint32_t bits_ = 0;
};

}  // namespace marey
