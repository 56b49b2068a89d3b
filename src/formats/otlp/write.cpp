// write.cpp: writes OpenTelemetry spans as OTLP JSON: ranges marked by hand, steps and ranges of other
// processes.
#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include <marey/export.h>

#include "analyze/name_slots.h"
#include "analyze/track_place.h"
#include "base/output_file.h"
#include "base/work_meter.h"
#include "formats/decimal.h"
#include "json/json_writer.h"
#include "trace/program_names.h"
#include "trace/trace_context.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

class OtlpSpans {
  public:
    OtlpSpans(const Trace& trace, const std::string& path, std::int64_t min_duration_ns)
        : trace_(trace),
          ranges_(trace.ranges()),
          sites_info_(trace.sites()),
          min_duration_ns_(min_duration_ns),
          clip_(trace),
          file_(path),
          meter_(ranges_.size()) {}

    /// Returns the number of spans.
    std::size_t write() {
        salt_ = mixed(trace_.window().session_id ^ static_cast<std::uint64_t>(trace_.window().start_ns));
        for (const ProcessInfo& process : trace_.processes())
            salt_ = mixed(salt_ ^ static_cast<std::uint64_t>(process.pid + process.realtime_offset_ns));
        contexts_.push_back({{mixed(salt_ + 1), mixed(salt_ + 2)}, 0});
        choose();
        render_sites();
        file_.write("{\"resourceSpans\":[");
        std::vector<std::vector<Row>> tracks(trace_.processes().size());
        for (Row track = 0; track < trace_.tracks().size(); ++track)
            tracks[trace_.threads()[trace_.tracks()[track].thread].process].push_back(track);
        for (Row process = 0; process < tracks.size(); ++process) write_process(process, tracks[process]);
        file_.write("\n]}\n");
        file_.commit();
        return spans_;
    }

  private:
    /// A well-mixed number, never 0 (splitmix64).
    static std::uint64_t mixed(std::uint64_t number) {
        number += 0x9E3779B97F4A7C15u;
        number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9u;
        number = (number ^ number >> 27) * 0x94D049BB133111EBu;
        number ^= number >> 31;
        return number == 0 ? 1 : number;
    }
    /// The eight hexadecimal digits of a number, the first one in the lowest byte.
    static std::uint64_t hex_digits(std::uint32_t number) {
        std::uint64_t nibbles = number >> 16 | std::uint64_t{number & 0xFFFF} << 32;  // four in each half
        nibbles = (nibbles >> 8 & 0x0000'00FF'0000'00FF) | (nibbles & 0x0000'00FF'0000'00FF) << 16;
        nibbles = (nibbles >> 4 & 0x000F'000F'000F'000F) | (nibbles & 0x000F'000F'000F'000F) << 8;
        const std::uint64_t are_letters = (nibbles + 0x0606'0606'0606'0606) >> 4 & 0x0101'0101'0101'0101;
        return nibbles + 0x3030'3030'3030'3030 + are_letters * ('a' - '0' - 10);
    }
    static char* put_hex(char* out, std::uint64_t number) {
        static_assert(std::endian::native == std::endian::little);
        const std::uint64_t digits[] = {hex_digits(static_cast<std::uint32_t>(number >> 32)),
                                        hex_digits(static_cast<std::uint32_t>(number))};
        std::memcpy(out, digits, sizeof digits);
        return out + sizeof digits;
    }
    /// Writes a time since 1970. The first digits of times that follow each other are the same.
    class Times {
      public:
        char* put(char* out, std::uint64_t ns) {
            const std::uint64_t high = ns / 100'000'000;
            if (high != high_) {
                high_ = high;
                size_ = static_cast<std::size_t>(put_decimal(text_, high) - text_);
            }
            if (high == 0) return put_decimal(out, ns);
            std::memcpy(out, text_, 16);  // 2^64 ns have 12 digits here
            const std::uint64_t low =
                eight_digits(static_cast<std::uint32_t>(ns % 100'000'000)) | 0x3030'3030'3030'3030;
            std::memcpy(out + size_, &low, 8);
            return out + size_ + 8;
        }

      private:
        std::uint64_t high_ = 0;
        std::size_t size_ = 0;
        char text_[kDecimalBytes] = {};
    };
    static char* put(char* out, std::string_view text) {
        std::memcpy(out, text.data(), text.size());
        return out + text.size();
    }

    bool is_span(Row row, Place place) const {
        if (place == Place::Device) return false;
        const Scope scope = sites_info_[ranges_.site[row]].scope;
        return (scope == Scope::User || scope == Scope::Step || (ranges_.flags[row] & kRemote) != 0) &&
               clip_.duration(ranges_.start_ns[row], ranges_.duration_ns[row]) >= min_duration_ns_;
    }

    /// Finds the spans, and for each range the nearest span around it and the trace context that it is in.
    void choose() {
        const RangeColumns ranges = trace_.ranges();
        nearest_.assign(ranges.size(), kNoRow);
        context_.assign(ranges.size(), 0);
        for (const TrackInfo& track : trace_.tracks()) {
            const Place place = place_of(track);
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                const Row parent = ranges.parent[row];
                if (is_span(row, place)) {
                    nearest_[row] = row;
                } else if (parent != kNoRow) {
                    nearest_[row] = nearest_[parent];
                }
            }
        }
        read_contexts();
        for (const LinkInfo& link : trace_.links()) {
            if (link.kind == LinkKind::Remote && nearest_[link.from] != kNoRow)
                caller_.try_emplace(link.to, nearest_[link.from]);
        }
    }

