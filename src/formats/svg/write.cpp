// write.cpp: pictures of a trace as one SVG file: a flame graph, and a timeline.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <marey/analyze.h>
#include <marey/export.h>
#include <marey/merge.h>
#include <marey/timeline.h>

#include "analyze/averages/site_groups.h"
#include "base/output_file.h"
#include "base/utf8.h"
#include "base/work_meter.h"
#include "formats/formats.h"
#include "trace/program_names.h"

namespace marey {
namespace svg {
namespace {

constexpr double kWidth = 1600;
constexpr double kMargin = 16;
constexpr double kRow = 18;
constexpr double kHeader = 58;  ///< the title and the line below it
constexpr std::size_t kHues = 10;

// Hues that readers with any colour vision can tell apart by lightness too; the text on them has a contrast
// of at least 7 in both themes.
constexpr std::string_view kStyle = R"(<style>
svg{font:11.5px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;background:#fff;
max-width:100%;height:auto}
text{fill:#1c2430;pointer-events:none}
.t{font-size:17px;font-weight:600}.s,.a{fill:#5c6675}.n{font-weight:600}
rect{stroke:#fff;stroke-width:.6}rect.f{stroke:none}line{stroke:#e3e6ea}
g:hover>rect{stroke:#1c2430;stroke-width:1.2}
.c0{fill:#a9c9ea}.c1{fill:#f3c99b}.c2{fill:#b5d9b0}.c3{fill:#e6b3ba}.c4{fill:#c9bfe6}
.c5{fill:#e9dd9a}.c6{fill:#a8d8d8}.c7{fill:#dfc4ad}.c8{fill:#e5bfdc}.c9{fill:#c6ccd4}
@media(prefers-color-scheme:dark){svg{background:#14181d}text{fill:#eef1f4}.s,.a{fill:#9aa5b1}
rect{stroke:#14181d}rect.f{stroke:none}line{stroke:#2a313a}g:hover>rect{stroke:#fff}
.c0{fill:#2c5480}.c1{fill:#80521c}.c2{fill:#2f6130}.c3{fill:#7d3742}.c4{fill:#544585}
.c5{fill:#665a14}.c6{fill:#1f6163}.c7{fill:#6b4c33}.c8{fill:#74406a}.c9{fill:#4b545f}}
</style>
)";

std::string number(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2f", value);
    std::string result = text.data();
    while (result.ends_with('0')) result.pop_back();
    if (result.ends_with('.')) result.pop_back();
    return result;
}

/// "12,345 ranges".
std::string count_text(std::uint64_t count, const std::string& noun) {
    std::string digits = std::to_string(count);
    for (std::size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, ",");
    return digits + " " + noun + (count == 1 ? "" : "s");
}

std::string time_text(double ns) {
    constexpr std::array<std::pair<double, const char*>, 4> kUnits = {
        {{1e9, " s"}, {1e6, " ms"}, {1e3, " us"}, {1, " ns"}}};
    for (const auto& [unit, name] : kUnits) {
        if (std::abs(ns) < unit && unit > 1) continue;
        std::array<char, 32> text{};
        std::snprintf(text.data(), text.size(), "%.3g", ns / unit);
        return (ns / unit >= 1000 ? std::to_string(std::llround(ns / unit)) : text.data()) +
               std::string(name);
    }
    return "0 s";
}

/// The text as XML: valid UTF-8, without characters that XML does not allow.
std::string xml(std::string_view text) {
    std::string valid, result;
    append_utf8(valid, text);
    for (const char c : valid) {
        switch (c) {
            case '&':
                result += "&amp;";
                break;
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '"':
                result += "&quot;";
                break;
            default:
                result += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
        }
    }
    return result;
}

/// "load" of "shop/cart.py(12): load"; "cart.py" of "shop/cart.py(1): <module>".
std::string_view label_of(std::string_view name) {
    const PythonName python = parse_python_name(name);
    return python.function == "<module>" ? python.path.substr(python.path.find_last_of('/') + 1)
                                         : python.function;
}

/// FNV-1a, as in the viewer.
std::uint32_t colour_hash(std::string_view text) {
    std::uint32_t hash = 0x811C9DC5u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
    return hash;
}

/// Names from one file, of one namespace, or that differ in their number ("step#3") have one colour, which is
/// that of the viewer (web/src/format.ts).
std::size_t hue(std::string_view name) {
    if (const PythonName python = parse_python_name(name); !python.path.empty())
        return colour_hash(python.path) % kHues;
    if (name == "ProfilerStep*") name.remove_suffix(1);
    name = name.substr(0, name.find("::"));
    const std::size_t sign = name.rfind('#');
    if (sign != name.npos && sign + 1 < name.size() &&
        name.find_first_not_of("0123456789", sign + 1) == name.npos)
        name = name.substr(0, sign);
    return colour_hash(name) % kHues;
}

class SvgPage {
  public:
    explicit SvgPage(const Trace& trace, double width = kWidth, std::string title = {})
        : width_(width), title_(title.empty() ? program(trace) : std::move(title)) {}

    void text(double x, double y, std::string_view style, std::string_view words) {
        body_ += text_element(x, y, style, words);
    }
    /// A vertical line, below all boxes.
    void line(double x, double top, double bottom) {
        lines_ += "<line x1=\"" + number(x) + "\" x2=\"" + number(x) + "\" y1=\"" + number(top) + "\" y2=\"" +
                  number(bottom) + "\"/>\n";
    }
    void box(double x, double y, double width, std::string_view name, const std::string& tip) {
        body_ += "<g><title>" + xml(tip) + "</title><rect class=\"c" + std::to_string(hue(name)) +
                 (width < 3 ? " f" : "") + "\" x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" +
                 number(width) + "\" height=\"" + number(kRow - 1) + "\" rx=\"1.5\"/>";
        const std::string label = fitting(label_of(name), width - 8);
        if (!label.empty())
            body_ +=
                "<text x=\"" + number(x + 4) + "\" y=\"" + number(y + 12.5) + "\">" + xml(label) + "</text>";
        body_ += "</g>\n";
    }
    std::string finish(double height, const std::string& subtitle) const {
        const std::string w = number(width_), h = number(height);
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h +
               "\" viewBox=\"0 0 " + w + " " + h + "\">\n" + std::string(kStyle) +
               text_element(kMargin, 28, "t", title_) + text_element(kMargin, 47, "s", subtitle) + lines_ +
               body_ + "</svg>\n";
    }

  private:
    static std::string text_element(double x, double y, std::string_view style, std::string_view words) {
        return "<text class=\"" + std::string(style) + "\" x=\"" + number(x) + "\" y=\"" + number(y) + "\">" +
               xml(words) + "</text>\n";
    }
    static bool continues_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }
    /// About as wide as the widest of the usual fonts draw it.
    static double letter_width(char byte) {
        if (continues_letter(byte)) return 0;
        if ((byte >= 'A' && byte <= 'Z') || byte == 'm' || byte == 'w' || byte == '_') return 8.4;
        return std::string_view("iljtfr.,:;'|()[] ").find(byte) == std::string_view::npos ? 6.9 : 4.4;
    }
    static std::string fitting(std::string_view name, double width) {
        std::string valid;
        append_utf8(valid, name);
        std::size_t end = 0;  // of the letters that leave room for an ellipsis
        double used = 0;
        for (std::size_t i = 0; i < valid.size() && used <= width; ++i) {
            if (used + letter_width('m') <= width && !continues_letter(valid[i])) end = i;
            used += letter_width(valid[i]);
        }
        if (used <= width) return valid;
        return end < 2 ? std::string() : valid.substr(0, end) + "\xE2\x80\xA6";
    }
    static std::string program(const Trace& trace) {
        return trace.processes().empty() ? "marey" : program_name(trace, trace.processes().front());
    }

    double width_;
    std::string title_;
    std::string lines_, body_;
};

double share_of(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// Names merged by their call paths; a box is as wide as its share of the recorded time.
class FlameGraph {
  public:
    FlameGraph(const Trace& trace, const FlameGraphOptions& options)
        : tree_(call_tree(trace, {.merge_steps = true})),
          picture_(trace, options.width, options.title),
          width_(std::max(options.width, 3 * kMargin) - 2 * kMargin),
          count_(options.count.empty() ? count_text(trace.ranges().size(), "range") : options.count) {}

    std::string draw() {
        // Devices and async work overlap the threads: only if there is nothing else are they shown.
        const bool has_host = tree_.recorded_ns > 0;
        whole_ns_ = has_host ? tree_.recorded_ns : tree_.device_ns;
        double left = kMargin;
        for (std::uint32_t i = 0; i < tree_.nodes.size();) {
            const std::uint32_t end = end_of(i);
            const CallTreeNode& node = tree_.nodes[i];
            if (!node.is_async && node.is_device == !has_host) left += draw_tree(i, end, left);
            i = end;
        }
        std::string about = time_text(static_cast<double>(whole_ns_)) +
                            (has_host ? " in ranges" : " on devices") + ", by call path; " + count_;
        if (hidden_ > 0)
            about += "; " + count_text(hidden_, "path") + " narrower than a third of a pixel not shown";
        return picture_.finish(kHeader + kMargin + kRow * std::max(levels_, 1.0), about);
    }

  private:
    static constexpr double kNarrowest = 1.0 / 3;

    /// Behind the subtree of a node.
    std::uint32_t end_of(std::uint32_t node) const {
        std::uint32_t end = node + 1;
        while (end < tree_.nodes.size() && tree_.nodes[end].depth > tree_.nodes[node].depth) ++end;
        return end;
    }

    /// Draws the nodes of a subtree, each from the left edge that its parent and elder siblings leave.
    /// Returns its width.
    double draw_tree(std::uint32_t first, std::uint32_t end, double left) {
        std::vector<double> next_left = {left};  // by level below the first node
        for (std::uint32_t i = first; i < end;) {
            const CallTreeNode& node = tree_.nodes[i];
            const std::size_t level = node.depth - tree_.nodes[first].depth;
            const double width = width_of(node);
            if (width < kNarrowest) {
                const std::uint32_t after = end_of(i);
                hidden_ += after - i;
                i = after;
                continue;
            }
            next_left.resize(level + 2);
            next_left[level + 1] = next_left[level];
            picture_.box(next_left[level], kHeader + kRow * static_cast<double>(level), width, node.name,
                         tip(node));
            levels_ = std::max(levels_, static_cast<double>(level + 1));
            next_left[level] += width;
            ++i;
        }
        return width_of(tree_.nodes[first]);
    }

    double width_of(const CallTreeNode& node) const { return share_of(node.total_ns, whole_ns_) * width_; }
    std::string tip(const CallTreeNode& node) const {
        return node.name + "\ntotal " + time_text(static_cast<double>(node.total_ns)) + " (" +
               number(100 * share_of(node.total_ns, whole_ns_)) + " %), self " +
               time_text(static_cast<double>(node.self_ns)) + ", " + count_text(node.count, "call");
    }

    CallTree tree_;
    SvgPage picture_;
    double width_;
    std::string count_;
    std::int64_t whole_ns_ = 0;
    double levels_ = 0;
    std::uint64_t hidden_ = 0;
};

/// Every track against time, with an axis.
class TimelinePicture {
  public:
    explicit TimelinePicture(const Trace& trace)
        : trace_(trace), timeline_(trace), picture_(trace), window_(trace.window()) {}

    std::string draw() {
        double top = kHeader + 2 * kRow;
        WorkMeter meter(trace_.ranges().size());
        for (Row track = 0; track < trace_.tracks().size(); ++track) {
            if (trace_.tracks()[track].range_count > 0) top = draw_track(track, top);
            meter.add(trace_.tracks()[track].range_count);
        }
        draw_axis(kHeader + kRow, top);
        const auto length = static_cast<double>(window_.end_ns - window_.start_ns);
        std::string about = time_text(length) + " on " + count_text(drawn_, "track") + "; " +
                            count_text(trace_.ranges().size(), "range");
        if (deeper_ > 0) about += "; levels below the first " + std::to_string(kLevels) + " not shown";
        return picture_.finish(top + kMargin, about + "; ranges narrower than a pixel are merged");
    }

  private:
    static constexpr std::uint32_t kLevels = 40;
    static constexpr auto kPixels = static_cast<std::uint32_t>(kWidth - 2 * kMargin);

    double draw_track(Row track, double top) {
        const std::vector<TimelineBox> boxes =
            timeline_.picture(track, {window_.start_ns, window_.end_ns, kPixels, kLevels});
        if (boxes.empty()) return top;
        ++drawn_;
        picture_.text(kMargin, top + 12, "n", track_name(trace_.tracks()[track]));
        top += kRow;
        std::uint32_t levels = 0;
        for (const TimelineBox& box : boxes) {
            levels = std::max(levels, box.depth + 1);
            const double left = kMargin + static_cast<double>(box.begin);
            const double width = std::max(static_cast<double>(box.end) - static_cast<double>(box.begin), 0.7);
            picture_.box(left, top + kRow * box.depth, width, trace_.range_name(box.row), tip(box));
        }
        if (levels == kLevels) ++deeper_;
        return top + kRow * levels + kRow / 2;
    }

    /// A line and a time at a round distance of some 150 pixels.
    void draw_axis(double top, double bottom) {
        const auto length = static_cast<double>(window_.end_ns - window_.start_ns);
        if (length <= 0) return;
        const double rough = length * 150 / kPixels;
        const double power = std::pow(10, std::floor(std::log10(rough)));
        double step = power;
        for (const double factor : {2.0, 5.0, 10.0}) {
            if (step < rough) step = power * factor;
        }
        for (double time = 0; time <= length; time += step) {
            const double x = kMargin + time / length * kPixels;
            picture_.line(x, top, bottom);
            if (x < kWidth - 60) picture_.text(x + 4, top + 8, "a", time > 0 ? time_text(time) : "0");
        }
    }

    std::string track_name(const TrackInfo& track) const {
        const ThreadInfo& thread = trace_.threads()[track.thread];
        std::string name = track.kind == TrackKind::Thread ? shown_thread_name(trace_, thread) : "";
        if (name.empty()) name = trace_.string(track.name);
        return name.empty() ? "thread " + std::to_string(thread.id) : name;
    }
    std::string tip(const TimelineBox& box) const {
        const RangeColumns ranges = trace_.ranges();
        if (box.merged > 1)
            return count_text(box.merged, "range") +
                   "; the longest: " + std::string(trace_.range_name(box.row));
        return std::string(trace_.range_name(box.row)) + "\n" +
               time_text(static_cast<double>(ranges.duration_ns[box.row])) + ", from " +
               time_text(static_cast<double>(ranges.start_ns[box.row] - window_.start_ns));
    }

    const Trace& trace_;
    Timeline timeline_;
    SvgPage picture_;
    const WindowInfo& window_;
    std::size_t drawn_ = 0, deeper_ = 0;
};

void write_text(const std::string& path, const std::string& text) {
    OutputFile file(path);
    file.write(text);
    file.commit();
}

}  // namespace
}  // namespace svg

std::string flame_graph_svg(const Trace& trace, const FlameGraphOptions& options) {
    return svg::FlameGraph(trace, options).draw();
}

std::string timeline_svg(const Trace& trace) {
    return svg::TimelinePicture(trace).draw();
}

FileFormat flamegraph_format() {
    static constexpr std::string_view kSuffixes[] = {".svg", ".svg.gz"};
    return {
        "flamegraph", "Flame graph, an SVG picture for browsers", "all but total time per stack", kSuffixes,
        [](const Trace& trace, const std::string& path) { svg::write_text(path, flame_graph_svg(trace)); }};
}

FileFormat timeline_format() {
    static constexpr std::string_view kSuffixes[] = {".timeline.svg", ".timeline.svg.gz"};
    return {"timeline", "Timeline, an SVG picture for browsers", "ranges narrower than a pixel", kSuffixes,
            [](const Trace& trace, const std::string& path) { svg::write_text(path, timeline_svg(trace)); }};
}

}  // namespace marey
