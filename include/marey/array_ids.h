// array_ids.h: which arrays of a trace share memory, and which are the same array after its memory changed.
#pragma once

#include <cstdint>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The number of an array and of the allocation that it lies in.
struct ArrayId {
    std::uint32_t array = kNoRow;  ///< from 0; kNoRow: none
    std::uint32_t allocation = 0;  ///< from 1; 0: none
};

/// The result of array_ids().
struct ArrayIds {
    std::vector<ArrayId> arrays;   ///< per row of Trace::arrays()
    std::vector<ArrayId> reports;  ///< per row of Trace::memory()
    /// Per allocation, from 1: the array that lies in it; kNoRow: no array was seen there.
    std::vector<std::uint32_t> array_in;
};

/// Numbers the arrays of a trace: inputs, and parameters of modules and optimizers, that have memory and an
/// object id (ArrayView::object). Other arrays get no number. An allocation is a device address from the time
/// it is allocated, or first seen, until it is freed; addresses can be reused. Arrays in the same allocation,
/// at the same time or one after the other, count as one. Takes O(n log n) in arrays and reports.
MAREY_API ArrayIds array_ids(const Trace& trace);

}  // namespace marey
