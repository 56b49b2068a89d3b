// call_patterns.h: the patterns by which calls are included and excluded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace marey::python {

/// A glob over the path of a file (it has a '/', ends in ".py" or begins with '<'), or else over the dotted
/// name of a module. `*` and `?` stay within one part, `**` does not, `[ab]` and `[!ab]` are sets. It also
/// covers what lies in the folder, or in the package, that it matches. A path that does not begin with '/'
/// may begin at any folder.
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
        std::string set{};  ///< pairs: first and last of each run
    };
    bool takes(const Token& token, char c) const noexcept;
    void add(std::vector<bool>& states, std::size_t at) const;

    std::vector<Token> tokens_;
    bool is_file_pattern_;
    bool is_anchored_;
    char separator_;
};

}  // namespace marey::python
