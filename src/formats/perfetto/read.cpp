// read.cpp: reads Perfetto protobuf: packets, and facts about the trace.
#include "formats/perfetto/read.h"

#include <algorithm>
#include <iterator>

#include <marey/error.h>

#include "base/mapped_file.h"
#include "formats/formats.h"

#if MAREY_HAVE_PROTOZERO

#include <charconv>
#include <map>
#include <unordered_map>

#include "base/expansion_limit.h"
#include "formats/perfetto/clocks.h"
#include "formats/perfetto/events.h"
#include "formats/perfetto/fields.h"
#include "formats/perfetto/packets.h"
#include "formats/perfetto/track_table.h"
#include "formats/protobuf_wire.h"
#include "json/json_scanner.h"
#include "json/json_writer.h"

namespace marey {

using namespace perfetto;

namespace {

/// Names of the packet data that Marey does not read, by field number.
std::string data_name(std::uint32_t field) {
    static const std::map<std::uint32_t, const char*> kNames = {
        {1, "ftrace_events"},
        {4, "inode_file_map"},
        {5, "chrome_events"},
        {7, "sys_stats"},
        {9, "process_stats"},
        {37, "profile_packet"},
        {38, "battery"},
        {39, "android_log"},
        {40, "power_rails"},
        {47, "packages_list"},
        {49, "perfetto_metatrace"},
        {52, "gpu_counter_event"},
        {53, "gpu_render_stage_event"},
        {54, "streaming_profile_packet"},
        {57, "graphics_frame_event"},
        {62, "vulkan_memory_event"},
        {65, "vulkan_api_event"},
        {66, "perf_sample"},
        {67, "cpu_info"},
        {68, "smaps_packet"},
        {71, "gpu_mem_total_event"},
        {73, "memory_tracker_snapshot"},
        {133, "zstd_compressed_packets"},
    };
    const auto found = kNames.find(field);
    return found == kNames.end() ? "field " + std::to_string(field) : found->second;
}

/// Whether a packet field describes the recording itself rather than recorded data.
bool is_about_recording(std::uint32_t field) {
    static constexpr std::uint32_t kFields[] = {3,  33, 34, 35, 36,  45,  51,  69, 72,
                                                79, 87, 89, 98, 124, 125, 126, 138};
    return std::ranges::find(kFields, field) != std::end(kFields);
}

constexpr std::int64_t kMaxTimeNs = std::int64_t{1} << 61;  // so that sums of two times do not overflow

class PerfettoReader {
  public:
    explicit PerfettoReader(std::string name) : name_(std::move(name)), limit_(name_) {}

    Trace read(std::string_view bytes) {
        limit_.add_packed(bytes.size());  // the only input, also of packets compressed inside others
        read_packets(bytes, PerfettoPackets::is_gzip(bytes), 0);
        if (packets_ == 0) throw Error(name_ + ": not a Perfetto trace, or damaged in its first packet");
        tracks_.place(is_marey_trace_, realtime_offset_ != 0 ? realtime_offset_ : clocks_.realtime_offset());
        if (is_marey_trace_) {
            assembler_.set_window(window_start_, window_end_);
            events_.set_window_end(window_end_);
        }
        events_.finish();
        assembler_.clock().source = "perfetto";
        add_problems();
        return assembler_.finish();
    }

  private:
    /// The parts of a packet, which may come in any order and depend on each other.
    struct Packet {
        std::optional<std::uint64_t> time;
        std::uint32_t clock = 0;
        std::uint32_t sequence = 0;
        std::uint32_t flags = 0;
        bool has_lost = false;
        std::optional<std::string_view> event;
        std::string_view interned, defaults, clocks, process, thread;
    };

    void read_packets(std::string_view bytes, bool is_compressed, int level) {
        PerfettoPackets packets(bytes, limit_, is_compressed);
        std::string_view packet;
        while (packets.next(packet)) {
            ++packets_;
            try {
                read_packet(packet, level);
            } catch (const protozero::exception&) {
                ++damaged_packets_;
            }
        }
        if (packets.is_cut_short()) ++cut_short_;
        if (packets.is_damaged()) ++damaged_;
    }

