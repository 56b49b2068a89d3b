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

}  // namespace marey
