// stack_functions.h: the functions on the stacks of samples, without the frames of an interpreter.
#pragma once

#include <functional>
#include <unordered_set>

#include <marey/trace.h>

namespace marey {

/// For each row of Trace::stacks(), its function and the next shown row around it. Where there are Python
/// frames, those of the interpreter, and of the C library that it uses, are not shown: their time is that of
/// the Python function, or of the extension's function, that they work for.
class StackFunctions {
  public:
    explicit StackFunctions(const Trace& trace);

    std::size_t size() const noexcept { return outer_.size(); }
    bool is_shown(Row stack) const noexcept { return outer_[stack] != stack; }
    /// The stack, or the next shown row around it; kNoRow: none.
    Row shown(Row stack) const noexcept {
        while (stack != kNoRow && !is_shown(stack)) stack = trace_stacks_[stack].outer;
        return stack;
    }
    /// The next shown row around a shown one; kNoRow: it is the outermost.
    Row outer(Row stack) const noexcept { return outer_[stack]; }
    const FrameInfo& frame(Row stack) const noexcept { return frames_[trace_stacks_[stack].frame]; }
    /// The shown functions of a stack, outermost first.
    std::vector<StringId> names(Row stack) const;
    static bool is_python(const FrameInfo& frame) noexcept { return frame.module == 0; }

  private:
    std::span<const StackInfo> trace_stacks_;
    std::span<const FrameInfo> frames_;
    std::vector<Row> outer_;  ///< itself: not shown
};

}  // namespace marey
