// write_annotations.h: values of ranges and instants as Perfetto debug annotations.
#pragma once

#include <marey/trace.h>

namespace marey {

/// Properties of a range other than its values; shown in one dictionary named "marey".
struct PerfettoMetadata {
    std::uint16_t flags = 0;
    const RangeDetail* detail = nullptr;  ///< null: no details
    StringId overload = 0;
    StringId raw_name = 0;
};

/// Appends annotations to a TrackEvent message. Names and texts are interned: those that are new in a
/// sequence go to an InternedData message.
class PerfettoAnnotations {
  public:
    explicit PerfettoAnnotations(const Trace& trace) : trace_(trace) {}

    /// Starts another sequence, without interned texts.
    void begin_sequence() { ++sequence_; }
    void append(std::string& event, std::string& interned, std::span<const Argument> values,
                const PerfettoMetadata& facts);
    /// Appends an allocation report.
    void append_memory(std::string& event, std::string& interned, Row report);

  private:
    class Writer;

    const Trace& trace_;
    std::uint32_t sequence_ = 0;
    std::vector<std::uint32_t> names_;  ///< per string: the last sequence in which it was interned as a name
    std::vector<std::uint32_t> texts_;  ///< likewise, as a value
};

}  // namespace marey
