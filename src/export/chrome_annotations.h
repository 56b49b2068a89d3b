// chrome_annotations.h: user ranges as they appear on device queues.
#pragma once

#include <cstdint>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// A user range on a queue: from the start of the first to the end of the last work that it launched there.
struct ChromeAnnotation {
    Row range = kNoRow;
    Row track = kNoRow;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
};

/// One for each range and queue, in order of their first work. As in PyTorch, work counts for the innermost
/// user range around its launch. Empty if the trace has such ranges already because it was imported.
std::vector<ChromeAnnotation> chrome_annotations(const Trace& trace);

}  // namespace marey
