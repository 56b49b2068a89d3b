// output_pieces.h: a file whose pieces are made on several threads and written in order.
#pragma once

#include <cstddef>
#include <functional>

#include "base/output_file.h"

namespace marey {

/// Appends a piece, given its number, to the buffer that it was made for.
using PieceWriter = std::function<void(std::size_t)>;

/// Writes the pieces 0 to count - 1 to `file`, one behind the other. Each of up to `threads` threads, of
/// which the caller is one, calls `make_writer` for a writer of its own; which one writes which pieces must
/// not matter to the bytes. Only the caller touches the file. What is in memory is a few pieces for each
/// thread. A single thread writes straight into the file. The first exception is passed on, and ends the
/// work.
void write_pieces(OutputFile& file, std::size_t count,
                  const std::function<PieceWriter(OutputBuffer&)>& make_writer, unsigned threads);

}  // namespace marey
