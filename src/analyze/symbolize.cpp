// symbolize.cpp: finds names for the native frames in a trace's stacks.
#include <marey/symbolize.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include <marey/error.h>

#include "json/json_document.h"
#include "native/native_symbols.h"
#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// A module from the trace's metadata.
struct TraceModule {
    std::string name;  ///< the name used for it in frames
    NativeModule facts;
};

/// Parses [{"name": ..., "path": ..., "build_id": ...}, ...].
std::vector<TraceModule> read_modules(std::string_view json) {
    std::vector<TraceModule> modules;
    const JsonDocument document(json);
    document.root().each_item([&](const JsonDocument::Value& module) {
        TraceModule& known = modules.emplace_back();
        known.name = module["name"].text();
        known.facts.path = module["path"].text();
        known.facts.build_id = module["build_id"].text();
    });
    return modules;
}

/// A place in a module: "name+0x12ab", optionally followed by ": function".
struct FramePlace {
    std::string_view module;
    std::uint64_t offset = 0;
    std::string_view text;  ///< without the function
};

std::optional<FramePlace> place_of(std::string_view text) {
    const std::size_t end = std::min(text.find(": "), text.size());
    const std::size_t plus = text.substr(0, end).rfind("+0x");
    if (plus == std::string_view::npos) return {};
    FramePlace place{text.substr(0, plus), 0, text.substr(0, end)};
    const char* const last = text.data() + end;
    const auto [stop, error] = std::from_chars(text.data() + plus + 3, last, place.offset, 16);
    if (error != std::errc() || stop != last) return {};
    return place;
}

std::string entry_text(const NativeSymbol& symbol, std::string_view place) {
    std::string text;
    if (symbol.file.empty()) {
        text = place;
    } else {
        text = symbol.file;
        if (symbol.line > 0) text += "(" + std::to_string(symbol.line) + ")";
    }
    return text + ": " + (symbol.function.empty() ? "??" : symbol.function);
}

class Symbolizer {
  public:
    Symbolizer(const Trace& trace, std::span<const std::string> folders)
        : folders_(folders), data_(std::make_shared<TraceData>(trace.data())) {
        for (const MetadataInfo& fact : data_->metadata) {
            if (fact.key == "native_modules") modules_ = read_modules(fact.json);
        }
        for (std::size_t i = 0; i < modules_.size(); ++i) by_name_.try_emplace(modules_[i].name, i);
    }

    SymbolizedTrace run() {
        find_places();
        for (auto& [module, places] : by_module_) name(modules_[module].facts, places);
        rewrite();
        rewrite_samples();
        SymbolizedTrace result;
        for (const auto& [module, places] : by_module_) {
            result.modules.push_back(modules_[module].facts);
            for (const StringId id : places) {
                const FramePlace place = *place_of(data_->strings[id]);
                std::vector<std::string> entries;
                for (const NativeSymbol& symbol : entries_[id])
                    entries.push_back(entry_text(symbol, place.text));
                result.frames.push_back({std::string(place.text), std::move(entries)});
            }
        }
        result.trace = Trace(std::move(data_));
        return result;
    }

  private:
    void for_each_stack(auto use) {
        for (Argument& value : data_->arguments) {
            if (value.kind == ValueKind::List && value.role == ArgumentRole::Keyword &&
                data_->strings[value.key] == "Call stack")
                use(value);
        }
    }

    void add_place(StringId text) {
        if (entries_.contains(text)) return;
        const std::optional<FramePlace> place = place_of(data_->strings[text]);
        if (!place) return;
        const auto found = by_name_.find(std::string(place->module));
        if (found == by_name_.end()) return;
        entries_.try_emplace(text);
        by_module_[found->second].push_back(text);
    }

    void find_places() {
        for_each_stack([&](const Argument& stack) {
            for (std::uint32_t i = 0; i < stack.list.count; ++i) {
                const Argument& frame = data_->list_items[stack.list.first + i];
                if (frame.kind == ValueKind::String) add_place(frame.string);
            }
        });
        for (const FrameInfo& frame : data_->frames) {
            if (frame.module != 0) add_place(frame.name);
        }
    }

    std::vector<std::string> candidates(const NativeModule& module) const {
        std::vector<std::string> files;
        const auto add = [&](const std::string& file) {
            std::error_code ignored;
            if (!file.empty() && std::filesystem::is_regular_file(file, ignored)) files.push_back(file);
        };
        for (const std::string& folder : folders_) {
            add(file_with_build_id(folder, module.build_id));
            add(folder + module.path);
            add(folder + "/" + std::filesystem::path(module.path).filename().string());
        }
        add(module.path);
        add(file_with_build_id("/usr/lib/debug", module.build_id));
        return files;
    }

