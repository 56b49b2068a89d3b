// read_annotations.h: converts debug annotations of a Perfetto trace to values.
#pragma once

#include <algorithm>
#include <charconv>

#include <marey/trace.h>

#include "formats/perfetto/fields.h"
#include "formats/perfetto/sequence.h"
#include "formats/protobuf_wire.h"
#include "trace/trace_assembler.h"

namespace marey {

using namespace perfetto;

/// Properties of a range other than its values, in files written by Marey.
struct ReadMetadata {
    std::uint16_t flags = 0;
    bool has_detail = false;
    RangeDetail detail;
    StringId overload = 0;
    StringId raw_name = 0;
};

/// Parses a device name such as "cuda:0" or "cpu".
inline Device perfetto_device(std::string_view text) {
    Device device{DeviceType::Other, -1};
    const std::size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    for (const DeviceType type : {DeviceType::Cpu, DeviceType::Cuda, DeviceType::Xpu, DeviceType::Mps,
                                  DeviceType::Meta, DeviceType::None}) {
        if (name == device_type_name(type)) device.type = type;
    }
    if (colon != std::string_view::npos)
        std::from_chars(text.data() + colon + 1, text.data() + text.size(), device.index);
    return device;
}

/// Dictionaries, which the trace model lacks, become several values: "key.entry". Lists of dictionaries
/// become "key[0].entry".
class PerfettoValues {
  public:
    /// The assembler must outlive this.
    explicit PerfettoValues(TraceAssembler& assembler) : assembler_(assembler) {}

    /// Appends the contents of a DebugAnnotation message. `is_marey_trace`: the file was written by Marey.
    /// Throws protozero::exception if the message is damaged.
    void read(std::string_view message, const PerfettoSequence& sequence, bool is_marey_trace,
              std::vector<Argument>& values, ReadMetadata& facts) {
        sequence_ = &sequence;
        is_marey_trace_ = is_marey_trace;
        const Node node = parse(message, 0);
        if (is_marey_trace && node.kind == Node::Kind::Dict && !is_wrapped(node) && text(node.name) == kFacts)
            read_facts(node, values, facts);
        else
            flatten(node, node.name, values);
    }

    std::uint64_t unread() const { return unread_; }  ///< values of unknown types, or nested too deeply
    std::uint64_t unnamed() const {
        return unnamed_;
    }  ///< references to texts that are missing from the file

  private:
    static constexpr int kMaxDepth = 64;  // of nested values

    static DType dtype_of(std::string_view text) {
        for (int i = 0; i <= static_cast<int>(kLastDType); ++i) {
            if (text == dtype_name(static_cast<DType>(i))) return static_cast<DType>(i);
        }
        return DType::Other;
    }

    struct Node {
        enum class Kind : std::uint8_t { None, Scalar, Dict, List } kind = Kind::None;
        StringId name = 0;
        Argument scalar;
        std::uint64_t bits = 0;  ///< integer value
        std::vector<Node> items;
    };

