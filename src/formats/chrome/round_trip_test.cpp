// round_trip_test.cpp: exported traces are read back, as far as docs/formats/chrome_json.md promises.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>

#include <marey/export.h>

#include "formats/chrome/read.h"
#include "trace/device_waits_fixture.h"
#include "trace/trace_assembler.h"
#include "trace/trace_dump_fixture.h"

namespace marey {
namespace {

using testing::dump_trace;

std::string exported(const Trace& trace) {
    std::ostringstream out;
    write_chrome_json(trace, out);
    return out.str();
}

Trace reimported(const std::string& text) {
    return read_chrome_json("exported", memory_source(text), 4096);
}

/// Random traces with everything that a round trip preserves.
class RandomTrace {
  public:
    explicit RandomTrace(unsigned seed) : random_(seed) {}

    Trace make() {
        add_rows();
        const std::size_t count = 20 + below(100);
        for (std::size_t i = 0; i < lanes_.size(); ++i) add_range(i, i);
        for (std::size_t i = 0; i < count; ++i) add_range(below(lanes_.size()), i);
        for (std::size_t i = below(20); i > 0; --i) add_point();
        for (std::size_t i = below(10); i > 0 && ranges_ > 1; --i) add_link();
        for (std::size_t i = below(3); i > 0; --i)
            assembler_.add_metadata("fact " + std::to_string(i), "{\"list\": [1, 2.5, null, \"x\"]}");
        if (below(4) == 0) assembler_.add_metadata("traceEvents", "[]");  // its key is already used
        if (below(2) == 0) assembler_.add_problem("dropped", "some were \"lost\"", 7);
        assembler_.window().session_name = "run";
        assembler_.window().finished = below(2) == 0;
        assembler_.set_window(kStart, kEnd);
        return assembler_.finish();
    }

  private:
    static constexpr std::int64_t kStart = 1'000'000, kEnd = 2'000'000;

    std::size_t below(std::size_t bound) { return random_() % bound; }
    StringId string(const std::string& text) { return assembler_.string(text); }

