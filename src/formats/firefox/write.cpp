// write.cpp: writes the processed format of the Firefox Profiler (https://profiler.firefox.com): one thread
// per track, whose samples are the pieces of time between two events, and markers and counters.
//
// Version 56 of the format; later versions of the profiler convert it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <marey/export.h>
#include <marey/merge.h>
#include <marey/samples.h>

#include "analyze/name_slots.h"
#include "base/output_file.h"
#include "base/work_meter.h"
#include "formats/decimal.h"
#include "formats/merged_functions.h"
#include "json/json_writer.h"
#include "trace/program_names.h"

namespace marey {
namespace {

/// Writes nanoseconds exactly as milliseconds with six decimals. Times that follow each other mostly have the
/// same whole milliseconds, whose text is kept.
class Millis {
  public:
    /// Returns the end; up to 8 bytes more may be written.
    char* put(char* out, std::uint64_t ns) noexcept {
        const std::uint64_t whole = ns / 1'000'000;
        if (whole != whole_) {
            whole_ = whole;
            size_ = static_cast<std::size_t>(put_decimal(text_, whole) - text_);
        }
        std::memcpy(out, text_, kWholeBytes);
        out += size_;
        const auto rest = static_cast<std::uint32_t>(ns - whole * 1'000'000);
        if (rest == 0) return out;
        std::memcpy(out, kThousandths[rest / 1000].data(), 4);
        std::memcpy(out + 4, kThousandths[rest % 1000].data() + 1, 3);
        return out + 7;
    }

  private:
    static constexpr std::size_t kWholeBytes = 16;  // 2^64 ns have 14 digits of milliseconds

    std::uint64_t whole_ = 0;
    std::size_t size_ = 1;
    char text_[kDecimalBytes] = "0";
};

class FirefoxProfile {
  public:
    FirefoxProfile(const Trace& trace, const std::string& path)
        : trace_(trace),
          ranges_(trace.ranges()),
          functions_(profile_functions(trace)),
          file_(path),
          meter_(2 * ranges_.size()) {
        start_ns_ = trace.window().start_ns;
        end_ns_ = std::max(trace.window().end_ns, start_ns_);
    }

    void write() {
        find_markers();
        write_meta();
        file_.write(",\"libs\":[],\"pages\":[],\"threads\":[");
        for (Row index = 0; index < trace_.tracks().size(); ++index) {
            const TrackInfo& track = trace_.tracks()[index];
            if (place_of(track) != Place::Async) write_thread(track.thread, &track);
        }
        for (Row thread = 0; thread < trace_.threads().size(); ++thread) {
            if (markers_[thread].size() != 0) write_thread(thread, nullptr);
        }
        file_.write("\n]");
        write_counters();
        write_strings();
        file_.write("}\n");
        file_.commit();
    }

  private:
    static constexpr std::uint32_t kNoStack = kNoRow;
    /// The pieces of time of a thread, one after another. Two columns: there are about twice as many pieces
    /// as ranges, and each column of the file needs one of them.
    struct Samples {
        std::vector<std::uint32_t> stacks;
        std::vector<std::uint64_t> durations_ns;

        void reserve(std::size_t count) {
            stacks.reserve(count);
            durations_ns.reserve(count);
        }
        void clear() {
            stacks.clear();
            durations_ns.clear();
        }
        void add(std::uint32_t stack, std::uint64_t duration_ns) {
            if (!stacks.empty() && stacks.back() == stack) {
                durations_ns.back() += duration_ns;
            } else {
                stacks.push_back(stack);
                durations_ns.push_back(duration_ns);
            }
        }
    };
    /// The rows of the ranges and of the instants that are markers of a thread.
    struct Markers {
        std::vector<Row> ranges;
        std::vector<Row> instants;

        std::size_t size() const { return ranges.size() + instants.size(); }
    };

    std::uint64_t since_start(std::int64_t ns) const {
        return static_cast<std::uint64_t>(std::clamp(ns, start_ns_, end_ns_)) -
               static_cast<std::uint64_t>(start_ns_);
    }
    std::uint32_t text(std::string_view text) {
        const auto [place, is_new] =
            text_ids_.try_emplace(std::string(text), static_cast<std::uint32_t>(texts_.size()));
        if (is_new) texts_.push_back(&place->first);
        return place->second;
    }

