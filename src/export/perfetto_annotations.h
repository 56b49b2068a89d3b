// perfetto_annotations.h: values of ranges and instants as Perfetto's debug annotations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// What Marey knows of a range apart from its values; shown in one dictionary under the name "marey".
struct PerfettoFacts {
    std::uint16_t flags = 0;
    const RangeDetail* detail = nullptr;  ///< null: none
    StringId overload = 0;
    StringId raw_name = 0;
};

/// Appends annotations to a TrackEvent message. Names and texts are interned: what a sequence has not had yet
/// goes to an InternedData message.
class PerfettoAnnotations {
  public:
    explicit PerfettoAnnotations(const Trace& trace) : trace_(trace) {}

    /// From now on for another sequence, which knows no texts yet.
    void begin_sequence() { ++sequence_; }
    void append(std::string& event, std::string& interned, std::span<const Argument> values,
                const PerfettoFacts& facts);
    /// An allocation report.
    void append_memory(std::string& event, std::string& interned, Row report);

  private:
    class Writer;

    const Trace& trace_;
    std::uint32_t sequence_ = 0;
    std::vector<std::uint32_t> names_;  ///< the last sequence that each string was a name in
    std::vector<std::uint32_t> texts_;  ///< likewise, a value
};

}  // namespace marey
