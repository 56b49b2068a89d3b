// call_patterns.h: the patterns that include and exclude calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace marey::python {

/// A glob over the path of a file (it has a '/', ends in ".py" or begins with '<'), or else over the dotted
/// name of a module. `*` and `?` match within one component, `**` across components, `[ab]` and `[!ab]` are
/// sets. It also covers the contents of a folder or package that it matches. A path that does not begin with
/// '/' may start at any folder.
class CallPattern {
  public:
    explicit CallPattern(std::string_view text);
    bool is_file_pattern() const noexcept { return is_file_pattern_; }
    bool matches(std::string_view text) const;

  private:
    struct Token {
        enum class Kind : std::uint8_t { Text, One, Set, Many, Deep } kind;
        char text = 0;
        bool is_negated = false;
        std::string set{};  ///< pairs: the first and last character of each range
    };
    bool takes(const Token& token, char c) const noexcept;
    void add(std::vector<bool>& states, std::size_t at) const;

    std::vector<Token> tokens_;
    bool is_file_pattern_;
    bool is_anchored_;
    char separator_;
};

}  // namespace marey::python