    /// Ranges marked by hand, async ranges and instants.
    void find_markers() {
        markers_.resize(trace_.threads().size());
        std::vector<bool> is_marked;  // per site
        for (const SiteInfo& site : trace_.sites()) {
            names_.push_back(text(trace_.string(site.name)));
            is_marked.push_back(site.scope == Scope::User || site.scope == Scope::Step);
        }
        for (const TrackInfo& track : trace_.tracks()) {
            const Place place = place_of(track);
            if (place == Place::Device) continue;
            std::vector<Row>& rows = markers_[track.thread].ranges;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                if (place != Place::Host || is_marked[ranges_.site[row]]) rows.push_back(row);
            }
        }
        const InstantColumns instants = trace_.instants();
        for (Row row = 0; row < instants.size(); ++row)
            markers_[instants.thread[row]].instants.push_back(row);
    }

    void write_meta() {
        std::string out;
        JsonWriter json(out);
        const bool has_process = !trace_.processes().empty();
        const std::int64_t offset = has_process ? trace_.processes().front().realtime_offset_ns : 0;
        json.begin_object().key("meta").begin_object();
        json.member("version", 31).member("preprocessedProfileVersion", 56).member("interval", 1);
        json.member("startTime", static_cast<double>(start_ns_ + offset) / 1e6);
        json.member("processType", 0)
            .member("stackwalk", 1)
            .member("debug", false)
            .member("symbolicated", true);
        json.member("product", has_process ? program_name(trace_, trace_.processes().front()) : "marey");
        json.member("importedFrom", "marey " MAREY_VERSION);
        json.key("categories").begin_array().begin_object().member("name", "Other").member("color", "grey");
        json.key("subcategories").begin_array().value("Other").end_array().end_object().end_array();
        json.key("markerSchema").begin_array().end_array();
        json.end_object();
        file_.write(out);
    }

    /// The pieces of time of a track, each with the innermost open range.
    void cut(const TrackInfo& track) {
        const RangeColumns& ranges = ranges_;
        samples_.reserve(2 * std::size_t{track.range_count} + 1);
        std::vector<std::pair<std::uint32_t, std::uint64_t>> open;  // stacks and their ends
        std::uint64_t last = 0;
        const auto advance = [&](std::uint64_t time) {
            if (time <= last) return;
            samples_.add(open.empty() ? kNoStack : open.back().first, time - last);
            last = time;
        };
        const auto close_to = [&](std::size_t depth) {
            while (open.size() > depth) {
                advance(open.back().second);
                open.pop_back();
            }
        };
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            meter_.add_row(row);
            close_to(ranges.depth[row]);
            advance(since_start(ranges.start_ns[row]));
            const std::uint32_t around = open.empty() ? kNoStack : open.back().first;
            open.emplace_back(stacks_.child(around, functions_.of_site[ranges.site[row]]),
                              since_start(ranges.start_ns[row] + ranges.duration_ns[row]));
        }
        close_to(0);
    }

    /// `track`: null for a thread that has only markers.
    void write_thread(Row row, const TrackInfo* track) {
        samples_.clear();
        stacks_ = {};
        if (track != nullptr) cut(*track);
        const ThreadInfo& thread = trace_.threads()[row];
        const ProcessInfo& process = trace_.processes()[thread.process];
        std::string out = is_first_thread_ ? "\n" : ",\n";
        if (is_first_thread_of(thread.process)) first_thread_[thread.process] = thread_count_;
        is_first_thread_ = false;
        ++thread_count_;
        JsonWriter json(out);
        std::string name = shown_thread_name(trace_, thread);
        if (track != nullptr && track->name != 0) name = trace_.string(track->name);
        if (name.empty()) name = "thread " + std::to_string(thread.id);
        json.begin_object().member("name", name).member("isMainThread", thread.os_tid == process.pid);
        json.member("processType", "default").member("processName", program_name(trace_, process));
        json.member("processStartupTime", 0).key("processShutdownTime").null();
        json.member("registerTime", 0).key("unregisterTime").null();
        json.key("pausedRanges").begin_array().end_array();
        json.member("pid", std::to_string(process.pid)).member("tid", thread.os_tid);
        json.member("showMarkersInTimeline", true);
        file_.write(out);
        write_samples();
        write_stacks();
        write_markers(markers_[row]);
        file_.write("}");
        if (track != nullptr) meter_.add(track->range_count);
    }
    bool is_first_thread_of(Row process) const { return !first_thread_.contains(process); }

