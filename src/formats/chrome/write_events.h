// write_events.h: the events of a trace in pieces that can be written independently.
#pragma once

#include <algorithm>
#include <cstddef>

#include <marey/trace.h>

#include "analyze/events/event_categories.h"
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
    ChromePieces(const Trace& trace, std::size_t rows_of_piece)
        : rows_of_piece_(std::max<std::size_t>(1, rows_of_piece)) {
        using Table = ChromeRun::Table;
        const std::span<const TrackInfo> tracks = trace.tracks();
        for (std::size_t i = 0; i < tracks.size(); ++i)
            add(Table::Ranges, i, tracks[i].first_range, tracks[i].range_count);
        add(Table::Instants, 0, 0, trace.instants().size());
        add(Table::Counters, 0, 0, trace.counters().size());
        add(Table::Memory, 0, 0, trace.memory().size());
    }

    std::size_t size() const noexcept { return starts_.size(); }
    std::size_t rows() const noexcept { return rows_; }
    std::span<const ChromeRun> operator[](std::size_t piece) const {
        const std::size_t end = piece + 1 < starts_.size() ? starts_[piece + 1] : runs_.size();
        return {runs_.data() + starts_[piece], end - starts_[piece]};
    }

  private:
    void add(ChromeRun::Table table, std::size_t track, Row first, std::size_t count) {
        while (count > 0) {
            const std::size_t in_piece = rows_ % rows_of_piece_;
            if (in_piece == 0) starts_.push_back(runs_.size());
            const auto part = static_cast<Row>(std::min(count, rows_of_piece_ - in_piece));
            runs_.push_back({table, static_cast<std::uint32_t>(track), first, first + part});
            first += part;
            rows_ += part;
            count -= part;
        }
    }

    const std::size_t rows_of_piece_;
    std::size_t rows_ = 0;
    std::vector<ChromeRun> runs_;
    std::vector<std::size_t> starts_;  ///< start of each piece in runs_
};

/// Writes pieces into a buffer, in any order. Not thread-safe.
class ChromeEvents {
  public:
    /// Both arguments must outlive this.
    ChromeEvents(const ChromeTables& tables, OutputBuffer& buffer)
        : tables_(tables),
          trace_(tables.trace),
          instants_(trace_.instants()),
          counters_(trace_.counters()),
          memory_(trace_.memory()),
          out_(buffer),
          arguments_(trace_, out_),
          ranges_(tables, arguments_, out_) {}

    void write(std::span<const ChromeRun> piece) {
        for (const ChromeRun& run : piece) {
            switch (run.table) {
                case ChromeRun::Table::Ranges:
                    ranges_.write(run.track, run.first, run.end);
                    break;
                case ChromeRun::Table::Instants:
                    for (Row row = run.first; row < run.end; ++row) write_instant(row);
                    break;
                case ChromeRun::Table::Counters:
                    for (Row row = run.first; row < run.end; ++row) write_counter(row);
                    break;
                case ChromeRun::Table::Memory:
                    for (Row row = run.first; row < run.end; ++row) write_memory(row);
                    break;
            }
        }
    }

  private:
    /// "cat":...,"name":...,"pid":...,"tid":...,"ts":12.345
    void put_event(std::string_view category, std::string_view name, Row thread, std::int64_t time_ns) {
        out_.put("\"cat\":");
        out_.string(category);
        out_.put(",\"name\":");
        out_.string(name);
        out_.put(',');
        out_.put(chrome_row_text(tables_.rows.of_thread(thread)));
        out_.put(tables_.clock.micros(time_ns));
    }
    void put_event(std::uint32_t site, Row thread, std::int64_t time_ns) {
        const SiteInfo& info = trace_.sites()[site];
        // Tools count the annotations of a PyTorch trace: the instants that mark steps are not among them.
        const bool is_step = tables_.is_torch && info.scope == Scope::Step;
        put_event(is_step ? "cpu_instant_event" : chrome_category(trace_, info, false),
                  trace_.string(info.name), thread, time_ns);
    }
    void write_instant(Row row) {
        out_.put("{\"ph\":\"i\",\"s\":\"t\",");
        put_event(instants_.site[row], instants_.thread[row], instants_.time_ns[row]);
        out_.put(",\"args\":{");
        arguments_.begin();
        arguments_.append_values(trace_.instant_arguments(row));
        arguments_.append_rendered(tables_.sites(false)[instants_.site[row]].members);
        out_.put("}},\n");
    }
    void write_counter(Row row) {
        out_.put("{\"ph\":\"C\",");
        put_event(counters_.site[row], counters_.thread[row], counters_.time_ns[row]);
        out_.put(",\"args\":{\"value\":");
        out_.real(counters_.value[row]);
        out_.put("}},\n");
    }
    void write_memory(Row row) {
        const bool out_of_memory = memory_.out_of_memory[row] != 0;
        out_.put("{\"ph\":\"i\",\"s\":\"t\",");
        put_event("cpu_instant_event", out_of_memory ? "[OutOfMemory]" : "[memory]", memory_.thread[row],
                  memory_.time_ns[row]);
        out_.put(",\"args\":{\"Total Reserved\":");
        out_.integer(memory_.total_reserved[row]);
        out_.put(",\"Total Allocated\":");
        out_.integer(memory_.total_allocated[row]);
        out_.put(",\"Bytes\":");
        out_.integer(memory_.bytes[row]);
        if (!out_of_memory) {
            out_.put(",\"Addr\":");
            out_.integer(memory_.address[row]);
        }
        out_.put(",\"Device Id\":");
        out_.integer(std::int64_t{memory_.device[row].index});
        out_.put(",\"Device Type\":");
        out_.integer(static_cast<std::int64_t>(memory_.device[row].type));
        if (tables_.is_torch) {  // as PyTorch: numbered with the ranges, and never "finished"
            out_.put(",\"finished\":false,\"Ev Idx\":");
            out_.integer(static_cast<std::int64_t>(trace_.ranges().size() + row));
        }
        out_.put("}},\n");
    }

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
