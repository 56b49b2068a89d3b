// strict_json_fixture.h: a small JSON reader for tests that accepts nothing but strict JSON (RFC 8259,
// UTF-8).
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace marey {

class StrictJson {
  public:
    enum class Kind { Null, Bool, Number, String, Array, Object };
    struct Member;
    struct Value {
        Kind kind = Kind::Null;
        bool truth = false;
        std::string text;  ///< for strings: unescaped; for numbers: as written
        std::vector<Value> items;
        std::vector<Member> members;

        double number() const { return std::strtod(text.c_str(), nullptr); }
        /// The member of that name; a null value when there is none.
        const Value& operator[](std::string_view name) const {
            static const Value none;
            for (const auto& [key, value] : members) {
                if (key == name) return value;
            }
            return none;
        }
    };
    struct Member {
        std::string first;
        Value second;
    };

    /// Returns "" and fills `value`, or the error and its position.
    static std::string parse(std::string_view text, Value& value) {
        StrictJson reader(text);
        value = Value();
        reader.space();
        if (!reader.read(value, 0)) return reader.error_;
        reader.space();
        if (reader.at_ != text.size()) reader.fail("unexpected text after the value");
        return reader.error_;
    }

  private:
    explicit StrictJson(std::string_view text) : text_(text) {}

    bool fail(const char* what) {
        if (error_.empty()) error_ = std::string(what) + " at byte " + std::to_string(at_);
        return false;
    }
    int peek() const { return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : -1; }
    bool take(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    void space() {
        while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
    }
    bool word(std::string_view expected) {
        if (text_.substr(at_, expected.size()) != expected) return fail("unknown word");
        at_ += expected.size();
        return true;
    }

    bool read(Value& value, int depth) {
        if (depth > 100) return fail("too deep");
        switch (peek()) {
            case '{':
                return read_object(value, depth);
            case '[':
                return read_array(value, depth);
            case '"':
                value.kind = Kind::String;
                return read_string(value.text);
            case 't':
                value.kind = Kind::Bool;
                value.truth = true;
                return word("true");
            case 'f':
                value.kind = Kind::Bool;
                return word("false");
            case 'n':
                return word("null");
            default:
                return read_number(value);
        }
    }
    bool read_object(Value& value, int depth) {
        value.kind = Kind::Object;
        take('{');
        space();
        if (take('}')) return true;
        do {
            space();
            auto& member = value.members.emplace_back();
            if (peek() != '"' || !read_string(member.first)) return fail("a key is missing");
            for (std::size_t i = 0; i + 1 < value.members.size(); ++i) {
                if (value.members[i].first == member.first) return fail("a key comes twice");
            }
            space();
            if (!take(':')) return fail("a colon is missing");
            space();
            if (!read(member.second, depth + 1)) return false;
            space();
        } while (take(','));
        return take('}') || fail("a brace is missing");
    }
    bool read_array(Value& value, int depth) {
        value.kind = Kind::Array;
        take('[');
        space();
        if (take(']')) return true;
        do {
            space();
            if (!read(value.items.emplace_back(), depth + 1)) return false;
            space();
        } while (take(','));
        return take(']') || fail("a bracket is missing");
    }
    bool read_number(Value& value) {
        value.kind = Kind::Number;
        const std::size_t start = at_;
        auto digits = [&] {
            const std::size_t first = at_;
            while (peek() >= '0' && peek() <= '9') ++at_;
            return at_ > first;
        };
        take('-');
        if (!take('0') && !digits()) return fail("no value");
        if (take('.') && !digits()) return fail("no digits after the decimal point");
        if (take('e') || take('E')) {
            if (!take('+')) take('-');
            if (!digits()) return fail("no exponent");
        }
        value.text = text_.substr(start, at_ - start);
        return true;
    }
    bool read_string(std::string& out) {
        take('"');
        while (true) {
            const int c = peek();
            if (c < 0x20) return fail("control character or end in a string");
            if (take('"')) return true;
            if (c == '\\') {
                if (!read_escape(out)) return false;
            } else if (!read_character(out)) {
                return fail("invalid UTF-8");
            }
        }
    }
    bool read_escape(std::string& out) {
        ++at_;
        const int c = peek();
        ++at_;
        constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
        const std::size_t index = c < 0 ? std::string_view::npos : kNames.find(static_cast<char>(c));
        if (index != std::string_view::npos) {
            out += kMeanings[index];
            return true;
        }
        if (c != 'u' || at_ + 4 > text_.size()) return fail("unknown escape");
        const std::string hex(text_.substr(at_, 4));
        if (hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
            return fail("unknown escape");
        const unsigned long code = std::strtoul(hex.c_str(), nullptr, 16);
        if (code > 0x7F) return fail("an escape that our writer never makes");
        out += static_cast<char>(code);
        at_ += 4;
        return true;
    }
    bool read_character(std::string& out) {
        const unsigned lead = static_cast<unsigned>(peek());
        const int length = lead < 0x80       ? 1
                           : lead >> 5 == 6  ? 2
                           : lead >> 4 == 14 ? 3
                           : lead >> 3 == 30 ? 4
                                             : 0;
        if (length == 0 || at_ + static_cast<std::size_t>(length) > text_.size()) return false;
        unsigned code = length == 1 ? lead : lead & (0x7Fu >> length);
        for (int i = 1; i < length; ++i) {
            const auto next = static_cast<unsigned char>(text_[at_ + static_cast<std::size_t>(i)]);
            if (next >> 6 != 2) return false;
            code = code << 6 | (next & 0x3F);
        }
        constexpr unsigned kMin[] = {0, 0, 0x80, 0x800, 0x10000};
        if (code < kMin[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
        out += text_.substr(at_, static_cast<std::size_t>(length));
        at_ += static_cast<std::size_t>(length);
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::string error_;
};

}  // namespace marey
