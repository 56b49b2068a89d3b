// averages_table.cpp: reproduces the table of PyTorch's profiler character for character. Follows its
// arithmetic step by step, because the rounding is visible.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include <marey/table.h>

#include "export/table_columns.h"

namespace marey {
namespace {

constexpr std::size_t kPadding = 4;  ///< beyond the longest text
constexpr std::string_view kGap = "  ";
constexpr std::string_view kDots = "...";
constexpr std::size_t kNarrowestName = 20;

/// Prints one table, line by line.
class TextTable {
  public:
    TextTable(const Averages& averages, const TableOptions& options)
        : options_(options),
          columns_(shown_columns(averages, options)),
          cells_(averages, columns_, options),
          rows_(sorted_rows(averages, options)),
          name_limit_(options.max_name_column_width) {
        const auto measure = [&] {
            widths_.clear();
            for (const ColumnInfo* column : columns_) widths_.push_back(width_of(*column));
            return std::accumulate(widths_.begin(), widths_.end(), (widths_.size() - 1) * kGap.size());
        };
        const std::size_t length = measure();
        if (options.width > 0 && length > options.width) {
            const std::size_t excess = length - options.width;
            name_limit_ = std::max(kNarrowestName, widths_[0] > excess ? widths_[0] - excess : 0);
            measure();
        }
        limit_rows(rows_, options);
    }

    std::string text() {
        std::size_t length = 0;
        std::string rule;
        for (const std::size_t width : widths_) {
            length += width + kGap.size();
            rule.append(width, '-').append(kGap);
        }
        if (options_.trims) rule.resize(rule.size() - kGap.size());
        rule += '\n';
        const std::string heavy(length - kGap.size(), '=');
        if (options_.header) out_ += heavy + "\n" + *options_.header + "\n";
        if (options_.top_level_events_only)
            out_ += heavy + "\nThis report only display top-level ops statistics\n";
        out_ += rule;
        const std::size_t titles = out_.size();
        for (std::size_t i = 0; i < columns_.size(); ++i) put(i, cells_.title(*columns_[i]));
        trim();
        if (options_.title_style) out_.replace(titles, out_.npos, options_.title_style(out_.substr(titles)));
        end_line();
        out_ += rule;
        for (const AverageRow* row : rows_) put(*row);
        return out_ + rule + cells_.closing_lines();
    }

  private:
    static std::size_t capped(std::size_t width, const std::optional<std::size_t>& cap) {
        return cap ? std::min(width, *cap) : width;
    }

    /// Over all rows, including those that are not printed.
    std::size_t width_of(const ColumnInfo& column) const {
        const auto longest = [&](const ColumnInfo& of) {
            std::size_t length = 0;
            for (const AverageRow* row : rows_)
                length = std::max(length, character_count(std::get<std::string_view>(of.value(*row))));
            return length;
        };
        switch (column.kind) {
            case CellKind::Name:  // all name columns are as wide as the first
                return capped(longest(find_column("name", "column")) + kPadding, name_limit_);
            case CellKind::Shapes:
                return capped(longest(column) + kPadding, options_.max_shapes_column_width);
            case CellKind::Text:
                return std::max(longest(column) + kPadding, character_count(cells_.title(column)));
            case CellKind::Stack: {
                std::size_t length = 0;
                for (const AverageRow* row : rows_) {
                    for (const std::string& entry : row->stack)
                        length = std::max(length, character_count(entry));
                }
                return capped(length + kPadding, options_.max_src_column_width);
            }
            default:
                return column.width;
        }
    }

    void trim() {
        if (options_.trims) out_.resize(out_.find_last_not_of(' ') + 1);
    }
    void end_line() {
        trim();
        out_ += '\n';
    }

    /// Right-aligned, except for stacks. Text that is too long is not cut.
    void put(std::size_t column, std::string_view text) {
        const std::size_t used = character_count(text);
        const std::size_t padding = widths_[column] > used ? widths_[column] - used : 0;
        const bool is_left = columns_[column]->kind == CellKind::Stack;
        if (!is_left) out_.append(padding, ' ');
        out_ += text;
        if (is_left) out_.append(padding, ' ');
        out_ += kGap;
    }

    std::string cut_name(std::string text) const {
        if (!name_limit_) return text;
        const auto length = static_cast<std::int64_t>(character_count(text));
        const auto limit = static_cast<std::int64_t>(*name_limit_) - static_cast<std::int64_t>(kDots.size());
        if (length < limit) return text;
        // A limit shorter than the dots counts from the end of the name, like upstream's slices.
        const std::int64_t kept = limit >= 0 ? limit : std::max<std::int64_t>(0, length + limit);
        return std::string(first_characters(text, static_cast<std::size_t>(kept))).append(kDots);
    }

    /// Keeps the end of the path, which has the file name.
    static std::string cut_path(std::string_view text, std::size_t width) {
        if (character_count(text) <= width) return std::string(text);
        const std::string_view tail = last_characters(text, width);
        if (width <= kDots.size()) return std::string(tail);
        return std::string(kDots).append(last_characters(tail, width - kDots.size()));
    }

    void put(const AverageRow& row) {
        std::size_t stack_column = columns_.size();
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            std::string text = cells_.text(*columns_[i], row);
            if (columns_[i]->kind == CellKind::Name) text = cut_name(std::move(text));
            if (columns_[i]->kind == CellKind::Shapes) text = first_characters(text, widths_[i]);
            if (columns_[i]->kind == CellKind::Stack) {
                stack_column = i;
                text = cut_path(text, widths_[i]);
            }
            put(i, text);
        }
        end_line();
        if (stack_column == columns_.size()) return;
        // One line per further entry, then an empty line.
        for (std::size_t entry = 1; entry <= std::max<std::size_t>(1, row.stack.size()); ++entry) {
            for (std::size_t i = 0; i < columns_.size(); ++i) {
                const bool is_entry = i == stack_column && entry < row.stack.size();
                put(i, is_entry ? cut_path(row.stack[entry], widths_[i]) : "");
            }
            end_line();
        }
    }

    const TableOptions& options_;
    std::vector<const ColumnInfo*> columns_;
    TableCells cells_;
    std::vector<const AverageRow*> rows_;
    std::optional<std::size_t> name_limit_;
    std::vector<std::size_t> widths_;
    std::string out_;
};

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

std::string averages_table(const Averages& averages, const TableOptions& options) {
    TextTable table(averages,
                    options);  // first, so that invalid options are reported even if there are no rows
    return averages.rows.empty() ? "" : table.text();
}

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
