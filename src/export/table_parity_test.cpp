// table_parity_test.cpp: compares our table with PyTorch's output for the same events, character for
// character. tests/data/parity/table_cases.json has the events; make_table_goldens.py next to it created the
// texts.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <tuple>

#include <marey/flops.h>
#include <marey/table.h>

#include "base/golden_fixture.h"
#include "json/strict_json_fixture.h"
#include "trace/trace_assembler.h"

namespace marey {
namespace {

using Json = StrictJson::Value;

std::int64_t integer(const Json& value, std::int64_t usual) {
    return value.kind == StrictJson::Kind::Number ? static_cast<std::int64_t>(value.number()) : usual;
}

DeviceType device_named(const std::string& name) {
    for (const DeviceType type : {DeviceType::Cuda, DeviceType::Xpu, DeviceType::Hpu}) {
        if (name == device_type_name(type)) return type;
    }
    return DeviceType::Cpu;
}

/// A trace with the events of one case.
class CaseTrace {
  public:
    explicit CaseTrace(const Json& test_case) {
        for (const Json& event : test_case["events"].items) add(event);
        for (const auto& [range, id] : launches_)
            assembler_.add_link(range, ranges_.at(id), LinkKind::Launch);
        for (const Json& report : test_case["memory"].items) {
            AllocationReport memory;
            memory.time_ns = integer(report["time"], 0);
            memory.bytes = integer(report["bytes"], 0);
            memory.device.type = device_named(report["device"].text);
            memory.out_of_memory = report["oom"].truth;
            assembler_.add_memory(thread(integer(report["node"], -1), integer(report["thread"], 1)), memory);
        }
    }
    ~CaseTrace() {
        for (const std::string& name : formulas_) unregister_flops(name);
    }
    CaseTrace(const CaseTrace&) = delete;
    CaseTrace& operator=(const CaseTrace&) = delete;

    Trace finish() { return assembler_.finish(); }
    bool has_flops() const { return !formulas_.empty(); }

  private:
    Row thread(std::int64_t node, std::int64_t id) {
        const auto [process, new_process] = processes_.try_emplace(node, 0);
        if (new_process) {
            ProcessInfo info;
            info.node = static_cast<std::int32_t>(node);
            process->second = assembler_.add_process(info);
        }
        const auto [place, is_new] = threads_.try_emplace({node, id}, 0);
        if (is_new) {
            ThreadInfo info;
            info.process = process->second;
            info.id = static_cast<std::uint32_t>(id);
            place->second = assembler_.add_thread(info);
        }
        return place->second;
    }

    std::uint32_t lane(Row thread, TrackKind kind, DeviceType device) {
        const auto [place, is_new] = lanes_.try_emplace({thread, kind, device}, 0);
        if (is_new) place->second = assembler_.add_lane({thread, kind, {device, 0}, -1, 0});
        return place->second;
    }

    void add(const Json& event) {
        static const Json none;
        const Json& options = event.items.size() > 3 ? event.items[3] : none;
        const DeviceType device = device_named(options["device"].text);
        const TrackKind kind = device != DeviceType::Cpu   ? TrackKind::Device
                               : options["is_async"].truth ? TrackKind::Async
                                                           : TrackKind::Thread;
        SiteInfo site;
        site.name = assembler_.string(event.items[0].text);
        site.overload = assembler_.string(options["overload"].text);
        site.scope = options["is_user_annotation"].truth ? Scope::User
                     : device != DeviceType::Cpu         ? Scope::Device
                                                         : static_cast<Scope>(integer(options["scope"], 0));
        const std::int64_t start = integer(event.items[1], 0);
        const auto range = assembler_.add_range(
            lane(thread(integer(options["node"], -1), integer(options["thread"], 1)), kind, device), start,
            integer(event.items[2], 0) - start, assembler_.site(site));
        for (const Json& id : options["launches"].items) launches_.emplace_back(range, id.text);
        if (!options["id"].text.empty()) ranges_[options["id"].text] = range;
        if (options["sequence"].kind == StrictJson::Kind::Number)
            assembler_.add_detail(range, integer(options["sequence"], -1),
                                  static_cast<std::uint32_t>(integer(options["forward_thread"], 0)), 0);
        add_values(range, options);
        if (options["flops"].kind == StrictJson::Kind::Number) {
            const double flops = options["flops"].number();
            register_flops(event.items[0].text,
                           [flops](const OperationInputs&) { return std::optional(flops); });
            formulas_.push_back(event.items[0].text);
        }
    }

