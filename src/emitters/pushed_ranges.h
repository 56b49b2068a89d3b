// pushed_ranges.h: what has been pushed to a tool on each thread, so that nobody pops what is another's.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "emitters/annotation_backend.h"

namespace marey {

/// A range that was pushed. It is popped once it has ended *and* is the innermost one: a range that ends
/// before those within it, or on another thread, waits for its turn. Held by its thread and by whoever ends
/// it.
struct PushedRange {
    std::uint64_t thread = 0;  ///< whose stack it stands on
    std::uint64_t run = 0;     ///< of the emitter that pushed it; 0: by hand
    bool is_taken = true;      ///< by the tool; otherwise it knows nothing to pop
    int depth = 0;             ///< as its push gave it
    std::atomic<bool> has_ended{false};
    std::atomic<int> holders{2};

    static void release(PushedRange* range) noexcept {
        if (range->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete range;
    }
};

/// For an emitter. Nothing was pushed when it throws.
PushedRange* push_emitted(AnnotationBackend& tool, std::uint64_t run, const std::string& name,
                          const std::string& text);
/// Any thread. Lets go of it.
void end_emitted(AnnotationBackend& tool, PushedRange* range) noexcept;
/// Ends what that run has pushed on the calling thread.
void end_run(AnnotationBackend& tool, std::uint64_t run) noexcept;

/// By hand; gives the depth.
int push_manual(AnnotationBackend& tool, const std::string& text);
/// Ends the innermost one pushed by hand on this thread; gives its depth. -1: none is open, nothing is
/// popped.
int pop_manual(AnnotationBackend& tool);

}  // namespace marey
