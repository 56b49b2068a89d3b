// capture_reader_fuzzer.cpp: any bytes as a capture: read, built, saved, packed; every table is looked at.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <kymo/error.h>

#include "base/compress.h"
#include "collect/capture_reader.h"
#include "collect/compact.h"
#include "collect/packed_capture.h"
#include "collect/sparse_capture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline.h"
#include "trace/saved_trace.h"
#include "trace/trace_difference.h"

namespace {

void require(bool holds, const char* what, const std::string& detail = "") {
    if (holds) return;
    std::fprintf(stderr, "broken promise: %s %s\n", what, detail.c_str());
    std::abort();
}

void check(const kymo::RawLog& log, std::uint64_t session) {
    kymo::ViewRequest request;
    request.session = session;
    request.threads = 1;
    const kymo::Trace trace = kymo::build_trace(log, request);
    const std::string fault = kymo::testing::find_fault(trace);
    require(fault.empty(), "the tables hold together:", fault);
    const auto again = kymo::unpack_trace(kymo::pack_trace(trace.data()), "saved");
    const std::string difference = kymo::testing::find_difference(trace.data(), *again);
    require(difference.empty(), "saving keeps every table:", difference);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = kymo::testing::from_sparse({reinterpret_cast<const std::byte*>(data), size});
    try {
        const kymo::RawLog log = kymo::read_capture_bytes(bytes, nullptr, "fuzzed");
        check(log, 0);
        const auto sessions = kymo::list_sessions(log);
        for (std::size_t i = 1; i < sessions.size() && i < 3; ++i) check(log, sessions[i].id);
        std::size_t log_bytes = log.names.size() + log.journal.size();
        for (const kymo::LogSpan& span : log.spans) log_bytes += span.bytes;
        if (kymo::can_compress() && log_bytes < 4096 && size % 8 == 0) {  // slow: not every time
            require(kymo::is_same_log(log, kymo::unpack_capture(kymo::pack_capture(log), "packed")),
                    "packing keeps every byte");
        }
    } catch (const kymo::Error&) {
    }
    return 0;
}
