// read_annotations.h: converts debug annotations of a Perfetto trace to values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <marey/trace.h>

#include "formats/perfetto/sequence.h"
#include "trace/trace_assembler.h"

namespace marey {

/// Properties of a range other than its values, in files written by Marey.
struct ReadMetadata {
    std::uint16_t flags = 0;
    bool has_detail = false;
    std::int64_t sequence = -1;
    std::uint32_t forward_thread = 0;
    std::uint64_t id = 0;
    std::uint64_t call = 0;
    std::uint32_t part = 0;
    StringId overload = 0;
    StringId raw_name = 0;
};

/// Parses a device name such as "cuda:0" or "cpu".
Device perfetto_device(std::string_view text);

/// Dictionaries, which the trace model lacks, become several values: "key.entry". Lists of dictionaries
/// become "key[0].entry".
class PerfettoValues {
  public:
    /// The assembler must outlive this.
    explicit PerfettoValues(TraceAssembler& assembler) : assembler_(assembler) {}

    /// Appends the contents of a DebugAnnotation message. `is_marey_trace`: the file was written by Marey.
    /// Throws protozero::exception if the message is damaged.
    void read(std::string_view message, const PerfettoSequence& sequence, bool is_marey_trace,
              std::vector<Argument>& values, ReadMetadata& facts);

    std::uint64_t unread() const { return unread_; }  ///< values of unknown types, or nested too deeply
    std::uint64_t unnamed() const {
        return unnamed_;
    }  ///< references to texts that are missing from the file

  private:
    struct Node {
        enum class Kind : std::uint8_t { None, Scalar, Dict, List } kind = Kind::None;
        StringId name = 0;
        Argument scalar;
        std::uint64_t bits = 0;  ///< integer value
        std::vector<Node> items;
    };

    Node parse(std::string_view message, int level);
    Node parse_nested(std::string_view message, int level);
    StringId interned(const InternTable<StringId>& table, std::uint64_t iid);
    const Node* entry(const Node& dict, std::string_view name) const;
    std::string_view text(StringId id) const { return assembler_.text(id); }

    bool is_wrapped(const Node& node) const;
    bool is_value(const Node& node) const;
    Argument value_of(const Node& node);
    Argument unwrap(const Node& node);
    Argument array_of(const Node& node);
    void extents_of(const Node* list, std::vector<std::int64_t>& extents);
    void flatten(const Node& node, StringId key, std::vector<Argument>& values);
    void read_facts(const Node& node, std::vector<Argument>& values, ReadMetadata& facts);

    TraceAssembler& assembler_;
    const PerfettoSequence* sequence_ = nullptr;
    bool is_marey_trace_ = false;
    std::uint64_t unread_ = 0;
    std::uint64_t unnamed_ = 0;
};

}  // namespace marey
