// stack_frames.h: the frames of recorded stacks as texts.
#pragma once

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
/// native ones, which symbolize_trace() may name later; "??" for unknown ones. Each once.
class FrameTexts {
  public:
    /// The sites of `data` are complete. All must outlive this.
    FrameTexts(const TraceData& data, StringPool& strings, std::span<const NamedModule> modules,
               std::span<const detail::StackNode> stacks)
        : data_(data), strings_(strings), modules_(modules), stacks_(stacks) {}

    /// The frame words of a numbered stack, innermost first, as far as they are known.
    void for_each_frame(std::uint32_t stack, auto use) const {
        for (std::size_t i = 0; i < CallStack::kMaxEntries && stack - 1 < stacks_.size(); ++i) {
            const detail::StackNode& node = stacks_[stack - 1];
            if (node.is_complete != 1) return;
            use(node.frame);
            stack = node.outer < stack ? node.outer : 0;
        }
    }

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
    // The name of a code object's site contains its first line, "file.py(10): f"; the frame has the line that
    // ran.
    std::string python_text(std::uint64_t word) const {
        const auto site = static_cast<std::uint32_t>(word);
        const auto line = static_cast<std::uint32_t>(word >> detail::kFrameLineShift);
        if (site == 0 || site > data_.sites.size()) return "??";
        const SiteInfo& code = data_.sites[site - 1];
        std::string text = code.name < data_.strings.size() ? data_.strings[code.name] : std::string();
        const std::string first = "(" + std::to_string(code.line) + "): ";
        if (const std::size_t at = text.find(first); line != 0 && at != std::string::npos)
            text.replace(at, first.size(), "(" + std::to_string(line) + "): ");
        return text.empty() ? "??" : text;
    }
    std::string native_text(std::uint64_t word) {
        const auto module =
            static_cast<std::uint32_t>(word >> detail::kFrameModuleShift) % detail::kMaxModules;
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
    std::span<const detail::StackNode> stacks_;
    std::vector<std::string> shown_;  ///< the name of each module in texts; empty: not made yet
    std::unordered_map<std::uint64_t, StringId> known_;
    bool has_native_ = false;
};

}  // namespace marey
