// links.h: matches backward ranges with forward ranges.
#pragma once

#include "trace/trace_data.h"

namespace marey {

/// Fills `data.links` with an arrow from every forward range to its backward range, by the sequence numbers
/// of `data.range_details`. Ranges and details must be complete and in order.
///
/// In order of their ends, a range without a forward thread offers itself under its own thread and number; of
/// those with the same number the one that started last made the backward node. A range with a forward thread
/// takes the current offer there, which is then removed: a forward range is linked once.
///
/// An autograd engine's "autograd::engine::evaluate_function: ..." whose first child is a backward range gets
/// that child's number and forward thread in its own detail; the link stays the child's.
void link_forward_backward(TraceData& data);

}  // namespace marey
