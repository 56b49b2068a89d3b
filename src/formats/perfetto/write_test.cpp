// write_test.cpp: an exported trace as text, and its size.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include <marey/export.h>

#include "base/golden_fixture.h"
#include "trace/trace_assembler.h"

#if MAREY_HAVE_PROTOZERO

namespace marey {
namespace {

/// Prints a Perfetto trace as text, one line per field. Unknown fields are failures.
class ProtoText {
  public:
    static std::string print(std::string_view bytes) {
        ProtoText printer;
        printer.message(bytes, "Trace", 0);
        return printer.text_;
    }

  private:
    struct Field {
        const char* name;
        const char* kind;  ///< "number", "signed", "text", "double", "fixed", or a message
    };
    static const std::map<std::string_view, std::map<std::uint64_t, Field>>& schema() {
        static const std::map<std::string_view, std::map<std::uint64_t, Field>> kSchema = {
            {"Trace", {{1, {"packet", "Packet"}}}},
            {"Packet",
             {{5, {"chrome_events", "ChromeEvents"}},
              {6, {"clock_snapshot", "Clocks"}},
              {8, {"timestamp", "number"}},
              {10, {"trusted_packet_sequence_id", "number"}},
              {11, {"track_event", "Event"}},
              {12, {"interned_data", "Interned"}},
              {13, {"sequence_flags", "number"}},
              {58, {"timestamp_clock_id", "number"}},
              {59, {"trace_packet_defaults", "Defaults"}},
              {60, {"track_descriptor", "Track"}}}},
            {"ChromeEvents", {{2, {"metadata", "Metadata"}}}},
            {"Metadata",
             {{1, {"name", "text"}},
              {2, {"string_value", "text"}},
              {3, {"bool_value", "number"}},
              {4, {"int_value", "signed"}},
              {5, {"json_value", "text"}}}},
            {"Clocks", {{1, {"clocks", "Clock"}}, {2, {"primary_trace_clock", "number"}}}},
            {"Clock",
             {{1, {"clock_id", "number"}}, {2, {"timestamp", "number"}}, {3, {"is_incremental", "number"}}}},
            {"Defaults",
             {{11, {"track_event_defaults", "EventDefaults"}}, {58, {"timestamp_clock_id", "number"}}}},
            {"EventDefaults", {{11, {"track_uuid", "number"}}}},
            {"Track",
             {{1, {"uuid", "number"}},
              {2, {"name", "text"}},
              {3, {"process", "Process"}},
              {4, {"thread", "Thread"}},
              {5, {"parent_uuid", "number"}},
              {8, {"counter", "Counter"}},
              {11, {"child_ordering", "number"}},
              {12, {"sibling_order_rank", "signed"}},
              {14, {"description", "text"}}}},
            {"Process",
             {{1, {"pid", "number"}},
              {2, {"cmdline", "text"}},
              {6, {"process_name", "text"}},
              {8, {"process_labels", "text"}}}},
            {"Thread", {{1, {"pid", "number"}}, {2, {"tid", "number"}}, {5, {"thread_name", "text"}}}},
            {"Counter", {{2, {"categories", "text"}}, {3, {"unit", "number"}}}},
            {"Event",
             {{3, {"category_iids", "number"}},
              {4, {"debug_annotations", "Annotation"}},
              {9, {"type", "number"}},
              {10, {"name_iid", "number"}},
              {11, {"track_uuid", "number"}},
              {22, {"categories", "text"}},
              {23, {"name", "text"}},
              {34, {"source_location_iid", "number"}},
              {44, {"double_counter_value", "double"}},
              {47, {"flow_ids", "fixed"}},
              {48, {"terminating_flow_ids", "fixed"}}}},
            {"Interned",
             {{1, {"event_categories", "InternedText"}},
              {2, {"event_names", "InternedText"}},
              {3, {"debug_annotation_names", "InternedText"}},
              {4, {"source_locations", "Place"}},
              {29, {"debug_annotation_string_values", "InternedText"}}}},
            {"InternedText", {{1, {"iid", "number"}}, {2, {"text", "text"}}}},
            {"Place",
             {{1, {"iid", "number"}},
              {2, {"file_name", "text"}},
              {3, {"function_name", "text"}},
              {4, {"line_number", "number"}}}},
            {"Annotation",
             {{1, {"name_iid", "number"}},
              {2, {"bool_value", "number"}},
              {3, {"uint_value", "number"}},
              {4, {"int_value", "signed"}},
              {5, {"double_value", "double"}},
              {6, {"string_value", "text"}},
              {7, {"pointer_value", "number"}},
              {8, {"nested_value", "Nested"}},
              {10, {"name", "text"}},
              {11, {"dict_entries", "Annotation"}},
              {12, {"array_values", "Annotation"}},
              {17, {"string_value_iid", "number"}}}},
            {"Nested", {{1, {"nested_type", "number"}}}},
        };
        return kSchema;
    }

