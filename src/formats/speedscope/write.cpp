// write.cpp: writes the file format of speedscope (https://www.speedscope.app) as a stream: one evented
// profile per track.
#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include <marey/export.h>
#include <marey/samples.h>

#include "base/output_file.h"
#include "base/work_meter.h"
#include "formats/decimal.h"
#include "json/json_writer.h"

namespace marey {
namespace {

class Speedscope {
  public:
    Speedscope(const Trace& trace, const std::string& path)
        : trace_(trace), file_(path), meter_(trace.ranges().size()) {
        window_start_ns_ = trace.window().start_ns;
        window_end_ns_ = std::max(trace.window().end_ns, window_start_ns_);
    }

    void write() {
        std::string text;
        JsonWriter json(text);
        json.begin_object().member("$schema", "https://www.speedscope.app/file-format-schema.json");
        json.member("exporter", "marey@" MAREY_VERSION).member("name", title());
        json.member("activeProfileIndex", fullest_profile());
        file_.write(text);
        write_frames();
        file_.write(",\"profiles\":[");
        bool is_first = true;
        for (const TrackInfo& track : trace_.tracks()) {
            if (track.range_count == 0) continue;
            file_.write(is_first ? "\n" : ",\n");
            is_first = false;
            write_profile(track);
        }
        file_.write("\n]}\n");
        file_.commit();
    }

  private:
    std::string title() const {
        if (!trace_.window().session_name.empty()) return trace_.window().session_name;
        if (trace_.processes().empty()) return "marey";
        const std::string_view path = trace_.string(trace_.processes().front().name);
        return std::string(path.substr(path.find_last_of('/') + 1));
    }

    /// The profile that the viewer shows first.
    std::uint64_t fullest_profile() const {
        std::uint64_t index = 0, fullest = 0;
        Row most = 0;
        for (const TrackInfo& track : trace_.tracks()) {
            if (track.range_count == 0) continue;
            if (track.range_count > most) {
                most = track.range_count;
                fullest = index;
            }
            ++index;
        }
        return fullest;
    }

    /// Writes one frame per name and source location.
    void write_frames() {
        std::vector<bool> is_used(trace_.sites().size(), false);
        for (const std::uint32_t site : trace_.ranges().site) is_used[site] = true;
        std::map<std::tuple<StringId, StringId, std::uint32_t>, std::uint32_t> known;
        frames_.resize(trace_.sites().size(), 0);
        file_.write(",\"shared\":{\"frames\":[");
        std::string text;
        for (std::size_t i = 0; i < trace_.sites().size(); ++i) {
            if (!is_used[i]) continue;
            const SiteInfo& site = trace_.sites()[i];
            const auto [place, is_new] = known.try_emplace({site.name, site.file, site.line},
                                                           static_cast<std::uint32_t>(known.size()));
            frames_[i] = place->second;
            if (!is_new) continue;
            text = place->second == 0 ? "\n" : ",\n";
            JsonWriter json(text);
            json.begin_object().member("name", trace_.string(site.name));
            if (site.file != 0) json.member("file", trace_.string(site.file));
            if (site.file != 0 && site.line != 0) json.member("line", site.line);
            json.end_object();
            file_.write(text);
        }
        file_.write("\n]}");
    }

    std::string profile_name(const TrackInfo& track) const {
        const ThreadInfo& thread = trace_.threads()[track.thread];
        std::string name(trace_.string(track.name));
        if (name.empty()) name = trace_.string(thread.name);
        if (name.empty()) name = "thread " + std::to_string(thread.id);
        if (trace_.processes().size() > 1)
            name += " in process " + std::to_string(trace_.processes()[thread.process].pid);
        return name;
    }

    std::uint64_t since_start(std::int64_t ns) const {
        return static_cast<std::uint64_t>(std::clamp(ns, window_start_ns_, window_end_ns_)) -
               static_cast<std::uint64_t>(window_start_ns_);
    }

    void write_profile(const TrackInfo& track) {
        std::string text;
        JsonWriter json(text);
        json.begin_object().member("type", "evented").member("name", profile_name(track));
        json.member("unit", "nanoseconds").member("startValue", std::uint64_t{0});
        json.member("endValue", since_start(window_end_ns_));
        file_.write(text);
        file_.write(",\"events\":[");
        const RangeColumns ranges = trace_.ranges();
        open_.clear();
        last_ = 0;
        is_first_event_ = true;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            meter_.add_row(row);
            close_to(ranges.depth[row]);
            const std::uint32_t frame = frames_[ranges.site[row]];
            write_event('O', frame, since_start(ranges.start_ns[row]));
            open_.push_back({frame, since_start(ranges.start_ns[row] + ranges.duration_ns[row])});
        }
        close_to(0);
        file_.write("]}");
    }

    /// Closes open ranges, innermost first, until `depth` are left.
    void close_to(std::size_t depth) {
        while (open_.size() > depth) {
            write_event('C', open_.back().frame, open_.back().end);
            open_.pop_back();
        }
    }

    /// Makes times non-decreasing, whatever the trace contains: the viewer would reject the file otherwise.
    void write_event(char kind, std::uint32_t frame, std::uint64_t at) {
        constexpr std::size_t kMaxBytes = 96;
        static constexpr char kStart[] = ",\n{\"type\":\"?\",\"frame\":";
        constexpr std::size_t kKindAt = 11;  // position of the '?'
        static constexpr char kMiddle[] = ",\"at\":";
        last_ = std::max(last_, at);
        const std::size_t skip = is_first_event_ ? 1 : 0;  // the comma
        is_first_event_ = false;
        char* out = file_.reserve(kMaxBytes);
        std::memcpy(out, kStart + skip, sizeof kStart - 1 - skip);
        out[kKindAt - skip] = kind;
        out = put_decimal(out + sizeof kStart - 1 - skip, frame);
        std::memcpy(out, kMiddle, sizeof kMiddle - 1);
        out = put_decimal(out + sizeof kMiddle - 1, last_);
        *out++ = '}';
        file_.advance(out);
    }

    struct Open {
        std::uint32_t frame;
        std::uint64_t end;
    };

    const Trace& trace_;
    OutputFile file_;
    WorkMeter meter_;
    std::int64_t window_start_ns_ = 0;
    std::int64_t window_end_ns_ = 0;
    std::vector<std::uint32_t> frames_;  ///< per site
    std::vector<Open> open_;             ///< of the current track, outermost first
    std::uint64_t last_ = 0;
    bool is_first_event_ = true;
};

}  // namespace

void write_speedscope(const Trace& trace, const std::string& path) {
    Speedscope(with_sample_tracks(trace), path).write();
}

}  // namespace marey
