// write_annotations.h: values of ranges and instants as Perfetto debug annotations: lists as arrays, and
// arrays and missing or incomplete values as dictionaries.
#pragma once

#include <algorithm>
#include <protozero/pbf_builder.hpp>

#include <marey/trace.h>

#include "formats/perfetto/fields.h"
#include "trace/trace_data.h"

namespace marey {

using namespace perfetto;
using protozero::pbf_builder;

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
                const PerfettoMetadata& facts) {
        Writer writer(*this, event, interned);
        writer.add_values(values);
        writer.add_facts(values, facts);
    }
    /// Appends an allocation report.
    void append_memory(std::string& event, std::string& interned, Row report) {
        Writer(*this, event, interned).add_report(report);
    }

  private:
    using Annotation = pbf_builder<AnnotationField>;
    /// Writes the annotations of one event.
    class Writer {
      public:
        Writer(PerfettoAnnotations& owner, std::string& event, std::string& interned)
            : owner_(owner), event_(event), interned_(interned) {}

        void add_values(std::span<const Argument> values) {
            for (const Argument& value : values) {
                if (value.role != ArgumentRole::Keyword) continue;
                Annotation annotation(event_, EventField::DebugAnnotations);
                name(annotation, value.key);
                put(annotation, value, 0);
            }
        }

        void add_facts(std::span<const Argument> values, const PerfettoMetadata& facts) {
            constexpr std::uint16_t kShown = kBeganBefore | kUnfinished | kEndInferred | kRemote;
            const bool has_positions = std::ranges::any_of(values, [](const Argument& value) {
                return value.role == ArgumentRole::Input || value.role == ArgumentRole::Output;
            });
            if (!has_positions && (facts.flags & kShown) == 0 && facts.detail == nullptr &&
                facts.overload == 0 && facts.raw_name == 0) {
                return;
            }
            Annotation dict(event_, EventField::DebugAnnotations);
            dict.add_string(AnnotationField::Name, kFacts);
            if ((facts.flags & kBeganBefore) != 0) flag(dict, "began_before");
            if ((facts.flags & kUnfinished) != 0) flag(dict, "unfinished");
            if ((facts.flags & kEndInferred) != 0) flag(dict, "end_inferred");
            if ((facts.flags & kRemote) != 0) flag(dict, "remote");
            if (facts.overload != 0) text(entry(dict, "overload"), facts.overload);
            if (facts.raw_name != 0) text(entry(dict, "raw_name"), facts.raw_name);
            if (facts.detail != nullptr) {
                integer(dict, "sequence", facts.detail->sequence);
                integer(dict, "forward_thread", facts.detail->forward_thread);
                entry(dict, "id").add_uint64(AnnotationField::Uint, facts.detail->id);
                if (facts.detail->call != 0) {
                    entry(dict, "call").add_uint64(AnnotationField::Uint, facts.detail->call);
                    integer(dict, "part", facts.detail->part);
                }
            }
            positions(dict, "inputs", values, ArgumentRole::Input);
            positions(dict, "outputs", values, ArgumentRole::Output);
        }

        void add_report(Row row) {
            const MemoryColumns memory = trace().memory();
            const auto add = [&](std::string_view key, std::int64_t value) {
                Annotation annotation(event_, EventField::DebugAnnotations);
                annotation.add_string(AnnotationField::Name, key);
                annotation.add_int64(AnnotationField::Int, value);
            };
            add("Bytes", memory.bytes[row]);
            add("Total Allocated", memory.total_allocated[row]);
            add("Total Reserved", memory.total_reserved[row]);
            add("Device Type", static_cast<std::int64_t>(memory.device[row].type));
            add("Device Id", memory.device[row].index);
            Annotation address(event_, EventField::DebugAnnotations);
            address.add_string(AnnotationField::Name, "Addr");
            address.add_uint64(AnnotationField::Pointer, memory.address[row]);
        }

      private:
        using Event = pbf_builder<EventField>;
        static constexpr int kMaxListDepth = 16;  // of nested lists; a hand-made trace could contain a cycle

        const Trace& trace() const { return owner_.trace_; }

        /// The number of a string in this sequence; 0 for empty strings.
        std::uint64_t intern(std::vector<std::uint32_t>& seen, InternedField field, StringId id) {
            if (seen.empty()) seen.resize(trace().string_count());
            if (id < seen.size() && seen[id] != owner_.sequence_) {
                seen[id] = owner_.sequence_;
                pbf_builder<InternedTextField> entry(interned_, field);
                entry.add_uint64(InternedTextField::Iid, id);
                entry.add_string(InternedTextField::Text, trace().string(id));
            }
            return id;
        }
        void name(Annotation& annotation, StringId id) {
            if (id == 0)
                annotation.add_string(AnnotationField::Name, std::string_view());
            else
                annotation.add_uint64(AnnotationField::NameIid,
                                      intern(owner_.names_, InternedField::AnnotationNames, id));
        }
        void text(Annotation&& annotation, StringId id) { text(annotation, id); }
        void text(Annotation& annotation, StringId id) {
            if (id == 0 || id >= trace().string_count())
                annotation.add_string(AnnotationField::String, std::string_view());
            else
                annotation.add_uint64(AnnotationField::StringIid,
                                      intern(owner_.texts_, InternedField::AnnotationStrings, id));
        }

        static Annotation entry(Annotation& dict, std::string_view key) {
            Annotation item(dict, AnnotationField::DictEntries);
            item.add_string(AnnotationField::Name, key);
            return item;
        }
        static void flag(Annotation& dict, std::string_view key) {
            entry(dict, key).add_bool(AnnotationField::Bool, true);
        }
        static void integer(Annotation& dict, std::string_view key, std::int64_t value) {
            entry(dict, key).add_int64(AnnotationField::Int, value);
        }

        void positions(Annotation& dict, std::string_view key, std::span<const Argument> values,
                       ArgumentRole role) {
            const auto has_role = [&](const Argument& value) { return value.role == role; };
            if (std::ranges::none_of(values, has_role)) return;
            Annotation list = entry(dict, key);
            for (const Argument& value : values) {
                if (!has_role(value)) continue;
                Annotation item(list, AnnotationField::ArrayValues);
                put(item, value, 1);
            }
        }

        void put(Annotation& annotation, const Argument& value, int level) {
            if (value.truncated && (value.kind == ValueKind::String || value.kind == ValueKind::List)) {
                flag(annotation, "truncated");
                Annotation inner = entry(annotation, "value");
                put_whole(inner, value, level);
                return;
            }
            put_whole(annotation, value, level);
        }

        void put_whole(Annotation& annotation, const Argument& value, int level) {
            switch (value.kind) {
                case ValueKind::None:
                    if (value.left_out == ValueKind::None)
                        flag(annotation, "none");
                    else
                        integer(annotation, "left_out", static_cast<std::int64_t>(value.left_out));
                    return;
                case ValueKind::Bool:
                    return annotation.add_bool(AnnotationField::Bool, value.boolean);
                case ValueKind::Int:
                    return annotation.add_int64(AnnotationField::Int, value.integer);
                case ValueKind::Double:
                    return annotation.add_double(AnnotationField::Double, value.real);
                case ValueKind::String:
                    if (value.left_out != ValueKind::None) {
                        integer(annotation, "scalar", static_cast<std::int64_t>(value.left_out));
                        Annotation inner = entry(annotation, "value");
                        return text(inner, value.string);
                    }
                    return text(annotation, value.string);
                case ValueKind::List:
                    return put_list(annotation, value, level);
                case ValueKind::Array:
                    if (const ArrayInfo* const array = array_of(trace(), value))
                        put_array(annotation, *array);
                    return;
            }
        }

        void put_list(Annotation& annotation, const Argument& list, int level) {
            const std::span<const Argument> items = items_of(trace(), list);
            if (items.empty() || level >= kMaxListDepth) {
                pbf_builder<NestedField>(annotation, AnnotationField::Nested)
                    .add_enum(NestedField::Type, kNestedArray);
                return;
            }
            for (const Argument& value : items) {
                Annotation item(annotation, AnnotationField::ArrayValues);
                put(item, value, level + 1);
            }
        }

        void put_array(Annotation& annotation, const ArrayInfo& array) {
            entry(annotation, "dtype").add_string(AnnotationField::String, dtype_name(array.dtype));
            put_extents(annotation, "shape", array, 0);
            if (array.has_strides) put_extents(annotation, "strides", array, array.dimensions);
            std::string device = device_type_name(array.device.type);
            if (array.device.index >= 0) device += ":" + std::to_string(array.device.index);
            entry(annotation, "device").add_string(AnnotationField::String, device);
            if (!array.is_defined) flag(annotation, "undefined");
            if (array.layout != Layout::Strided)
                integer(annotation, "layout", static_cast<std::int64_t>(array.layout));
            if (array.storage != 0)
                entry(annotation, "storage").add_uint64(AnnotationField::Pointer, array.storage);
            if (array.storage_id != 0)
                entry(annotation, "storage_id").add_uint64(AnnotationField::Uint, array.storage_id);
            if (array.object != 0)
                entry(annotation, "object").add_uint64(AnnotationField::Pointer, array.object);
            if (array.access != ArrayAccess::Unknown)
                integer(annotation, "access", static_cast<std::int64_t>(array.access));
        }

        void put_extents(Annotation& annotation, std::string_view key, const ArrayInfo& array,
                         std::size_t skipped) {
            const std::span<const std::int64_t> all = trace().array_extents();
            const std::size_t first = array.first_extent + skipped;
            Annotation list = entry(annotation, key);
            if (array.dimensions == 0 || first > all.size() || array.dimensions > all.size() - first) {
                pbf_builder<NestedField>(list, AnnotationField::Nested)
                    .add_enum(NestedField::Type, kNestedArray);
                return;
            }
            for (const std::int64_t extent : all.subspan(first, array.dimensions))
                Annotation(list, AnnotationField::ArrayValues).add_int64(AnnotationField::Int, extent);
        }

        PerfettoAnnotations& owner_;
        Event event_;
        pbf_builder<InternedField> interned_;
    };

    const Trace& trace_;
    std::uint32_t sequence_ = 0;
    std::vector<std::uint32_t> names_;  ///< per string: the last sequence in which it was interned as a name
    std::vector<std::uint32_t> texts_;  ///< likewise, as a value
};

}  // namespace marey
