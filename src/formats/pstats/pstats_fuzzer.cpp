// pstats_fuzzer.cpp: reads any bytes as statistics of cProfile.
#include "formats/formats.h"
#include "formats/profile_reader_fixture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return marey::testing::fuzz_reader(marey::is_pstats, marey::read_pstats_bytes, data, size);
}