    void add_rows() {
        const std::size_t processes = 1 + below(2);
        for (std::size_t p = 0; p < processes; ++p) {
            ProcessInfo process;
            process.pid = 4000 + static_cast<std::int64_t>(p);
            process.name = string(p == 0 ? "trainer" : "loader \"2\"");
            process.host = string("box");
            process.node = below(2) == 0 ? static_cast<std::int32_t>(p) : -1;
            process.realtime_offset_ns = 1'700'000'000'000'000'000;
            assembler_.add_process(process);
            const std::size_t threads = 1 + below(3);
            for (std::size_t t = 0; t < threads; ++t) add_thread(static_cast<Row>(p), t);
            if (below(2) == 0) add_queue(static_cast<Row>(p));
        }
    }
    Row add_thread_row(Row process, std::int64_t os_tid, const std::string& name) {
        ThreadInfo thread;
        thread.process = process;
        thread.id = ++thread_ids_;
        thread.os_tid = os_tid;
        thread.name = string(name);
        threads_.push_back(assembler_.add_thread(thread));
        return threads_.back();
    }
    void add_thread(Row process, std::size_t index) {
        Lane lane;
        lane.thread = add_thread_row(process, 4000 + process * 100 + static_cast<std::int64_t>(index),
                                     index == 0 ? "main" : "worker " + std::to_string(index));
        lanes_.push_back(assembler_.add_lane(lane));
        if (below(3) != 0) return;
        lane.kind = TrackKind::Async;
        if (below(2) == 0) lane.name = string("requests");
        lanes_.push_back(assembler_.add_lane(lane));
    }
    void add_queue(Row process) {
        Lane lane;
        lane.stream = static_cast<std::int64_t>(7 + below(3));
        lane.thread = add_thread_row(process, 0, "stream " + std::to_string(lane.stream));
        lane.kind = TrackKind::Device;
        lane.device = {DeviceType::Cuda, static_cast<std::int32_t>(process)};
        device_lanes_.push_back(lanes_.size());
        lanes_.push_back(assembler_.add_lane(lane));
    }
    std::uint32_t site(bool on_device) {
        SiteInfo site;
        const std::size_t number = below(8);
        site.name = string("name " + std::to_string(number) + (number == 3 ? " \"quoted\" \xC3\xA9\n" : ""));
        site.scope = on_device ? (below(3) == 0 ? Scope::User : Scope::Device)
                               : static_cast<Scope>(below(kScopeCount - 4) + (below(4) == 0 ? 2 : 0));
        if (!on_device && site.scope == Scope::Device) site.scope = Scope::User;
        if (number == 1) {
            site.file = string("src/a b.cpp");
            site.line = 12;
        }
        if (number == 2) site.overload = string("out");
        if (number == 4) site.raw_name = string("_Z4name");
        if (number == 5 && !on_device) {
            site.category = string("netlog");
            site.scope = Scope::User;
        }
        return assembler_.site(site);
    }
    void add_range(std::size_t lane, std::size_t number) {
        const bool on_device =
            std::find(device_lanes_.begin(), device_lanes_.end(), lane) != device_lanes_.end();
        // Few distinct times, so that equal times, nesting and overlaps all occur.
        std::int64_t start = kStart + static_cast<std::int64_t>(below(40)) * 10'000;
        std::int64_t duration = static_cast<std::int64_t>(below(30)) * 10'001;
        std::uint16_t flags = 0;
        if (below(20) == 0) {
            start = kStart;
            flags |= kBeganBefore;
        }
        if (below(20) == 0) {
            duration = kEnd - start;
            flags |= kUnfinished;
        }
        if (below(20) == 0) flags |= kEndInferred;
        const auto range = assembler_.add_range(lanes_[lane], start, duration, site(on_device), flags);
        ++ranges_;
        std::vector<Argument> values;
        for (std::size_t i = below(4); i > 0; --i) values.push_back(keyword(i));
        if (below(3) == 0) {
            for (std::size_t i = 1 + below(4); i > 0; --i) values.push_back(positional(ArgumentRole::Input));
        }
        if (below(6) == 0) {
            for (std::size_t i = 1 + below(2); i > 0; --i) values.push_back(positional(ArgumentRole::Output));
        }
        assembler_.add_values(range, values);
        if (below(5) == 0)
            assembler_.add_detail(range, static_cast<std::int64_t>(number),
                                  static_cast<std::uint32_t>(below(3)), below(2) == 0 ? 0 : number + 1);
        else if (below(5) == 0)
            assembler_.add_detail(range, -1, 0, 0, 1 + below(9), static_cast<std::uint32_t>(below(4)));
    }
    Argument scalar() {
        Argument value;
        switch (below(4)) {
            case 0:
                value.kind = ValueKind::Bool;
                value.boolean = below(2) == 0;
                break;
            case 1:
                value.kind = ValueKind::Int;
                value.integer = static_cast<std::int64_t>(random_()) - (std::int64_t{1} << 31);
                break;
            case 2:
                value.kind = ValueKind::Double;
                value.real = static_cast<double>(below(1000)) / 7 + 0.1;
                break;
            default:
                value.kind = ValueKind::Int;
                value.integer = below(2) == 0 ? std::numeric_limits<std::int64_t>::max()
                                              : std::numeric_limits<std::int64_t>::min();
        }
        return value;
    }
    Argument text() {
        Argument value;
        value.kind = ValueKind::String;
        value.string = string(below(2) == 0 ? "plain" : "a \"b\" \\ \x01 \xE2\x82\xAC");
        return value;
    }
    Argument array(bool with_strides) {
        ArrayInfo info;
        info.dtype = static_cast<DType>(1 + below(static_cast<std::size_t>(DType::Complex128)));
        std::vector<std::int64_t> extents;
        info.dimensions = static_cast<std::uint32_t>(below(4));
        info.has_strides = with_strides && info.dimensions > 0 && below(2) == 0;
        for (std::size_t i = info.dimensions * (info.has_strides ? 2u : 1u); i > 0; --i)
            extents.push_back(static_cast<std::int64_t>(below(100)));
        Argument value;
        value.kind = ValueKind::Array;
        value.array = assembler_.add_array(info, extents);
        return value;
    }
    Argument keyword(std::size_t number) {
        Argument value;
        switch (below(5)) {
            case 0:
                value = text();
                break;
            case 1: {
                std::vector<Argument> items;
                for (std::size_t i = below(4); i > 0; --i) items.push_back(below(2) == 0 ? scalar() : text());
                value.kind = ValueKind::List;
                value.list = assembler_.add_list(items);
                break;
            }
            case 2:
                value = array(false);
                break;
            case 3:
                break;  // none
            default:
                value = scalar();
        }
        value.key = string("key " + std::to_string(number));
        return value;
    }
    Argument positional(ArgumentRole role) {
        Argument value;
        switch (below(5)) {
            case 0:
                value = scalar();
                break;
            case 1: {
                std::vector<Argument> items;
                for (std::size_t i = below(4); i > 0; --i) items.push_back(scalar());
                value.kind = ValueKind::List;
                value.list = assembler_.add_list(items);
                break;
            }
            case 2:
                value = text();
                break;
            case 3:
                break;
            default:
                value = array(true);
        }
        value.role = role;
        return value;
    }
    void add_point() {
        const std::int64_t time = kStart + static_cast<std::int64_t>(below(1'000'000));
        const Row thread = threads_[below(threads_.size())];
        switch (below(3)) {
            case 0: {
                const Argument value = keyword(1);
                assembler_.add_instant(thread, time, site(false), {&value, below(2)});
                break;
            }
            case 1: {
                SiteInfo counter;
                counter.name = string("counter " + std::to_string(below(3)));
                assembler_.add_counter(thread, time, assembler_.site(counter),
                                       static_cast<double>(below(1000)) / 3 - 100);
                break;
            }
            default: {
                AllocationReport report;
                report.time_ns = time;
                report.out_of_memory = below(4) == 0;
                if (!report.out_of_memory) report.address = ~std::uint64_t{0} - below(1000);
                report.bytes = static_cast<std::int64_t>(below(1000)) - 500;
                report.total_allocated = 12;
                report.total_reserved = 34;
                report.device = {DeviceType::Cuda, static_cast<std::int32_t>(below(2))};
                assembler_.add_memory(thread, report);
            }
        }
    }
    void add_link() {
        const auto from = static_cast<TraceAssembler::RangeId>(below(ranges_));
        const auto to = static_cast<TraceAssembler::RangeId>(below(ranges_));
        const auto kind = static_cast<LinkKind>(1 + below(4));
        const bool is_named = kind == LinkKind::Flow && below(2) == 0;
        assembler_.add_link(from, to, kind, is_named ? string("my arrow") : 0);
    }

