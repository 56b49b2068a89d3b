// json_scanner.cpp: reads strict JSON (RFC 8259, UTF-8) piece by piece, without keeping any of it.
#include "json/json_scanner.h"

#include "base/utf8.h"

namespace marey {
namespace {

int hex_digit(int c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_high_surrogate(unsigned code) {
    return code >= 0xD800 && code <= 0xDBFF;
}
bool is_low_surrogate(unsigned code) {
    return code >= 0xDC00 && code <= 0xDFFF;
}

}  // namespace

JsonToken JsonScanner::fail(const char* what) {
    if (error_.empty()) error_ = std::string(what) + " at byte " + std::to_string(at_);
    return JsonToken::Error;
}

void JsonScanner::space() noexcept {
    while (at_ < text_.size()) {
        const char c = text_[at_];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
        ++at_;
    }
}

JsonToken JsonScanner::next() {
    if (!error_.empty()) return JsonToken::Error;
    space();
    switch (state_) {
        case State::Value:
            return value();
        case State::FirstKey:
            if (peek() == '}') return after_value();
            if (peek() != '"') return fail("a key is missing");
            return string(JsonToken::Key);
        case State::FirstItem:
            if (peek() == ']') return after_value();
            return value();
        case State::After:
            break;
    }
    return after_value();
}

/// After a value, or where a bracket may close: the closing bracket, or a comma and what follows it.
JsonToken JsonScanner::after_value() {
    if (open_.empty()) return at_ == text_.size() ? JsonToken::End : fail("unexpected text after the value");
    const bool is_object = open_.back();
    const int c = peek();
    if (c == (is_object ? '}' : ']')) {
        raw_ = text_.substr(at_, 1);
        ++at_;
        open_.pop_back();
        state_ = State::After;
        return is_object ? JsonToken::EndObject : JsonToken::EndArray;
    }
    if (c != ',') return fail(c < 0 ? "the text ends inside a value" : "a comma or a bracket is missing");
    ++at_;
    space();
    if (!is_object) return value();
    if (peek() != '"') return fail("a key is missing");
    return string(JsonToken::Key);
}

JsonToken JsonScanner::value() {
    const int c = peek();
    switch (c) {
        case '{':
        case '[':
            if (open_.size() == kMaxDepth) return fail("values are nested too deeply");
            raw_ = text_.substr(at_, 1);
            ++at_;
            open_.push_back(c == '{');
            state_ = c == '{' ? State::FirstKey : State::FirstItem;
            return c == '{' ? JsonToken::BeginObject : JsonToken::BeginArray;
        case '"':
            return string(JsonToken::String);
        case 't':
            return word("true", JsonToken::True);
        case 'f':
            return word("false", JsonToken::False);
        case 'n':
            return word("null", JsonToken::Null);
        case -1:
            return fail("the text ends where a value should be");
        default:
            return number();
    }
}

JsonToken JsonScanner::word(std::string_view expected, JsonToken token) {
    if (text_.substr(at_, expected.size()) != expected) return fail("unknown word");
    raw_ = text_.substr(at_, expected.size());
    at_ += expected.size();
    state_ = State::After;
    return token;
}

bool JsonScanner::digits() {
    const std::size_t first = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > first;
}

JsonToken JsonScanner::number() {
    const std::size_t start = at_;
    if (peek() == '-') ++at_;
    if (peek() == '0') {
        ++at_;
    } else if (!digits()) {
        return fail("no value");
    }
    if (peek() == '.') {
        ++at_;
        if (!digits()) return fail("no digits after the decimal point");
    }
    if (peek() == 'e' || peek() == 'E') {
        ++at_;
        if (peek() == '+' || peek() == '-') ++at_;
        if (!digits()) return fail("no exponent");
    }
    raw_ = text_.substr(start, at_ - start);
    state_ = State::After;
    return JsonToken::Number;
}

JsonToken JsonScanner::string(JsonToken token) {
    const std::size_t start = ++at_;
    has_escapes_ = false;
    while (true) {
        const int c = peek();
        if (c == '"') break;
        if (c == '\\') {
            has_escapes_ = true;
            if (const char* const wrong = escape()) return fail(wrong);
        } else if (c >= 0x20 && c < 0x80) {
            ++at_;
        } else if (c < 0) {
            return fail("the text ends inside a string");
        } else if (c < 0x20) {
            return fail("a control character in a string");
        } else if (!character()) {
            return fail("invalid UTF-8");
        }
    }
    raw_ = text_.substr(start, at_ - start);
    ++at_;
    state_ = State::After;
    if (token != JsonToken::Key) return token;
    space();
    if (peek() != ':') return fail("a colon is missing");
    ++at_;
    state_ = State::Value;
    return token;
}

bool JsonScanner::four_hex(unsigned& code) {
    code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
        const int digit = hex_digit(peek());
        if (digit < 0) return false;
        code = code << 4 | static_cast<unsigned>(digit);
    }
    return true;
}

const char* JsonScanner::escape() {
    constexpr const char* kUnknown = "unknown escape";
    constexpr const char* kLone = "lone surrogate";
    ++at_;
    const int c = peek();
    if (c < 0) return kUnknown;
    ++at_;
    if (c != 'u') {
        const bool is_known =
            std::string_view("\"\\/bfnrt").find(static_cast<char>(c)) != std::string_view::npos;
        return is_known ? nullptr : kUnknown;
    }
    unsigned code = 0;
    if (!four_hex(code)) return kUnknown;
    if (is_low_surrogate(code)) return kLone;
    if (!is_high_surrogate(code)) return nullptr;
    if (text_.substr(at_, 2) != "\\u") return kLone;
    at_ += 2;
    if (!four_hex(code)) return kUnknown;
    return is_low_surrogate(code) ? nullptr : kLone;
}

bool JsonScanner::character() {
    std::size_t broken = 0;
    const std::size_t length = at_ < text_.size() ? utf8_length(text_.substr(at_, 4), broken) : 0;
    at_ += length;
    return length != 0;
}

std::string JsonScanner::text() const {
    if (!has_escapes_) return std::string(raw_);
    constexpr std::string_view kNames = "bfnrt", kMeanings = "\b\f\n\r\t";
    std::string out;
    const auto hex = [&](std::size_t at) {
        unsigned code = 0;
        for (std::size_t i = at; i < at + 4; ++i)
            code = code << 4 | static_cast<unsigned>(hex_digit(raw_[i]));
        return code;
    };
    for (std::size_t i = 0; i < raw_.size(); ++i) {
        if (raw_[i] != '\\') {
            out += raw_[i];
            continue;
        }
        const char c = raw_[++i];
        if (c == 'u') {
            unsigned code = hex(i + 1);
            i += 4;
            if (is_high_surrogate(code)) {
                code = 0x10000 + ((code - 0xD800) << 10) + (hex(i + 3) - 0xDC00);
                i += 6;
            }
            append_code_point(out, code);
        } else {
            const std::size_t index = kNames.find(c);
            out += index == std::string_view::npos ? c : kMeanings[index];
        }
    }
    return out;
}

bool JsonScanner::skip(JsonToken first) {
    if (first != JsonToken::BeginObject && first != JsonToken::BeginArray) return first != JsonToken::Error;
    const std::size_t outside = open_.size() - 1;
    while (open_.size() > outside) {
        if (next() == JsonToken::Error) return false;
    }
    return true;
}

std::string json_error(std::string_view text) {
    JsonScanner scanner(text);
    while (true) {
        switch (scanner.next()) {
            case JsonToken::End:
                return "";
            case JsonToken::Error:
                return scanner.error();
            default:
                break;
        }
    }
}

bool is_json(std::string_view text) {
    return json_error(text).empty();
}

}  // namespace marey
