// pprof_fuzzer.cpp: reads any bytes as a pprof profile.
#include "formats/formats.h"
#include "formats/profile_reader_fixture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return marey::testing::fuzz_reader(marey::is_pprof, marey::read_pprof_bytes, data, size);
}