    std::mt19937 random_;
    TraceAssembler assembler_;
    std::vector<std::uint32_t> lanes_;
    std::vector<std::size_t> device_lanes_;
    std::vector<Row> threads_;
    std::uint32_t thread_ids_ = 0;
    std::size_t ranges_ = 0;
};

TEST(ChromeRoundTrip, ExportedTracesAreReadBack) {
    std::map<TrackKind, std::size_t> kinds;
    std::size_t links = 0, instants = 0, counters = 0, reports = 0, details = 0, arrays = 0;
    for (unsigned seed = 1; seed <= 300; ++seed) {
        const Trace trace = RandomTrace(seed).make();
        for (const TrackInfo& track : trace.tracks()) ++kinds[track.kind];
        links += trace.links().size();
        instants += trace.instants().size();
        counters += trace.counters().size();
        reports += trace.memory().size();
        details += trace.range_details().size();
        arrays += trace.arrays().size();
        const std::string text = exported(trace);
        const Trace again = reimported(text);
        ASSERT_EQ(dump_trace(again), dump_trace(trace)) << "seed " << seed;
        ASSERT_EQ(exported(again), text) << "seed " << seed;
    }
    // Everything occurred at least once.
    EXPECT_EQ(kinds.size(), 4u);
    for (const std::size_t count : {links, instants, counters, reports, details, arrays})
        EXPECT_GT(count, 100u);
}

TEST(ChromeRoundTrip, WaitsForADeviceStayAsyncOnTheirStream) {
    const Trace trace = testing::device_waits_trace();
    const Trace again = reimported(exported(trace));
    EXPECT_EQ(again.threads().size(), 3u);
    EXPECT_EQ(testing::places_of_ranges(again), testing::places_of_ranges(trace));
}

}  // namespace
}  // namespace marey
