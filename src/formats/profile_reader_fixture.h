// profile_reader_fixture.h: for tests and fuzzers: reads any bytes, plain or gzip, as a profile and checks
// the trace.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <marey/error.h>
#include <marey/validate.h>

#include "formats/formats.h"
#include "json/input_text.h"

namespace marey::testing {

using ProfileReader = Trace (*)(std::string_view, const std::string&);

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
inline std::string broken_table(ProfileReader read, std::string_view bytes) {
    try {
        const Trace trace =
            bytes.starts_with("\x1F\x8B") ? read(unzipped(bytes), "input") : read(bytes, "input");
        for (const Finding& finding : validate(trace)) {
            for (const std::string_view rule : {"columns", "tracks", "parents", "nesting", "window"}) {
                if (finding.rule == rule) return finding.rule + ": " + finding.example;
            }
        }
    } catch (const Error&) {
    }
    return "";
}

/// The body of a fuzzer: aborts if the tables of the trace are broken.
inline int fuzz_reader(bool (*recognizes)(std::span<const std::byte>) noexcept, ProfileReader read,
                       const std::uint8_t* data, std::size_t size) {
    recognizes({reinterpret_cast<const std::byte*>(data), size});
    const std::string broken = broken_table(read, {reinterpret_cast<const char*>(data), size});
    if (broken.empty()) return 0;
    std::fprintf(stderr, "the tables do not hold together: %s\n", broken.c_str());
    std::abort();
}

}  // namespace marey::testing
