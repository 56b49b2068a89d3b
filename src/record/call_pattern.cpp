// call_pattern.cpp: validates call patterns for all options that take one.
#include <marey/call_pattern.h>

namespace marey {

std::size_t detail::end_of_pattern_set(std::string_view text, std::size_t at) noexcept {
    std::size_t first = at + 1;
    if (first < text.size() && text[first] == '!') ++first;
    return first < text.size() ? text.find(']', first + 1) : std::string_view::npos;
}

const char* call_pattern_error(std::string_view text) noexcept {
    if (text.empty()) return "is empty";
    if (text.find('\0') != std::string_view::npos) return "contains a NUL character";
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '[') continue;
        i = detail::end_of_pattern_set(text, i);
        if (i == std::string_view::npos) return "has an unclosed '['";
    }
    return nullptr;
}

}  // namespace marey