    static std::uint64_t varint(std::string_view& bytes) {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
            const auto next = static_cast<unsigned char>(bytes[0]);
            bytes.remove_prefix(1);
            value |= static_cast<std::uint64_t>(next & 0x7f) << shift;
            if (next < 0x80) break;
        }
        return value;
    }

    void message(std::string_view bytes, std::string_view kind, int level) {
        const auto& fields = schema().at(kind);
        while (!bytes.empty()) {
            const std::uint64_t tag = varint(bytes);
            const auto found = fields.find(tag >> 3);
            if (found == fields.end()) {
                ADD_FAILURE() << "unknown field " << (tag >> 3) << " of " << kind;
                return;
            }
            const std::string_view type = found->second.kind;
            text_ += std::string(static_cast<std::size_t>(2 * level), ' ') + found->second.name;
            if ((tag & 7) == 0) {
                const std::uint64_t value = varint(bytes);
                text_ += ": " +
                         (type == "signed" ? std::to_string(static_cast<std::int64_t>(value))
                                           : std::to_string(value)) +
                         "\n";
            } else if ((tag & 7) == 1) {
                std::uint64_t value = 0;
                for (unsigned i = 0; i < 8; ++i)
                    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes.at(i))) << (8 * i);
                bytes.remove_prefix(8);
                std::ostringstream number;
                if (type == "double")
                    number << std::bit_cast<double>(value);
                else
                    number << "0x" << std::hex << value;
                text_ += ": " + number.str() + "\n";
            } else {
                const std::size_t size = varint(bytes);
                ASSERT_LE(size, bytes.size());
                const std::string_view inner = bytes.substr(0, size);
                bytes.remove_prefix(size);
                if (type == "text") {
                    text_ += ": \"" + std::string(inner) + "\"\n";
                } else {
                    text_ += "\n";
                    message(inner, type, level + 1);
                }
            }
        }
    }

    std::string text_;
};

std::string exported(const Trace& trace) {
    std::ostringstream out;
    write_perfetto(trace, out);
    return out.str();
}

Row add_thread(TraceAssembler& assembler, std::uint32_t id, std::int64_t tid, std::string_view name) {
    ThreadInfo thread;
    thread.id = id;
    thread.os_tid = tid;
    thread.name = assembler.string(name);
    return assembler.add_thread(thread);
}

Argument integer(StringId key, std::int64_t value) {
    Argument argument;
    argument.key = key;
    argument.kind = ValueKind::Int;
    argument.integer = value;
    return argument;
}

