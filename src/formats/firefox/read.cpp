// read.cpp: reads processed profiles of the Firefox Profiler, which Firefox, samply and Marey write:
// samples, and markers as exact ranges and instants.
#include <algorithm>

#include <marey/error.h>

#include "formats/formats.h"
#include "formats/sampled_profile.h"
#include "json/json_document.h"

namespace marey {
namespace {

using JsonValue = JsonDocument::Value;

class FirefoxReader {
  public:
    FirefoxReader(std::string_view text, const std::string& name)
        : name_(name), document_(text), profile_(name, text.size()) {
        if (!document_.error().empty()) throw Error(name_ + ": " + document_.error());
    }

    Trace read() {
        const JsonValue root = document_.root();
        if (!root["threads"].is_array())
            throw Error(name_ + ": not a processed profile of the Firefox Profiler");
        shared_ = root["shared"];
        shared_texts_ = texts_of(shared_["stringArray"]);
        const std::int64_t start = root["meta"]["startTime"].scaled(6).value_or(0);
        std::int64_t number = 0;
        root["threads"].each_item([&](const JsonValue& thread) { read_thread(thread, ++number, start); });
        if (number == 0) throw Error(name_ + ": the profile has no threads");
        profile_.assembler().add_problem("unread_entries", "Indices beyond their tables were skipped.",
                                         unread_);
        if (profile_.samples() > 0) return profile_.finish(unit_);
        return profile_.assembler().finish();
    }

  private:
    /// The tables that stacks refer to; since version 60 all threads share one set.
    struct Tables {
        std::vector<std::uint32_t> frame_sites;
        std::vector<std::uint32_t> stack_frames;
        std::vector<std::uint32_t> prefixes;  ///< kNoRow: none; always before the stack itself
    };

    static std::vector<std::string> texts_of(const JsonValue& array) {
        std::vector<std::string> texts;
        array.each_item([&](const JsonValue& text) { texts.push_back(text.text()); });
        return texts;
    }
    /// An index below `limit`; kNoRow for null and anything else.
    std::uint32_t index_of(const JsonValue& value, std::size_t limit) {
        const auto index = value.integer();
        if (index && *index >= 0 && static_cast<std::uint64_t>(*index) < limit)
            return static_cast<std::uint32_t>(*index);
        if (!value.is_null() && index != -1) ++unread_;
        return kNoRow;
    }
    static JsonValue at(const std::vector<JsonValue>& column, std::size_t row) {
        return row < column.size() ? column[row] : JsonValue();
    }

    Tables read_tables(const JsonValue& owner, const std::vector<std::string>& texts) {
        Tables tables;
        const JsonValue functions = owner["funcTable"];
        const std::vector<JsonValue> names = functions["name"].items(), files = functions["fileName"].items(),
                                     sources = functions["source"].items(),
                                     lines = functions["lineNumber"].items(),
                                     source_files = shared_["sources"]["filename"].items();
        std::vector<std::uint32_t> sites;
        for (std::size_t i = 0; i < names.size(); ++i) {
            const std::uint32_t name = index_of(names[i], texts.size());
            std::uint32_t file = index_of(at(files, i), texts.size());
            if (const std::uint32_t source = index_of(at(sources, i), source_files.size()); source != kNoRow)
                file = index_of(source_files[source], texts.size());
            sites.push_back(profile_.frame(name == kNoRow ? "" : texts[name],
                                           file == kNoRow ? "" : texts[file],
                                           at(lines, i).integer().value_or(0)));
        }
        owner["frameTable"]["func"].each_item([&](const JsonValue& value) {
            const std::uint32_t function = index_of(value, sites.size());
            tables.frame_sites.push_back(function == kNoRow ? profile_.frame("") : sites[function]);
        });
        const JsonValue stacks = owner["stackTable"];
        const std::vector<JsonValue> prefixes = stacks["prefix"].items(),
                                     offsets = stacks["prefixOffset"].items();
        stacks["frame"].each_item([&](const JsonValue& value) {
            const std::size_t row = tables.stack_frames.size();
            tables.stack_frames.push_back(index_of(value, tables.frame_sites.size()));
            std::uint32_t prefix = kNoRow;  // a prefix that is not before its stack could make a cycle
            if (!offsets.empty()) {
                const std::int64_t offset = at(offsets, row).integer().value_or(0);
                if (offset > 0 && static_cast<std::uint64_t>(offset) <= row)
                    prefix = static_cast<std::uint32_t>(row - static_cast<std::size_t>(offset));
            } else {
                prefix = index_of(at(prefixes, row), row);
            }
            tables.prefixes.push_back(prefix);
        });
        return tables;
    }

    void read_thread(const JsonValue& thread, std::int64_t number, std::int64_t start_ns) {
        const std::vector<std::string> own_texts = texts_of(thread["stringArray"]);
        const std::vector<std::string>& texts = own_texts.empty() ? shared_texts_ : own_texts;
        const bool is_shared = thread["stackTable"].is_null();
        if (is_shared && !has_shared_tables_) {
            shared_tables_ = read_tables(shared_, shared_texts_);
            has_shared_tables_ = true;
        }
        const Tables own_tables = is_shared ? Tables() : read_tables(thread, texts);
        std::string name = thread["name"].text();
        if (name.empty()) name = "thread " + std::to_string(number);
        const std::int64_t pid = thread["pid"].integer().value_or(0);
        const std::int64_t tid = thread["tid"].integer().value_or(number);
        const std::uint32_t lane = profile_.lane(pid, thread["processName"].text(), tid, name);
        read_samples(lane, thread["samples"], is_shared ? shared_tables_ : own_tables, start_ns);
        read_markers(lane, thread["markers"], texts, start_ns);
    }

