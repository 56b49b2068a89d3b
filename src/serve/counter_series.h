// counter_series.h: the values of a counter, or the memory of a device, over time.
#pragma once

#include <cstddef>
#include <utility>

#include <marey/trace.h>

namespace marey::serve {

/// The values of one counter in one process, in order of time.
class CounterSeries {
  public:
    enum class Kind : std::uint8_t { Counter, Memory, Reserved };

    Kind kind = Kind::Counter;
    std::string name;
    Row process = 0;
    std::string device;  ///< empty for counters

    std::size_t size() const noexcept { return times_.size(); }
    double least() const noexcept { return least_; }
    double greatest() const noexcept { return greatest_; }

    /// Takes the samples, in any order.
    void fill(std::vector<std::pair<std::int64_t, double>> samples);

    /// Least, greatest and last value for each pixel between two times. A pixel without samples has the value
    /// before it three times, or NaN if there is none.
    struct Tile {
        std::vector<double> least, greatest, last;
    };
    Tile tile(std::int64_t begin_ns, std::int64_t end_ns, std::uint32_t pixels) const;

  private:
    static constexpr std::size_t kBlock = 64;  ///< samples per entry of the two indexes

    struct Extremes {
        double least, greatest;
    };
    Extremes extremes(std::size_t begin, std::size_t end) const noexcept;

    std::vector<std::int64_t> times_;
    std::vector<double> values_;
    std::vector<Extremes> blocks_;
    double least_ = 0, greatest_ = 0;
};

/// The series of a trace: counters by process and name, then memory by process and device.
std::vector<CounterSeries> counter_series(const Trace& trace);

}  // namespace marey::serve