    void write_samples() {
        const std::size_t count = samples_.stacks.size();
        file_.write(",\n\"samples\":{\"length\":" + std::to_string(count) + ",\"weightType\":\"tracing-ms\"");
        write_column(",\"stack\"", samples_.stacks,
                     [](char* out, std::uint32_t stack, std::size_t) { return put_index(out, stack); });
        // A sample begins when the one before it ends: the lengths are formatted once for both columns.
        const std::span<const std::uint64_t> durations = samples_.durations_ns;
        const auto put = [millis = Millis()](char* out, std::uint64_t duration_ns, std::size_t) mutable {
            return millis.put(out, duration_ns);
        };
        const std::uint64_t begin = lengths_.position();
        if (count > 1) write_values(lengths_, durations.first(count - 1), put, true);
        const std::uint64_t last = lengths_.position();  // where the last length begins
        if (count > 0) write_values(lengths_, durations.last(1), put, count == 1);
        const std::string_view all = lengths_.written_since(begin);
        file_.write(",\"timeDeltas\":[");
        if (count != 0) file_.write("0");
        if (count > 1) {
            file_.write(",");
            file_.write(all.substr(0, last - begin));
        }
        file_.write("],\"weight\":[");
        file_.write(all);
        file_.write("]}");
        lengths_.exchange(
            lengths_.exchange({}));  // forgets the bytes, and keeps the memory for the next thread
    }

    void write_stacks() {
        std::vector<std::uint32_t> frame_of(functions_.functions.size(), kNoRow);  // per function
        std::vector<std::uint32_t> used;
        for (const PathTree::Node& node : stacks_.nodes) {
            if (frame_of[node.slot] != kNoRow) continue;
            frame_of[node.slot] = static_cast<std::uint32_t>(used.size());
            used.push_back(node.slot);
        }
        const auto lines = [&](const char* key) {
            write_column(key, used, [&](char* out, std::uint32_t function, std::size_t) {
                const std::uint32_t line = functions_.functions[function].line;
                return put_index(out, line == 0 ? kNoRow : line);
            });
        };
        const auto filled = [&](const char* key, std::string_view value) {
            write_filled(key, value, used.size());
        };
        const std::string count = std::to_string(used.size());
        file_.write(",\n\"stackTable\":{\"length\":" + std::to_string(stacks_.nodes.size()));
        write_column(",\"prefix\"", stacks_.nodes, [](char* out, const PathTree::Node& node, std::size_t) {
            return put_index(out, node.parent);
        });
        write_column(",\"frame\"", stacks_.nodes, [&](char* out, const PathTree::Node& node, std::size_t) {
            return put_decimal(out, frame_of[node.slot]);
        });
        file_.write("},\n\"frameTable\":{\"length\":" + count);
        write_column(",\"func\"", used,
                     [](char* out, std::uint32_t, std::size_t i) { return put_decimal(out, i); });
        filled(",\"address\"", "-1");
        for (const char* const key : {",\"inlineDepth\"", ",\"category\"", ",\"subcategory\""})
            filled(key, "0");
        for (const char* const key : {",\"nativeSymbol\"", ",\"innerWindowID\"", ",\"column\""})
            filled(key, "null");
        lines(",\"line\"");
        file_.write("},\n\"funcTable\":{\"length\":" + count);
        write_column(",\"name\"", used, [&](char* out, std::uint32_t function, std::size_t) {
            return put_decimal(out, text(functions_.functions[function].name));
        });
        write_column(",\"fileName\"", used, [&](char* out, std::uint32_t function, std::size_t) {
            const std::string& file = functions_.functions[function].file;
            return put_index(out, file.empty() ? kNoRow : text(file));
        });
        lines(",\"lineNumber\"");
        filled(",\"columnNumber\"", "null");
        filled(",\"resource\"", "-1");
        for (const char* const key : {",\"isJS\"", ",\"relevantForJS\""}) filled(key, "false");
        file_.write(
            "},\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},"
            "\"nativeSymbols\":{\"length\":0,\"address\":[],\"functionSize\":[],\"libIndex\":[],\"name\":[]"
            "}");
    }

