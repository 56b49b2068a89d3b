// output_pieces.h: a file whose pieces are made on several threads and written in order.
#pragma once

#include <cstddef>
#include <functional>

#include "base/output_file.h"

namespace marey {

/// Appends the piece with this number to the buffer that it was made for.
using PieceWriter = std::function<void(std::size_t)>;

/// Writes the pieces 0 to count - 1 to `file`, one after another. Each of up to `threads` threads, including
/// the caller's, calls `make_writer` for its own writer; the bytes must not depend on which writer writes
/// which pieces. Only the caller touches the file. A few pieces for each thread are in memory. A single
/// thread writes directly into the file. The first exception is passed on and ends the work.
void write_pieces(OutputFile& file, std::size_t count,
                  const std::function<PieceWriter(OutputBuffer&)>& make_writer, unsigned threads);

}  // namespace marey
