// trace_dump_fixture.h: for tests: the contents of a trace as lines to read and to compare. Times are
// relative to the window's start; ids that only count (of threads, of rows) are left out.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <marey/trace.h>

namespace marey::testing {

class TraceDump {
  public:
    explicit TraceDump(const Trace& trace) : trace_(trace) {}

    std::string text() {
        line("window " + time(trace_.window().end_ns) +
             (trace_.window().session_name.empty() ? "" : " session " + trace_.window().session_name) +
             (trace_.window().finished ? "" : " unfinished"));
        for (const MetadataInfo& fact : trace_.metadata()) line("metadata " + fact.key + " = " + fact.json);
        for (const ProcessInfo& process : trace_.processes()) dump(process);
        for (Row thread = 0; thread < trace_.threads().size(); ++thread) line(thread_line(thread));
        for (const TrackInfo& track : trace_.tracks()) dump(track);
        dump_points();
        for (const LinkInfo& link : trace_.links()) dump(link);
        for (const MessageInfo& message : trace_.messages())
            line((message.is_received ? "received " : "sent ") + std::to_string(message.number) + " at " +
                 time(message.time_ns) + " by " + thread_name(message.thread) + " in " +
                 (message.range == kNoRow ? "" : std::string(trace_.range_name(message.range))));
        for (const ProblemInfo& problem : trace_.problems())
            line("problem " + problem.code + " x" + std::to_string(problem.count) + ": " + problem.text);
        return out_;
    }

  private:
    void line(const std::string& text) { out_ += text + "\n"; }
    std::string string(StringId id) const { return std::string(trace_.string(id)); }
    std::string time(std::int64_t ns) const { return std::to_string(ns - trace_.window().start_ns); }

    void dump(const ProcessInfo& process) {
        std::string text = "process " + std::to_string(process.pid) + " " + string(process.name);
        if (process.node >= 0) text += " rank " + std::to_string(process.node);
        if (process.host != 0) text += " on " + string(process.host);
        if (process.parent != kNoRow) text += " child of " + std::to_string(process.parent);
        if (process.origin == ProcessOrigin::Exec) text += " by exec";
        if (process.start != 0)
            text += " started " + std::to_string(process.start) + " under " + string(process.ancestors) +
                    " in " + string(process.clock);
        line(text + " begins at " + std::to_string(process.realtime_offset_ns + trace_.window().start_ns));
    }
    std::string thread_line(Row row) const {
        const ThreadInfo& thread = trace_.threads()[row];
        return "thread " + std::to_string(thread.os_tid) + " \"" + string(thread.name) + "\" of process " +
               std::to_string(thread.process) +
               (thread.clamped == 0 ? "" : " clamped " + std::to_string(thread.clamped));
    }
    std::string thread_name(Row row) const {
        const ThreadInfo& thread = trace_.threads()[row];
        return thread.name != 0 ? string(thread.name) : "thread " + std::to_string(thread.os_tid);
    }