    /// Writes the markers once, with the first track of their thread.
    void write_markers(Markers& markers) {
        const InstantColumns instants = trace_.instants();
        const WindowClip clip(trace_);
        const auto both = [&](const char* key, auto put_range, auto put_instant) {
            begin_column(key);
            write_values(file_, markers.ranges, put_range, true);
            write_values(file_, markers.instants, put_instant, markers.ranges.empty());
            file_.write("]");
        };
        const auto put_null = [](char* out, Row, std::size_t) { return put_index(out, kNoRow); };
        file_.write(",\n\"markers\":{\"length\":" + std::to_string(markers.size()));
        both(
            ",\"name\"",
            [&](char* out, Row row, std::size_t) { return put_decimal(out, names_[ranges_.site[row]]); },
            [&](char* out, Row row, std::size_t) { return put_decimal(out, names_[instants.site[row]]); });
        both(
            ",\"startTime\"",
            [&, millis = Millis()](char* out, Row row, std::size_t) mutable {
                return millis.put(out, since_start(ranges_.start_ns[row]));
            },
            [&, millis = Millis()](char* out, Row row, std::size_t) mutable {
                return millis.put(out, since_start(instants.time_ns[row]));
            });
        both(
            ",\"endTime\"",
            [&, millis = Millis()](char* out, Row row, std::size_t) mutable {
                const std::int64_t duration = clip.duration(ranges_.start_ns[row], ranges_.duration_ns[row]);
                return millis.put(out,
                                  since_start(ranges_.start_ns[row]) + static_cast<std::uint64_t>(duration));
            },
            put_null);
        begin_column(",\"phase\"");
        write_repeated("1", markers.ranges.size(), true);
        write_repeated("0", markers.instants.size(), markers.ranges.empty());
        file_.write("]");
        write_filled(",\"category\"", "0", markers.size());
        write_filled(",\"data\"", "null", markers.size());
        file_.write("}");
        markers = {};
    }

    /// A number, or null for kNoRow.
    static char* put_index(char* out, std::uint32_t value) {
        if (value != kNoRow) return put_decimal(out, value);
        return std::copy_n("null", 4, out);
    }
    void begin_column(const char* key) {
        file_.write(key);
        file_.write(":[");
    }
    void write_filled(const char* key, std::string_view value, std::size_t count) {
        begin_column(key);
        write_repeated(value, count, true);
        file_.write("]");
    }
    void write_repeated(std::string_view value, std::size_t count, bool is_first) {
        constexpr std::size_t kBlock = 1024;  // values written at once
        std::string block;
        for (std::size_t i = 0; i < std::min(count, kBlock); ++i) block.append(",").append(value);
        for (std::size_t done = 0; done < count; done += kBlock) {
            const std::size_t size = std::min(kBlock, count - done) * (value.size() + 1);
            const std::size_t skipped = is_first && done == 0 ? 1 : 0;
            file_.write(std::string_view(block).substr(skipped, size - skipped));
        }
    }
    void write_column(const char* key, const auto& rows, auto put) {
        begin_column(key);
        write_values(file_, rows, put, true);
        file_.write("]");
    }
    /// `is_first`: no values of the column come before these.
    static void write_values(OutputBuffer& to, const auto& rows, auto put, bool is_first) {
        constexpr std::size_t kBlock = 256;  // values for which space is reserved at once
        for (std::size_t begin = 0; begin < rows.size(); begin += kBlock) {
            char* out = to.reserve(kBlock * (kDecimalBytes + 16));
            const std::size_t end = std::min(begin + kBlock, rows.size());
            std::size_t i = begin;
            if (is_first && i == 0) {
                out = put(out, rows[i], i);
                ++i;
            }
            for (; i < end; ++i) {
                *out = ',';
                out = put(out + 1, rows[i], i);
            }
            to.advance(out);
        }
    }

    // ---- counters: the format holds differences, which the graphs add up

    struct Point {
        std::int64_t time_ns;
        double difference;
    };
    struct Series {
        std::string name;
        Row process;
        bool is_bytes;
        std::vector<Point> points;
    };

