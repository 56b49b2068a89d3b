// round_trip_test.cpp: a round trip preserves everything that docs/formats/perfetto.md promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <marey/export.h>
#include <marey/import.h>

#include "formats/perfetto/read.h"
#include "trace/device_waits_fixture.h"
#include "trace/random_trace_fixture.h"
#include "trace/trace_assembler.h"

#if MAREY_HAVE_PROTOZERO

namespace marey {
namespace {

/// The part of a trace that a Perfetto file preserves, as sorted lines.
class Projection {
  public:
    /// Without nesting, which can change for ranges that the window cuts off.
    Projection(const Trace& trace, bool with_nesting) : trace_(trace), with_nesting_(with_nesting) {
        for (const TrackInfo& track : trace.tracks()) {
            if (track.kind == TrackKind::Device) queue_of_[track.thread] = &track;
        }
    }

    std::vector<std::string> lines() {
        add_trace();
        for (Row row = 0; row < trace_.ranges().size(); ++row) lines_.push_back("range " + range(row));
        for (const LinkInfo& link : trace_.links()) {
            lines_.push_back("link " + std::to_string(static_cast<int>(link.kind)) + " '" +
                             string(link.name) + "' " + range(link.from) + " -> " + range(link.to));
        }
        add_points();
        std::sort(lines_.begin(), lines_.end());
        return lines_;
    }

  private:
    std::string string(StringId id) const { return std::string(trace_.string(id)); }
    template <class... Numbers>
    static std::string list(Numbers... numbers) {
        std::string text;
        ((text += std::to_string(numbers) + ","), ...);
        return text;
    }

    void add_trace() {
        const WindowInfo& window = trace_.window();
        lines_.push_back("window " + list(window.start_ns, window.end_ns, window.finished) +
                         window.session_name);
        for (const MetadataInfo& info : trace_.metadata())
            lines_.push_back("metadata " + info.key + " " + info.json);
        for (const ProblemInfo& info : trace_.problems())
            lines_.push_back("problem " + info.code + " " + info.text + " " + list(info.count));
        for (const ProcessInfo& info : trace_.processes()) {
            lines_.push_back("process " + list(info.pid, info.node, info.realtime_offset_ns) +
                             string(info.name) + "," + string(info.host) + "," + string(info.command_line));
        }
        for (Row row = 0; row < trace_.threads().size(); ++row) {
            if (queue_of_.count(row) == 0) lines_.push_back("thread " + thread(row));
        }
    }
    std::string thread(Row row) const {
        const ThreadInfo& info = trace_.threads()[row];
        const std::string process = std::to_string(trace_.processes()[info.process].pid) + "/";
        if (const auto queue = queue_of_.find(row); queue != queue_of_.end()) {
            const TrackInfo& track = *queue->second;
            return process + list(static_cast<int>(track.device.type), track.device.index, track.stream) +
                   string(track.name);
        }
        return process + list(info.id, info.os_tid) + string(info.name);
    }
    std::string site(std::uint32_t row) const {
        const SiteInfo& info = trace_.sites()[row];
        return "[" + string(info.name) + "|" + string(info.file) + "|" +
               list(info.file == 0 ? 0 : info.line, static_cast<int>(info.scope)) + string(info.overload) +
               "|" + string(info.category) + "|" + string(info.raw_name) + "]";
    }
    std::int64_t clip(std::int64_t time) const {
        return std::clamp(time, trace_.window().start_ns, trace_.window().end_ns);
    }
    std::string times(Row row) const {
        const std::int64_t start = trace_.ranges().start_ns[row];
        return list(clip(start), clip(start + trace_.ranges().duration_ns[row]));
    }

