// json_scanner.cpp: reads strict JSON (RFC 8259, UTF-8) piece by piece, without keeping any of it.
#include "json/json_scanner.h"

#include "base/utf8.h"
#include "json/json_cursor.h"

namespace marey {

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
    while (true) {
        const int c = peek();
        if (c == '"') break;
        if (c == '\\') {
            if (!escape()) return JsonToken::Error;
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

bool JsonScanner::escape() {
    const char* p = text_.data() + at_ + 1;
    std::string meaning;
    const JsonEscape kind = read_json_escape(p, text_.data() + text_.size(), meaning);
    at_ = static_cast<std::size_t>(p - text_.data());
    if (kind == JsonEscape::Valid) return true;
    fail(kind == JsonEscape::LoneSurrogate ? "lone surrogate" : "unknown escape");
    return false;
}

bool JsonScanner::character() {
    std::size_t broken = 0;
    const std::size_t length = at_ < text_.size() ? utf8_length(text_.substr(at_, 4), broken) : 0;
    at_ += length;
    return length != 0;
}

std::string JsonScanner::text() const {
    std::string out;
    append_unescaped(out, raw_);
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