    /// A range with the value "traceparent" continues the trace of the caller that sent it; "trace_id" begins
    /// or names a trace, and "span_id" is the number that was sent to others.
    void read_contexts() {
        const RangeColumns ranges = trace_.ranges();
        for (const ArgumentSlice& slice : trace_.data().range_arguments) {
            for (const Argument& value : trace_.range_arguments(slice.row)) {
                if (value.kind != ValueKind::String) continue;
                const std::string_view key = trace_.string(value.key), text = trace_.string(value.string);
                if (const auto parsed = key == kTraceParentKey ? parse_traceparent(text) : std::nullopt) {
                    if (context_[slice.row] == 0) own_context_.push_back(slice.row);
                    context_[slice.row] = static_cast<std::uint32_t>(contexts_.size());
                    contexts_.push_back(*parsed);
                } else if (const auto trace_id = key == kTraceIdKey ? parse_trace_id(text) : std::nullopt) {
                    if (context_[slice.row] != 0) continue;  // "traceparent" says more
                    context_[slice.row] = static_cast<std::uint32_t>(contexts_.size());
                    contexts_.push_back({*trace_id, 0});
                    own_context_.push_back(slice.row);
                } else if (const auto id = key == kSpanIdKey ? parse_hex64(text) : std::nullopt) {
                    span_ids_[slice.row] = *id;
                }
            }
        }
        if (own_context_.empty()) return;
        for (Row row = 0; row < ranges.size(); ++row) {  // parents come before their children
            const Row parent = ranges.parent[row];
            if (parent != kNoRow && !std::binary_search(own_context_.begin(), own_context_.end(), row))
                context_[row] = context_[parent];
        }
    }

    std::uint64_t span_id(Row row) const {
        if (!span_ids_.empty()) {
            if (const auto known = span_ids_.find(row); known != span_ids_.end()) return known->second;
        }
        return mixed(salt_ ^ row);
    }

    void append_attribute(std::string& out, std::string_view key, std::string_view text) {
        if (text.empty()) return;
        begin_attribute(out, key);
        out += "{\"stringValue\":";
        append_json_string(out, text);
        out += "}}";
    }
    void append_attribute(std::string& out, std::string_view key, std::int64_t number) {
        begin_attribute(out, key);
        out += "{\"intValue\":\"" + std::to_string(number) + "\"}}";
    }
    static void begin_attribute(std::string& out, std::string_view key) {
        if (!out.empty()) out += ',';
        out += "{\"key\":";
        append_json_string(out, key);
        out += ",\"value\":";
    }

