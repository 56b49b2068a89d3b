// random_trace_fixture.h: for tests: random traces that use everything in the model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "trace/trace_assembler.h"

namespace marey::testing {

struct RandomTraceOptions {
    std::size_t max_ranges = 80;
    /// Any bytes, numbers, devices and facts that the model can hold, whether or not anything records them.
    bool is_arbitrary = false;
};

/// Makes a trace that is the same for the same seed: several processes, threads, async lanes and devices,
/// ranges that nest, cross and have no length, values of all kinds, links, details, instants, counters,
/// allocation reports, metadata, problems, and sometimes a window that is smaller than what happened.
class RandomTrace {
  public:
    explicit RandomTrace(unsigned seed, const RandomTraceOptions& options = {})
        : random_(seed), max_ranges_(options.max_ranges), is_arbitrary_(options.is_arbitrary) {}

    Trace make() {
        start_ns_ = one_in(4) ? below(1000) : 1'700'000'000'000'000 + below(1'000'000'000);
        if (one_in(8)) start_ns_ = -start_ns_;
        if (one_in(3)) {
            window_start_ns_ = start_ns_ + below(kSpan / 2);
            window_end_ns_ = start_ns_ + kSpan / 2 + below(kSpan);
            assembler_.set_window(window_start_ns_, window_end_ns_);
            has_window_ = true;
        }
        add_sites();
        for (std::int64_t i = 1 + below(3); i-- != 0;) add_process();
        const std::size_t count = lanes_.empty() ? 0 : random_() % (max_ranges_ + 1);
        for (std::size_t i = 0; i < count; ++i) add_range();
        if (count > 0) add_links(count);
        add_points();
        if (one_in(2)) assembler_.add_metadata("model", "{\"layers\":[1,2,3]}");
        if (one_in(3)) assembler_.add_metadata("note", "\"\\u00fcber\"");
        if (one_in(3)) assembler_.add_problem("dropped", "7 records were lost.", 7);
        assembler_.window().session_name = one_in(2) ? "training" : "";
        assembler_.window().finished = !one_in(4);
        if (!is_arbitrary_) return assembler_.finish();
        assembler_.add_metadata(bytes(), "17");
        assembler_.add_problem(bytes(), bytes(), wild());
        auto data = std::make_shared<TraceData>(assembler_.finish().data());
        add_arbitrary_facts(*data);
        add_arbitrary_samples(*data);
        return Trace(std::move(data));
    }

