// saved_trace_fuzzer.cpp: any bytes as a saved trace, and any columns under valid checksums.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <marey/error.h>

#include "trace/saved_trace.h"
#include "trace/saved_trace_repair_fixture.h"
#include "trace/trace_data.h"
#include "trace/trace_difference_fixture.h"

namespace {

void require(bool holds, const char* what, const std::string& detail = "") {
    if (holds) return;
    std::fprintf(stderr, "check failed: %s %s\n", what, detail.c_str());
    std::abort();
}

void check(const std::vector<std::byte>& bytes) {
    try {
        const auto data = marey::unpack_trace(bytes, "fuzzed");
        const std::string damage = marey::find_damage(*data);
        require(damage.empty(), "the result is consistent:", damage);
        const auto again = marey::unpack_trace(marey::pack_trace(*data, bytes.size() % 8 == 0), "saved");
        const std::string difference = marey::testing::find_difference(*data, *again);
        require(difference.empty(), "saving keeps every table:", difference);
        require(marey::unpack_window(bytes, "fuzzed").session_id == data->window.session_id,
                "the window is the same");
    } catch (const marey::Error&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto* const first = reinterpret_cast<const std::byte*>(data);
    std::vector<std::byte> bytes(first, first + size);
    check(bytes);
    marey::testing::repair_checksums(bytes);
    check(bytes);
    return 0;
}