    void render_sites() {
        for (const SiteInfo& site : trace_.sites()) {
            Site& its = sites_.emplace_back();
            its.name = "\",\"name\":";
            append_json_string(its.name, trace_.string(site.name));
            its.name += ",\"kind\":1,\"startTimeUnixNano\":\"";
            append_attribute(its.attributes, "code.file.path", trace_.string(site.file));
            if (site.line != 0) append_attribute(its.attributes, "code.line.number", site.line);
        }
    }

    void write_process(Row process, const std::vector<Row>& tracks) {
        const ProcessInfo& info = trace_.processes()[process];
        std::string attributes;
        const std::string_view path = trace_.string(info.name);
        const std::string_view file = path.substr(path.find_last_of('/') + 1);
        append_attribute(attributes, "service.name",
                         python_program(trace_, info).value_or(file.empty() ? "marey" : std::string(file)));
        append_attribute(attributes, "process.pid", info.pid);
        append_attribute(attributes, "process.executable.name", file);
        append_attribute(attributes, "host.name", trace_.string(info.host));
        if (info.node >= 0) append_attribute(attributes, "marey.rank", info.node);
        file_.write(process == 0 ? "\n" : ",\n");
        file_.write("{\"resource\":{\"attributes\":[" + attributes +
                    "]},\"scopeSpans\":[{\"scope\":{\"name\":\"marey\",\"version\":\"" MAREY_VERSION
                    "\"},\"spans\":[");
        is_first_ = true;
        for (const Row track : tracks) write_track(trace_.tracks()[track], info.realtime_offset_ns);
        file_.write("]}]}");
    }

