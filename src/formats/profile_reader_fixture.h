// profile_reader_fixture.h: for tests and fuzzers: reads any bytes, plain or gzip, as a profile and checks
// the trace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <marey/error.h>
#include <marey/import.h>
#include <marey/validate.h>

#include "json/input_text.h"

namespace marey::testing {

/// Reads the bytes of a whole file in the format of this name, which must be read that way.
inline Trace read_bytes(std::string_view format, std::string_view bytes) {
    const auto formats = file_formats();
    return std::ranges::find(formats, format, &FileFormat::name)->read_bytes(bytes, "input");
}

/// The content of gzip members, up to any damage. Throws marey::Error if it expands too much.
inline std::string unzipped(std::string_view bytes) {
    const std::unique_ptr<ByteSource> source = memory_source(bytes);
    std::string text;
    char piece[4096];
    while (const std::size_t count = source->read(piece, sizeof piece)) text.append(piece, count);
    return text;
}

/// Reads a profile, which may be refused with marey::Error. Returns "" or what is wrong with the tables of
/// the trace.
inline std::string broken_table(const FileFormat& format, std::string_view bytes) {
    try {
        const Trace trace =
            format.read_bytes(bytes.starts_with("\x1F\x8B") ? unzipped(bytes) : std::string(bytes), "input");
        for (const Violation& violation : validate(trace)) {
            for (const std::string_view rule : {"columns", "nesting", "window"}) {
                if (violation.rule == rule) return violation.rule + ": " + violation.example;
            }
        }
    } catch (const Error&) {
    }
    return "";
}

}  // namespace marey::testing
