// write_events.cpp: writes ranges, instants, counter values and allocation reports, piece by piece.
#include "formats/chrome/write_events.h"

#include <algorithm>

#include "analyze/events/event_categories.h"

namespace marey {

ChromePieces::ChromePieces(const Trace& trace, std::size_t rows_of_piece)
    : rows_of_piece_(std::max<std::size_t>(1, rows_of_piece)) {
    using Table = ChromeRun::Table;
    const std::span<const TrackInfo> tracks = trace.tracks();
    for (std::size_t i = 0; i < tracks.size(); ++i)
        add(Table::Ranges, i, tracks[i].first_range, tracks[i].range_count);
    add(Table::Instants, 0, 0, trace.instants().size());
    add(Table::Counters, 0, 0, trace.counters().size());
    add(Table::Memory, 0, 0, trace.memory().size());
}

void ChromePieces::add(ChromeRun::Table table, std::size_t track, Row first, std::size_t count) {
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

ChromeEvents::ChromeEvents(const ChromeTables& tables, OutputBuffer& buffer)
    : tables_(tables),
      trace_(tables.trace),
      instants_(trace_.instants()),
      counters_(trace_.counters()),
      memory_(trace_.memory()),
      out_(buffer),
      arguments_(trace_, out_),
      ranges_(tables, arguments_, out_) {}

void ChromeEvents::write(std::span<const ChromeRun> piece) {
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

/// "cat":...,"name":...,"pid":...,"tid":...,"ts":12.345
void ChromeEvents::put_event(std::string_view category, std::string_view name, Row thread,
                             std::int64_t time_ns) {
    out_.put("\"cat\":");
    out_.string(category);
    out_.put(",\"name\":");
    out_.string(name);
    out_.put(',');
    out_.put(chrome_row_text(tables_.rows.of_thread(thread)));
    out_.put(tables_.clock.micros(time_ns));
}

void ChromeEvents::put_event(std::uint32_t site, Row thread, std::int64_t time_ns) {
    const SiteInfo& info = trace_.sites()[site];
    // Tools count the annotations of a PyTorch trace: the instants that mark steps are not among them.
    const bool is_step = tables_.is_torch && info.scope == Scope::Step;
    put_event(is_step ? "cpu_instant_event" : chrome_category(trace_, info, false), trace_.string(info.name),
              thread, time_ns);
}

void ChromeEvents::write_instant(Row row) {
    out_.put("{\"ph\":\"i\",\"s\":\"t\",");
    put_event(instants_.site[row], instants_.thread[row], instants_.time_ns[row]);
    out_.put(",\"args\":{");
    arguments_.begin();
    arguments_.append_values(trace_.instant_arguments(row));
    arguments_.append_rendered(tables_.sites(false)[instants_.site[row]].members);
    out_.put("}},\n");
}

void ChromeEvents::write_counter(Row row) {
    out_.put("{\"ph\":\"C\",");
    put_event(counters_.site[row], counters_.thread[row], counters_.time_ns[row]);
    out_.put(",\"args\":{\"value\":");
    out_.real(counters_.value[row]);
    out_.put("}},\n");
}

void ChromeEvents::write_memory(Row row) {
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

}  // namespace marey
