// array_ids.h: which arrays of a trace lie in the same memory, and which are one array though its memory was
// exchanged.
#pragma once

#include <cstdint>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

struct ArrayId {
    std::uint32_t array = kNoRow;  ///< from 0; kNoRow: none
    std::uint32_t allocation = 0;  ///< of its memory, from 1; 0: none
};

struct ArrayIds {
    std::vector<ArrayId> arrays;   ///< per row of Trace::arrays()
    std::vector<ArrayId> reports;  ///< per row of Trace::memory()
    /// Per allocation, from 1 on, the array that lies in it; kNoRow: none was ever seen there.
    std::vector<std::uint32_t> array_in;
};

/// Of inputs, and of parameters of modules and optimizers, that have memory and say which object they are
/// (ArrayView::object); none without such. An allocation is an address of a device from when it is taken, or
/// first seen, until it is given back: addresses may be used again. Arrays that lay in the same allocation,
/// at the same time or one after the other, are one. n log n in arrays and reports.
MAREY_API ArrayIds array_ids(const Trace& trace);

}  // namespace marey
