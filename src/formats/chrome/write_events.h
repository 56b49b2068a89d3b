// write_events.h: the events of a trace in pieces that can be written independently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <marey/trace.h>

#include "formats/chrome/text.h"
#include "formats/chrome/write_arguments.h"
#include "formats/chrome/write_ranges.h"
#include "formats/chrome/write_tables.h"

namespace marey {

/// Consecutive rows of a table.
struct ChromeRun {
    enum class Table : std::uint8_t { Ranges, Instants, Counters, Memory };

    Table table;
    std::uint32_t track;  ///< track of the ranges
    Row first;
    Row end;
};

/// All rows of a trace in file order, divided into pieces with the same number of rows.
class ChromePieces {
  public:
    ChromePieces(const Trace& trace, std::size_t rows_of_piece);

    std::size_t size() const noexcept { return starts_.size(); }
    std::size_t rows() const noexcept { return rows_; }
    std::span<const ChromeRun> operator[](std::size_t piece) const {
        const std::size_t end = piece + 1 < starts_.size() ? starts_[piece + 1] : runs_.size();
        return {runs_.data() + starts_[piece], end - starts_[piece]};
    }

  private:
    void add(ChromeRun::Table table, std::size_t track, Row first, std::size_t count);

    const std::size_t rows_of_piece_;
    std::size_t rows_ = 0;
    std::vector<ChromeRun> runs_;
    std::vector<std::size_t> starts_;  ///< start of each piece in runs_
};

/// Writes pieces into a buffer, in any order. Not thread-safe.
class ChromeEvents {
  public:
    /// Both arguments must outlive this.
    ChromeEvents(const ChromeTables& tables, OutputBuffer& buffer);

    void write(std::span<const ChromeRun> piece);

  private:
    void put_event(std::string_view category, std::string_view name, Row thread, std::int64_t time_ns);
    void put_event(std::uint32_t site, Row thread, std::int64_t time_ns);
    void write_instant(Row row);
    void write_counter(Row row);
    void write_memory(Row row);

    const ChromeTables& tables_;
    const Trace& trace_;
    const InstantColumns instants_;
    const CounterColumns counters_;
    const MemoryColumns memory_;
    ChromeText out_;
    ChromeArguments arguments_;
    ChromeRanges ranges_;
};

}  // namespace marey
