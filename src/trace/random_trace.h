// random_trace.h: for tests: traces with everything that the model has, by chance.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include "trace/trace_assembler.h"

namespace kymo::testing {

class RandomTrace {
  public:
    explicit RandomTrace(std::uint32_t seed) : random_(seed) {}

    std::shared_ptr<TraceData> make() {
        add_places();
        const std::size_t ranges = below(200);
        for (std::size_t i = 0; i < ranges; ++i) add_range();
        add_points();
        for (std::size_t i = below(30); ranges > 1 && i-- != 0;)
            assembler_.add_link(below(ranges), below(ranges), static_cast<LinkKind>(1 + below(4)),
                                chance(2) ? 0 : word());
        for (std::size_t i = below(3); i-- != 0;) {
            assembler_.add_problem("code" + std::to_string(i), text(), random_());
            assembler_.add_metadata(text(), i % 2 == 0 ? R"({"a":[1,2.5,"x"],"b":null})" : "17");
        }
        if (chance(3)) assembler_.set_window(time(), time() + 1000);
        auto data = std::make_shared<TraceData>(assembler_.finish().data());
        add_facts(*data);
        return data;
    }

  private:
    std::uint32_t below(std::size_t limit) {
        return limit == 0 ? 0 : static_cast<std::uint32_t>(random_() % limit);
    }
    bool chance(std::uint32_t one_in) { return below(one_in) == 0; }
    std::uint64_t wild() { return random_() >> (random_() % 64); }
    std::int64_t time() { return static_cast<std::int64_t>(below(2000)) - 500; }
    std::string text() {
        std::string bytes(below(12), '\0');
        for (char& byte : bytes) byte = static_cast<char>(chance(4) ? random_() : 'a' + below(26));
        return bytes;
    }
    StringId word() { return assembler_.string(text()); }
    Device device() {
        constexpr DeviceType kTypes[] = {DeviceType::Cpu, DeviceType::Cuda, DeviceType::Mps,
                                         DeviceType::None};
        return {kTypes[below(4)], static_cast<std::int32_t>(below(4)) - 1};
    }

    void add_places() {
        for (std::size_t i = 1 + below(3); i-- != 0;) {
            assembler_.add_process({static_cast<std::int64_t>(wild()),
                                    static_cast<std::int32_t>(below(9)) - 1, word(), word(), word(),
                                    static_cast<std::int64_t>(wild() >> 2)});
            ++processes_;
        }
        for (threads_ = 1; chance(4) == false && threads_ < 6; ++threads_) {
        }
        for (std::uint32_t i = 0; i < threads_; ++i)
            assembler_.add_thread({below(processes_), i + 1, static_cast<std::int64_t>(wild() >> 2), word(),
                                   time(), chance(2) ? 0 : time(), wild(), wild(), wild(), wild()});
        for (lanes_ = 0; lanes_ == 0 || (lanes_ < 8 && !chance(4)); ++lanes_) {
            constexpr TrackKind kKinds[] = {TrackKind::Thread, TrackKind::Async, TrackKind::Device};
            assembler_.add_lane({below(threads_), kKinds[below(3)], device(),
                                 static_cast<std::int64_t>(below(5)) - 1, chance(2) ? 0 : word()});
        }
        for (sites_ = 0; sites_ < 12; ++sites_)
            assembler_.site({word(), word(), below(1000), static_cast<Scope>(below(kScopeCount)), word(),
                             word(), word()});
    }

    Argument value(int nesting = 0) {
        Argument argument;
        argument.key = chance(3) ? 0 : word();
        argument.role = static_cast<ArgumentRole>(below(3));
        argument.truncated = chance(5);
        argument.kind = static_cast<ValueKind>(below(7));
        switch (argument.kind) {
            case ValueKind::None:
                argument.left_out = static_cast<ValueKind>(below(7));
                break;
            case ValueKind::Bool:
                argument.boolean = chance(2);
                break;
            case ValueKind::Int:
                argument.integer = static_cast<std::int64_t>(chance(2) ? wild() : 0 - wild());
                break;
            case ValueKind::Double:
                argument.real = number();
                break;
            case ValueKind::String:
                argument.string = word();
                break;
            case ValueKind::List: {
                std::vector<Argument> items;
                for (std::size_t i = nesting < 3 ? below(4) : 0; i-- != 0;)
                    items.push_back(value(nesting + 1));
                argument.list = assembler_.add_list(items);
                break;
            }
            case ValueKind::Array:
                argument.array = array();
                break;
        }
        return argument;
    }
    double number() {
        constexpr double kOdd[] = {0.0, -0.0, 1.5, std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
        return chance(3) ? kOdd[below(5)] : static_cast<double>(random_()) / 7;
    }
    Row array() {
        ArrayInfo info;
        info.dtype = static_cast<DType>(below(25));
        info.layout = static_cast<Layout>(below(6));
        info.is_defined = !chance(4);
        info.has_strides = chance(2);
        info.device = device();
        info.dimensions = below(4);
        info.storage = wild();
        info.storage_id = wild();
        std::vector<std::int64_t> extents(info.dimensions * (info.has_strides ? 2 : 1));
        for (std::int64_t& extent : extents) extent = static_cast<std::int64_t>(wild() >> 1) - below(3);
        return assembler_.add_array(info, extents);
    }
    std::vector<Argument> values() {
        std::vector<Argument> all;
        for (std::size_t i = below(4); i-- != 0;) all.push_back(value());
        return all;
    }

    void add_range() {
        const auto id =
            assembler_.add_range(below(lanes_), time(), chance(10) ? -5 : below(300), below(sites_),
                                 static_cast<std::uint16_t>(chance(5) ? random_() & ~kAsync : 0));
        if (chance(3)) assembler_.add_values(id, values());
        if (chance(4))
            assembler_.add_detail(id, static_cast<std::int64_t>(wild() >> 1) - 1, below(threads_ + 1),
                                  wild());
    }
    void add_points() {
        for (std::size_t i = below(30); i-- != 0;)
            assembler_.add_instant(below(threads_), time(), below(sites_), values());
        for (std::size_t i = below(30); i-- != 0;)
            assembler_.add_counter(below(threads_), time(), below(sites_), number());
        for (std::size_t i = below(30); i-- != 0;) {
            const auto bytes = static_cast<std::int64_t>(wild());
            assembler_.add_memory(below(threads_), {time(), wild(), bytes, static_cast<std::int64_t>(wild()),
                                                    static_cast<std::int64_t>(wild()), device(), chance(4)});
        }
    }

    // What an assembler has no word for.
    void add_facts(TraceData& data) {
        data.clock = {text(), number() < 0 ? -1.0 : 25e6, below(99), static_cast<std::int64_t>(wild() >> 1),
                      chance(2)};
        data.window.session_name = text();
        data.window.session_id = wild();
        data.window.finished = chance(2);
        data.window.max_bytes = wild();
        data.window.policy = text();
        data.window.ceiling_reached = chance(2);
        data.window.log_bytes = wild();
        for (std::size_t i = below(3); i-- != 0;) data.costs.push_back({text(), 13.25});
        for (std::int64_t& self : data.range_self_ns) {
            if (chance(20)) self = static_cast<std::int64_t>(below(500));
        }
    }

    std::mt19937_64 random_;
    TraceAssembler assembler_;
    std::uint32_t processes_ = 0, threads_ = 0, lanes_ = 0, sites_ = 0;
};

inline std::shared_ptr<TraceData> random_trace(std::uint32_t seed) {
    return RandomTrace(seed).make();
}

}  // namespace kymo::testing