    void write_track(const TrackInfo& track, std::int64_t offset_ns) {
        const ThreadInfo& thread = trace_.threads()[track.thread];
        std::string thread_attributes;
        append_attribute(thread_attributes, "thread.id", thread.os_tid);
        append_attribute(thread_attributes, "thread.name", shown_thread_name(trace_, thread));
        const std::vector<ArgumentSlice>& slices = trace_.data().range_arguments;
        auto slice = std::lower_bound(slices.begin(), slices.end(), track.first_range,
                                      [](const ArgumentSlice& its, Row row) { return its.row < row; });
        std::string values;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            meter_.add_row(row);
            while (slice != slices.end() && slice->row < row) ++slice;
            if (nearest_[row] != row) continue;
            values.clear();
            if (slice != slices.end() && slice->row == row)
                append_values(values, trace_.range_arguments(row));
            append_flags(values, ranges_.flags[row]);
            write_span(row, thread_attributes, values, offset_ns);
        }
    }

    void write_span(Row row, const std::string& thread, const std::string& values, std::int64_t offset_ns) {
        const RangeColumns& ranges = ranges_;
        const Site& site = sites_[ranges.site[row]];
        const TraceContext& context = contexts_[context_[row]];
        constexpr std::size_t kFixedBytes = 512;
        char* out = file_.reserve(kFixedBytes + site.name.size() + site.attributes.size() + thread.size() +
                                  values.size());
        *out = ',';
        out += is_first_ ? 0 : 1;
        is_first_ = false;
        ++spans_;
        out = put(out, "\n{\"traceId\":\"");
        out = put_hex(put_hex(out, context.trace_id[0]), context.trace_id[1]);
        out = put_hex(put(out, "\",\"spanId\":\""), span_id(row));
        if (const std::uint64_t parent = parent_span(row); parent != 0)
            out = put_hex(put(out, "\",\"parentSpanId\":\""), parent);
        out = put(out, site.name);
        const std::int64_t start = std::max(ranges.start_ns[row], clip_.start_ns);
        const auto wall = static_cast<std::uint64_t>(std::max<std::int64_t>(start + offset_ns, 0));
        const auto duration =
            static_cast<std::uint64_t>(clip_.duration(ranges.start_ns[row], ranges.duration_ns[row]));
        out = put(times_.put(out, wall), "\",\"endTimeUnixNano\":\"");
        out = put(times_.put(out, wall + duration), "\",\"attributes\":[");
        out = put(out, thread);
        for (const std::string* const part : {&site.attributes, &values}) {
            if (part->empty()) continue;
            *out++ = ',';
            out = put(out, *part);
        }
        file_.advance(put(out, "]}"));
    }

    /// 0: none.
    std::uint64_t parent_span(Row row) const {
        if (!own_context_.empty() && contexts_[context_[row]].span_id != 0 &&
            std::binary_search(own_context_.begin(), own_context_.end(), row))
            return contexts_[context_[row]].span_id;
        const Row parent = ranges_.parent[row];
        if (parent != kNoRow && nearest_[parent] != kNoRow) return span_id(nearest_[parent]);
        if (const auto caller = caller_.find(row); caller != caller_.end() && caller->second != row)
            return span_id(caller->second);
        // Without a span around it, the parent is that of the range that has the context.
        return context_[row] == 0 ? 0 : contexts_[context_[row]].span_id;
    }

    void append_values(std::string& out, std::span<const Argument> values) {
        for (const Argument& value : values) {
            if (value.role != ArgumentRole::Keyword || value.key == 0) continue;
            std::string text;
            JsonWriter json(text);
            if (!append_value(json, value, 0)) continue;
            begin_attribute(out, trace_.string(value.key));
            out += text + "}";
        }
    }
    /// False for kinds that OTLP does not have.
    bool append_value(JsonWriter& json, const Argument& value, int level) {
        constexpr int kMaxLevel = 4;
        switch (value.kind) {
            case ValueKind::Bool:
                json.begin_object().member("boolValue", value.boolean).end_object();
                return true;
            case ValueKind::Int:
                json.begin_object().member("intValue", std::to_string(value.integer)).end_object();
                return true;
            case ValueKind::Double:
                json.begin_object().member("doubleValue", value.real).end_object();
                return true;
            case ValueKind::String:
                json.begin_object().member("stringValue", trace_.string(value.string)).end_object();
                return true;
            case ValueKind::List: {
                if (level == kMaxLevel) return false;
                json.begin_object().key("arrayValue").begin_object().key("values").begin_array();
                for (const Argument& item : items_of(trace_, value)) append_value(json, item, level + 1);
                json.end_array().end_object().end_object();
                return true;
            }
            default:
                return false;
        }
    }
    void append_flags(std::string& out, std::uint16_t flags) {
        if ((flags & (kUnfinished | kBeganBefore | kAsync | kRemote)) == 0) return;
        constexpr std::pair<std::uint16_t, std::string_view> kFlags[] = {
            {kUnfinished, "marey.unfinished"},
            {kBeganBefore, "marey.began_before"},
            {kAsync, "marey.async"},
            {kRemote, "marey.remote"},
        };
        for (const auto& [flag, key] : kFlags) {
            if ((flags & flag) == 0) continue;
            begin_attribute(out, key);
            out += "{\"boolValue\":true}}";
        }
    }

    struct Site {
        std::string name;        ///< from the end of an id to the start of the start time
        std::string attributes;  ///< without brackets
    };

    const Trace& trace_;
    const RangeColumns ranges_;
    const std::span<const SiteInfo> sites_info_;
    const std::int64_t min_duration_ns_;
    const WindowClip clip_;
    OutputFile file_;
    WorkMeter meter_;
    std::uint64_t salt_ = 0;
    std::vector<Row> nearest_;            ///< per range: itself or the nearest range around it that is a span
    std::vector<std::uint32_t> context_;  ///< per range
    std::vector<TraceContext> contexts_;  ///< the first is this trace's own
    std::vector<Row> own_context_;        ///< ranges that begin a context, ascending
    std::unordered_map<Row, std::uint64_t> span_ids_;
    std::unordered_map<Row, Row> caller_;  ///< of ranges that another process called
    std::vector<Site> sites_;
    Times times_;
    bool is_first_ = true;
    std::size_t spans_ = 0;
};

}  // namespace

std::size_t write_otlp(const Trace& trace, const std::string& path, std::int64_t min_duration_ns) {
    return OtlpSpans(trace, path, min_duration_ns).write();
}

}  // namespace marey
