// json_check.cpp: one pass, nothing kept but the open brackets.
#include "base/json_check.h"

#include <cstddef>

#include "base/utf8.h"

namespace kymo {
namespace {

constexpr int kMostLevels = 512;

class JsonCheck {
  public:
    explicit JsonCheck(std::string_view text) noexcept : text_(text) {}

    bool is_whole() noexcept {
        if (!value(0)) return false;
        space();
        return at_ == text_.size();
    }

  private:
    int peek() const noexcept { return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : -1; }
    bool take(char c) noexcept {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    void space() noexcept {
        while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
    }
    bool word(std::string_view expected) noexcept {
        if (text_.substr(at_, expected.size()) != expected) return false;
        at_ += expected.size();
        return true;
    }
    bool is_digit() const noexcept { return peek() >= '0' && peek() <= '9'; }
    bool digits() noexcept {
        if (!is_digit()) return false;
        while (is_digit()) ++at_;
        return true;
    }

    bool number() noexcept {
        take('-');
        if (!take('0') && !digits()) return false;
        if (take('.') && !digits()) return false;
        if (!take('e') && !take('E')) return true;
        if (!take('+')) take('-');
        return digits();
    }

    bool escape() noexcept {
        if (!take('u')) {
            if (peek() < 0 ||
                std::string_view("\"\\/bfnrt").find(static_cast<char>(peek())) == std::string_view::npos)
                return false;
            ++at_;
            return true;
        }
        for (int i = 0; i < 4; ++i, ++at_) {
            const int c = peek();
            if (!is_digit() && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F')) return false;
        }
        return true;
    }

    bool string() noexcept {
        if (!take('"')) return false;
        while (!take('"')) {
            if (peek() < 0x20) return false;
            if (take('\\')) {
                if (!escape()) return false;
                continue;
            }
            std::size_t broken = 0;
            const std::size_t length = utf8_length(text_.substr(at_), broken);
            if (length == 0) return false;
            at_ += length;
        }
        return true;
    }

    bool items(char end, int level) noexcept {
        space();
        if (take(end)) return true;
        do {
            space();
            if (end == '}') {
                if (!string()) return false;
                space();
                if (!take(':')) return false;
            }
            if (!value(level)) return false;
            space();
        } while (take(','));
        return take(end);
    }

    bool value(int level) noexcept {
        space();
        if (level > kMostLevels) return false;
        if (take('{')) return items('}', level + 1);
        if (take('[')) return items(']', level + 1);
        if (peek() == '"') return string();
        return word("true") || word("false") || word("null") || number();
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

bool is_json(std::string_view text) noexcept {
    return JsonCheck(text).is_whole();
}

}  // namespace kymo
