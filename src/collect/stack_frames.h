// stack_frames.h: the frames of recorded stacks as texts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collect/journal_reader.h"
#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {

/// Makes the text of a frame word (log_format.h): "file.py(12): f" for Python frames, "library+0x12ab" for
/// native ones, which symbolize_trace() may name later; "??" for unknown ones. Each once.
class FrameTexts {
  public:
    /// The sites of `data` are complete. All must outlive this.
    FrameTexts(const TraceData& data, StringPool& strings, std::span<const NamedModule> modules)
        : data_(data), strings_(strings), modules_(modules) {}

    StringId text_of(std::uint64_t word);
    bool has_native() const noexcept { return has_native_; }
    /// The facts about the modules that symbolize_trace() needs, as JSON.
    std::string modules_json();

  private:
    std::string python_text(std::uint64_t word) const;
    std::string native_text(std::uint64_t word);
    void name_modules();

    const TraceData& data_;
    StringPool& strings_;
    std::span<const NamedModule> modules_;
    std::vector<std::string> shown_;  ///< the name of each module in texts; empty: not made yet
    std::unordered_map<std::uint64_t, StringId> known_;
    bool has_native_ = false;
};

}  // namespace marey
