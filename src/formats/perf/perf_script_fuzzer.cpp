// perf_script_fuzzer.cpp: reads any bytes as the text of perf script.
#include "formats/formats.h"
#include "formats/profile_reader_fixture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return marey::testing::fuzz_reader(marey::is_perf_script, marey::read_perf_script_text, data, size);
}