    Node parse(std::string_view message, int level) {
        Node node;
        const auto bits_of = [&](Message& m) {
            node.kind = Node::Kind::Scalar;
            return node.bits = m.get_uint64();
        };
        const auto take_integer = [&](Message& m) {
            node.scalar.set_integer(static_cast<std::int64_t>(bits_of(m)));
        };
        const auto take_items = [&](Node::Kind kind) {
            return [&, kind](Message& m) {
                node.kind = kind;
                add_item(node, m, level, &PerfettoValues::parse);
            };
        };
        const auto take_string = [&](Message& m) { set_string(node, assembler_.string(m.get_view())); };
        read_fields(
            message,
            on(varint(AnnotationField::NameIid),
               [&](Message& m) { node.name = interned(sequence_->annotation_names, m.get_uint64()); }),
            on(bytes(AnnotationField::Name),
               [&](Message& m) { node.name = assembler_.string(m.get_view()); }),
            on(varint(AnnotationField::Bool), [&](Message& m) { node.scalar.set_bool(bits_of(m) != 0); }),
            on(varint(AnnotationField::Int), take_integer),
            on(varint(AnnotationField::Pointer), take_integer),
            on(varint(AnnotationField::Uint),
               [&](Message& m) {
                   take_integer(m);
                   if (node.scalar.integer < 0) node.scalar.set_real(static_cast<double>(node.bits));
               }),
            on(fixed64(AnnotationField::Double), [&](Message& m) { set_real(node, m.get_double()); }),
            on(bytes(AnnotationField::String), take_string), on(bytes(AnnotationField::Json), take_string),
            on(varint(AnnotationField::StringIid),
               [&](Message& m) {
                   set_string(node, interned(sequence_->annotation_strings, m.get_uint64()));
               }),
            on(bytes(AnnotationField::DictEntries), take_items(Node::Kind::Dict)),
            on(bytes(AnnotationField::ArrayValues), take_items(Node::Kind::List)),
            on(bytes(AnnotationField::Nested),
               [&](Message& m) {
                   const StringId name = node.name;
                   node = parse_nested(m.get_view(), level);
                   if (node.name == 0) node.name = name;
               }),
            otherwise([&](Message& m) { skip_unread(m); }));
        return node;
    }
    Node parse_nested(std::string_view message, int level) {
        Node node;
        std::vector<StringId> keys;
        const auto take_item = [&](Message& m) { add_item(node, m, level, &PerfettoValues::parse_nested); };
        read_fields(message,
                    on(varint(NestedField::Type),
                       [&](Message& m) {
                           const std::int32_t type = m.get_int32();
                           if (type == kNestedDict) node.kind = Node::Kind::Dict;
                           if (type == kNestedArray) node.kind = Node::Kind::List;
                       }),
                    on(bytes(NestedField::DictKeys),
                       [&](Message& m) { keys.push_back(assembler_.string(m.get_view())); }),
                    on(bytes(NestedField::DictValues), take_item),
                    on(bytes(NestedField::ArrayValues), take_item),
                    on(varint(NestedField::Int),
                       [&](Message& m) {
                           node.kind = Node::Kind::Scalar;
                           node.scalar.set_integer(m.get_int64());
                       }),
                    on(fixed64(NestedField::Double), [&](Message& m) { set_real(node, m.get_double()); }),
                    on(varint(NestedField::Bool),
                       [&](Message& m) {
                           node.kind = Node::Kind::Scalar;
                           node.scalar.set_bool(m.get_uint64() != 0);
                       }),
                    on(bytes(NestedField::String),
                       [&](Message& m) { set_string(node, assembler_.string(m.get_view())); }),
                    otherwise([&](Message& m) { skip_unread(m); }));
        if (node.kind == Node::Kind::Dict) {
            for (std::size_t i = 0; i < node.items.size() && i < keys.size(); ++i)
                node.items[i].name = keys[i];
        }
        return node;
    }
    static void set_real(Node& node, double number) {
        node.kind = Node::Kind::Scalar;
        node.scalar.set_real(number);
    }
    static void set_string(Node& node, StringId id) {
        node.kind = Node::Kind::Scalar;
        node.scalar.set_string(id);
    }
    void add_item(Node& node, Message& m, int level,
                  Node (PerfettoValues::*parse_one)(std::string_view, int)) {
        if (level >= kMaxDepth) return skip_unread(m);
        node.items.push_back((this->*parse_one)(m.get_view(), level + 1));
    }
    void skip_unread(Message& m) {
        ++unread_;
        m.skip();
    }
    StringId interned(const InternTable<StringId>& table, std::uint64_t iid) {
        const StringId* const found = table.find(iid);
        if (found == nullptr) ++unnamed_;
        return found == nullptr ? 0 : *found;
    }
    const Node* entry(const Node& dict, std::string_view name) const {
        for (const Node& item : dict.items) {
            if (text(item.name) == name) return &item;
        }
        return nullptr;
    }
    std::string_view text(StringId id) const { return assembler_.text(id); }

