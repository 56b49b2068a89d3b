// write.cpp: writes Chrome trace JSON as a stream. docs/formats/chrome_json.md describes the mapping.
#include "formats/chrome/write.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <marey/export.h>
#include <marey/samples.h>
#include <marey/suspended_calls.h>

#include "analyze/events/event_categories.h"
#include "base/output_file.h"
#include "base/output_pieces.h"
#include "base/parallel.h"
#include "formats/chrome/text.h"
#include "formats/chrome/write_events.h"
#include "formats/chrome/write_header.h"
#include "formats/chrome/write_rows.h"
#include "formats/chrome/write_tables.h"
#include "json/json_writer.h"

namespace marey {
namespace {

/// Minimum number of rows per thread; fewer (a few milliseconds of work) do not justify another thread.
constexpr std::size_t kRowsOfThread = 16384;
/// More threads would only wait for the one that writes.
constexpr std::size_t kMaxThreads = 16;

/// A user range on a queue: from the start of the first to the end of the last work that it launched there.
struct ChromeAnnotation {
    Row range = kNoRow;
    Row track = kNoRow;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
};

bool is_annotation(Scope scope) noexcept {
    return scope == Scope::User || scope == Scope::Step;
}

bool has_annotations(const Trace& trace) {
    const RangeColumns ranges = trace.ranges();
    return std::ranges::any_of(trace.tracks(), [&](const TrackInfo& track) {
        const auto sites = ranges.site.subspan(track.first_range, track.range_count);
        return is_of_device(track) && std::ranges::any_of(sites, [&](std::uint32_t site) {
                   return is_annotation(trace.sites()[site].scope);
               });
    });
}

/// One for each range and queue, in order of their first work. As in PyTorch, work counts for the innermost
/// user range around its launch. Empty if the trace has such ranges already because it was imported.
std::vector<ChromeAnnotation> chrome_annotations(const Trace& trace) {
    std::vector<ChromeAnnotation> all;
    if (trace.links().empty() || has_annotations(trace)) return all;
    const RangeColumns ranges = trace.ranges();
    std::map<std::pair<Row, Row>, std::size_t> places;  // by range and track
    for (const LinkInfo& link : trace.links()) {
        if (link.kind != LinkKind::Launch || link.from >= ranges.size() || link.to >= ranges.size()) continue;
        Row range = link.from;
        while (range != kNoRow && !is_annotation(trace.sites()[ranges.site[range]].scope))
            range = ranges.parent[range];
        const auto track = static_cast<Row>(trace.track_of(link.to));
        if (range == kNoRow || !is_of_device(trace.tracks()[track])) continue;
        const std::int64_t start = ranges.start_ns[link.to];
        const std::int64_t end = start + ranges.duration_ns[link.to];
        const auto [place, is_new] = places.try_emplace({range, track}, all.size());
        if (is_new) all.push_back({range, track, start, end});
        ChromeAnnotation& annotation = all[place->second];
        annotation.start_ns = std::min(annotation.start_ns, start);
        annotation.end_ns = std::max(annotation.end_ns, end);
    }
    return all;
}

class ChromeJson {
  public:
    /// `target`: a path or a stream. `name`: the file name, or empty.
    ChromeJson(const Trace& trace, auto& target, std::string_view name, ChromeCut cut,
               ChromeStyle style = ChromeStyle::Torch)
        : trace_(trace), name_(name), cut_(cut), style_(style), tables_(trace), file_(target) {
        if (tables_.is_torch || has_site_of([](Scope scope) { return scope == Scope::Device; }))
            style_ = ChromeStyle::Torch;
    }

    void write() {
        ChromeHeader header(tables_, out_, style_);
        header.write_facts();
        header.write_names();
        write_events();
        write_annotations();
        write_trailer();
        file_.commit();
    }

  private:
    void write_events() {
        const ChromePieces pieces(trace_, cut_.rows_of_piece);
        std::size_t threads = cut_.threads;
        if (threads == 0)
            threads = std::min({kMaxThreads, std::size_t{usable_cores()}, pieces.rows() / kRowsOfThread});
        const auto make_writer = [&](OutputBuffer& out) -> PieceWriter {
            return [&pieces, events = std::make_shared<ChromeEvents>(tables_, out)](std::size_t piece) {
                events->write(pieces[piece]);
            };
        };
        write_pieces(file_, pieces.size(), make_writer, static_cast<unsigned>(threads));
    }

    void write_annotations() {
        const ChromeClock& clock = tables_.clock;
        std::string text;
        for (const ChromeAnnotation& each : chrome_annotations(trace_)) {
            const std::uint64_t start = clock.since_base(each.start_ns);
            char duration[32];
            text = "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":";
            append_json_string(text, trace_.range_name(each.range));
            text += ',' + chrome_row_text(tables_.rows.track[each.track]) + clock.micros(each.start_ns);
            text += ",\"dur\":";
            text.append(duration, put_micros(duration, clock.since_base(each.end_ns) - start));
            text += ",\"args\":{\"External id\":" + std::to_string(tables_.first_id + each.range) +
                    ",\"derived\":true}},\n";
            out_.put(text);
        }
    }

