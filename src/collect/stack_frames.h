// stack_frames.h: the frames of recorded stacks as texts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collect/journal.h"
#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {

/// Makes the text of a frame word (log_format.h): "file.py(12): f" for Python's frames, "library+0x12ab" for
/// native ones, which symbolize_trace() may name later; "??" for what is not known. Each once.
class StackFrames {
  public:
    /// The sites of `data` are there already. All must outlive this.
    StackFrames(const TraceData& data, StringPool& strings, std::span<const NamedModule> modules)
        : data_(data), strings_(strings), modules_(modules) {}

    StringId text_of(std::uint64_t word);
    bool has_native() const noexcept { return has_native_; }
    /// What symbolize_trace() needs to know of the modules, as JSON.
    std::string modules_json();

  private:
    std::string python_text(std::uint64_t word) const;
    std::string native_text(std::uint64_t word);
    void name_modules();

    const TraceData& data_;
    StringPool& strings_;
    std::span<const NamedModule> modules_;
    std::vector<std::string> shown_;  ///< what stands for each module in texts; empty: not made yet
    std::unordered_map<std::uint64_t, StringId> known_;
    bool has_native_ = false;
};

}  // namespace marey