    void dump(const TrackInfo& track) {
        static constexpr const char* kKinds[] = {"thread", "async", "device", "overlap"};
        std::string text = std::string("track ") + kKinds[static_cast<int>(track.kind)] + " \"" +
                           string(track.name) + "\" of " + thread_name(track.thread);
        if (track.device.type != DeviceType::Cpu)
            text += std::string(" ") + device_type_name(track.device.type) + ":" +
                    std::to_string(track.device.index) + " stream " + std::to_string(track.stream);
        line(text);
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) dump_range(row);
    }
    std::string site(std::uint32_t index) const {
        const SiteInfo& info = trace_.sites()[index];
        std::string text = string(info.name) + " [" + scope_name(info.scope);
        if (info.category != 0) text += " " + string(info.category);
        text += "]";
        if (info.overload != 0) text += " overload " + string(info.overload);
        if (info.file != 0) text += " at " + string(info.file) + ":" + std::to_string(info.line);
        if (info.raw_name != 0) text += " raw " + string(info.raw_name);
        return text;
    }
    void dump_range(Row row) {
        const RangeColumns ranges = trace_.ranges();
        std::string text(2 + 2 * std::min<std::size_t>(ranges.depth[row], 20), ' ');
        text += time(ranges.start_ns[row]) + " +" + std::to_string(ranges.duration_ns[row]) + " " +
                site(ranges.site[row]);
        const std::uint16_t flags = ranges.flags[row];
        if ((flags & kBeganBefore) != 0) text += " began-before";
        if ((flags & kUnfinished) != 0) text += " unfinished";
        if ((flags & kEndInferred) != 0) text += " end-inferred";
        if (ranges.depth[row] == 0 && ranges.parent[row] != kNoRow)
            text += " under " + std::string(trace_.range_name(ranges.parent[row]));
        if (const RangeDetail* const detail = trace_.range_detail(row)) {
            if (detail->sequence >= 0)
                text += " seq " + std::to_string(detail->sequence) + " from " +
                        std::to_string(detail->forward_thread);
            if (detail->id != 0) text += " id " + std::to_string(detail->id);
            if (detail->call != 0)
                text += " call " + std::to_string(detail->call) + " part " + std::to_string(detail->part);
        }
        line(text + values(trace_.range_arguments(row)));
    }
    std::string values(std::span<const Argument> arguments) const {
        std::string text;
        for (const Argument& argument : arguments) {
            text += text.empty() ? " (" : ", ";
            if (argument.role == ArgumentRole::Input) text += "in ";
            if (argument.role == ArgumentRole::Output) text += "out ";
            if (argument.role == ArgumentRole::Site) text += "site ";
            if (argument.key != 0) text += string(argument.key) + "=";
            text += value(argument);
        }
        return text.empty() ? text : text + ")";
    }
    std::string value(const Argument& argument) const {
        switch (argument.kind) {
            case ValueKind::None:
                return argument.left_out == ValueKind::None ? "none" : "left out";
            case ValueKind::Bool:
                return argument.boolean ? "true" : "false";
            case ValueKind::Int:
                return std::to_string(argument.integer);
            case ValueKind::Double: {
                char text[40];
                std::snprintf(text, sizeof text, "%.17g", argument.real);
                return std::string(text) + "d";
            }
            case ValueKind::String:
                return "'" + string(argument.string) + "'" + (argument.truncated ? "..." : "");
            case ValueKind::List: {
                std::string text = "[";
                for (std::uint32_t i = 0; i < argument.list.count; ++i)
                    text += (i == 0 ? "" : " ") + value(trace_.list_items()[argument.list.first + i]);
                return text + "]";
            }
            case ValueKind::Array:
                return array(trace_.arrays()[argument.array]);
        }
        return "?";
    }
    std::string array(const ArrayInfo& info) const {
        std::string text = std::string(dtype_name(info.dtype)) + "(";
        const std::span<const std::int64_t> extents = trace_.array_extents().subspan(info.first_extent);
        for (std::uint32_t i = 0; i < info.dimensions; ++i)
            text += (i == 0 ? "" : "x") + std::to_string(extents[i]);
        if (info.has_strides) {
            text += " by ";
            for (std::uint32_t i = 0; i < info.dimensions; ++i)
                text += (i == 0 ? "" : ",") + std::to_string(extents[info.dimensions + i]);
        }
        return text + ")";
    }

    void dump_points() {
        const InstantColumns instants = trace_.instants();
        for (Row row = 0; row < instants.size(); ++row)
            line("instant " + time(instants.time_ns[row]) + " " + site(instants.site[row]) + " on " +
                 thread_name(instants.thread[row]) + values(trace_.instant_arguments(row)));
        const CounterColumns counters = trace_.counters();
        for (Row row = 0; row < counters.size(); ++row) {
            char number[40];
            std::snprintf(number, sizeof number, "%.17g", counters.value[row]);
            line("counter " + time(counters.time_ns[row]) + " " + site(counters.site[row]) + " = " + number +
                 " on " + thread_name(counters.thread[row]));
        }
        const MemoryColumns memory = trace_.memory();
        for (Row row = 0; row < memory.size(); ++row)
            line("memory " + time(memory.time_ns[row]) + " " + std::to_string(memory.bytes[row]) + " at " +
                 std::to_string(memory.address[row]) + " of " + std::to_string(memory.total_allocated[row]) +
                 "/" + std::to_string(memory.total_reserved[row]) + " on " +
                 device_type_name(memory.device[row].type) + ":" + std::to_string(memory.device[row].index) +
                 (memory.out_of_memory[row] != 0 ? " refused" : "") + " by " +
                 thread_name(memory.thread[row]));
    }
    void dump(const LinkInfo& link) {
        static constexpr const char* kKinds[] = {"?", "forward-backward", "launch", "remote", "flow"};
        const auto end = [&](Row row) {
            return std::string(trace_.range_name(row)) + " " + time(trace_.ranges().start_ns[row]);
        };
        line(std::string("link ") + kKinds[static_cast<int>(link.kind)] +
             (link.name == 0 ? "" : " " + string(link.name)) + ": " + end(link.from) + " -> " + end(link.to));
    }

    const Trace& trace_;
    std::string out_;
};

inline std::string dump_trace(const Trace& trace) {
    return TraceDump(trace).text();
}

}  // namespace marey::testing