    bool has_site_of(auto test) const {
        return std::ranges::any_of(trace_.sites(), [&](const SiteInfo& site) { return test(site.scope); });
    }

    /// The name of the span: the one that tools look for if the trace is from PyTorch or a profiler like
    /// PyTorch's, else the session's name.
    std::string span_name() const {
        const bool is_profile = std::ranges::any_of(
            trace_.metadata(), [](const MetadataInfo& fact) { return fact.key == "trace_id"; });
        if (is_profile ||
            has_site_of([](Scope scope) { return is_operator(scope) || scope == Scope::Device; }))
            return "PyTorch Profiler";
        return trace_.window().session_name.empty() ? "Marey" : trace_.window().session_name;
    }

    /// The window comes last and has no comma after it, so every other event can have one unconditionally.
    void write_trailer() {
        std::string text = style_ == ChromeStyle::Torch ? torch_window() : viewer_window();
        text += "\n]";
        if (has_name()) {
            text += ",\"traceName\":";
            append_json_string(text, name_);
        }
        out_.put(text + "}\n");
    }

    /// Metadata, which viewers do not show.
    std::string viewer_window() const {
        const ChromeClock& clock = tables_.clock;
        return std::string("{\"ph\":\"M\",\"name\":\"") + kChromeWindow +
               "\",\"pid\":0,\"tid\":0,\"ts\":" + clock.micros(clock.start_ns()) +
               ",\"dur\":" + clock.window_micros() + "}";
    }

    /// In the order in which PyTorch writes it.
    std::string torch_window() const {
        constexpr std::int64_t kSpanIndex = 0x20000000;  // sorts below everything else, as in PyTorch
        const ChromeClock& clock = tables_.clock;
        const std::string span = span_name();
        const std::string start = clock.micros(clock.start_ns()), end = clock.end_micros();
        std::string text = "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":";
        append_json_string(text, span + " (0)");
        text += ",\"pid\":\"Spans\",\"tid\":";
        append_json_string(text, span);
        text += ",\"ts\":" + start + ",\"dur\":" + clock.window_micros() + ",\"args\":{\"Op count\":";
        append_json_number(text, std::uint64_t{trace_.ranges().size()});
        text += "}},\n";
        JsonWriter json(text);
        json.begin_object().member("ph", "M").member("name", "process_sort_index").member("pid", "Spans");
        json.member("tid", 0).key("args").begin_object().member("sort_index", kSpanIndex);
        json.end_object().end_object();
        text += ",\n{\"ph\":\"i\",\"s\":\"g\",\"name\":";
        append_json_string(text, "Iteration Start: " + span);
        text += ",\"pid\":\"Traces\",\"tid\":";
        append_json_string(text, "Trace " + span);
        text +=
            ",\"ts\":" + start +
            "},\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\",\"ts\":" +
            end + "}";
        return text;
    }
    /// An imported trace may already have a name.
    bool has_name() const {
        return !name_.empty() && std::ranges::none_of(trace_.metadata(), [](const MetadataInfo& fact) {
            return fact.key == "traceName";
        });
    }

    const Trace& trace_;
    const std::string_view name_;
    const ChromeCut cut_;
    ChromeStyle style_;
    const ChromeTables tables_;
    OutputFile file_;
    ChromeText out_{file_};
};

std::string_view trace_name(std::string_view path) {
    if (path.ends_with(".gz")) path.remove_suffix(3);  // the name of the uncompressed file
    return path.starts_with("/dev/") ? std::string_view() : path;
}

}  // namespace

void write_chrome_json(const Trace& trace, const std::string& path, ChromeCut cut) {
    ChromeJson(with_part_flows(with_sample_tracks(with_task_tracks(trace))), path, trace_name(path), cut)
        .write();
}

void write_chrome_json(const Trace& trace, const std::string& path, ChromeStyle style) {
    ChromeJson(with_part_flows(with_sample_tracks(with_task_tracks(trace))), path, trace_name(path), {},
               style)
        .write();
}

void write_chrome_json(const Trace& trace, std::ostream& stream, ChromeCut cut) {
    ChromeJson(with_part_flows(with_sample_tracks(with_task_tracks(trace))), stream, {}, cut).write();
}

void write_chrome_json(const Trace& trace, const std::string& path) {
    write_chrome_json(trace, path, ChromeCut{});
}

void write_chrome_json(const Trace& trace, std::ostream& stream) {
    write_chrome_json(trace, stream, ChromeCut{});
}

}  // namespace marey
