// write.h: how writing Chrome JSON is divided among threads, configurable for tests and benchmarks.
#pragma once

#include <cstddef>
#include <iosfwd>

#include <marey/trace.h>

namespace marey {

/// Does not affect the output.
struct ChromeCut {
    std::size_t rows_of_piece = 2048;  ///< small enough for a core's L2 cache
    unsigned threads = 0;              ///< 0: chosen by the number of rows and cores
};

void write_chrome_json(const Trace& trace, const std::string& path, ChromeCut cut);
void write_chrome_json(const Trace& trace, std::ostream& stream, ChromeCut cut);

}  // namespace marey