    void write_counters() {
        std::map<std::pair<Row, StringId>, Series> series;
        std::map<std::pair<Row, StringId>, double> last;
        const CounterColumns counters = trace_.counters();
        for (const Row row : by_time(counters.time_ns)) {
            const double value = counters.value[row];
            if (!std::isfinite(value)) continue;
            const StringId name = trace_.sites()[counters.site[row]].name;
            const Row process = trace_.threads()[counters.thread[row]].process;
            Series& its = series[{process, name}];
            its.name = trace_.string(name);
            its.process = process;
            double& before = last[{process, name}];
            its.points.push_back({counters.time_ns[row], value - before});
            before = value;
        }
        std::map<std::tuple<Row, DeviceType, std::int32_t>, Series> memory_series;
        const MemoryColumns memory = trace_.memory();
        for (const Row row : by_time(memory.time_ns)) {
            if (memory.out_of_memory[row] != 0) continue;
            const Row process = trace_.threads()[memory.thread[row]].process;
            const Device device = memory.device[row];
            Series& its = memory_series[{process, device.type, device.index}];
            its.name = "memory";
            if (device.type != DeviceType::Cpu)
                its.name +=
                    std::string(" on ") + device_type_name(device.type) + " " + std::to_string(device.index);
            its.process = process;
            its.is_bytes = true;
            its.points.push_back({memory.time_ns[row], static_cast<double>(memory.bytes[row])});
        }
        file_.write(",\n\"counters\":[");
        bool is_first = true;
        for (const auto& [key, its] : series) write_series(its, is_first);
        for (const auto& [key, its] : memory_series) write_series(its, is_first);
        file_.write("]");
    }
    static std::vector<Row> by_time(std::span<const std::int64_t> times) {
        std::vector<Row> rows(times.size());
        for (Row row = 0; row < rows.size(); ++row) rows[row] = row;
        std::ranges::stable_sort(rows, [&](Row a, Row b) { return times[a] < times[b]; });
        return rows;
    }
    void write_series(const Series& series, bool& is_first) {
        const auto thread = first_thread_.find(series.process);
        if (thread == first_thread_.end()) return;  // the format wants a thread beside each counter
        std::string out = is_first ? "\n" : ",\n";
        is_first = false;
        JsonWriter json(out);
        json.begin_object()
            .member("name", series.name)
            .member("category", series.is_bytes ? "Memory" : "marey");
        json.member("description", series.name).member("mainThreadIndex", thread->second);
        json.member("pid", std::to_string(trace_.processes()[series.process].pid));
        json.key("display").begin_object().member("graphType", "line-accumulated");
        json.member("unit", series.is_bytes ? "bytes" : "")
            .member("color", series.is_bytes ? "orange" : "grey");
        json.key("markerSchemaLocation").null().member("sortWeight", 50).member("label", series.name);
        json.key("tooltipRows").begin_array().begin_object().member("type", "value");
        json.member("source", "accumulated")
            .member("label", "value at this time")
            .key("format")
            .begin_object();
        json.member("unit", series.is_bytes ? "bytes" : "number").end_object().end_object().end_array();
        json.end_object();
        json.key("samples").begin_object();
        json.member("length", static_cast<std::uint64_t>(series.points.size())).key("time").begin_array();
        for (const Point& point : series.points)
            json.value(static_cast<double>(since_start(point.time_ns)) / 1e6);
        json.end_array().key("count").begin_array();
        for (const Point& point : series.points) json.value(point.difference);
        json.end_array().end_object().end_object();
        file_.write(out);
    }

    void write_strings() {
        file_.write(",\n\"shared\":{\"stringArray\":[");
        std::string out;
        for (std::size_t i = 0; i < texts_.size(); ++i) {
            out = i == 0 ? "\n" : ",\n";
            append_json_string(out, *texts_[i]);
            file_.write(out);
        }
        file_.write("]}");
    }

    const Trace& trace_;
    const RangeColumns ranges_;
    const ProfileFunctions functions_;
    OutputFile file_;
    WorkMeter meter_;  ///< of ranges that are cut into samples, and of those written
    std::int64_t start_ns_ = 0;
    std::int64_t end_ns_ = 0;
    Samples samples_;                   ///< of the current thread
    MemoryOutput lengths_;              ///< of its samples, as text
    PathTree stacks_;                   ///< of the current thread
    std::vector<Markers> markers_;      ///< per thread; empty once written
    std::vector<std::uint32_t> names_;  ///< per site: the string of its name
    bool is_first_thread_ = true;
    std::uint64_t thread_count_ = 0;
    std::map<Row, std::uint64_t> first_thread_;  ///< per process
    std::unordered_map<std::string, std::uint32_t> text_ids_;
    std::vector<const std::string*> texts_;
};

}  // namespace

void write_firefox(const Trace& trace, const std::string& path) {
    FirefoxProfile(with_sample_tracks(trace), path).write();
}

}  // namespace marey
