// process_selection.cpp: the rows of some processes, as a trace.
#include <memory>
#include <utility>

#include <marey/merge.h>

#include "trace/columns.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

class ProcessSelection {
  public:
    explicit ProcessSelection(const TraceData& from) : data_(std::make_shared<TraceData>(from)) {
        data_->own_ranges();
    }

    Trace select(const std::vector<Row>& wanted) {
        Mask processes(data_->processes.size());
        for (const Row row : wanted) processes.at(row) = true;
        const Mask threads =
            where(data_->threads, [&](const ThreadInfo& row) { return processes[row.process]; });
        const auto of_thread = [&](Row thread) { return threads[thread]; };
        Mask ranges(data_->range_start_ns.size());
        const Mask tracks = where(data_->tracks, [&](const TrackInfo& row) { return threads[row.thread]; });
        for (std::size_t i = 0; i < tracks.size(); ++i) {
            const TrackInfo& track = data_->tracks[i];
            for (Row row = 0; row < track.range_count; ++row) ranges[track.first_range + row] = tracks[i];
        }
        const Mask instants = where(data_->instant_thread, of_thread);
        using enum ModelTable;
        keep<Memory>(where(data_->memory_thread, of_thread));
        keep<Counters>(where(data_->counter_thread, of_thread));
        keep<Messages>(where(data_->messages, [&](const MessageInfo& row) { return threads[row.thread]; }));
        keep<Tasks>(where(data_->tasks, [&](const TaskInfo& row) { return processes[row.process]; }));
        keep<ClockExchanges>(where(data_->clock_exchanges,
                                   [&](const ClockExchangeInfo& row) { return processes[row.process]; }));
        keep<RangeDetails>(
            where(data_->range_details, [&](const RangeDetail& row) { return ranges[row.range]; }));
        keep<RangeArguments>(
            where(data_->range_arguments, [&](const ArgumentSlice& row) { return ranges[row.row]; }));
        keep<InstantArguments>(
            where(data_->instant_arguments, [&](const ArgumentSlice& row) { return instants[row.row]; }));
        keep<Links>(
            where(data_->links, [&](const LinkInfo& row) { return ranges[row.from] && ranges[row.to]; }));
        keep<Processes>(processes);
        keep<Threads>(threads);
        keep<Tracks>(tracks);
        keep<Ranges>(ranges);
        keep<Instants>(instants);
        renumber(Cells::Process, processes);
        renumber(Cells::Thread, threads);
        renumber(Cells::Range, ranges);
        renumber(Cells::Instant, instants);
        Row next = 0;
        for (TrackInfo& track : data_->tracks) {
            track.first_range = next;
            next += track.range_count;
        }
        return Trace(std::move(data_));
    }

  private:
    using Mask = std::vector<bool>;

    template <class Rows, class Condition>
    static Mask where(const Rows& rows, Condition condition) {
        Mask mask(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) mask[i] = condition(rows[i]);
        return mask;
    }

    template <ModelTable kTable>
    void keep(const Mask& mask) {
        for_each_vector<kTable>(*data_, [&](auto& rows) {
            std::size_t end = 0;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                if (mask[i]) rows[end++] = rows[i];
            }
            rows.resize(end);
        });
    }

    void renumber(Cells cells, const Mask& kept) {
        std::vector<Row> numbers(kept.size(), kNoRow);
        Row next = 0;
        for (std::size_t i = 0; i < kept.size(); ++i) {
            if (kept[i]) numbers[i] = next++;
        }
        for_each_reference(*data_, cells, [&](std::uint32_t& number) {
            if (number != kNoRow) number = numbers[number];
        });
    }

    std::shared_ptr<TraceData> data_;
};

}  // namespace

Trace select_processes(const Trace& trace, const std::vector<Row>& processes) {
    return ProcessSelection(trace.data()).select(processes);
}

}  // namespace marey
