// utf8.cpp: the table of well-formed sequences, as code.
#include "base/utf8.h"

namespace marey {

std::size_t utf8_length(std::string_view text, std::size_t& broken) {
    auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(0);
    broken = 1;
    if (lead < 0x80) return 1;
    std::size_t length = 0;
    unsigned low = 0x80, high = 0xBF;  // what the second byte may be
    if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        if (lead == 0xE0) low = 0xA0;   // overlong
        if (lead == 0xED) high = 0x9F;  // surrogates
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;  // above U+10FFFF
    } else {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if (i >= text.size() || byte(i) < low || byte(i) > high) return 0;
        low = 0x80;
        high = 0xBF;
        broken = i + 1;
    }
    return length;
}

void append_utf8(std::string& out, std::string_view bytes) {
    std::size_t plain = 0;  // start of the part that can be copied as it is
    for (std::size_t i = 0; i < bytes.size();) {
        std::size_t broken = 0;
        const std::size_t length = utf8_length(bytes.substr(i), broken);
        if (length == 0) {
            out.append(bytes.substr(plain, i - plain));
            out += kUtf8Replacement;
            plain = i + broken;
        }
        i += length == 0 ? broken : length;
    }
    out.append(bytes.substr(plain));
}

std::size_t encode_utf8(std::uint32_t code, char* to) noexcept {
    const auto tail = [code](unsigned shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
    if (code < 0x80) {
        to[0] = static_cast<char>(code);
        return 1;
    }
    if (code < 0x800) {
        to[0] = static_cast<char>(0xC0 | code >> 6);
        to[1] = tail(0);
        return 2;
    }
    if (code < 0x10000) {
        to[0] = static_cast<char>(0xE0 | code >> 12);
        to[1] = tail(6);
        to[2] = tail(0);
        return 3;
    }
    to[0] = static_cast<char>(0xF0 | code >> 18);
    to[1] = tail(12);
    to[2] = tail(6);
    to[3] = tail(0);
    return 4;
}

void append_code_point(std::string& out, std::uint32_t code) {
    char bytes[4];
    out.append(bytes, encode_utf8(code, bytes));
}

}  // namespace marey
