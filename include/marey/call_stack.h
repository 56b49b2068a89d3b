// call_stack.h: records the call stack at which a range began.
#pragma once

#include <cstddef>
#include <cstdint>

#include <marey/detail/export.h>
#include <marey/span.h>
#include <marey/traceback.h>

namespace marey {

/// The calling thread's stack as a value of a range, an instant or an operation (OperationProperties::stack):
///
///     MAREY_RANGE("load", "stack", marey::CallStack());
///     marey::Range range("request", "stack", marey::CallStack({.native = true}));
///
/// Values are evaluated only while they are being recorded, so nothing is captured otherwise. The log
/// contains numbers; a trace has the frames as the value "Call stack", whatever the key, innermost first:
/// "file.py(12): f" for Python frames, "library.so+0x12ab" for native frames until marey::symbolize_trace()
/// has named them. Of more than kMaxEntries frames the innermost and the outermost ones are kept, and "..."
/// stands between them.
class CallStack {
  public:
    static constexpr std::size_t kMaxEntries = 1024;

    /// Captures the stack of the calling function: by default Python frames, if there are any, and native
    /// frames.
    MAREY_API explicit CallStack(const TracebackOptions& options = {true, true, 0}) noexcept;
    /// Uses a traceback that was captured before.
    MAREY_API explicit CallStack(const CapturedTraceback& traceback) noexcept;

    /// The frames in the form of the log (detail/log_format.h).
    Span<const std::uint64_t> frame_words() const noexcept { return {words_, count_}; }
    bool is_cut() const noexcept { return is_cut_; }  ///< there were more than kMaxEntries frames
    /// The same frames as a number of this process (detail::StackNode); 0: there was no space for them.
    std::uint32_t number() const noexcept { return number_; }

  private:
    void add(const CapturedTraceback& traceback) noexcept;
    void add_word(std::uint64_t word) noexcept;

    std::size_t count_ = 0;
    bool is_cut_ = false;
    std::uint32_t number_ = 0;
    std::uint64_t words_[kMaxEntries];
};

}  // namespace marey
