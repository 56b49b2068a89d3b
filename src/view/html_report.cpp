// html_report.cpp: the viewer's page with the answers inside: one file that needs no server.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include <marey/error.h>
#include <marey/export.h>
#include <marey/view.h>

#include "base/gzip.h"
#include "base/output_file.h"
#include "json/json_writer.h"
#include "trace/trace_data.h"

namespace marey {
namespace html {
namespace {

constexpr std::uint32_t kPixels = 3840;  ///< of a 4K screen; embedded.ts has the same number
constexpr std::size_t kMaxLevels = 40;
constexpr std::size_t kPictureBytes = std::size_t{24} << 20;  ///< of all tracks, before compression
constexpr std::size_t kNamesAtOnce = 500;                     ///< keeps each request short
constexpr std::size_t kMaxCounters = 1000;
constexpr std::size_t kMaxTasks = 500;

std::string base64(std::string_view bytes) {
    constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t group = 0;
        for (std::size_t i = 0; i < 3; ++i)
            group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
        for (std::size_t i = 0; i < 4; ++i)
            text += at + i > bytes.size() ? '=' : kDigits[group >> (18 - 6 * i) & 63];
    }
    return text;
}

std::string with_commas(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, ",");
    return digits;
}

/// The numbers at the beginning of a picture's answer, and its sites.
struct PictureHeader {
    std::uint32_t magic, levels, boxes, sites, unit, site_bytes;
};

/// Collects answers.
class Report {
  public:
    explicit Report(const Viewer& view) : view_(view) { add("outline", ""); }

    void add_trace(const Trace& trace, std::size_t number, std::size_t count) {
        trace_ = trace;
        of_ = "?trace=" + std::to_string(number);
        most_bytes_ = kPictureBytes * (number + 1) / count;
        sites_.clear();
        ranges_ += trace.ranges().size();
        has_memory_ |= trace.memory().size() > 0;
        has_device_ |= std::ranges::any_of(
            trace.tracks(), [](const TrackInfo& track) { return track.kind == TrackKind::Device; });
        const std::string window = "&begin=0&end=" + std::to_string(std::max<std::int64_t>(window_ns(), 1)) +
                                   "&pixels=" + std::to_string(kPixels);
        add_pictures(window);
        add_names();
        for (Row thread = 0; thread < trace_.threads().size(); ++thread)
            add("instants" + of_ + "&thread=" + std::to_string(thread), window);
        add_counters(window);
        add("overview" + of_, "&pixels=2000");
        for (const char* by : {"", "&by=function", "&by=file", "&by=module", "&by=package", "&thread=1"})
            add("table" + of_ + by, "");
        add_shapes();
        for (const char* value : {"total", "self", "calls", "bytes", "gpu"})
            add("flame" + of_ + "&value=" + value, "&pixels=" + std::to_string(kPixels));
        for (const char* report : {"steps", "explain", "gpu"}) add(report + of_, "");
        add("memory" + of_ + "&by=path", "");
    }

    void add_difference() {
        std::vector<const char*> values{"self", "calls"};
        if (has_memory_) values.push_back("bytes");
        if (has_device_) values.push_back("gpu");
        for (const char* const value : values) {
            add("difference?value=" + std::string(value), "&pixels=" + std::to_string(kPixels));
            add("diff?value=" + std::string(value), "");
        }
    }

  private:
    std::int64_t window_ns() const { return trace_.window().end_ns - trace_.window().start_ns; }

    /// Adds the answer to `key` with more parameters; the page asks for `key`.
    void add(const std::string& key, const std::string& more) {
        put(key, view_.answer("/api/" + key + more));
    }

    /// Without values there are no shapes: the table is the one by name.
    void add_shapes() {
        const std::string by_name = "table" + of_, by_shape = by_name + "&shape=1";
        const auto plain =
            std::ranges::find_if(places_, [&](const auto& entry) { return entry.first == by_name; });
        if (!trace_.data().range_arguments.empty()) {
            add(by_shape, "");
        } else {
            places_.push_back({by_shape, plain->second});
        }
    }

    void put(const std::string& key, const std::string& answer) {
        answers_.resize((answers_.size() + 7) / 8 * 8);  // columns are aligned
        places_.push_back({key, {answers_.size(), answer.size()}});
        answers_ += answer;
    }

    /// Tracks with the most ranges first, until there are too many bytes.
    void add_pictures(const std::string& window) {
        const auto tracks = trace_.tracks();
        std::vector<Row> order(tracks.size());
        std::iota(order.begin(), order.end(), Row{0});
        std::ranges::stable_sort(order,
                                 [&](Row a, Row b) { return tracks[a].range_count > tracks[b].range_count; });
        for (const Row track : order) {
            if (tracks[track].range_count == 0) break;
            if (answers_.size() > most_bytes_) {
                ++left_out_;
                continue;
            }
            add_picture(track, window);
        }
        add_tasks(window);
    }

    /// The server adds tracks of asyncio tasks after those of the trace; a number that is too large is an
    /// error.
    void add_tasks(const std::string& window) {
        const std::size_t first = trace_.tracks().size();
        try {
            for (std::size_t i = 0; i < kMaxTasks && answers_.size() < most_bytes_; ++i)
                add_picture(static_cast<Row>(first + i), window);
        } catch (const Error&) {
            return;
        }
    }

    void add_picture(Row track, const std::string& window) {
        const std::string key = "picture" + of_ + "&track=" + std::to_string(track);
        const std::string answer =
            view_.answer("/api/" + key + window + "&levels=" + std::to_string(kMaxLevels));
        read_header(answer);
        put(key, answer);
    }

