// demangle.cpp: uses the C++ runtime.
#include "native/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace marey {
namespace {

// Each reference may repeat everything before it: three references to the preceding part, ten times over,
// already make a text of 3^10 parts.
constexpr int kMaxReferences = 32;

/// How often S_, S0_, ... and T_, T0_, ... (earlier parts and template arguments) may occur in `symbol`.
int count_references(std::string_view symbol) {
    int count = 0;
    for (std::size_t i = 0; i + 1 < symbol.size(); ++i) {
        if (symbol[i] != 'S' && symbol[i] != 'T') continue;
        std::size_t end = i + 1;
        while (end < symbol.size() &&
               ((symbol[end] >= '0' && symbol[end] <= '9') || (symbol[end] >= 'A' && symbol[end] <= 'Z')))
            ++end;
        if (end < symbol.size() && symbol[end] == '_') ++count;
    }
    return count;
}

}  // namespace

std::optional<std::string> demangle(std::string_view symbol) {
    if (symbol.size() < 3 || !symbol.starts_with("_Z")) return std::nullopt;
    if (symbol.find('\0') != std::string_view::npos) return std::nullopt;
    if (count_references(symbol) > kMaxReferences) return std::nullopt;
    int status = 0;
    struct Free {
        void operator()(char* text) const noexcept { std::free(text); }
    };
    const std::unique_ptr<char, Free> text(
        abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status));
    if (text == nullptr || status != 0) return std::nullopt;
    return std::string(text.get());
}

}  // namespace marey