    void name(NativeModule& module, const std::vector<StringId>& places) {
        module.frames = places.size();
        std::vector<std::uint64_t> offsets;
        offsets.reserve(places.size());
        for (const StringId id : places) offsets.push_back(place_of(data_->strings[id])->offset);
        std::vector<std::vector<NativeSymbol>> symbols;
        module.trouble = "file not found";
        for (const std::string& file : candidates(module)) {
            try {
                symbols = symbols_at(file, module.build_id, offsets);
                module.file = file;
                module.trouble =
                    module.build_id.empty() ? "cannot be verified: no build id was recorded" : "";
                break;
            } catch (const Error& error) {
                module.trouble = error.what();
            }
        }
        for (std::size_t i = 0; i < symbols.size(); ++i) {
            bool any = false;
            for (const NativeSymbol& symbol : symbols[i])
                any = any || !symbol.function.empty() || !symbol.file.empty();
            if (!any) continue;
            ++module.named;
            entries_[places[i]] = symbols[i];
        }
    }

    void rewrite() {
        StringPool strings(data_->strings);
        std::unordered_map<StringId, std::vector<StringId>> named;
        for (const auto& [id, entries] : entries_) {
            const std::string text = data_->strings[id];
            for (const NativeSymbol& symbol : entries)
                named[id].push_back(strings.intern(entry_text(symbol, place_of(text)->text)));
        }
        std::vector<Argument> items;
        std::map<std::pair<std::uint32_t, std::uint32_t>, ListItems>
            moved;  // equal stacks share their frames
        for_each_stack([&](Argument& stack) {
            const auto at = moved.find({stack.list.first, stack.list.count});
            if (at != moved.end()) {
                stack.list = at->second;
                return;
            }
            const std::pair before{stack.list.first, stack.list.count};
            items.clear();
            bool is_changed = false;
            for (std::uint32_t i = 0; i < stack.list.count; ++i) {
                Argument frame = data_->list_items[stack.list.first + i];
                const auto found = frame.kind == ValueKind::String ? named.find(frame.string) : named.end();
                if (found == named.end()) {
                    items.push_back(frame);
                    continue;
                }
                is_changed = true;
                for (const StringId entry : found->second) {
                    frame.string = entry;
                    items.push_back(frame);
                }
            }
            if (!is_changed) return;
            if (items.size() != stack.list.count) {  // inlined calls made the list longer: append it
                stack.list.first = static_cast<std::uint32_t>(data_->list_items.size());
                stack.list.count = static_cast<std::uint32_t>(items.size());
                data_->list_items.resize(data_->list_items.size() + items.size());
            }
            std::copy(items.begin(), items.end(), data_->list_items.begin() + stack.list.first);
            moved.emplace(before, stack.list);
        });
    }

    /// Inlined calls give a frame several rows, and the stack that it is on as well.
    void rewrite_samples() {
        StringPool strings(data_->strings);
        std::vector<FrameInfo> frames;
        std::vector<std::pair<Row, Row>> now;  // of each old frame: its new rows, the innermost first
        for (const FrameInfo& frame : data_->frames) {
            const auto first = static_cast<Row>(frames.size());
            const auto found = frame.module != 0 ? entries_.find(frame.name) : entries_.end();
            if (found != entries_.end()) {
                for (const NativeSymbol& symbol : found->second) {
                    FrameInfo& named = frames.emplace_back(frame);
                    if (!symbol.function.empty()) named.name = strings.intern(symbol.function);
                    named.file = strings.intern(symbol.file);
                    named.line = symbol.line > 0 ? static_cast<std::uint32_t>(symbol.line) : 0;
                }
            }
            if (first == frames.size()) frames.push_back(frame);
            now.emplace_back(first, static_cast<Row>(frames.size()));
        }
        std::vector<StackInfo> stacks;
        std::vector<Row> row_of;  // of each old stack
        for (const StackInfo& stack : data_->stacks) {
            Row outer = stack.outer != kNoRow ? row_of[stack.outer] : kNoRow;
            const auto [first, end] = now[stack.frame];
            for (Row frame = end; frame-- > first;) {
                stacks.push_back({frame, outer});
                outer = static_cast<Row>(stacks.size() - 1);
            }
            row_of.push_back(outer);
        }
        for (Row& stack : data_->sample_stack) stack = stack != kNoRow ? row_of[stack] : kNoRow;
        data_->frames = std::move(frames);
        data_->stacks = std::move(stacks);
    }

    std::span<const std::string> folders_;
    std::shared_ptr<TraceData> data_;
    std::vector<TraceModule> modules_;
    std::unordered_map<std::string, std::size_t> by_name_;
    std::map<std::size_t, std::vector<StringId>> by_module_;
    std::unordered_map<StringId, std::vector<NativeSymbol>> entries_;  ///< of each place, innermost first
};

}  // namespace

SymbolizedTrace symbolize_trace(const Trace& trace, std::span<const std::string> debug_dirs) {
    return Symbolizer(trace, debug_dirs).run();
}

}  // namespace marey
