// read.cpp: reads speedscope's file format (https://www.speedscope.app). Evented profiles have exact
// times, unless their tool samples; sampled profiles become sampled ranges.
#include <algorithm>
#include <limits>

#include <marey/error.h>

#include "formats/formats.h"
#include "formats/sampled_profile.h"
#include "json/json_document.h"

namespace marey {
namespace {

class SpeedscopeReader {
  public:
    SpeedscopeReader(std::string_view text, const std::string& name)
        : name_(name), document_(text), profile_(name, text.size()) {
        if (!document_.error().empty()) throw Error(name_ + ": " + document_.error());
    }

    Trace read() {
        const JsonDocument::Value root = document_.root();
        if (!root["profiles"].is_array() || !root["shared"]["frames"].is_array())
            throw Error(name_ + ": not a speedscope file: it has no profiles or no frames");
        root["shared"]["frames"].each_item([&](const JsonDocument::Value& frame) {
            frames_.push_back(profile_.frame(frame["name"].text(), frame["file"].text(),
                                             frame["line"].integer().value_or(0)));
        });
        // It writes its samples as events.
        if (root["exporter"].text().starts_with("pyinstrument")) event_flags_ = kSampled;
        std::int64_t number = 0;
        root["profiles"].each_item([&](const JsonDocument::Value& its) { read_profile(its, ++number); });
        if (number == 0) throw Error(name_ + ": the speedscope file has no profiles");
        profile_.assembler().add_problem("unread_events", "Events that do not match were skipped.", unread_);
        profile_.assembler().window().session_name = root["name"].text();
        if (profile_.samples() > 0) return profile_.finish(unit_);
        if (event_flags_ != 0) add_sampled_problem(profile_.assembler());
        profile_.assembler().clock().source = "speedscope";
        return profile_.assembler().finish();
    }

  private:
    void read_profile(const JsonDocument::Value& profile, std::int64_t number) {
        std::string thread = profile["name"].text();
        if (thread.empty()) thread = "profile " + std::to_string(number);
        const std::uint32_t lane = profile_.lane(0, "", number, thread);
        const std::string unit = profile["unit"].text();
        decimals_ = unit == "seconds" ? 9 : unit == "milliseconds" ? 6 : unit == "microseconds" ? 3 : 0;
        const bool is_time = decimals_ != 0 || unit == "nanoseconds";
        if (profile["type"].text() == "sampled") {
            if (!is_time) unit_ = unit == "bytes" ? "byte" : "unit of the weights";
            read_samples(lane, profile, is_time);
        } else {
            read_events(lane, profile);
        }
    }

    void read_samples(std::uint32_t lane, const JsonDocument::Value& profile, bool is_time) {
        const std::vector<JsonDocument::Value> weights = profile["weights"].items();
        std::int64_t time = profile["startValue"].scaled(decimals_).value_or(0);
        std::size_t i = 0;
        std::vector<std::uint32_t> stack;
        profile["samples"].each_item([&](const JsonDocument::Value& sample) {
            const std::int64_t weight = i < weights.size() ? weights[i].scaled(decimals_).value_or(0) : 0;
            ++i;
            stack.clear();
            sample.each_item([&](const JsonDocument::Value& frame) {
                const auto index = frame.integer();
                if (index && *index >= 0 && static_cast<std::uint64_t>(*index) < frames_.size()) {
                    stack.push_back(frames_[static_cast<std::size_t>(*index)]);
                } else {
                    ++unread_;
                }
            });
            if (!is_time) {
                profile_.add(lane, stack, weight);
                return;
            }
            profile_.add(lane, stack, time, weight);
            constexpr std::int64_t kMax = SampledProfile::kMaxTimeNs;
            time = std::clamp(time, -kMax, kMax) + std::clamp<std::int64_t>(weight, 0, kMax);
        });
    }

    void read_events(std::uint32_t lane, const JsonDocument::Value& profile) {
        struct Open {
            std::size_t range;
            std::int64_t frame;
        };
        struct Range {
            std::int64_t start, end;
            std::uint32_t site;
            bool is_open;
        };
        std::vector<Range> ranges;
        std::vector<Open> open;
        std::int64_t last = std::numeric_limits<std::int64_t>::min();
        profile["events"].each_item([&](const JsonDocument::Value& event) {
            const auto at = event["at"].scaled(decimals_);
            const auto frame = event["frame"].integer();
            const std::string type = event["type"].text();
            constexpr std::int64_t kMax = SampledProfile::kMaxTimeNs;
            if (!at || !frame || *frame < 0 || static_cast<std::uint64_t>(*frame) >= frames_.size() ||
                *at < -kMax || *at > kMax || *at < last) {
                ++unread_;
                return;
            }
            if (type == "O") {
                last = *at;
                open.push_back({ranges.size(), *frame});
                ranges.push_back({*at, *at, frames_[static_cast<std::size_t>(*frame)], true});
            } else if (type == "C" && !open.empty() && open.back().frame == *frame) {
                last = *at;
                ranges[open.back().range].end = *at;
                ranges[open.back().range].is_open = false;
                open.pop_back();
            } else {
                ++unread_;
            }
        });
        const std::int64_t end = std::max(last, profile["endValue"].scaled(decimals_).value_or(last));
        for (const Range& range : ranges) {
            const std::int64_t until = range.is_open ? std::min(end, SampledProfile::kMaxTimeNs) : range.end;
            profile_.assembler().add_range(
                lane, range.start, until - range.start, range.site,
                static_cast<std::uint16_t>(event_flags_ | (range.is_open ? kUnfinished : 0)));
        }
    }

    std::string name_;
    JsonDocument document_;
    SampledProfile profile_;
    std::vector<std::uint32_t> frames_;  ///< their sites
    int decimals_ = 0;                   ///< from the profile's unit to nanoseconds
    std::string unit_;
    std::uint16_t event_flags_ = 0;  ///< of ranges made of events
    std::uint64_t unread_ = 0;
};

Trace read_speedscope_text(std::string_view text, const std::string& name) {
    return SpeedscopeReader(text, name).read();
}

bool is_speedscope(std::span<const std::byte> head) noexcept {
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
    return is_chrome_json(head) && (has("speedscope.app/file-format-schema") ||
                                    (has("\"shared\"") && has("\"frames\"") && has("\"profiles\"")));
}

}  // namespace

void write_speedscope(const Trace& trace, const std::string& path);  // write.cpp

FileFormat speedscope_format() {
    static constexpr std::string_view kSuffixes[] = {".speedscope.json", ".speedscope.json.gz"};
    return {"speedscope",
            "Speedscope JSON, for https://www.speedscope.app",
            "values, links, counters, instants",
            kSuffixes,
            write_speedscope,
            is_speedscope,
            read_speedscope_text};
}

}  // namespace marey
