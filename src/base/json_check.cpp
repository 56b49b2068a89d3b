// json_check.cpp: a recogniser of JSON: reads once, keeps nothing.
#include "base/json_check.h"

#include <algorithm>

namespace kymo {
namespace {

class JsonCheck {
  public:
    explicit JsonCheck(std::string_view text) : text_(text) {}

    bool whole() {
        if (!value(0)) return false;
        space();
        return at_ == text_.size();
    }

  private:
    static constexpr int kDeepest = 256;

    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    bool take(char c) {
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    bool take(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) return false;
        at_ += word.size();
        return true;
    }
    void space() {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
            ++at_;
    }
    bool digits() {
        const std::size_t first = at_;
        while (peek() >= '0' && peek() <= '9') ++at_;
        return at_ > first;
    }

    bool value(int level) {
        if (level > kDeepest) return false;
        space();
        switch (peek()) {
            case '{':
                return list('}', level, true);
            case '[':
                return list(']', level, false);
            case '"':
                return string();
            case 't':
                return take("true");
            case 'f':
                return take("false");
            case 'n':
                return take("null");
            default:
                return number();
        }
    }

    bool list(char close, int level, bool has_keys) {
        ++at_;
        space();
        if (take(close)) return true;
        do {
            space();
            if (has_keys) {
                if (!string()) return false;
                space();
                if (!take(':')) return false;
            }
            if (!value(level + 1)) return false;
            space();
        } while (take(','));
        return take(close);
    }

    bool number() {
        take('-');
        if (!take('0') && !digits()) return false;
        if (take('.') && !digits()) return false;
        if (take('e') || take('E')) {
            if (!take('+')) take('-');
            return digits();
        }
        return true;
    }

    bool string() {
        if (!take('"')) return false;
        while (at_ < text_.size()) {
            const auto c = static_cast<unsigned char>(text_[at_]);
            if (c == '"') {
                ++at_;
                return true;
            }
            if (c < 0x20) return false;
            if (c == '\\' ? !escape() : !character()) return false;
        }
        return false;
    }
    bool escape() {
        ++at_;
        const char c = peek();
        ++at_;
        if (c != 'u') return c != '\0' && std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
        const std::string_view hex = text_.substr(std::min(at_, text_.size()), 4);
        at_ += 4;
        return hex.size() == 4 && hex.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    }
    /// One character of UTF-8.
    bool character() {
        const auto byte = [&](std::size_t i) {
            return at_ + i < text_.size() ? static_cast<unsigned char>(text_[at_ + i]) : 0u;
        };
        const unsigned lead = byte(0);
        const std::size_t size = lead < 0x80   ? 1
                                 : lead < 0xc2 ? 0
                                 : lead < 0xe0 ? 2
                                 : lead < 0xf0 ? 3
                                 : lead < 0xf5 ? 4
                                               : 0;
        if (size == 0) return false;
        for (std::size_t i = 1; i < size; ++i) {
            if ((byte(i) & 0xc0) != 0x80) return false;
        }
        // Too long forms, surrogates, and what lies behind the last character.
        if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
            (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f))
            return false;
        at_ += size;
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

bool is_json(std::string_view text) noexcept {
    return JsonCheck(text).whole();
}

}  // namespace kymo
