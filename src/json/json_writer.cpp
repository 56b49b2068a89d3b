// json_writer.cpp: writes strict JSON text: valid UTF-8 whatever the bytes, no NaN, correct commas and
// quotes.
#include "json/json_writer.h"

#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace marey {
namespace {

void append_escaped(std::string& out, char c) {
    constexpr char kHex[] = "0123456789abcdef";
    switch (c) {
        case '"':
            out += "\\\"";
            return;
        case '\\':
            out += "\\\\";
            return;
        case '\n':
            out += "\\n";
            return;
        case '\r':
            out += "\\r";
            return;
        case '\t':
            out += "\\t";
            return;
        default:
            out += "\\u00";
            out += kHex[(static_cast<unsigned char>(c) >> 4) & 15];
            out += kHex[static_cast<unsigned char>(c) & 15];
    }
}

void append_chars(std::string& out, auto value) {
    char text[32];
    const auto result = std::to_chars(text, text + sizeof text, value);
    out.append(text, result.ptr);
}

}  // namespace

void append_json_string(std::string& out, std::string_view bytes) {
    out += '"';
    std::size_t plain = 0;  // start of the part that can be copied as it is
    std::size_t i = 0;
    while (i < bytes.size()) {
        const auto c = static_cast<unsigned char>(bytes[i]);
        if (c >= 0x20 && c < 0x7F && c != '"' && c != '\\') {
            ++i;
            continue;
        }
        if (c < 0x80) {
            out.append(bytes.substr(plain, i - plain));
            append_escaped(out, bytes[i]);
            plain = ++i;
            continue;
        }
        std::size_t broken = 0;
        const std::size_t length = utf8_length(bytes.substr(i), broken);
        if (length == 0) {
            out.append(bytes.substr(plain, i - plain));
            out += kUtf8Replacement;
            i += broken;
            plain = i;
        } else {
            i += length;
        }
    }
    out.append(bytes.substr(plain));
    out += '"';
}

void append_json_number(std::string& out, double value) {
    if (std::isnan(value)) {
        out += "\"NaN\"";
    } else if (std::isinf(value)) {
        out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    } else {
        append_chars(out, value);
    }
}

void append_json_number(std::string& out, std::int64_t value) {
    append_chars(out, value);
}

void append_json_number(std::string& out, std::uint64_t value) {
    append_chars(out, value);
}

JsonWriter& JsonWriter::key(std::string_view name) {
    before_value();
    append_json_string(out_, name);
    out_ += indent_ > 0 ? ": " : ":";
    after_key_ = true;
    return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
    before_value();
    append_json_string(out_, text);
    return *this;
}

JsonWriter& JsonWriter::value(double number) {
    before_value();
    append_json_number(out_, number);
    return *this;
}

JsonWriter& JsonWriter::value(bool truth) {
    before_value();
    out_ += truth ? "true" : "false";
    return *this;
}

JsonWriter& JsonWriter::value(std::int64_t number) {
    before_value();
    append_json_number(out_, number);
    return *this;
}

JsonWriter& JsonWriter::value(std::uint64_t number) {
    before_value();
    append_json_number(out_, number);
    return *this;
}

JsonWriter& JsonWriter::null() {
    before_value();
    out_ += "null";
    return *this;
}

void JsonWriter::before_value() {
    if (after_key_) {
        after_key_ = false;
        return;
    }
    if (filled_.empty()) return;
    if (filled_.back()) out_ += ',';
    filled_.back() = true;
    new_line();
}

void JsonWriter::new_line() {
    if (indent_ <= 0) return;
    out_ += '\n';
    out_.append(filled_.size() * static_cast<std::size_t>(indent_), ' ');
}

JsonWriter& JsonWriter::open(char bracket) {
    before_value();
    out_ += bracket;
    filled_.push_back(false);
    return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
    const bool held_something = filled_.back();
    filled_.pop_back();
    if (held_something) new_line();
    out_ += bracket;
    return *this;
}

}  // namespace marey
