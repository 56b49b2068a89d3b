// table_cells.cpp: numbers with units. Follows PyTorch's arithmetic step by step, because the rounding is
// visible.
#include "export/table_columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace marey {
namespace {

constexpr double kNsPerUs = 1000.0;
constexpr double kUsPerMs = 1000.0;
constexpr double kUsPerSecond = 1000.0 * 1000.0;

std::string fixed(double value, int decimals) {
    char text[400];  // the largest double has 309 digits
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, decimals).ptr;
    return {text, end};
}

double micros(std::int64_t ns) {
    return static_cast<double>(ns) / kNsPerUs;
}

bool continues_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

double micros(const CellValue& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return micros(*whole);
    if (const auto* real = std::get_if<double>(&value)) return *real / kNsPerUs;
    if (const auto* each = std::get_if<PerCall>(&value))
        return each->count == 0 ? 0.0 : micros(each->total) / static_cast<double>(each->count);
    return 0;
}

}  // namespace

std::string time_text(double us, std::string_view unit) {
    const bool is_free = unit != "s" && unit != "ms" && unit != "us";
    if (unit == "s" || (is_free && us >= kUsPerSecond)) return fixed(us / kUsPerSecond, 3) + "s";
    if (unit == "ms" || (is_free && us >= kUsPerMs)) return fixed(us / kUsPerMs, 3) + "ms";
    return fixed(us, 3) + "us";
}

std::string share_text(double part, double whole) {
    return whole == 0 ? "NaN" : fixed(part * 100.0 / whole, 2) + "%";
}

std::string memory_text(std::int64_t bytes) {
    constexpr double kKilo = 1024, kMega = kKilo * 1024, kGiga = kMega * 1024;
    const double size = static_cast<double>(bytes);
    if (std::abs(size) >= kGiga) return fixed(size / kGiga, 2) + " GB";
    if (std::abs(size) >= kMega) return fixed(size / kMega, 2) + " MB";
    if (std::abs(size) >= kKilo) return fixed(size / kKilo, 2) + " KB";
    return std::to_string(bytes) + " B";
}

std::size_t character_count(std::string_view text) noexcept {
    return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

std::string_view first_characters(std::string_view text, std::size_t count) noexcept {
    std::size_t end = 0;
    for (; end < text.size(); ++end) {
        if (!continues_character(text[end]) && count-- == 0) break;
    }
    return text.substr(0, end);
}

std::string_view last_characters(std::string_view text, std::size_t count) noexcept {
    const std::size_t all = character_count(text);
    return count >= all ? text : text.substr(first_characters(text, all - count).size());
}

TableCells::TableCells(const Averages& averages, const std::vector<const ColumnInfo*>& columns,
                       const TableOptions& options)
    : unit_(options.time_unit) {
    std::string_view name = options.device_name;
    if (name.empty())
        name = averages.device == DeviceType::None ? "device" : device_type_name(averages.device);
    for (const char c : name) device_ += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    std::int64_t cpu_ns = 0;
    for (const AverageRow& row : averages.rows) {
        cpu_ns += row.self_cpu_time_total_ns;
        has_device_time_ |= row.self_device_time_total_ns > 0;
    }
    cpu_us_ = micros(cpu_ns);
    device_us_ = micros(device_time_ns(averages));
    if (std::ranges::any_of(columns,
                            [](const ColumnInfo* column) { return column->kind == CellKind::Flops; }))
        scale_flops(averages);
}

/// Chooses the unit by the smallest value, so that none is shown as 0.
void TableCells::scale_flops(const Averages& averages) {
    static constexpr std::string_view kTitles[] = {"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};
    double smallest = std::numeric_limits<double>::infinity();
    for (const AverageRow& row : averages.rows) {
        if (row.flops.value_or(0) > 0) smallest = std::min(smallest, *row.flops);
    }
    if (std::isinf(smallest)) return;
    const double thousands =
        std::floor(std::clamp(std::log10(smallest) / 3, 0.0, static_cast<double>(std::size(kTitles) - 1)));
    flops_scale_ = std::pow(10, thousands * -3.0);
    flops_title_ = kTitles[static_cast<std::size_t>(thousands)];
}

std::string TableCells::title(const ColumnInfo& column) const {
    if (column.kind == CellKind::Flops) return "Total " + std::string(flops_title_);
    std::string title(column.title);
    if (const std::size_t at = title.find('@'); at != std::string::npos) title.replace(at, 1, device_);
    return title;
}

std::string TableCells::text(const ColumnInfo& column, const AverageRow& row) const {
    const CellValue value = column.value(row);
    if (std::holds_alternative<std::monostate>(value)) return "--";
    switch (column.kind) {
        case CellKind::Time:
        case CellKind::HostTime:
            return time_text(micros(value), unit_);
        case CellKind::CpuShare:
            // An async range spans other work: its total is not a share.
            if (row.is_async && column.key == "total_cpu_percent") return "0";
            return share_text(micros(value), cpu_us_);
        case CellKind::DeviceShare:
            return share_text(micros(value), device_us_);
        case CellKind::Bytes:
            return memory_text(std::get<std::int64_t>(value));
        case CellKind::Count:
            return std::to_string(std::get<std::int64_t>(value));
        case CellKind::Flops: {
            const double flops = std::get<double>(value);
            if (flops <= 0) return "--";
            const std::string digits = fixed(flops * flops_scale_, 3);
            return std::string(digits.size() < 8 ? 8 - digits.size() : 0, ' ') + digits;
        }
        default:
            return std::string(std::get<std::string_view>(value));
    }
}

std::string TableCells::closing_lines() const {
    std::string text = "Self CPU time total: " + time_text(cpu_us_, unit_) + "\n";
    if (has_device_time_) text += "Self " + device_ + " time total: " + time_text(device_us_, unit_) + "\n";
    return text;
}

}  // namespace marey
