// pushed_ranges.h: the ranges pushed to a tool on each thread, so that each pop ends the right range, and
// their text.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <marey/observe.h>
#include <marey/value.h>

#include "emitters/annotation_backend.h"

namespace marey {

/// A range that was pushed. It is popped once it has ended *and* is the innermost one: a range that ends
/// before its inner ranges, or on another thread, waits. Owned by its thread and by the code that ends it.
struct PushedRange {
    std::uint64_t thread = 0;  ///< the thread whose stack contains it
    std::uint64_t run = 0;     ///< the emitter run that pushed it; 0: pushed by hand
    bool is_taken = true;      ///< accepted by the tool; otherwise there is nothing to pop
    int depth = 0;             ///< as returned by its push
    std::atomic<bool> has_ended{false};
    std::atomic<int> holders{2};

    static void release(PushedRange* range) noexcept {
        if (range->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete range;
    }
};

/// For an emitter. If it throws, nothing was pushed.
PushedRange* push_emitted(AnnotationBackend& tool, std::uint64_t run, const std::string& name,
                          const std::string& text);
/// Any thread. Releases the range.
void end_emitted(AnnotationBackend& tool, PushedRange* range) noexcept;
/// Ends the ranges that the run has pushed on the calling thread.
void end_run(AnnotationBackend& tool, std::uint64_t run) noexcept;

/// Pushes a range by hand and returns its depth.
int push_manual(AnnotationBackend& tool, const std::string& text);
/// Ends the innermost range pushed by hand on this thread and returns its depth. -1: none is open, nothing
/// is popped.
int pop_manual(AnnotationBackend& tool);

/// The range that produced an array, and the index of that output.
struct Producer {
    std::uint64_t range = 0;  ///< 0: unknown
    std::int32_t output = -1;
    friend bool operator==(const Producer&, const Producer&) = default;
};

/// The arrays in the values, in order, with lists flattened. A value without arrays gives one null.
std::vector<const ArrayView*> arrays_of(std::span<const Value> values);

/// "name, seq = 5, op_id = 7, sizes = [[2, 3], []], input_op_ids = [(3,0), (0,-1)]". Unknown parts are left
/// out. `arrays` are those of the inputs; `producers` has one entry for each, or is empty.
std::string range_text(const ObservedRange& range, std::span<const ArrayView* const> arrays,
                       std::span<const Producer> producers);

}  // namespace marey
