// counter_series.h: the values of a counter, or the memory of a device, over time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include <marey/memory_use.h>
#include <marey/trace.h>

#include "serve/trace_names.h"

namespace marey::serve {

/// The values of one counter in one process, in order of time.
class CounterSeries {
  public:
    enum class Kind : std::uint8_t { Counter, Memory, Reserved };
    using Samples = std::vector<std::pair<std::int64_t, double>>;

    Kind kind = Kind::Counter;
    std::string name;
    Row process = 0;
    std::string device;  ///< empty for counters

    std::size_t size() const noexcept { return times_.size(); }
    double least() const noexcept { return least_; }
    double greatest() const noexcept { return greatest_; }

    /// Takes the samples, in any order.
    void fill(Samples samples) {
        std::ranges::stable_sort(samples, {}, &std::pair<std::int64_t, double>::first);
        times_.reserve(samples.size());
        values_.reserve(samples.size());
        for (const auto& [time_ns, value] : samples) {
            times_.push_back(time_ns);
            values_.push_back(value);
        }
        for (std::size_t begin = 0; begin < values_.size(); begin += kBlock) {
            const std::size_t end = std::min(begin + kBlock, values_.size());
            const auto [least, greatest] =
                std::minmax_element(values_.begin() + static_cast<std::ptrdiff_t>(begin),
                                    values_.begin() + static_cast<std::ptrdiff_t>(end));
            blocks_.push_back({*least, *greatest});
        }
        if (values_.empty()) return;
        const Extremes all = extremes(0, values_.size());
        least_ = all.least;
        greatest_ = all.greatest;
    }

    /// Least, greatest and last value for each pixel between two times. A pixel without samples has the value
    /// before it three times, or NaN if there is none.
    struct Tile {
        std::vector<double> least, greatest, last;
    };
    Tile tile(std::int64_t begin_ns, std::int64_t end_ns, std::uint32_t pixels) const {
        Tile tile;
        auto at = std::lower_bound(times_.begin(), times_.end(), begin_ns);
        for (std::uint32_t pixel = 0; pixel < pixels; ++pixel) {
            const auto end =
                std::lower_bound(at, times_.end(), pixel_begin(begin_ns, end_ns, pixel + 1, pixels));
            const auto first = static_cast<std::size_t>(at - times_.begin());
            const auto last = static_cast<std::size_t>(end - times_.begin());
            const double value = last == 0 ? kNoValue : values_[last - 1];
            const Extremes found = first == last ? Extremes{value, value} : extremes(first, last);
            tile.least.push_back(found.least);
            tile.greatest.push_back(found.greatest);
            tile.last.push_back(value);
            at = end;
        }
        return tile;
    }

  private:
    static constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

    /// The first time of pixel `pixel`, without overflow for any window.
    static std::int64_t pixel_begin(std::int64_t begin_ns, std::int64_t end_ns, std::uint32_t pixel,
                                    std::uint32_t pixels) {
        __extension__ using Wide = unsigned __int128;
        const auto width = static_cast<std::uint64_t>(end_ns) - static_cast<std::uint64_t>(begin_ns);
        const auto since = static_cast<std::uint64_t>((Wide{pixel} * width + pixels - 1) / pixels);
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(begin_ns) + since);
    }
    static constexpr std::size_t kBlock = 64;  ///< samples per entry of the two indexes

    struct Extremes {
        double least, greatest;
    };
    /// Of at least one sample.
    Extremes extremes(std::size_t begin, std::size_t end) const noexcept {
        Extremes found{values_[begin], values_[begin]};
        for (std::size_t i = begin; i < end;) {
            if (i % kBlock == 0 && i + kBlock <= end) {
                found.least = std::min(found.least, blocks_[i / kBlock].least);
                found.greatest = std::max(found.greatest, blocks_[i / kBlock].greatest);
                i += kBlock;
            } else {
                found.least = std::min(found.least, values_[i]);
                found.greatest = std::max(found.greatest, values_[i]);
                ++i;
            }
        }
        return found;
    }

    std::vector<std::int64_t> times_;
    std::vector<double> values_;
    std::vector<Extremes> blocks_;
    double least_ = 0, greatest_ = 0;
};

inline void add_counters(const Trace& trace, std::vector<CounterSeries>& series) {
    const CounterColumns counters = trace.counters();
    std::map<std::pair<Row, StringId>, CounterSeries::Samples> by_name;
    for (std::size_t i = 0; i < counters.size(); ++i) {
        const Row process = trace.threads()[counters.thread[i]].process;
        by_name[{process, trace.sites()[counters.site[i]].name}].emplace_back(counters.time_ns[i],
                                                                              counters.value[i]);
    }
    for (auto& [key, samples] : by_name) {
        CounterSeries& made = series.emplace_back();
        made.name = trace.string(key.second);
        made.process = key.first;
        made.fill(std::move(samples));
    }
}

inline void add_memory(const Trace& trace, std::vector<CounterSeries>& series) {
    for (const MemorySeries& memory : memory_series(trace)) {
        const auto add = [&](CounterSeries::Kind kind, const char* name, auto value) {
            CounterSeries::Samples samples;
            samples.reserve(memory.points.size());
            for (const MemoryPoint& point : memory.points)
                samples.emplace_back(point.time_ns, static_cast<double>(value(point)));
            CounterSeries& made = series.emplace_back();
            made.kind = kind;
            made.device = device_label(memory.device);
            made.name = made.device + name;
            made.process = memory.process;
            made.fill(std::move(samples));
        };
        add(CounterSeries::Kind::Memory, " memory", [](const MemoryPoint& point) { return point.allocated; });
        const bool is_reserving =
            std::ranges::any_of(memory.points, [](const MemoryPoint& point) { return point.reserved != 0; });
        if (is_reserving)
            add(CounterSeries::Kind::Reserved, " memory reserved",
                [](const MemoryPoint& point) { return point.reserved; });
    }
}

/// The series of a trace: counters by process and name, then memory by process and device.
inline std::vector<CounterSeries> counter_series(const Trace& trace) {
    std::vector<CounterSeries> series;
    add_counters(trace, series);
    add_memory(trace, series);
    return series;
}

}  // namespace marey::serve
