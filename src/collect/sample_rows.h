// sample_rows.h: the samples of a log as rows of the model.
#pragma once

#include <map>

#include "collect/replayed_log.h"
#include "collect/stack_frames.h"
#include "trace/string_pool.h"

namespace marey {

/// Fills the samples, their stacks and frames, and how they were taken. The ranges and tracks of the trace
/// are there; `thread_rows`: rows of threads by logical id.
void fill_samples(ReplayedLog& state, const std::map<std::uint32_t, Row>& thread_rows, StringPool& strings,
                  FrameTexts& frames);

}  // namespace marey
