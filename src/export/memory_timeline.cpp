// memory_timeline.cpp: how much memory was held over time, as PyTorch's export_memory_timeline writes it.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

#include <kymo/error.h>
#include <kymo/export.h>

#include "base/json_writer.h"
#include "base/output_file.h"

namespace kymo {
namespace {

// What PyTorch knows of tensors (parameters, gradients, ...) nobody has told us: everything is of the last
// category, "unknown".
constexpr int kCategories = 8;
constexpr int kUnknownCategory = 7;
enum Action : std::int64_t { kPreexisting = 1, kCreate = 2, kDestroy = 4 };

bool is_on(const Device& device, const Device& wanted) {
    if (device.type != wanted.type) return false;
    return device.type == DeviceType::Cpu || device.index == wanted.index ||
           (device.index <= 0 && wanted.index <= 0);
}

/// The points of all series of a device, in order of time, each process's memory added to the others'.
std::vector<MemoryPoint> points_of(const Trace& trace, const Device& device) {
    struct Placed {
        MemoryPoint point;
        std::size_t series;
    };
    std::vector<Placed> placed;
    const std::vector<MemorySeries> all = memory_series(trace);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!is_on(all[i].device, device)) continue;
        for (const MemoryPoint& point : all[i].points) placed.push_back({point, i});
    }
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.point.time_ns < b.point.time_ns; });
    std::vector<MemoryPoint> latest(all.size());
    std::vector<MemoryPoint> points;
    MemoryPoint sum;
    for (const Placed& next : placed) {
        sum.time_ns = next.point.time_ns;
        sum.allocated += next.point.allocated - latest[next.series].allocated;
        sum.reserved += next.point.reserved - latest[next.series].reserved;
        latest[next.series] = next.point;
        points.push_back(sum);
    }
    return points;
}

std::int64_t wall_clock_offset(const Trace& trace) {
    return trace.processes().empty() ? 0 : trace.processes()[0].realtime_offset_ns;
}

/// [times in microseconds, [0 and the bytes of each category]].
void write_points(const Trace& trace, const Device& device, OutputFile& file) {
    const std::vector<MemoryPoint> points = points_of(trace, device);
    const std::int64_t offset = wall_clock_offset(trace);
    std::string text;
    JsonWriter json(text);
    json.begin_array().begin_array();
    for (const MemoryPoint& point : points) json.value((point.time_ns + offset) / 1000);
    json.end_array().begin_array();
    for (const MemoryPoint& point : points) {
        json.begin_array();
        for (int i = 0; i < kCategories; ++i) json.value(0);
        json.value(point.allocated).end_array();
    }
    json.end_array().end_array();
    file.write(text);
}

/// [nanoseconds or -1, action, signed bytes, category] for every report.
void write_raw(const Trace& trace, const Device& device, OutputFile& file) {
    const MemoryColumns memory = trace.memory();
    std::vector<std::size_t> order;
    for (std::size_t row = 0; row < memory.size(); ++row) {
        if (is_on(memory.device[row], device) && memory.out_of_memory[row] == 0) order.push_back(row);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return memory.time_ns[a] < memory.time_ns[b]; });
    std::unordered_map<std::uint64_t, int> held;
    std::string text;
    JsonWriter json(text);
    json.begin_array();
    const auto row_of = [&](std::int64_t time, Action action, std::int64_t bytes) {
        json.begin_array().value(time).value(static_cast<std::int64_t>(action)).value(bytes);
        json.value(kUnknownCategory).end_array();
    };
    for (const std::size_t row : order) {
        if (memory.bytes[row] >= 0) {
            ++held[memory.address[row]];
        } else if (--held[memory.address[row]] < 0) {
            held[memory.address[row]] = 0;
            row_of(-1, kPreexisting, -memory.bytes[row]);
        }
    }
    const std::int64_t offset = wall_clock_offset(trace);
    for (const std::size_t row : order)
        row_of(memory.time_ns[row] + offset, memory.bytes[row] >= 0 ? kCreate : kDestroy, memory.bytes[row]);
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

/// A step line over at most two points per pixel: the least and the most held there.
std::string outline(const std::vector<MemoryPoint>& points, double span_ns, double peak) {
    const auto x_of = [&](const MemoryPoint& point) {
        return kLeft + kWidth * static_cast<double>(point.time_ns - points.front().time_ns) / span_ns;
    };
    const auto y_of = [&](std::int64_t bytes) {
        return kTop + kHeight * (1 - static_cast<double>(bytes) / peak);
    };
    std::string path = format("M%.1f %.1f", kLeft, kTop + kHeight);
    double y = kTop + kHeight;
    for (std::size_t i = 0; i < points.size();) {
        const double x = x_of(points[i]);
        std::int64_t least = points[i].allocated, most = least, last = least;
        for (; i < points.size() && x_of(points[i]) < x + 1; ++i) {
            last = points[i].allocated;
            least = std::min(least, last);
            most = std::max(most, last);
        }
        path += format("L%.1f %.1f", x, y) + format("L%.1f %.1f", x, y_of(most)) +
                format("L%.1f %.1f", x, y_of(least));
        y = y_of(last);
    }
    path += format("L%.1f %.1f", kLeft + kWidth, y) + format("L%.1f %.1fZ", kLeft + kWidth, kTop + kHeight);
    return path;
}

void write_html(const Trace& trace, const Device& device, OutputFile& file) {
    const std::vector<MemoryPoint> points = points_of(trace, device);
    std::int64_t peak = 0, peak_reserved = 0;
    for (const MemoryPoint& point : points) {
        peak = std::max(peak, point.allocated);
        peak_reserved = std::max(peak_reserved, point.reserved);
    }
    const double span_ns =
        points.empty() ? 1
                       : std::max(1.0, static_cast<double>(points.back().time_ns - points.front().time_ns));
    std::string name = device_type_name(device.type);
    if (device.index >= 0) name += ":" + std::to_string(device.index);
    std::string page = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Memory of " +
                       name +
                       "</title><style>body{font:14px sans-serif;margin:2em}path{fill:#9ab;stroke:#456}"
                       "line{stroke:#ddd}text{font-size:12px;fill:#444}</style></head><body><h1>Memory of " +
                       name + "</h1>";
    if (points.empty()) {
        page += "<p>No allocation was reported.</p></body></html>\n";
        file.write(page);
        return;
    }
    page += "<p>Most held: <b>" + bytes_text(static_cast<double>(peak)) + "</b>";
    if (peak_reserved > 0) page += ", most reserved: " + bytes_text(static_cast<double>(peak_reserved));
    page += "; " + std::to_string(points.size()) + " reports.</p><svg viewBox=\"0 0 " +
            format("%.0f %.0f", kLeft + kWidth + kRight, kTop + kHeight + kBottom) +
            "\" role=\"img\" aria-label=\"bytes held over time\">";
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
    page += "<path d=\"" + outline(points, span_ns, top) + "\"/></svg></body></html>\n";
    file.write(page);
}

}  // namespace

void write_memory_timeline(const Trace& trace, const std::string& path, const Device& device) {
    OutputFile file(path);
    if (path.ends_with(".html")) {
        write_html(trace, device, file);
    } else if (path.ends_with("raw.json.gz") || path.ends_with("raw.json")) {
        write_raw(trace, device, file);
    } else {
        write_points(trace, device, file);
    }
    file.commit();
}

}  // namespace kymo
