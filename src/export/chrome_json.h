// chrome_json.h: how the writing of Chrome JSON is cut up among threads, for tests and benchmarks to choose.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>

#include <marey/trace.h>

namespace marey {

/// Makes no difference to what is written.
struct ChromeCut {
    std::size_t rows_of_piece = 2048;  ///< whose text stays in the second-level cache of a core
    unsigned threads = 0;              ///< 0: as many as pay and there are cores
};

void write_chrome_json(const Trace& trace, const std::string& path, ChromeCut cut);
void write_chrome_json(const Trace& trace, std::ostream& stream, ChromeCut cut);

}  // namespace marey
