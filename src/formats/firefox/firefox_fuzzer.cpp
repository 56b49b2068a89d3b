// firefox_fuzzer.cpp: reads any bytes as a profile of the Firefox Profiler.
#include "formats/formats.h"
#include "formats/profile_reader_fixture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return marey::testing::fuzz_reader(marey::is_firefox, marey::read_firefox_text, data, size);
}
