// stack_frames.h: the frames of recorded stacks as texts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <marey/call_stack.h>
#include <marey/detail/log_format.h>

#include "base/hexadecimal.h"
#include "collect/journal_reader.h"
#include "json/json_writer.h"
#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {

/// Makes the text of a frame word (log_format.h): "file.py(12): f" for Python frames, "library+0x12ab" for
/// native ones, which symbolize_trace() may name later; "..." where frames were left out, and "??" for
/// unknown ones. Each once.
class FrameTexts {
  public:
    /// The sites of `data` are complete. All must outlive this.
    FrameTexts(const TraceData& data, StringPool& strings, const FrameNames& tables)
        : data_(data), strings_(strings), modules_(tables.modules), tables_(tables) {}

    /// The frame words of a numbered stack, innermost first, as far as they are known.
    void for_each_frame(std::uint32_t stack, auto use) const {
        constexpr std::size_t kMaxFrames = 4 * CallStack::kMaxEntries;  // damaged captures have more
        for (std::size_t i = 0; i < kMaxFrames && stack - 1 < tables_.stacks.size(); ++i) {
            const detail::StackNode& node = tables_.stacks[stack - 1];
            if (node.is_complete != 1) return;
            use(node.frame);
            stack = node.outer < stack ? node.outer : 0;
        }
    }

    /// The word of a sample's frame as other stacks have it; 0: unknown. kNoFrame: not to be shown.
    static constexpr std::uint64_t kNoFrame = ~std::uint64_t{0};
    std::uint64_t resolved(std::uint64_t word) const {
        constexpr std::uint64_t kOffset = (std::uint64_t{1} << detail::kFrameModuleShift) - 1;
        if ((word & detail::kFrameNative) != 0) {
            const std::uint64_t address = word & kOffset;
            if ((word & ~kOffset) != detail::kFrameNative) return word;
            const auto found = std::ranges::find_if(tables_.extents, [&](const ModuleExtent& extent) {
                return address >= extent.begin && address < extent.end;
            });
            if (found == tables_.extents.end() || found->module - 1 >= modules_.size()) return word;
            return detail::kFrameNative | std::uint64_t{found->module} << detail::kFrameModuleShift |
                   ((address - modules_[found->module - 1].bias) & kOffset);
        }
        if ((word & detail::kFramePlace) == 0) return word;
        const auto place = static_cast<std::uint32_t>(word & (detail::kFramePlace - 1));
        if (place - 1 >= tables_.places.size() || tables_.places[place - 1].place == 0) return 0;
        const detail::CodePlaceRecord& code = tables_.places[place - 1];
        return code.site != 0 ? code.site | std::uint64_t{code.line} << detail::kFrameLineShift : kNoFrame;
    }
    /// A resolved word as a frame of a sample.
    FrameInfo frame_of(std::uint64_t word) {
        FrameInfo frame{.name = text_of(word)};
        if ((word & detail::kFrameNative) != 0) {
            const std::uint32_t module = module_of(word);
            frame.module = module - 1 < modules_.size() ? modules_[module - 1].path : 0;
            frame.offset = word & ((std::uint64_t{1} << detail::kFrameModuleShift) - 1);
        } else if (const SiteInfo* const code = code_of(word); code != nullptr) {
            frame.name = code->name;  // like the recorded call's: all lines of a function have one
            frame.file = code->file;
            frame.line = static_cast<std::uint32_t>(word >> detail::kFrameLineShift);
        }
        return frame;
    }
    const FrameNames& tables() const noexcept { return tables_; }

    StringId text_of(std::uint64_t word) {
        const auto [at, fresh] = known_.try_emplace(word, 0);
        if (fresh) {
            const bool is_native = (word & detail::kFrameNative) != 0;
            at->second = strings_.intern(is_native ? native_text(word) : python_text(word));
        }
        return at->second;
    }
    bool has_native() const noexcept { return has_native_; }
    /// The facts about the modules that symbolize_trace() needs, as JSON.
    std::string modules_json() {
        if (shown_.empty()) name_modules();
        std::string text;
        JsonWriter json(text);
        json.begin_array();
        for (std::size_t i = 0; i < modules_.size(); ++i) {
            const auto string_of = [this](StringId id) {
                return id < data_.strings.size() ? data_.strings[id] : std::string();
            };
            json.begin_object();
            json.member("name", shown_[i]);
            json.member("path", string_of(modules_[i].path));
            json.member("build_id", string_of(modules_[i].build_id));
            json.member("bias", hexadecimal(modules_[i].bias));
            json.end_object();
        }
        json.end_array();
        return text;
    }

  private:
    const SiteInfo* code_of(std::uint64_t word) const {
        const auto site = static_cast<std::uint32_t>(word);
        return site - 1 < data_.sites.size() ? &data_.sites[site - 1] : nullptr;
    }
    static std::uint32_t module_of(std::uint64_t word) {
        return static_cast<std::uint32_t>(word >> detail::kFrameModuleShift) % detail::kMaxModules;
    }
    // The name of a code object's site contains its first line, "file.py(10): f"; the frame has the line that
    // ran.
    std::string python_text(std::uint64_t word) const {
        const auto line = static_cast<std::uint32_t>(word >> detail::kFrameLineShift);
        if (word == detail::kFramesLeftOut) return "...";
        const SiteInfo* const code = code_of(word);
        if (code == nullptr) return "??";
        std::string text = code->name < data_.strings.size() ? data_.strings[code->name] : std::string();
        const std::string first = "(" + std::to_string(code->line) + "): ";
        if (const std::size_t at = text.find(first); line != 0 && at != std::string::npos)
            text.replace(at, first.size(), "(" + std::to_string(line) + "): ");
        return text.empty() ? "??" : text;
    }
    std::string native_text(std::uint64_t word) {
        const std::uint32_t module = module_of(word);
        const std::uint64_t offset = word & ((std::uint64_t{1} << detail::kFrameModuleShift) - 1);
        if (module == 0 || module > modules_.size()) return hexadecimal(offset);
        has_native_ = true;
        if (shown_.empty()) name_modules();
        return shown_[module - 1] + "+" + hexadecimal(offset);
    }
    // If a path had two different files, the build id distinguishes them.
    void name_modules() {
        std::map<StringId, StringId> builds;
        for (const NamedModule& module : modules_) {
            const auto [at, fresh] = builds.try_emplace(module.path, module.build_id);
            std::string shown =
                module.path < data_.strings.size() ? data_.strings[module.path] : std::string();
            if (shown.empty()) shown = "??";
            if (at->second != module.build_id && module.build_id < data_.strings.size())
                shown += "@" + data_.strings[module.build_id];
            shown_.push_back(std::move(shown));
        }
    }

    const TraceData& data_;
    StringPool& strings_;
    std::span<const NamedModule> modules_;
    const FrameNames& tables_;
    std::vector<std::string> shown_;  ///< the name of each module in texts; empty: not made yet
    std::unordered_map<std::uint64_t, StringId> known_;
    bool has_native_ = false;
};

}  // namespace marey