/// A kernel launch, with one of everything around it.
Trace make_trace() {
    TraceAssembler assembler;
    ProcessInfo process;
    process.pid = 100;
    process.node = 3;
    process.name = assembler.string("/opt/bin/train");
    process.host = assembler.string("box");
    process.realtime_offset_ns = 1'000'000;
    assembler.add_process(process);
    const Row main = add_thread(assembler, 1, 101, "main");
    const Row queue = add_thread(assembler, 2, 0, "stream 7");
    const std::uint32_t calls = assembler.add_lane({main});
    const std::uint32_t async = assembler.add_lane({main, TrackKind::Async});
    const std::uint32_t kernels = assembler.add_lane({queue, TrackKind::Device, {DeviceType::Cuda, 0}, 7});
    SiteInfo mm{assembler.string("aten::mm"), assembler.string("train.cpp"), 12, Scope::Function};
    mm.overload = assembler.string("out");
    const auto outer = assembler.add_range(calls, 1000, 500, assembler.site(mm));
    const auto launch = assembler.add_range(
        calls, 1100, 50, assembler.site({assembler.string("cudaLaunchKernel"), 0, 0, Scope::DeviceRuntime}));
    SiteInfo kernel{assembler.string("gemm"), 0, 0, Scope::Device};
    kernel.category = assembler.string("kernel");
    const auto run = assembler.add_range(kernels, 1200, 700, assembler.site(kernel));
    assembler.add_range(async, 1050, 1000, assembler.site({assembler.string("request")}), kUnfinished);
    assembler.add_range(calls, 1400, 300, assembler.site({assembler.string("crossing")}));
    assembler.add_link(launch, run, LinkKind::Launch);
    assembler.add_link(outer, run, LinkKind::Flow, assembler.string("data"));
    assembler.add_detail(outer, 5, 0, 42);

    ArrayInfo array;
    array.dtype = DType::Float32;
    array.dimensions = 2;
    array.has_strides = true;
    array.device = {DeviceType::Cuda, 0};
    Argument input;
    input.kind = ValueKind::Array;
    input.role = ArgumentRole::Input;
    const std::int64_t extents[] = {4, 8, 8, 1};
    input.array = assembler.add_array(array, extents);
    Argument list;
    list.key = assembler.string("axes");
    list.kind = ValueKind::List;
    const Argument items[] = {integer(0, 1), integer(0, -2)};
    list.list = assembler.add_list(items);
    Argument none;
    none.role = ArgumentRole::Input;
    const Argument values[] = {integer(assembler.string("batch"), 32), list, input, none};
    assembler.add_values(outer, values);

    assembler.add_instant(main, 1300, assembler.site({assembler.string("epoch")}));
    assembler.add_counter(main, 1310, assembler.site({assembler.string("loss")}), 0.25);
    AllocationReport report;
    report.time_ns = 1320;
    report.address = 0x1000;
    report.bytes = 256;
    report.total_allocated = 1024;
    report.device = {DeviceType::Cuda, 0};
    assembler.add_memory(main, report);
    assembler.add_metadata("model", "{\"layers\":2}");
    assembler.add_problem("dropped", "Records were lost.", 2);
    assembler.window().session_name = "demo";
    return assembler.finish();
}

TEST(PerfettoWriterTest, ATraceIsWrittenAsTheGoldenTextShows) {
    std::string text = ProtoText::print(exported(make_trace()));
    const std::size_t version = text.find('"', text.find("string_value:"));
    text.replace(version + 1, text.find('"', version + 1) - version - 1, "VERSION");
    expect_golden(text, "perfetto/everything.txt");
}

TEST(PerfettoWriterTest, AnEmptyTraceIsAValidFile) {
    const std::string text = ProtoText::print(exported(Trace()));
    EXPECT_NE(text.find("marey.version"), std::string::npos);
}

// The Perfetto UI shows the first names, and expands the process only if there are no clock snapshots.
TEST(PerfettoWriterTest, APythonProgramOpensExpandedUnderItsOwnName) {
    TraceAssembler assembler;
    ProcessInfo process;
    process.pid = 100;
    process.name = assembler.string("/usr/bin/python3.11");
    process.command_line = assembler.string("python -u shop/app.py");
    assembler.add_process(process);
    const std::uint32_t lane = assembler.add_lane({add_thread(assembler, 1, 100, "python")});
    assembler.add_range(
        lane, 1000, 500,
        assembler.site({assembler.string("shop/load.py(3): Loader.load"),
                        assembler.string("/home/me/shop/load.py"), 3, Scope::PythonFunction}));
    const std::string text = ProtoText::print(exported(assembler.finish()));
    const auto has = [&](const char* part) { return text.find(part) != text.npos; };
    EXPECT_TRUE(has("process_name: \"app.py\"")) << text;
    EXPECT_TRUE(has("thread_name: \"MainThread\"")) << text;
    EXPECT_TRUE(has("text: \"Loader.load (shop/load.py:3)\"")) << text;
    EXPECT_TRUE(has("file_name: \"/home/me/shop/load.py\"")) << text;
    EXPECT_FALSE(has("clock_snapshot")) << text;
}

TEST(PerfettoWriterTest, APlainRangeTakesAtMost44Bytes) {
    TraceAssembler assembler;
    assembler.add_process({});
    const std::uint32_t lane = assembler.add_lane({assembler.add_thread({})});
    std::vector<std::uint32_t> sites;
    for (int i = 0; i < 100; ++i)
        sites.push_back(
            assembler.site({assembler.string("s" + std::to_string(i)), assembler.string("f.cpp"), 1}));
    constexpr std::int64_t kUptimeNs = 10 * 86'400'000'000'000;
    constexpr std::int64_t kCount = 100'000;
    for (std::int64_t i = 0; i < kCount; ++i)
        assembler.add_range(lane, kUptimeNs + i * 3000, 2000, sites[static_cast<std::size_t>(i % 100)]);
    EXPECT_LE(exported(assembler.finish()).size(), 44u * kCount);
}

}  // namespace
}  // namespace marey

#endif