    void read_packet(std::string_view message, int level) {
        Packet packet;
        read_fields(
            message, into(varint(PacketField::Timestamp), packet.time),
            into(varint(PacketField::TimestampClock), packet.clock),
            into(varint(PacketField::SequenceId), packet.sequence),
            on(varint(PacketField::SequenceFlags), [&](Message& m) { packet.flags |= m.get_uint32(); }),
            on(varint(PacketField::StateCleared),
               [&](Message& m) {
                   if (m.get_uint64() != 0) packet.flags |= kStateClearedFlag;
               }),
            into(varint(PacketField::PacketsDropped), packet.has_lost),
            on(bytes(PacketField::TrackEvent), [&](Message& m) { packet.event = m.get_view(); }),
            into(bytes(PacketField::InternedData), packet.interned),
            into(bytes(PacketField::Defaults), packet.defaults),
            into(bytes(PacketField::ClockSnapshot), packet.clocks),
            into(bytes(PacketField::ProcessDescriptor), packet.process),
            into(bytes(PacketField::ThreadDescriptor), packet.thread),
            on(bytes(PacketField::TrackDescriptor), [&](Message& m) { tracks_.describe(m.get_view()); }),
            on(bytes(PacketField::ProcessTree), [&](Message& m) { tracks_.describe_tree(m.get_view()); }),
            on(bytes(PacketField::ChromeEvents), [&](Message& m) { read_metadata(m.get_view()); }),
            on(bytes(PacketField::CompressedPackets),
               [&](Message& m) {
                   const std::string_view inner = m.get_view();
                   if (level == 0) read_packets(inner, true, level + 1);
               }),
            otherwise([&](Message& m) {
                if (!is_about_recording(m.tag())) ++unread_[m.tag()];
                m.skip();
            }));
        apply(packet);
    }

    void apply(const Packet& packet) {
        PerfettoSequence& sequence = sequence_of(packet.sequence);
        if (packet.has_lost) {
            ++lost_;
            sequence.has_lost = true;
        }
        if ((packet.flags & kStateClearedFlag) != 0) sequence.clear();
        if (!packet.clocks.empty()) read_clocks(packet.sequence, packet.clocks);
        if (!packet.defaults.empty()) read_defaults(packet.defaults, sequence);
        if (!packet.interned.empty()) read_interned(packet.interned, sequence);
        if (!packet.process.empty()) tracks_.describe_process(packet.process);
        if (!packet.thread.empty()) read_thread(packet.thread, sequence);
        if (!packet.event) return;
        const bool needs_state = (packet.flags & kNeedsStateFlag) != 0 && !sequence.is_cleared;
        // The clock advances even if the event is skipped.
        const std::int64_t time = time_of(packet, sequence);
        if (sequence.has_lost || needs_state)
            ++stateless_;
        else
            events_.add(*packet.event, sequence, time);
    }

    PerfettoSequence& sequence_of(std::uint32_t id) {
        if (last_sequence_ == nullptr || id != last_id_) {
            last_sequence_ = &sequences_[id];
            last_id_ = id;
        }
        return *last_sequence_;
    }

    std::int64_t time_of(const Packet& packet, PerfettoSequence& sequence) {
        std::int64_t time = 0;
        if (packet.time) {
            time = clocks_.time_of(packet.sequence, packet.clock != 0 ? packet.clock : sequence.clock,
                                   *packet.time);
        } else {
            bool has_timestamp = false;
            read_fields(*packet.event,
                        on(varint(EventField::TimestampDeltaUs),
                           [&](Message& m) {
                               sequence.time_us += m.get_uint64();
                               has_timestamp = true;
                           }),
                        on(varint(EventField::TimestampAbsoluteUs), [&](Message& m) {
                            sequence.time_us = m.get_uint64();
                            has_timestamp = true;
                        }));
            if (!has_timestamp) ++timeless_;
            time = static_cast<std::int64_t>(sequence.time_us * 1000);
        }
        const std::int64_t result = static_cast<std::int64_t>(static_cast<std::uint64_t>(time) + shift_);
        if (result > kMaxTimeNs || result < -kMaxTimeNs) ++far_times_;
        return std::clamp(result, -kMaxTimeNs, kMaxTimeNs);
    }

    void read_clocks(std::uint32_t sequence, std::string_view message) {
        std::vector<PerfettoClocks::Reading> readings;
        std::uint32_t primary = 0;
        const auto read_clock = [&](Message& m) {
            PerfettoClocks::Reading& reading = readings.emplace_back();
            read_fields(m.get_view(), into(varint(ClockField::Id), reading.clock),
                        into(varint(ClockField::Timestamp), reading.timestamp),
                        into(varint(ClockField::IsIncremental), reading.is_incremental),
                        into(varint(ClockField::UnitNs), reading.unit_ns));
            reading.unit_ns = std::max<std::uint64_t>(reading.unit_ns, 1);
        };
        read_fields(message, into(varint(ClockSnapshotField::PrimaryClock), primary),
                    on(bytes(ClockSnapshotField::Clocks), read_clock));
        clocks_.add_snapshot(sequence, readings, primary);
    }