    void add_values(TraceAssembler::RangeId range, const Json& options) {
        std::vector<Argument> values;
        for (const Json& shape : options["shapes"].items) {
            std::vector<std::int64_t> extents;
            for (const Json& extent : shape.items) extents.push_back(integer(extent, 0));
            ArrayInfo array;
            array.dimensions = static_cast<std::uint32_t>(extents.size());
            Argument& value = values.emplace_back();
            value.kind = ValueKind::Array;
            value.role = ArgumentRole::Input;
            value.array = assembler_.add_array(array, extents);
        }
        std::string stack;
        for (const Json& entry : options["stack"].items) stack += (stack.empty() ? "" : ";") + entry.text;
        if (!stack.empty()) {
            Argument& value = values.emplace_back();
            value.key = assembler_.string("Call stack");
            value.kind = ValueKind::String;
            value.string = assembler_.string(stack);
        }
        assembler_.add_values(range, values);
    }

    TraceAssembler assembler_;
    std::map<std::int64_t, Row> processes_;
    std::map<std::pair<std::int64_t, std::int64_t>, Row> threads_;
    std::map<std::tuple<Row, TrackKind, DeviceType>, std::uint32_t> lanes_;
    std::vector<std::pair<TraceAssembler::RangeId, std::string>> launches_;
    std::map<std::string, TraceAssembler::RangeId> ranges_;
    std::vector<std::string> formulas_;
};

TableOptions table_options(const Json& given) {
    TableOptions options;
    options.sort_by = given["sort_by"].text;
    options.row_limit = integer(given["row_limit"], options.row_limit);
    for (const auto& [name, value] : given.members) {
        const std::optional<std::size_t> width = value.kind == StrictJson::Kind::Null
                                                     ? std::nullopt
                                                     : std::optional<std::size_t>(integer(value, 0));
        if (name == "max_name_column_width") options.max_name_column_width = width;
        if (name == "max_src_column_width") options.max_src_column_width = width;
        if (name == "max_shapes_column_width") options.max_shapes_column_width = width;
    }
    if (!given["header"].text.empty()) options.header = given["header"].text;
    options.top_level_events_only = given["top_level_events_only"].truth;
    options.time_unit = given["time_unit"].text;
    return options;
}

/// Upstream quirks for which a table may differ; everything else must be equal.
bool is_mended_quirk(const std::string& quirk) {
    return quirk == "Q13" || quirk == "Q14" || quirk == "Q16" || quirk == "Q17" || quirk == "Q18";
}

// Q12 Q13 Q14 Q15 Q16 Q17 Q18
TEST(TableParity, MatchesUpstreamCharacterForCharacter) {
    std::ifstream file(std::filesystem::path(MAREY_SOURCE_DIR) / "tests" / "data" / "parity" /
                       "table_cases.json");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    Json cases;
    ASSERT_EQ(StrictJson::parse(text, cases), "");
    ASSERT_GE(cases.items.size(), 40u);
    for (const Json& test_case : cases.items) {
        const std::string name = test_case["name"].text;
        SCOPED_TRACE(name + ": " + test_case["what"].text);
        const std::string quirk = test_case["quirk"].text;
        EXPECT_TRUE(quirk.empty() || is_mended_quirk(quirk)) << quirk;
        CaseTrace events(test_case);
        const Trace trace = events.finish();
        const TableOptions options = table_options(test_case["table"]);
        const Json& group = test_case["group"];
        AverageOptions average;
        average.by_input_shape = group["shapes"].truth;
        average.by_overload = group["overload"].truth;
        average.stack_entries = static_cast<std::uint32_t>(integer(group["stack"], 0));
        average.flops = events.has_flops();
        const std::string found = averages_table(
            test_case["view"].text == "events" ? list_ranges(trace, average) : key_averages(trace, average),
            options);
        const std::string golden = "table/" + name + ".txt";
        ASSERT_TRUE(std::filesystem::exists(golden_path(golden)));
        EXPECT_EQ(found, read_golden(golden));
    }
}

}  // namespace
}  // namespace marey
