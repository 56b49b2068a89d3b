// otlp_fuzzer.cpp: reads any bytes as OpenTelemetry spans.
#include "formats/formats.h"
#include "formats/profile_reader_fixture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return marey::testing::fuzz_reader(marey::is_otlp, marey::read_otlp_text, data, size);
}