    void read_defaults(std::string_view message, PerfettoSequence& sequence) {
        const auto read_event = [&](Message& m) {
            read_fields(
                m.get_view(), into(varint(EventDefaultsField::TrackUuid), sequence.track),
                into(varint(EventDefaultsField::ExtraCounterTracks), sequence.extra_counters),
                into(varint(EventDefaultsField::ExtraDoubleCounterTracks), sequence.extra_double_counters));
        };
        read_fields(message, into(varint(DefaultsField::TimestampClock), sequence.clock),
                    on(bytes(DefaultsField::TrackEvent), read_event));
    }

    void read_interned(std::string_view message, PerfettoSequence& sequence) {
        Message fields(message);
        while (const std::uint32_t field = fields.next_field()) {
            InternTable<StringId>* table = nullptr;
            switch (field) {
                case bytes(InternedField::EventNames):
                    table = &sequence.event_names;
                    break;
                case bytes(InternedField::EventCategories):
                    table = &sequence.categories;
                    break;
                case bytes(InternedField::AnnotationNames):
                    table = &sequence.annotation_names;
                    break;
                case bytes(InternedField::AnnotationStrings):
                    table = &sequence.annotation_strings;
                    break;
                case bytes(InternedField::SourceLocations):
                    break;
                default:
                    fields.skip();
                    continue;
            }
            std::uint64_t iid = 0;
            std::string_view text, function;
            std::uint32_t line = 0;
            read_fields(fields.get_view(), into(varint(InternedTextField::Iid), iid),
                        into(bytes(InternedTextField::Text), text),  // for source locations, the file
                        into(bytes(SourceLocationField::Function), function),
                        into(varint(SourceLocationField::Line), line));
            if (table != nullptr)
                table->set(iid, assembler_.string(text));
            else
                sequence.places.set(iid, {assembler_.string(text), line, assembler_.string(function)});
        }
    }

    void read_thread(std::string_view message, PerfettoSequence& sequence) {
        std::tie(sequence.pid, sequence.tid) = tracks_.describe_thread(message);
        sequence.has_thread = true;
        read_fields(message, into(varint(ThreadField::ReferenceTimeUs), sequence.time_us));
    }

    void read_metadata(std::string_view message) {
        Message fields(message);
        while (const std::uint32_t field = fields.next_field()) {
            if (field != bytes(ChromeEventsField::Metadata)) {
                ++unread_[static_cast<std::uint32_t>(PacketField::ChromeEvents)];
                fields.skip();
                continue;
            }
            std::string_view key, text;
            std::string json = "null";
            std::int64_t number = 0;
            read_fields(fields.get_view(), into(bytes(MetadataField::Name), key),
                        on(bytes(MetadataField::Json),
                           [&](Message& m) {
                               text = m.get_view();
                               json = is_json(text) ? std::string(text) : quoted(text);
                           }),
                        on(bytes(MetadataField::String),
                           [&](Message& m) {
                               text = m.get_view();
                               json = quoted(text);
                           }),
                        on(varint(MetadataField::Bool),
                           [&](Message& m) {
                               number = m.get_uint64() != 0 ? 1 : 0;
                               json = number != 0 ? "true" : "false";
                           }),
                        on(varint(MetadataField::Int), [&](Message& m) {
                            number = m.get_int64();
                            json = std::to_string(number);
                        }));
            if (!read_marey_metadata(key, text, number))
                assembler_.add_metadata(std::string(key), std::move(json));
        }
    }
    static std::string quoted(std::string_view text) {
        std::string json;
        append_json_string(json, text);
        return json;
    }

    /// Reads the metadata that our exporter writes; returns false for other keys.
    bool read_marey_metadata(std::string_view key, std::string_view text, std::int64_t number) {
        if (key == kVersionKey && packets_ <= 2) {
            is_marey_trace_ = true;
            events_.set_marey_trace();
            return true;
        }
        if (!is_marey_trace_) return false;
        if (key == kWindowStartKey) {
            window_start_ = std::clamp(number, -kMaxTimeNs, kMaxTimeNs);
            // The clock cannot represent negative times.
            shift_ = static_cast<std::uint64_t>(std::min<std::int64_t>(window_start_, 0));
        } else if (key == kWindowEndKey) {
            window_end_ = std::clamp(number, window_start_, kMaxTimeNs);
        } else if (key == kRealtimeOffsetKey) {
            realtime_offset_ = number;
        } else if (key == kSessionKey) {
            assembler_.window().session_name = text;
        } else if (key == kFinishedKey) {
            assembler_.window().finished = number != 0;
        } else if (key == kFlowNameKey) {
            events_.add_flow_name(text);
        } else if (key == kProblemKey) {
            const std::size_t first = text.find('\n');
            const std::size_t second = first == text.npos ? text.npos : text.find('\n', first + 1);
            if (second == text.npos) return false;
            std::uint64_t count = 1;
            std::from_chars(text.data() + first + 1, text.data() + second, count);
            assembler_.add_problem(std::string(text.substr(0, first)), std::string(text.substr(second + 1)),
                                   count);
        } else {
            return key == kHostClocksKey;  // for people
        }
        return true;
    }