    std::string range(Row row) const {
        const RangeColumns ranges = trace_.ranges();
        const TrackInfo& track = trace_.tracks()[trace_.track_of(row)];
        // Parts of a call that began before the window may start at the same time after clipping.
        const int flags = ranges.flags[row] & ~kFurtherPart;
        std::string text = thread(track.thread) + " " + times(row) + site(ranges.site[row]) + list(flags) +
                           values(trace_.range_arguments(row));
        if (const RangeDetail* const detail = trace_.range_detail(row); detail != nullptr)
            text += "detail " +
                    list(detail->sequence, detail->forward_thread, detail->id, detail->call, detail->part);
        // Ranges that overlap before the start of the window may nest after clipping.
        if (!with_nesting_) return text;
        text += " " + string(track.name) + list(static_cast<int>(track.kind), ranges.depth[row]);
        if (ranges.parent[row] != kNoRow)
            text += "in " + times(ranges.parent[row]) + site(ranges.site[ranges.parent[row]]);
        return text;
    }

    /// Keyword values in order, followed by inputs, then outputs.
    std::string values(std::span<const Argument> arguments) const {
        std::string text;
        for (const ArgumentRole role : {ArgumentRole::Keyword, ArgumentRole::Input, ArgumentRole::Output}) {
            for (const Argument& argument : arguments) {
                if (argument.role == role)
                    text += " " + list(static_cast<int>(role)) + string(argument.key) + "=" + value(argument);
            }
        }
        return text;
    }
    std::string value(const Argument& argument) const {
        std::string text = list(static_cast<int>(argument.kind), argument.truncated);
        switch (argument.kind) {
            case ValueKind::None:
                return text + list(static_cast<int>(argument.left_out));
            case ValueKind::Bool:
                return text + list(argument.boolean);
            case ValueKind::Int:
                return text + list(argument.integer);
            case ValueKind::Double:
                return text + list(argument.real);
            case ValueKind::String:
                return text + list(static_cast<int>(argument.left_out)) + string(argument.string);
            case ValueKind::List:
                for (std::uint32_t i = 0; i < argument.list.count; ++i)
                    text += "(" + value(trace_.list_items()[argument.list.first + i]) + ")";
                return text;
            case ValueKind::Array:
                break;
        }
        const ArrayInfo& array = trace_.arrays()[argument.array];
        text += list(static_cast<int>(array.dtype), static_cast<int>(array.layout), array.is_defined,
                     array.has_strides, static_cast<int>(array.device.type), array.device.index,
                     array.storage, array.storage_id, array.object, static_cast<int>(array.access)) +
                "x";
        for (std::uint32_t i = 0; i < array.dimensions * (array.has_strides ? 2 : 1); ++i)
            text += list(trace_.array_extents()[array.first_extent + i]);
        return text;
    }

    void add_points() {
        const InstantColumns instants = trace_.instants();
        for (Row row = 0; row < instants.size(); ++row) {
            lines_.push_back("instant " + thread(instants.thread[row]) + list(instants.time_ns[row]) +
                             site(instants.site[row]) + values(trace_.instant_arguments(row)));
        }
        const CounterColumns counters = trace_.counters();
        for (Row row = 0; row < counters.size(); ++row) {
            lines_.push_back("counter " + thread(counters.thread[row]) +
                             list(counters.time_ns[row], counters.value[row]) +
                             string(trace_.sites()[counters.site[row]].name));
        }
        const MemoryColumns memory = trace_.memory();
        for (Row row = 0; row < memory.size(); ++row) {
            lines_.push_back("memory " + thread(memory.thread[row]) +
                             list(memory.time_ns[row], memory.address[row], memory.bytes[row],
                                  memory.total_allocated[row], memory.total_reserved[row],
                                  static_cast<int>(memory.device[row].type), memory.device[row].index,
                                  memory.out_of_memory[row]));
        }
    }

    const Trace& trace_;
    bool with_nesting_;
    std::map<Row, const TrackInfo*> queue_of_;
    std::vector<std::string> lines_;
};

bool is_clipped(const Trace& trace) {
    const WindowInfo& window = trace.window();
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        const std::int64_t start = trace.ranges().start_ns[row];
        if (start < window.start_ns || start + trace.ranges().duration_ns[row] > window.end_ns) return true;
    }
    return false;
}

/// The first lines that differ, or nothing.
std::string difference(const Trace& is, const Trace& should) {
    const bool with_nesting = !is_clipped(should);
    const std::vector<std::string> a = Projection(is, with_nesting).lines();
    const std::vector<std::string> b = Projection(should, with_nesting).lines();
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        if (i >= a.size() || i >= b.size() || a[i] != b[i])
            return "is:     " + (i < a.size() ? a[i] : "") + "\nshould: " + (i < b.size() ? b[i] : "");
    }
    return "";
}