    void read_samples(std::uint32_t lane, const JsonValue& samples, const Tables& tables,
                      std::int64_t start_ns) {
        std::vector<std::int64_t> times;
        samples["time"].each_item([&](const JsonValue& time) {
            times.push_back(time.scaled(6).value_or(times.empty() ? 0 : times.back()));
        });
        if (times.empty()) {
            samples["timeDeltas"].each_item([&](const JsonValue& delta) {
                const std::int64_t step = delta.scaled(6).value_or(0),
                                   last = times.empty() ? 0 : times.back();
                constexpr std::int64_t kMax = SampledProfile::kMaxTimeNs / 4;
                times.push_back(std::clamp(last + std::clamp(step, -kMax, kMax), -kMax, kMax));
            });
        }
        for (std::int64_t& time : times) {
            constexpr std::int64_t kMax = SampledProfile::kMaxTimeNs / 4;
            time = std::clamp(time, -kMax, kMax) + std::clamp(start_ns, -kMax, kMax);
        }
        const std::vector<JsonValue> stacks = samples["stack"].items(), weights = samples["weight"].items();
        const std::string kind = samples["weightType"].text();
        const bool has_times = kind != "bytes";
        if (!has_times) unit_ = "byte";
        const std::vector<std::int64_t> gaps = sample_durations(times);
        std::vector<std::uint32_t> stack;
        for (std::size_t i = 0; i < std::min(stacks.size(), times.size()); ++i) {
            if (stacks[i].is_null()) continue;
            stack.clear();
            for (std::uint32_t row = index_of(stacks[i], tables.prefixes.size()); row != kNoRow;
                 row = tables.prefixes[row]) {
                const std::uint32_t frame = tables.stack_frames[row];
                if (frame != kNoRow) stack.push_back(tables.frame_sites[frame]);
            }
            std::ranges::reverse(stack);
            if (!has_times) {
                profile_.add(lane, stack, at(weights, i).integer().value_or(0));
            } else {
                const bool is_exact = kind == "tracing-ms";
                profile_.add(lane, stack, times[i],
                             is_exact ? at(weights, i).scaled(6).value_or(0) : gaps[i]);
            }
        }
    }

    void read_markers(std::uint32_t lane, const JsonValue& markers, const std::vector<std::string>& texts,
                      std::int64_t start_ns) {
        const std::vector<JsonValue> names = markers["name"].items(), starts = markers["startTime"].items(),
                                     ends = markers["endTime"].items(), phases = markers["phase"].items();
        if (names.empty()) return;
        TraceAssembler& assembler = profile_.assembler();
        const Row thread = assembler.lane(lane).thread;
        std::uint32_t marker_lane = kNoRow;
        constexpr std::int64_t kMax = SampledProfile::kMaxTimeNs / 4;
        start_ns = std::clamp(start_ns, -kMax, kMax);
        for (std::size_t i = 0; i < names.size(); ++i) {
            const std::uint32_t name = index_of(names[i], texts.size());
            const auto start = at(starts, i).scaled(6), end = at(ends, i).scaled(6);
            if (name == kNoRow || !start) continue;
            SiteInfo site;
            site.name = assembler.string(texts[name]);
            const std::int64_t from = std::clamp(*start, -kMax, kMax) + start_ns;
            if (at(phases, i).integer() == 1 && end) {
                if (marker_lane == kNoRow)
                    marker_lane =
                        assembler.add_lane({thread, TrackKind::Async, {}, -1, assembler.string("markers")});
                assembler.add_range(marker_lane, from, std::clamp(*end, -kMax, kMax) + start_ns - from,
                                    assembler.site(site), kAsync);
            } else if (at(phases, i).integer() == 0) {
                assembler.add_instant(thread, from, assembler.site(site));
            }
        }
    }

    std::string name_;
    JsonDocument document_;
    SampledProfile profile_;
    JsonValue shared_;
    std::vector<std::string> shared_texts_;
    Tables shared_tables_;
    bool has_shared_tables_ = false;
    std::string unit_;
    std::uint64_t unread_ = 0;
};

Trace read_firefox_text(std::string_view text, const std::string& name) {
    return FirefoxReader(text, name).read();
}

bool is_firefox(std::span<const std::byte> head) noexcept {
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
    return is_chrome_json(head) && (has("\"preprocessedProfileVersion\"") ||
                                    (has("\"stackTable\"") && has("\"frameTable\"") && has("\"funcTable\"")));
}

}  // namespace

void write_firefox(const Trace& trace, const std::string& path);  // write.cpp

FileFormat firefox_format() {
    static constexpr std::string_view kSuffixes[] = {".profile.json.gz", ".profile.json"};
    return {"firefox",        "Firefox Profiler profiles, for https://profiler.firefox.com",
            "values, links",  kSuffixes,
            write_firefox,    is_firefox,
            read_firefox_text};
}

}  // namespace marey