    void add_problems() {
        const auto add = [&](const char* code, const std::string& text, std::uint64_t count) {
            assembler_.add_problem(code, text, count);
        };
        add("cut_short", "The file ends in the middle of a packet.", cut_short_);
        add("damaged", "The file is damaged; only the packets before the damage were read.", damaged_);
        add("damaged_packets", "Damaged packets were skipped.", damaged_packets_);
        add("lost_packets", "Packets were lost when the trace was recorded.", lost_);
        add("stateless_events", "Track events that depend on lost packets were skipped.", stateless_);
        add("timeless_events", "Track events without a timestamp were given the time of the event before.",
            timeless_);
        add("far_times", "Timestamps out of range were clamped.", far_times_);
        add("unknown_clock",
            "Timestamps use a clock that the file does not describe; they were not converted.",
            clocks_.unknown());
        for (const auto& [field, count] : unread_)
            add("unread_packets", "Packets with " + data_name(field) + " were not read.", count);
    }

    std::string name_;
    ExpansionLimit limit_;
    TraceAssembler assembler_;
    PerfettoTrackTable tracks_{assembler_};
    PerfettoEvents events_{assembler_, tracks_};
    PerfettoClocks clocks_;
    std::unordered_map<std::uint32_t, PerfettoSequence> sequences_;
    PerfettoSequence* last_sequence_ = nullptr;
    std::uint32_t last_id_ = 0;
    bool is_marey_trace_ = false;
    std::int64_t realtime_offset_ = 0;  ///< from the metadata of our files
    std::int64_t window_start_ = 0, window_end_ = 0;
    std::uint64_t shift_ = 0;
    std::uint64_t packets_ = 0, cut_short_ = 0, damaged_ = 0, damaged_packets_ = 0, lost_ = 0, stateless_ = 0,
                  timeless_ = 0, far_times_ = 0;
    std::map<std::uint32_t, std::uint64_t> unread_;
};

}  // namespace

Trace read_perfetto_bytes(std::string_view bytes, const std::string& name) {
    return PerfettoReader(name).read(bytes);
}

}  // namespace marey

#else

namespace marey {

Trace read_perfetto_bytes(std::string_view, const std::string& name) {
    throw Error(name + ": this Marey was built without protozero and cannot read Perfetto traces");
}

}  // namespace marey

#endif

namespace marey {

bool is_perfetto(std::span<const std::byte> head) noexcept {
    constexpr std::size_t kWholeHead = 64 * 1024;
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(head[i]); };
    if (head.size() < 3 || byte(0) != 0x0a) return false;
    std::size_t at = 1;
    const auto varint = [&](std::uint64_t& value) {
        value = 0;
        for (unsigned shift = 0; shift < 64 && at < head.size(); shift += 7) {
            const std::uint8_t next = byte(at++);
            value |= std::uint64_t{next & 0x7fu} << shift;
            if (next < 0x80) return true;
        }
        return false;
    };
    constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;
    std::uint64_t size = 0;
    if (!varint(size) || size == 0 || size > kLargest) return false;
    const std::size_t end = at + size;
    while (at < end) {
        if (at >= head.size()) return head.size() >= kWholeHead;
        std::uint64_t tag = 0, value = 0;
        constexpr std::uint64_t kLargestField = 1000;
        if (!varint(tag) || tag >> 3 == 0 || tag >> 3 > kLargestField || !varint(value)) return false;
        constexpr std::uint64_t kNumbers[] = {3,  8,  10, 13, 41,
                                              42, 58, 79, 87, 98};  // all others are messages
        const bool is_number = std::ranges::find(kNumbers, tag >> 3) != std::end(kNumbers);
        if ((tag & 7) != (is_number ? 0 : 2)) return false;
        if (is_number) continue;
        if (at > end || value > end - at) return false;
        at += value;
    }
    return at == end &&
           (end >= head.size() ? end == head.size() || head.size() >= kWholeHead : byte(end) == 0x0a);
}

void write_perfetto(const Trace& trace, const std::string& path);  // write.cpp

FileFormat perfetto_format() {
    static constexpr std::string_view kSuffixes[] = {".pftrace", ".perfetto-trace", ".pftrace.gz",
                                                     ".perfetto-trace.gz"};
    return {"perfetto",
            "Perfetto protobuf, for the Perfetto UI and trace processor",
            "",
            kSuffixes,
            write_perfetto,
            is_perfetto,
            nullptr,
            [](const std::string& path) {
                const auto file = MappedFile::open(path);
                const auto bytes = file->bytes();
                return read_perfetto_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
            }};
}

}  // namespace marey
