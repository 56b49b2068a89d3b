// collapsed_fuzzer.cpp: reads any bytes as collapsed stacks.
#include "formats/formats.h"
#include "formats/profile_reader_fixture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return marey::testing::fuzz_reader(marey::is_collapsed, marey::read_collapsed_text, data, size);
}
