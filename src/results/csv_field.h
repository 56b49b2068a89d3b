// csv_field.h: CSV fields according to RFC 4180.
#pragma once

#include <string>
#include <string_view>

namespace marey {

/// Quotes the field if necessary.
inline void append_csv_field(std::string& out, std::string_view field) {
    if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
        out += field;
        return;
    }
    out += '"';
    for (const char c : field) {
        if (c == '"') out += '"';
        out += c;
    }
    out += '"';
}

/// Appends a text, which spreadsheets would run as a formula if it started with one of these characters: it
/// gets an apostrophe in front. So does a text that starts like that after apostrophes, so that a reader can
/// remove one apostrophe and has the text.
inline void append_csv_text(std::string& out, std::string_view text) {
    const std::size_t first = text.find_first_not_of('\'');
    if (first == text.npos || std::string_view("=+-@\t\r").find(text[first]) == text.npos)
        append_csv_field(out, text);
    else
        append_csv_field(out, "'" + std::string(text));
}

}  // namespace marey