class PerfettoRoundTripTest : public ::testing::Test {
  protected:
    ~PerfettoRoundTripTest() override { std::filesystem::remove_all(folder_); }

    static std::string make_folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "marey_perfetto_XXXXXX").string();
        return ::mkdtemp(pattern.data()) != nullptr ? pattern : ".";
    }
    static Trace round(const Trace& trace) {
        std::ostringstream out;
        write_perfetto(trace, out);
        return read_perfetto_bytes(out.str(), "written");
    }
    Trace round_through_file(const Trace& trace, const std::string& file) {
        const std::string path = folder_ + "/" + file;
        export_trace(trace, path);
        return open_trace(path);
    }

    std::string folder_ = make_folder();
};

TEST_F(PerfettoRoundTripTest, RandomTracesAreReadBackAsProjected) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        const Trace trace = testing::random_trace(seed);
        const Trace again = round(trace);
        ASSERT_EQ(difference(again, trace), "") << "seed " << seed;
    }
}

TEST_F(PerfettoRoundTripTest, WritingAnImportedTraceChangesNothingMore) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        const Trace once = round(testing::random_trace(seed));
        ASSERT_EQ(difference(round(once), once), "") << "seed " << seed;
    }
}

TEST_F(PerfettoRoundTripTest, NamesThatAreOnlyShownDifferentlyAreRestored) {
    for (const std::string name : {"python", ""}) {
        TraceAssembler assembler;
        ProcessInfo process;
        process.pid = 100;
        process.name = assembler.string("/usr/bin/python3.11");
        process.command_line = assembler.string("python app.py");
        process.realtime_offset_ns = 77;
        ThreadInfo thread;
        thread.process = assembler.add_process(process);
        thread.id = 1;
        thread.os_tid = 100;
        thread.name = assembler.string(name);
        const std::uint32_t lane = assembler.add_lane({assembler.add_thread(thread)});
        for (const char* const site :
             {"a (b)/x.py(3): f", "x.py(4): g.<locals>.<lambda>", "f (x.py:3)", "import x"})
            assembler.add_range(lane, 1000, 10,
                                assembler.site({assembler.string(site), assembler.string("/home/x.py"), 3,
                                                Scope::PythonFunction}));
        assembler.add_range(lane, 1000, 10,
                            assembler.site({assembler.string("y.py(1): h"), 0, 0, Scope::PythonFunction}));
        const Trace trace = assembler.finish();
        EXPECT_EQ(difference(round(trace), trace), "");
    }
}

TEST_F(PerfettoRoundTripTest, WaitsForADeviceStayAsyncOnTheirStream) {
    const Trace trace = testing::device_waits_trace();
    const Trace again = round(trace);
    EXPECT_EQ(again.threads().size(), 3u);
    EXPECT_EQ(testing::places_of_ranges(again), testing::places_of_ranges(trace));
}

TEST_F(PerfettoRoundTripTest, FilesAreRecognizedBySuffixAndFirstBytes) {
    const Trace trace = testing::random_trace(7);
    EXPECT_EQ(difference(round_through_file(trace, "a.pftrace"), trace), "");
    EXPECT_EQ(difference(round_through_file(trace, "a.perfetto-trace"), trace), "");
}

#if MAREY_HAVE_ZLIB
TEST_F(PerfettoRoundTripTest, CompressedFilesAreReadToo) {
    const Trace trace = testing::random_trace(11, {.max_ranges = 2000});
    const Trace again = round_through_file(trace, "a.perfetto-trace.gz");
    EXPECT_EQ(difference(again, trace), "");
}
#endif

}  // namespace
}  // namespace marey

#endif