    void read_header(const std::string& answer) {
        PictureHeader header{};
        if (answer.size() < sizeof header) return;
        std::memcpy(&header, answer.data(), sizeof header);
        boxes_ += header.boxes;
        const std::size_t first = sizeof header + std::size_t{4} * (header.levels + 1);
        for (std::size_t i = 0; i < header.sites && first + 4 * i + 4 <= answer.size(); ++i) {
            std::uint32_t site = 0;
            std::memcpy(&site, answer.data() + first + 4 * i, 4);
            sites_.insert(site);
        }
    }

    void add_names() {
        for (const std::uint32_t site : trace_.instants().site) sites_.insert(site);
        std::string list, all;
        std::size_t count = 0;
        for (auto site = sites_.begin(); site != sites_.end();) {
            list += (list.empty() ? "" : ",") + std::to_string(*site);
            if (++site != sites_.end() && ++count % kNamesAtOnce != 0) continue;
            const std::string answer = view_.answer("/api/names" + of_ + "&sites=" + list);
            const std::size_t begin = answer.find('[') + 1, end = answer.rfind(']');
            all += (all.empty() ? "" : ",") + answer.substr(begin, end - begin);
            list.clear();
        }
        put("names" + of_, "{\"names\":[" + all + "]}");
    }

    /// Only the server numbers counters; a number that is too large is an error.
    void add_counters(const std::string& window) {
        try {
            for (std::size_t i = 0; i < kMaxCounters; ++i)
                add("counter" + of_ + "&counter=" + std::to_string(i), window);
        } catch (const Error&) {
            return;
        }
    }

    std::string note() const {
        std::string text = with_commas(ranges_) + " ranges are drawn as " + with_commas(boxes_) +
                           " boxes, for a screen of " + with_commas(kPixels) + " pixels and " +
                           std::to_string(kMaxLevels) + " levels.";
        if (left_out_ > 0) text += " The timeline leaves out " + with_commas(left_out_) + " tracks.";
        return text;
    }

  public:
    std::string packed() const {
        std::string index;
        JsonWriter json(index);
        json.begin_object().member("note", note()).key("requests").begin_object();
        for (const auto& [key, place] : places_) {
            json.key(key).begin_array();
            json.value(static_cast<std::uint64_t>(place.first))
                .value(static_cast<std::uint64_t>(place.second));
            json.end_array();
        }
        json.end_object().end_object();
        const auto size = static_cast<std::uint32_t>(index.size());
        std::string all(reinterpret_cast<const char*>(&size), sizeof size);
        const std::string small = gzipped(all + index + answers_, 9);
        if (small.empty())
            throw Error(MAREY_HAVE_ZLIB ? "cannot compress the HTML report"
                                        : "cannot write an HTML report: this Marey was built without zlib");
        return base64(small);
    }

  private:
    Trace trace_;
    std::string of_;  ///< the beginning of questions about it
    const Viewer& view_;
    std::string answers_;
    std::vector<std::pair<std::string, std::pair<std::size_t, std::size_t>>> places_;
    std::set<std::uint32_t> sites_;
    std::size_t most_bytes_ = 0;
    bool has_memory_ = false, has_device_ = false;
    std::uint64_t ranges_ = 0, boxes_ = 0;
    std::uint64_t left_out_ = 0;
};

void replace(std::string& text, std::string_view what, const std::string& by) {
    const std::size_t at = text.find(what);
    if (at == std::string::npos) throw Error("the viewer's page lacks " + std::string(what));
    text.replace(at, what.size(), by);
}

/// One trace, or two with their comparison.
std::string page_of(std::span<const std::pair<std::string, const Trace*>> traces, RunComparison* comparison) {
    const ViewOptions options{.comparison = comparison, .is_offline = true};
    std::vector<ViewSource> sources;
    for (const auto& [title, trace] : traces) sources.push_back({title, [trace = trace] { return *trace; }});
    const std::unique_ptr<Viewer> view = open_view(std::move(sources), options);
    Report report(*view);
    for (std::size_t i = 0; i < traces.size(); ++i) report.add_trace(*traces[i].second, i, traces.size());
    if (comparison != nullptr) report.add_difference();
    std::string page = view->answer("/index.html");
    if (comparison != nullptr) replace(page, "<html", "<html data-view=\"changes\"");
    replace(page, R"(<meta name="color-scheme")",
            R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; )"
            R"(script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">)"
            "\n"
            R"(<meta name="color-scheme")");
    replace(page, R"(<link rel="stylesheet" href="app.css">)",
            "<style>\n" + view->answer("/app.css") + "</style>");
    replace(page, R"(<script src="app.js"></script>)",
            "<script type=\"application/marey\">" + report.packed() + "</script>\n<script>\n" +
                view->answer("/app.js") + "</script>");
    return page;
}

}  // namespace
}  // namespace html

std::string html_report(const Trace& trace, const std::string& title) {
    const std::pair<std::string, const Trace*> only(title, &trace);
    return html::page_of({&only, 1}, nullptr);
}

void write_html_report(const Trace& trace, const std::string& path, const std::string& title) {
    OutputFile file(path);
    file.write(html_report(trace, title));
    file.commit();
}

void write_html_comparison(RunComparison& comparison, const Trace& before, const Trace& after,
                           const std::string& path) {
    const Comparison result = comparison.compare();
    const std::pair<std::string, const Trace*> sides[] = {{result.files[0].front(), &before},
                                                          {result.files[1].front(), &after}};
    OutputFile file(path);
    file.write(html::page_of(sides, &comparison));
    file.commit();
}

}  // namespace marey
