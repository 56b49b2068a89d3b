// toml_syntax.cpp: finds syntax errors in TOML files (https://toml.io/en/v1.0.0).
#include "cli/toml_syntax.h"

#include <algorithm>
#include <cctype>

namespace marey::cli {
namespace {

constexpr std::string_view kKeyCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
constexpr int kMaxNesting = 100;  ///< of arrays and tables in a value

/// Reads one document. Members return false at the first error, with `error_` set.
class TomlReader {
  public:
    explicit TomlReader(std::string_view text) : text_(text) {}

    std::string error() {
        while (error_.empty() && skip_lines()) {
            if (read_expression()) end_line();
        }
        if (error_.empty()) return "";
        const auto line =
            1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
        return "line " + std::to_string(line) + ": " + error_;
    }

  private:
    bool fail(const char* error) {
        if (error_.empty()) error_ = error;
        return false;
    }

    bool is_end() const { return at_ >= text_.size(); }
    char peek() const { return is_end() ? '\0' : text_[at_]; }
    bool take(std::string_view word) {
        if (!text_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }
    void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t", at_), text_.size()); }
    void skip_comment() {
        skip_blanks();
        if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
    }
    bool take_line_end() { return take("\n") || take("\r\n"); }
    /// Skips blanks, comments and line ends. False at the end of the document.
    bool skip_lines() {
        do skip_comment();
        while (take_line_end());
        return !is_end();
    }
    bool end_line() {
        skip_comment();
        return is_end() || take_line_end() || fail("expected the end of the line");
    }

    bool read_expression() {
        if (!take("[")) return read_pair(0);
        const bool is_array = take("[");
        if (!read_key()) return false;
        return take(is_array ? "]]" : "]") || fail("expected ']' after the name of a table");
    }

    bool read_pair(int nesting) {
        if (!read_key()) return false;
        if (!take("=")) return fail("expected '=' after the key");
        skip_blanks();
        return read_value(nesting);
    }

    bool read_key() {
        do {
            skip_blanks();
            if (peek() == '"' || peek() == '\'') {
                if (!read_line_string()) return false;
            } else {
                const std::size_t end = std::min(text_.find_first_not_of(kKeyCharacters, at_), text_.size());
                if (end == at_) return fail("expected a key");
                at_ = end;
            }
            skip_blanks();
        } while (take("."));
        return true;
    }

    bool read_value(int nesting) {
        if (nesting > kMaxNesting) return fail("values are nested too deeply");
        if (take("\"\"\"")) return read_long_string("\"\"\"");
        if (take("'''")) return read_long_string("'''");
        if (peek() == '"' || peek() == '\'') return read_line_string();
        if (take("[")) return read_array(nesting);
        if (take("{")) return read_table(nesting);
        return read_word();
    }

    bool read_line_string() {
        const char quote = text_[at_++];
        for (; !is_end() && peek() != '\n'; ++at_) {
            if (peek() == quote) return take({&quote, 1});
            if (peek() == '\\' && quote == '"' && !read_escape()) return false;
        }
        return fail("expected a quotation mark at the end of the text");
    }

    bool read_long_string(std::string_view quotes) {
        for (; !is_end(); ++at_) {
            if (take(quotes)) {
                while (peek() == quotes[0]) ++at_;  // up to two belong to the text
                return true;
            }
            if (peek() == '\\' && quotes[0] == '"' && at_ + 1 < text_.size() &&
                std::isspace(static_cast<unsigned char>(text_[at_ + 1])) == 0 && !read_escape())
                return false;
        }
        return fail("expected three quotation marks at the end of the text");
    }

    /// Leaves the cursor on the last character.
    bool read_escape() {
        ++at_;
        return std::string_view("btnfr\"\\uU").find(peek()) != std::string_view::npos
                   ? true
                   : fail("unknown escape sequence in a text");
    }

    bool read_array(int nesting) {
        while (skip_lines()) {
            if (take("]")) return true;
            if (!read_value(nesting + 1)) return false;
            skip_lines();
            if (take("]")) return true;
            if (!take(",")) return fail("expected ',' or ']' in an array");
        }
        return fail("expected ']' at the end of an array");
    }

    bool read_table(int nesting) {
        skip_blanks();
        if (take("}")) return true;
        do {
            if (!read_pair(nesting + 1)) return false;
            skip_blanks();
        } while (take(","));
        return take("}") || fail("expected ',' or '}' in a table");
    }

    /// A number, a date or a boolean.
    bool read_word() {
        constexpr std::string_view kWords[] = {"true", "false", "inf", "nan", "+inf", "-inf", "+nan", "-nan"};
        const std::size_t end = std::min(text_.find_first_of(" \t\r\n,]}#", at_), text_.size());
        const std::string_view word = text_.substr(at_, end - at_);
        if (word.empty()) return fail("expected a value");
        const std::size_t digit = word.front() == '+' || word.front() == '-' ? 1 : 0;
        const bool is_number = digit < word.size() &&
                               std::isdigit(static_cast<unsigned char>(word[digit])) != 0 &&
                               word.find_first_not_of("0123456789abcdefABCDEFxoTZtz_.:+-") == word.npos;
        if (!is_number && std::ranges::find(kWords, word) == std::end(kWords))
            return fail("expected a value (is a text without quotation marks?)");
        at_ = end;
        // The time of a date may follow after a blank.
        if (is_number && word.size() == 10 && peek() == ' ' && at_ + 1 < text_.size() &&
            std::isdigit(static_cast<unsigned char>(text_[at_ + 1])) != 0)
            at_ = std::min(text_.find_first_of(" \t\r\n,]}#", at_ + 1), text_.size());
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::string error_;
};

}  // namespace

std::string toml_syntax_error(std::string_view text) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";  // of UTF-8
    if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
    return TomlReader(text).error();
}

}  // namespace marey::cli