    /// Whether this is a dictionary by which our exporter represents a value without a Perfetto equivalent.
    bool is_wrapped(const Node& node) const {
        if (!is_marey_trace_ || node.kind != Node::Kind::Dict) return false;
        const Node* const inner = entry(node, "value");
        const bool has_inner = entry(node, "truncated") != nullptr || entry(node, "scalar") != nullptr;
        if (has_inner && inner != nullptr) return is_value(*inner);
        return entry(node, "none") != nullptr || entry(node, "left_out") != nullptr ||
               entry(node, "dtype") != nullptr;
    }
    bool is_value(const Node& node) const {
        switch (node.kind) {
            case Node::Kind::None:
            case Node::Kind::Scalar:
                return true;
            case Node::Kind::Dict:
                return is_wrapped(node);
            case Node::Kind::List:
                return std::ranges::all_of(node.items, [&](const Node& item) { return is_value(item); });
        }
        return false;
    }
    /// Converts a node that is a single value.
    Argument value_of(const Node& node) {
        Argument value;
        switch (node.kind) {
            case Node::Kind::None:
                return value;
            case Node::Kind::Scalar:
                return node.scalar;
            case Node::Kind::Dict:
                return unwrap(node);
            case Node::Kind::List:
                break;
        }
        std::vector<Argument> items;
        items.reserve(node.items.size());
        for (const Node& item : node.items) items.push_back(value_of(item));
        value.set_list(assembler_.add_list(items));
        return value;
    }
    Argument unwrap(const Node& node) {
        if (entry(node, "truncated") != nullptr) {
            Argument value = value_of(*entry(node, "value"));
            value.truncated = true;
            return value;
        }
        if (entry(node, "dtype") != nullptr) return array_of(node);
        if (const Node* const scalar = entry(node, "scalar");
            scalar != nullptr && entry(node, "value") != nullptr) {
            Argument value = value_of(*entry(node, "value"));
            constexpr auto kMax = static_cast<std::uint64_t>(ValueKind::Double);
            if (value.kind == ValueKind::String)
                value.left_out = static_cast<ValueKind>(std::min(scalar->bits, kMax));
            return value;
        }
        Argument value;
        if (const Node* const left_out = entry(node, "left_out"); left_out != nullptr) {
            value.left_out = static_cast<ValueKind>(
                std::min<std::uint64_t>(left_out->bits, static_cast<std::uint64_t>(ValueKind::Array)));
        }
        return value;
    }
    Argument array_of(const Node& node) {
        ArrayInfo info;
        const auto text_of = [&](const Node& item) {
            return item.scalar.kind == ValueKind::String ? text(item.scalar.string) : std::string_view();
        };
        info.dtype = dtype_of(text_of(*entry(node, "dtype")));
        if (const Node* const device = entry(node, "device")) info.device = perfetto_device(text_of(*device));
        if (const Node* const layout = entry(node, "layout"))
            info.layout = static_cast<Layout>(
                std::min<std::uint64_t>(layout->bits, static_cast<std::uint64_t>(Layout::Other)));
        info.is_defined = entry(node, "undefined") == nullptr;
        if (const Node* const storage = entry(node, "storage")) info.storage = storage->bits;
        if (const Node* const id = entry(node, "storage_id")) info.storage_id = id->bits;
        if (const Node* const object = entry(node, "object")) info.object = object->bits;
        if (const Node* const access = entry(node, "access"))
            info.access = static_cast<ArrayAccess>(
                std::min<std::uint64_t>(access->bits, static_cast<std::uint64_t>(ArrayAccess::Write)));
        std::vector<std::int64_t> extents;
        extents_of(entry(node, "shape"), extents);
        info.dimensions = static_cast<std::uint32_t>(extents.size());
        extents_of(entry(node, "strides"), extents);
        info.has_strides =
            entry(node, "strides") != nullptr && extents.size() == 2 * std::size_t{info.dimensions};
        extents.resize(std::size_t{info.dimensions} * (info.has_strides ? 2 : 1));
        Argument value;
        value.set_array(assembler_.add_array(info, extents));
        return value;
    }
    void extents_of(const Node* list, std::vector<std::int64_t>& extents) {
        if (list == nullptr) return;
        for (const Node& item : list->items) extents.push_back(static_cast<std::int64_t>(item.bits));
    }
    void flatten(const Node& node, StringId key, std::vector<Argument>& values) {
        if (is_value(node) || node.items.empty()) {
            Argument value = is_value(node) ? value_of(node) : Argument();
            value.key = key;
            values.push_back(value);
            return;
        }
        for (std::size_t i = 0; i < node.items.size(); ++i) {
            std::string inner(text(key));
            if (node.kind == Node::Kind::List)
                inner += "[" + std::to_string(i) + "]";
            else
                inner.append(".").append(text(node.items[i].name));
            flatten(node.items[i], assembler_.string(inner), values);
        }
    }
    void read_facts(const Node& node, std::vector<Argument>& values, ReadMetadata& facts) {
        const auto flag = [&](std::string_view name, std::uint16_t bit) {
            if (entry(node, name) != nullptr) facts.flags |= bit;
        };
        flag("began_before", kBeganBefore);
        flag("unfinished", kUnfinished);
        flag("end_inferred", kEndInferred);
        flag("remote", kRemote);
        const auto name = [&](std::string_view key) -> StringId {
            const Node* const found = entry(node, key);
            return found != nullptr && found->scalar.kind == ValueKind::String ? found->scalar.string : 0;
        };
        facts.overload = name("overload");
        facts.raw_name = name("raw_name");
        if (const Node* const sequence = entry(node, "sequence")) {
            facts.has_detail = true;
            facts.detail.sequence = std::max<std::int64_t>(static_cast<std::int64_t>(sequence->bits), -1);
        }
        if (const Node* const thread = entry(node, "forward_thread"))
            facts.detail.forward_thread = static_cast<std::uint32_t>(thread->bits);
        if (const Node* const id = entry(node, "id")) facts.detail.id = id->bits;
        if (const Node* const call = entry(node, "call")) facts.detail.call = call->bits;
        if (const Node* const part = entry(node, "part"))
            facts.detail.part =
                static_cast<std::uint32_t>(part->bits) & (kFirstPart | kLastPart | kWholeCall | kTask);
        const auto positions = [&](std::string_view key, ArgumentRole role) {
            const Node* const list = entry(node, key);
            if (list == nullptr) return;
            for (const Node& item : list->items) {
                Argument value = is_value(item) ? value_of(item) : Argument();
                value.role = role;
                values.push_back(value);
            }
        };
        positions("inputs", ArgumentRole::Input);
        positions("outputs", ArgumentRole::Output);
    }

    TraceAssembler& assembler_;
    const PerfettoSequence* sequence_ = nullptr;
    bool is_marey_trace_ = false;
    std::uint64_t unread_ = 0;
    std::uint64_t unnamed_ = 0;
};

}  // namespace marey
