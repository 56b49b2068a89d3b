// write.cpp: allocated memory over time, in the formats of PyTorch's export_memory_timeline.
#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include <marey/export.h>
#include <marey/memory_profile.h>
#include <marey/memory_use.h>

#include "base/output_file.h"
#include "json/json_writer.h"

namespace marey {
namespace {

using Categories = std::array<std::int64_t, kMemoryCategories>;

/// The memory held from a time on, by category.
struct CategoryPoint {
    std::int64_t time_ns = 0;
    Categories bytes{};
};

bool is_on(const Device& device, const Device& wanted) {
    if (device.type != wanted.type) return false;
    return device.type == DeviceType::Cpu || device.index == wanted.index ||
           (device.index <= 0 && wanted.index <= 0);
}

std::int64_t wall_clock_offset(const Trace& trace) {
    return trace.processes().empty() ? 0 : trace.processes()[0].realtime_offset_ns;
}

/// Memory that was allocated before the first report and is not part of the timeline.
std::int64_t unseen_bytes(const MemoryProfile& profile, const Device& device) {
    // PyTorch's CPU total includes memory that was freed while nothing was recorded.
    if (device.type == DeviceType::Cpu && profile.blocks().size() > 1) return 0;
    std::int64_t bytes = 0;
    for (const DeviceMemory& memory : memory_use(profile.trace()).devices) {
        if (!is_on(memory.device, device)) continue;
        std::int64_t unseen = memory.start_bytes;
        for (const MemoryEvent& event : profile.timeline()) {
            if (event.action == MemoryAction::Preexisting && event.process == memory.process &&
                is_on(event.device, device))
                unseen -= event.bytes;
        }
        bytes += std::max<std::int64_t>(unseen, 0);
    }
    return bytes;
}

/// In time order: one entry per change; the first one is the state before the recording.
std::vector<CategoryPoint> held_over_time(const MemoryProfile& profile, const Device& device) {
    std::vector<CategoryPoint> held;
    const auto change = [&](MemoryCategory category, std::int64_t bytes) {
        held.back().bytes[static_cast<std::size_t>(category)] += bytes;
    };
    for (const MemoryEvent& event : profile.timeline()) {
        if (!is_on(event.device, device)) continue;
        if (held.empty()) {
            held.push_back({event.time_ns, {}});
            if (const std::int64_t unseen = unseen_bytes(profile, device); unseen > 0) {
                held.back().time_ns = MemoryEvent::kBefore;
                change(MemoryCategory::Unknown, unseen);
            }
        }
        if (held.back().time_ns != event.time_ns) held.push_back({event.time_ns, held.back().bytes});
        const bool is_new = event.action == MemoryAction::Preexisting || event.action == MemoryAction::Create;
        change(event.category, is_new ? event.bytes : -event.bytes);
        if (event.action == MemoryAction::IncrementVersion) change(event.next_category, event.bytes);
    }
    if (!held.empty() && held.front().time_ns == MemoryEvent::kBefore)
        held.front().time_ns = held.size() > 1 ? held[1].time_ns : profile.trace().window().start_ns;
    return held;
}

/// [times in microseconds, [0 and the bytes of each category]].
void write_points(const MemoryProfile& profile, const Device& device, OutputFile& file) {
    const std::vector<CategoryPoint> held = held_over_time(profile, device);
    const std::int64_t offset = wall_clock_offset(profile.trace());
    std::vector<CategoryPoint> points;  // the last entry of each microsecond
    for (std::size_t i = 0; i < held.size(); ++i) {
        const std::int64_t time = (held[i].time_ns + offset) / 1000;
        const bool is_after_first = i == 1 && held[0].time_ns == held[1].time_ns;  // 0: state before
        if (i == 0 || is_after_first || points.back().time_ns != time) points.emplace_back();
        points.back() = {time, held[i].bytes};
    }
    std::string text;
    JsonWriter json(text);
    json.begin_array().begin_array();
    for (const CategoryPoint& point : points) json.value(point.time_ns);
    json.end_array().begin_array();
    for (const CategoryPoint& point : points) {
        json.begin_array().value(0);
        for (const std::int64_t bytes : point.bytes) json.value(bytes);
        json.end_array();
    }
    json.end_array().end_array();
    file.write(text);
}

/// Writes [nanoseconds or -1, action, signed bytes, category] for every event; a new version is two events.
void write_raw(const MemoryProfile& profile, const Device& device, OutputFile& file) {
    const std::int64_t offset = wall_clock_offset(profile.trace());
    std::string text;
    JsonWriter json(text);
    json.begin_array();
    for (const MemoryEvent& event : profile.timeline()) {
        if (!is_on(event.device, device)) continue;
        const auto row = [&](std::int64_t bytes, MemoryCategory category) {
            json.begin_array();
            json.value(event.time_ns == MemoryEvent::kBefore ? -1 : event.time_ns + offset);
            json.value(static_cast<std::int64_t>(event.action)).value(bytes);
            json.value(static_cast<std::int64_t>(category)).end_array();
        };
        const bool is_new = event.action == MemoryAction::Preexisting || event.action == MemoryAction::Create;
        row(is_new ? event.bytes : -event.bytes, event.category);
        if (event.action == MemoryAction::IncrementVersion) row(event.bytes, event.next_category);
    }
    json.end_array();
    file.write(text);
}

std::string format(const char* pattern, double a, double b = 0) {
    char text[64];
    std::snprintf(text, sizeof text, pattern, a, b);
    return text;
}

std::string bytes_text(double bytes) {
    for (const char* const unit : {"B", "KiB", "MiB"}) {
        if (bytes < 1024) return format("%.4g ", bytes) + unit;
        bytes /= 1024;
    }
    return format("%.4g GiB", bytes);
}

constexpr double kWidth = 1000, kHeight = 400, kLeft = 90, kRight = 50, kTop = 20, kBottom = 40;

constexpr const char* kColours[kMemoryCategories] = {"#2e7d32", "#d9a520", "#222222", "#9370db",
                                                     "#d64541", "#3b4cc0", "#7ba4e8", "#999999"};

std::int64_t total_of(const Categories& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

/// At most two entries per pixel: the peak and the last one.
std::vector<CategoryPoint> thinned(const std::vector<CategoryPoint>& held, double span_ns) {
    const auto pixel_of = [&](const CategoryPoint& point) {
        return static_cast<std::int64_t>(kWidth * static_cast<double>(point.time_ns - held.front().time_ns) /
                                         span_ns);
    };
    std::vector<CategoryPoint> kept;
    for (std::size_t i = 0; i < held.size();) {
        std::size_t most = i, last = i;
        const std::int64_t pixel = pixel_of(held[i]);
        for (; i < held.size() && pixel_of(held[i]) == pixel; last = i++) {
            if (total_of(held[i].bytes) > total_of(held[most].bytes)) most = i;
        }
        kept.push_back(held[most]);
        if (last != most) kept.push_back(held[last]);
    }
    return kept;
}

/// The area of one category, stacked on the earlier ones: a step line forwards, then one backwards below it.
std::string area(const std::vector<CategoryPoint>& held, std::size_t category, double span_ns, double peak) {
    const auto x_of = [&](std::size_t i) {
        const std::int64_t time =
            i < held.size() ? held[i].time_ns - held[0].time_ns : static_cast<std::int64_t>(span_ns);
        return kLeft + kWidth * static_cast<double>(time) / span_ns;
    };
    const auto y_of = [&](std::size_t i, std::size_t categories) {
        double bytes = 0;
        for (std::size_t c = 0; c < categories; ++c) bytes += static_cast<double>(held[i].bytes[c]);
        return kTop + kHeight * (1 - bytes / peak);
    };
    std::string path;
    for (std::size_t i = 0; i < held.size(); ++i) {
        path += path.empty() ? 'M' : 'L';
        path += format("%.1f %.1f", x_of(i), y_of(i, category + 1)) + format("H%.1f", x_of(i + 1));
    }
    for (std::size_t i = held.size(); i-- != 0;) path += format("V%.1fH%.1f", y_of(i, category), x_of(i));
    return path + "Z";
}

void write_html(const MemoryProfile& profile, const Device& device, OutputFile& file) {
    const std::vector<CategoryPoint> held = held_over_time(profile, device);
    std::int64_t peak = 0, peak_reserved = 0;
    for (const CategoryPoint& point : held) peak = std::max(peak, total_of(point.bytes));
    for (const MemorySeries& series : memory_series(profile.trace())) {
        if (!is_on(series.device, device)) continue;
        for (const MemoryPoint& point : series.points)
            peak_reserved = std::max(peak_reserved, point.reserved);
    }
    std::string name = device_type_name(device.type);
    if (device.index >= 0) name += ":" + std::to_string(device.index);
    std::string page = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Memory on " +
                       name +
                       "</title><style>body{font:14px sans-serif;margin:2em}line{stroke:#ddd}"
                       "text{font-size:12px;fill:#444}li{display:inline-block;margin-right:1.5em}"
                       "ul{padding:0}i{display:inline-block;width:1em;height:1em;margin-right:.4em;"
                       "vertical-align:-.15em}</style></head><body><h1>Memory on " +
                       name + "</h1>";
    if (held.empty()) {
        page += "<p>No allocations were recorded.</p></body></html>\n";
        file.write(page);
        return;
    }
    const double span_ns = std::max(1.0, static_cast<double>(held.back().time_ns - held.front().time_ns));
    page += "<p>Peak allocated: <b>" + bytes_text(static_cast<double>(peak)) + "</b>";
    if (peak_reserved > 0) page += ", peak reserved: " + bytes_text(static_cast<double>(peak_reserved));
    page += ".</p><svg viewBox=\"0 0 " +
            format("%.0f %.0f", kLeft + kWidth + kRight, kTop + kHeight + kBottom) +
            "\" role=\"img\" aria-label=\"allocated bytes over time\">";
    const double top = std::max(1.0, static_cast<double>(peak));
    for (int i = 0; i <= 4; ++i) {
        const double y = kTop + kHeight * (1 - i / 4.0), x = kLeft + kWidth * i / 4.0;
        page += format("<line x1=\"%.0f\" x2=\"%.0f\"", kLeft, kLeft + kWidth) +
                format(" y1=\"%.1f\" y2=\"%.1f\"/>", y, y) +
                format("<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">", kLeft - 8, y + 4) +
                bytes_text(top * i / 4) + "</text>" +
                format("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">", x, kTop + kHeight + 20) +
                format("%.4g ms</text>", span_ns * i / 4 * 1e-6);
    }
    const std::vector<CategoryPoint> drawn = thinned(held, span_ns);
    std::string legend;
    for (std::size_t i = 0; i < kMemoryCategories; ++i) {
        std::int64_t most = 0;
        for (const CategoryPoint& point : held) most = std::max(most, point.bytes[i]);
        if (most == 0) continue;
        page +=
            std::string("<path fill=\"") + kColours[i] + "\" d=\"" + area(drawn, i, span_ns, top) + "\"/>";
        legend += std::string("<li><i style=\"background:") + kColours[i] + "\"></i>" +
                  memory_category_name(static_cast<MemoryCategory>(i)) + ", peak " +
                  bytes_text(static_cast<double>(most)) + "</li>";
    }
    page += "</svg><ul>" + legend + "</ul></body></html>\n";
    file.write(page);
}

}  // namespace

void write_memory_timeline(const Trace& trace, const std::string& path, const Device& device) {
    const MemoryProfile profile(trace);
    OutputFile file(path);
    if (path.ends_with(".html")) {
        write_html(profile, device, file);
    } else if (path.ends_with("raw.json.gz") || path.ends_with("raw.json")) {
        write_raw(profile, device, file);
    } else {
        write_points(profile, device, file);
    }
    file.commit();
}

}  // namespace marey
