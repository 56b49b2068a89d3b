// capture_reader_fuzzer.cpp: any bytes as a capture: read, built, saved, packed; every table is checked.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <marey/error.h>

#include "base/compress.h"
#include "collect/capture_reader.h"
#include "collect/compact.h"
#include "collect/packed_capture.h"
#include "collect/sparse_capture_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"
#include "trace/saved_trace.h"
#include "trace/trace_difference_fixture.h"

namespace {

void require(bool holds, const char* what, const std::string& detail = "") {
    if (holds) return;
    std::fprintf(stderr, "check failed: %s %s\n", what, detail.c_str());
    std::abort();
}

void check(const marey::RawLog& log, std::uint64_t session) {
    marey::ViewRequest request;
    request.session = session;
    request.threads = 1;
    const marey::Trace trace = marey::build_trace(log, request);
    const std::string fault = marey::testing::find_fault(trace);
    require(fault.empty(), "the tables are consistent:", fault);
    const auto again = marey::unpack_trace(marey::pack_trace(trace.data()), "saved");
    const std::string difference = marey::testing::find_difference(trace.data(), *again);
    require(difference.empty(), "saving keeps every table:", difference);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = marey::testing::from_sparse({reinterpret_cast<const std::byte*>(data), size});
    try {
        const marey::RawLog log = marey::read_capture_bytes(bytes, nullptr, "fuzzed");
        check(log, 0);
        const auto sessions = marey::list_sessions(log);
        for (std::size_t i = 1; i < sessions.size() && i < 3; ++i) check(log, sessions[i].id);
        std::size_t log_bytes = log.names.size() + log.journal.size();
        for (const marey::LogSpan& span : log.spans) log_bytes += span.bytes;
        if (marey::can_compress() && log_bytes < 4096 && size % 8 == 0) {  // slow: not every time
            require(marey::is_same_log(log, marey::unpack_capture(marey::pack_capture(log), "packed")),
                    "packing keeps every byte");
        }
    } catch (const marey::Error&) {
    }
    return 0;
}