    /// Two threads whose ranges nest and cross, an async lane and a device's queue, launched from the
    /// threads; few names, steps, recursion, equal times; a window that cuts some ranges off.
    Trace make_training(std::int64_t ranges_per_lane) {
        add_training_places();
        const Scope scopes[] = {Scope::User, Scope::Function, Scope::PythonFunction, Scope::CFunction,
                                Scope::DeviceRuntime};
        std::vector<TraceAssembler::RangeId> calls;
        for (const std::uint32_t lane : lanes_) {
            const bool is_device = lane == lanes_.back();
            for (std::int64_t i = 0; i < ranges_per_lane; ++i) {
                const std::int64_t scope = below(5);
                const std::string name = "n" + std::to_string(scope) + std::to_string(below(3));
                const std::uint32_t site = training_site((is_device ? "kernel " : "") + name, scopes[scope]);
                const std::int64_t duration = below(one_in(3) ? 4000 : 100);
                const auto range = assembler_.add_range(lane, below(10'000), duration, site);
                if (lane == lanes_[0] || lane == lanes_[1]) calls.push_back(range);
                if (is_device && !one_in(4)) assembler_.add_link(any_of(calls), range, LinkKind::Launch);
            }
        }
        for (std::int64_t step = 0; step < 5; ++step) {
            const std::uint32_t site = training_site("ProfilerStep#" + std::to_string(step), Scope::Step);
            assembler_.add_range(lanes_[0], step * 2000, 1500 + below(400), site);
        }
        assembler_.set_window(500, 9'000 + below(4000));
        return assembler_.finish();
    }

  private:
    static constexpr std::int64_t kSpan = 3000;

    std::int64_t below(std::int64_t limit) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(limit));
    }
    bool one_in(int n) { return below(n) == 0; }
    std::int64_t time() { return start_ns_ + below(kSpan); }
    template <class List>
    auto any_of(const List& list) -> std::decay_t<decltype(*std::begin(list))> {
        return *(std::begin(list) + below(static_cast<std::int64_t>(std::size(list))));
    }
    std::uint64_t wild() {
        const std::uint64_t number = random_();
        return number >> below(64);
    }
    std::int64_t arbitrary_signed() { return static_cast<std::int64_t>(one_in(2) ? wild() : 0 - wild()); }
    double arbitrary_real() {
        constexpr double kOdd[] = {0.0, -0.0, std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
        return one_in(3) ? any_of(kOdd) : static_cast<double>(wild()) / 7;
    }
    Device arbitrary_device() {
        constexpr DeviceType kTypes[] = {DeviceType::Cpu, DeviceType::Cuda, DeviceType::Mps,
                                         DeviceType::None};
        return {any_of(kTypes), static_cast<std::int32_t>(below(4)) - 1};
    }
    std::string bytes() {
        std::string text(static_cast<std::size_t>(below(12)), '\0');
        for (char& byte : text) byte = static_cast<char>(one_in(4) ? below(256) : 'a' + below(26));
        return text;
    }
    StringId text() {
        if (is_arbitrary_ && one_in(2)) return assembler_.string(bytes());
        static const std::string kTexts[] = {"",
                                             "x",
                                             "aten::mm",
                                             "caf\xc3\xa9",
                                             "quote\"back\\slash",
                                             "line\nbreak",
                                             "\xff\xfe",
                                             std::string("nul\0inside", 10),
                                             std::string(300, 'L'),
                                             "marey",
                                             "inputs"};
        return assembler_.string(any_of(kTexts));
    }

    void add_sites() {
        for (std::int64_t i = is_arbitrary_ ? 12 : 1 + below(12); i-- != 0;) {
            SiteInfo site;
            site.name = one_in(3) ? text() : assembler_.string("site_" + std::to_string(i));
            site.scope = static_cast<Scope>(below(kScopeCount));
            if (one_in(2)) {
                site.file = assembler_.string("src/part_" + std::to_string(below(3)) + ".cpp");
                site.line = static_cast<std::uint32_t>(below(500));
            }
            if (one_in(4)) site.category = assembler_.string("kernel");
            if (one_in(5)) site.overload = assembler_.string("Tensor_out");
            if (one_in(5)) site.raw_name = assembler_.string("_Z1fv");
            if (is_arbitrary_) site.category = text();
            sites_.push_back(assembler_.site(site));
        }
    }

    void add_process() {
        ProcessInfo process;
        process.pid = 100 + process_count_;
        process.node = one_in(2) ? -1 : process_count_;
        process.name = assembler_.string("/opt/bin/app");
        process.host = one_in(2) ? 0 : assembler_.string("box");
        process.command_line = one_in(2) ? 0 : assembler_.string("/opt/bin/app --fast");
        process.realtime_offset_ns = 1'000'000'000;
        if (is_arbitrary_) {
            process.pid = arbitrary_signed();
            process.name = text();
            process.realtime_offset_ns = static_cast<std::int64_t>(wild() >> 2);
        }
        const Row row = assembler_.add_process(process);
        ++process_count_;
        std::uint32_t id = 0;
        for (std::int64_t i = 1 + below(3); i-- != 0;) add_thread(row, ++id);
        for (std::int64_t i = below(3); i-- != 0;) add_queue(row, ++id, static_cast<std::int32_t>(i));
    }

    Row add_thread_row(Row process, std::uint32_t id, std::int64_t os_tid, const std::string& name) {
        ThreadInfo thread;
        thread.process = process;
        thread.id = id;
        thread.os_tid = os_tid;
        thread.name = assembler_.string(name);
        if (is_arbitrary_) {
            thread.os_tid = static_cast<std::int64_t>(wild() >> 2);
            thread.name = text();
            thread.birth_ns = time();
            thread.death_ns = one_in(2) ? 0 : time();
            thread.dropped = wild();
            thread.overwritten_chunks = wild();
            thread.resyncs = wild();
            thread.clamped = wild();
        }
        threads_.push_back(assembler_.add_thread(thread));
        return threads_.back();
    }
    void add_thread(Row process, std::uint32_t id) {
        const std::int64_t os_tid = 1000 + 100 * process + id;
        const Row thread =
            add_thread_row(process, id, os_tid, one_in(3) ? "" : "worker " + std::to_string(id));
        lanes_.push_back(assembler_.add_lane({thread, TrackKind::Thread, {}, -1, 0}));
        if (one_in(3)) lanes_.push_back(assembler_.add_lane({thread, TrackKind::Async, {}, -1, 0}));
    }
    void add_queue(Row process, std::uint32_t id, std::int32_t device) {
        const std::int64_t stream = 7 + below(3);
        const Row thread = add_thread_row(process, id, 0, "stream " + std::to_string(stream));
        lanes_.push_back(
            assembler_.add_lane({thread, TrackKind::Device, {DeviceType::Cuda, device}, stream, 0}));
        if (is_arbitrary_)
            lanes_.push_back(
                assembler_.add_lane({thread, TrackKind::Thread, arbitrary_device(), -1, text()}));
    }

    void add_range() {
        std::int64_t start = time();
        std::int64_t duration = one_in(8) ? 0 : below(one_in(4) ? kSpan : 200);
        std::uint16_t flags = 0;
        if (has_window_) {
            start = std::min(start, window_end_ns_);
            if (start < window_start_ns_) {
                flags |= kBeganBefore;
                duration = std::max(duration, window_start_ns_ - start);
            }
            if (start + duration >= window_end_ns_) {
                duration = window_end_ns_ - start;
                flags |= kUnfinished;
            }
        }
        if (one_in(10)) flags |= kEndInferred;
        if (one_in(10)) flags |= kRemote;
        if (is_arbitrary_ && one_in(5)) flags = static_cast<std::uint16_t>(random_() & ~kAsync);
        if (is_arbitrary_ && one_in(10)) duration = -5;
        const auto range = assembler_.add_range(any_of(lanes_), start, duration, any_of(sites_), flags);
        if (one_in(3)) assembler_.add_values(range, values());
        if (is_arbitrary_ && one_in(4)) {
            assembler_.add_detail(range, static_cast<std::int64_t>(wild() >> 1) - 1,
                                  static_cast<std::uint32_t>(below(3)), wild(), wild(),
                                  static_cast<std::uint32_t>(below(4)));
        } else if (one_in(5)) {
            assembler_.add_detail(range, below(100) - 1, static_cast<std::uint32_t>(below(3)),
                                  static_cast<std::uint64_t>(below(2000)));
        } else if (one_in(4)) {
            assembler_.add_detail(range, -1, 0, 0, 1 + static_cast<std::uint64_t>(below(20)),
                                  static_cast<std::uint32_t>(below(4)));
        }
    }

    std::vector<Argument> values() {
        std::vector<Argument> list;
        for (std::int64_t i = 1 + below(5); i-- != 0;) {
            Argument value = argument(0);
            value.role = static_cast<ArgumentRole>(below(4));
            if (value.role == ArgumentRole::Keyword) value.key = text();
            list.push_back(value);
        }
        return list;
    }
    Argument argument(int level) {
        Argument value;
        value.kind = static_cast<ValueKind>(below(level < 3 ? 7 : 5));
        switch (value.kind) {
            case ValueKind::None:
                if (one_in(2)) value.left_out = static_cast<ValueKind>(below(7));
                break;
            case ValueKind::Bool:
                value.boolean = one_in(2);
                break;
            case ValueKind::Int:
                value.integer = one_in(2) ? below(100) : static_cast<std::int64_t>(random_());
                break;
            case ValueKind::Double:
                value.real = is_arbitrary_ ? arbitrary_real()
                             : one_in(9)   ? std::numeric_limits<double>::infinity()
                                           : static_cast<double>(below(1000)) / 8 - 20;
                break;
            case ValueKind::String:
                value.string = text();
                value.truncated = one_in(4);
                if (one_in(4)) value.left_out = static_cast<ValueKind>(below(4));
                break;
            case ValueKind::List: {
                std::vector<Argument> items;
                for (std::int64_t i = below(4); i-- != 0;) items.push_back(argument(level + 1));
                value.list = assembler_.add_list(items);
                value.truncated = one_in(4);
                break;
            }
            case ValueKind::Array:
                value.array = array();
                break;
        }
        return value;
    }
    Row array() {
        ArrayInfo info;
        info.dtype = static_cast<DType>(below(static_cast<int>(kLastDType) + 1));
        info.layout = static_cast<Layout>(below(6));
        info.is_defined = !one_in(6);
        info.dimensions = static_cast<std::uint32_t>(below(4));
        info.has_strides = one_in(2);
        info.device = {one_in(2) ? DeviceType::Cpu : DeviceType::Cuda,
                       static_cast<std::int32_t>(below(3)) - 1};
        info.storage = random_();
        info.storage_id = random_() % 5;
        info.object = random_();
        info.access = static_cast<ArrayAccess>(below(3));
        std::vector<std::int64_t> extents(std::size_t{info.dimensions} * (info.has_strides ? 2 : 1));
        for (std::int64_t& extent : extents) extent = is_arbitrary_ ? arbitrary_signed() : below(512);
        if (is_arbitrary_) info.device = arbitrary_device();
        return assembler_.add_array(info, extents);
    }

    void add_links(std::size_t ranges) {
        for (std::size_t i = random_() % (ranges / 4 + 1); i-- != 0;) {
            const auto kind = static_cast<LinkKind>(1 + below(4));
            const StringId name =
                kind == LinkKind::Flow && one_in(2) ? assembler_.string("queue") : StringId{0};
            const Row from = static_cast<Row>(random_() % ranges);
            const Row to = static_cast<Row>(random_() % ranges);
            if (from != to || is_arbitrary_) assembler_.add_link(from, to, kind, name);
        }
    }

    /// Instants, counters and allocation reports lie in the window.
    std::int64_t point_time() {
        return has_window_ ? window_start_ns_ + below(window_end_ns_ - window_start_ns_ + 1) : time();
    }
    void add_points() {
        for (std::int64_t i = below(10); i-- != 0;) {
            assembler_.add_instant(any_of(threads_), point_time(), any_of(sites_),
                                   one_in(2) ? values() : std::vector<Argument>());
        }
        for (std::int64_t i = below(10); i-- != 0;) {
            assembler_.add_counter(any_of(threads_), point_time(), any_of(sites_),
                                   is_arbitrary_ ? arbitrary_real() : static_cast<double>(below(1000)) / 4);
        }
        for (std::int64_t i = below(10); i-- != 0;) {
            AllocationReport report;
            report.time_ns = point_time();
            report.address = random_();
            report.bytes = below(4096) - 2048;
            report.total_allocated = below(1 << 20);
            report.total_reserved = report.total_allocated + below(4096);
            if (one_in(2)) report.device = {DeviceType::Cuda, static_cast<std::int32_t>(below(2))};
            report.out_of_memory = one_in(8);
            if (is_arbitrary_) {
                report.bytes = arbitrary_signed();
                report.total_allocated = arbitrary_signed();
                report.device = arbitrary_device();
            }
            assembler_.add_memory(any_of(threads_), report);
        }
    }

    void add_arbitrary_samples(TraceData& data) {
        const auto row_of = [&](std::size_t rows) {
            return rows == 0 || one_in(4) ? kNoRow : static_cast<Row>(random_() % rows);
        };
        const auto string = [&] { return static_cast<StringId>(random_() % data.strings.size()); };
        const auto amount = [&] { return static_cast<std::int64_t>(wild() >> 2); };
        if (data.threads.empty()) return;
        for (std::int64_t i = 1 + below(3); i-- != 0;)
            data.frames.push_back(
                {string(), string(), static_cast<std::uint32_t>(below(99)), string(), wild()});
        for (std::int64_t i = below(5); i-- != 0;)
            data.stacks.push_back(
                {static_cast<Row>(random_() % data.frames.size()), row_of(data.stacks.size())});
        for (std::int64_t i = below(6); i-- != 0;)
            add_sample(data, static_cast<Row>(random_() % data.threads.size()),
                       {time(), amount(), amount(), static_cast<SampleState>(below(3)),
                        row_of(data.stacks.size()), row_of(data.range_start_ns.size())});
        sort_samples(data);
        if (one_in(2)) data.sampling.push_back({0, string(), 1000, 995.5, wild(), wild(), wild(), wild()});
    }

    /// Fields that an assembler cannot set.
    void add_arbitrary_facts(TraceData& data) {
        data.clock = {bytes(), one_in(2) ? -1.0 : 25e6, static_cast<std::uint32_t>(below(99)),
                      static_cast<std::int64_t>(wild() >> 1), one_in(2)};
        data.window.session_name = bytes();
        data.window.session_id = wild();
        data.window.max_bytes = wild();
        data.window.policy = bytes();
        data.window.size_limit_reached = one_in(2);
        data.window.log_bytes = wild();
        for (std::int64_t i = below(3); i-- != 0;) data.costs.push_back({bytes(), 13.25});
        for (std::int64_t i = below(3); i-- != 0;) {
            const auto any_time = [&] { return static_cast<std::int64_t>(wild() >> 2); };
            data.clock_exchanges.push_back({0, 0, any_time(), -any_time(), any_time(), any_time()});
            data.host_clocks.push_back({0, 0, 0, 0, -any_time(), 2e-5, any_time()});
        }
        const auto string = [&] { return static_cast<StringId>(random_() % data.strings.size()); };
        for (ProcessInfo& process : data.processes) {
            process.parent = one_in(2) ? kNoRow : static_cast<Row>(random_() % data.processes.size());
            process.origin = static_cast<ProcessOrigin>(below(4));
            process.tree = string();
            process.clock = string();
            process.pid_namespace = wild();
            process.start = wild();
            process.ancestors = string();
            process.fork_ns = one_in(2) ? 0 : time();
            process.fork_thread = static_cast<std::uint32_t>(below(3));
            process.exit_code = static_cast<std::int32_t>(below(3)) - 1;
            process.exit_signal = static_cast<std::int32_t>(below(3)) - 1;
            process.realtime_error_ns = static_cast<std::int64_t>(below(3)) * 1000;
        }
        for (std::int64_t i = data.threads.empty() ? 0 : below(4); i-- != 0;) {
            const std::size_t ranges = data.range_start_ns.size();
            data.messages.push_back({time(), wild(), wild(), any_of(threads_),
                                     ranges == 0 || one_in(2) ? kNoRow : static_cast<Row>(random_() % ranges),
                                     one_in(2)});
        }
        for (std::int64_t& self : data.range_self_ns) {
            if (one_in(20)) self = below(500);
        }
    }

    void add_training_places() {
        assembler_.add_process({});
        for (const TrackKind kind :
             {TrackKind::Thread, TrackKind::Thread, TrackKind::Async, TrackKind::Device}) {
            const auto id = static_cast<std::uint32_t>(lanes_.size() + 1);
            const bool is_device = kind == TrackKind::Device;
            Lane lane;
            lane.thread = add_thread_row(0, id, is_device ? 0 : 1000 + id, "lane " + std::to_string(id));
            lane.kind = kind;
            if (is_device) {
                lane.device = {DeviceType::Cuda, 0};
                lane.stream = 7;
            }
            lanes_.push_back(assembler_.add_lane(lane));
        }
    }
    std::uint32_t training_site(const std::string& name, Scope scope) {
        return assembler_.site({assembler_.string(name), 0, 0, scope});
    }

    std::mt19937_64 random_;
    std::size_t max_ranges_;
    bool is_arbitrary_;
    TraceAssembler assembler_;
    std::vector<std::uint32_t> sites_;
    std::vector<Row> threads_;
    std::vector<std::uint32_t> lanes_;
    std::int32_t process_count_ = 0;
    std::int64_t start_ns_ = 0;
    bool has_window_ = false;
    std::int64_t window_start_ns_ = 0;
    std::int64_t window_end_ns_ = 0;
};

inline Trace random_trace(unsigned seed, const RandomTraceOptions& options = {}) {
    return RandomTrace(seed, options).make();
}

/// A random trace, to be changed.
inline std::shared_ptr<TraceData> random_data(unsigned seed) {
    return std::make_shared<TraceData>(random_trace(seed, {.max_ranges = 200, .is_arbitrary = true}).data());
}

inline Trace random_training_trace(unsigned seed, std::int64_t ranges_per_lane = 200) {
    return RandomTrace(seed).make_training(ranges_per_lane);
}

}  // namespace marey::testing
