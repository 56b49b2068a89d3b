// chrome_json_fuzzer.cpp: reads any bytes as a Chrome trace, in pieces of any size, unmodified and marked as
// written by Marey.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include <marey/error.h>
#include <marey/export.h>
#include <marey/validate.h>

#include "formats/chrome/read.h"
#include "formats/chrome/violations.h"
#include "trace/trace_dump_fixture.h"

namespace {

void require(bool holds, const char* what, const std::string& detail = "") {
    if (holds) return;
    std::fprintf(stderr, "broken promise: %s %s\n", what, detail.c_str());
    std::abort();
}

/// Whether a rule is about the tables. Other rules are about the recorded events, which the file may violate.
bool is_structural(std::string_view rule) {
    for (const std::string_view name : {"columns", "tracks", "parents", "nesting", "window"}) {
        if (rule == name) return true;
    }
    return false;
}

bool is_rule(std::string_view name) {
    for (const marey::ValidationRule& rule : marey::validation_rules()) {
        if (rule.name == name) return true;
    }
    return false;
}

/// A dump of the trace; empty if reading failed.
std::string read(const std::string& text, std::size_t piece, bool exports) {
    try {
        marey::ViolationList violations;
        marey::check_json(text, violations);
        const marey::Trace trace =
            marey::read_chrome_json("input", marey::memory_source(text), piece, &violations);
        for (const marey::Violation& violation : violations.take())
            require(is_rule(violation.rule), "a known rule:");
        for (const marey::Violation& violation : marey::validate(trace))
            require(!is_structural(violation.rule),
                    "the tables hold together:", violation.rule + ": " + violation.example);
        if (exports) {
            std::ostringstream out;
            marey::write_chrome_json(trace, out);
            const std::string first = out.str();
            const marey::Trace again = marey::read_chrome_json("ours", marey::memory_source(first), piece);
            require(again.ranges().size() == trace.ranges().size(), "no range is lost on the way");
            require(again.instants().size() == trace.instants().size(), "no instant is lost on the way");
        }
        return marey::testing::dump_trace(trace);
    } catch (const marey::Error&) {
        return "";
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const std::string whole = read(text, 1 << 20, true);
    require(read(text, 16, false) == whole, "the size of pieces does not matter");
    read(R"({"otherData":{"producer":"marey"},"traceEvents":[)" + text + "]}", 64, true);
    return 0;
}
