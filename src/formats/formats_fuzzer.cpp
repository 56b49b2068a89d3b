// formats_fuzzer.cpp: reads any bytes in every format whose files are read as a whole.
#include "formats/profile_reader_fixture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    for (const marey::FileFormat& format : marey::file_formats()) {
        if (format.recognizes != nullptr) format.recognizes(std::as_bytes(std::span(bytes)));
        if (format.read_bytes == nullptr) continue;
        const std::string broken = marey::testing::broken_table(format, bytes);
        if (broken.empty()) continue;
        std::fprintf(stderr, "%s: the tables do not hold together: %s\n", format.name.data(), broken.c_str());
        std::abort();
    }
    return 0;
}
