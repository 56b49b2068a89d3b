// chrome_json.cpp: Chrome's trace JSON, streamed.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <kymo/export.h>

#include "base/json_writer.h"
#include "base/output_file.h"
#include "export/chrome_arguments.h"
#include "export/chrome_rows.h"
#include "export/decimal.h"
#include "trace/trace_data.h"

namespace kymo {
namespace {

/// The category that tools made for PyTorch's traces look for.
const char* category(Scope scope) {
    switch (scope) {
        case Scope::Function:
            return "cpu_op";
        case Scope::User:
            return "user_annotation";
        case Scope::PythonFunction:
            return "python_function";
        default:
            return scope_name(scope);
    }
}

/// Text rendered once and copied often: padded, so that a copy can move whole blocks of kBlock bytes.
class Stamp {
  public:
    static constexpr std::size_t kBlock = 64;

    explicit Stamp(std::string text) : text_(std::move(text)), size_(text_.size()) {
        text_.resize(size_ + kBlock, '\0');
    }
    /// Writes up to kBlock bytes behind the end that it returns.
    char* put(char* out) const noexcept {
        std::memcpy(out, text_.data(), kBlock);
        if (size_ > kBlock) std::memcpy(out + kBlock, text_.data() + kBlock, size_ - kBlock);
        return out + size_;
    }
    std::size_t size() const noexcept { return size_; }

  private:
    std::string text_;
    std::size_t size_;
};

struct SiteStamps {
    Stamp head;   ///< {"ph":"X","cat":"...","name":"...",
    Stamp tail;   ///< ,"args":{"at":"file:line"}},\n
    Stamp place;  ///< "at":"file:line", or empty
};

std::string_view base_name(std::string_view path) {
    return path.substr(path.find_last_of('/') + 1);
}

class ChromeJson {
  public:
    /// `target`: a path or a stream.
    template <typename Target>
    ChromeJson(const Trace& trace, Target& target) : trace_(trace), rows_(trace), file_(target) {
        window_start_ns_ = trace.window().start_ns;
        window_end_ns_ = std::max(trace.window().end_ns, window_start_ns_);
    }

    void write() {
        write_header();
        write_names();
        make_site_stamps();
        write_ranges();
        write_links();
        write_instants();
        write_counters();
        write_memory();
        // The last event has no comma after it, so that every other one can have it without a look behind.
        file_.write(kWindowMark);
        std::string text;
        append_json_number(text, static_cast<std::int64_t>(rows_.process.front()));
        text += ",\"tid\":0,\"ts\":" + micros(window_end_ns_) + "}\n]}\n";
        file_.write(text);
        file_.commit();
    }

  private:
    static constexpr std::string_view kWindowMark =
        "{\"ph\":\"i\",\"s\":\"g\",\"cat\":\"kymo\",\"name\":\"Record Window End\",\"pid\":";

    std::uint64_t since_start(std::int64_t ns) const {
        return static_cast<std::uint64_t>(std::clamp(ns, window_start_ns_, window_end_ns_)) -
               static_cast<std::uint64_t>(window_start_ns_);
    }
    std::string micros(std::int64_t ns) const {
        char text[32];
        return std::string(text, put_micros(text, since_start(ns)));
    }

    void write_header() {
        const WindowInfo& window = trace_.window();
        std::int64_t base_ns = window_start_ns_;
        std::string_view host;
        if (!trace_.processes().empty()) {
            base_ns += trace_.processes().front().realtime_offset_ns;
            host = trace_.string(trace_.processes().front().host);
        }
        std::string text;
        JsonWriter json(text);
        json.begin_object();
        json.member("schemaVersion", 1)
            .member("displayTimeUnit", "ms")
            .member("baseTimeNanoseconds", base_ns);
        json.key("otherData").begin_object();
        json.member("producer", "kymo").member("kymo_version", KYMO_VERSION).member("host", host);
        json.member("session", window.session_name).member("finished", window.finished);
        json.member("clock_source", trace_.clock().source);
        json.member("clock_max_error_ns", trace_.clock().max_error_ns);
        json.key("problems").begin_array();
        for (const ProblemInfo& problem : trace_.problems()) {
            json.begin_object().member("code", problem.code).member("text", problem.text);
            json.member("count", problem.count).end_object();
        }
        json.end_array().end_object();
        text += ",\"traceEvents\":[\n";
        file_.write(text);
    }

    template <typename T>
    void write_metadata(ChromeRow row, std::string_view what, std::string_view key, const T& value) {
        std::string text;
        JsonWriter json(text);
        json.begin_object()
            .member("ph", "M")
            .member("name", what)
            .member("pid", row.pid)
            .member("tid", row.tid);
        json.key("args").begin_object().member(key, value).end_object().end_object();
        text += ",\n";
        file_.write(text);
    }

    void write_names() {
        for (std::size_t i = 0; i < trace_.processes().size(); ++i) {
            const ProcessInfo& process = trace_.processes()[i];
            std::string name(base_name(trace_.string(process.name)));
            if (process.node >= 0) name += " (rank " + std::to_string(process.node) + ")";
            const ChromeRow row{rows_.process[i], 0};
            if (!name.empty()) write_metadata(row, "process_name", "name", name);
            write_metadata(row, "process_sort_index", "sort_index", static_cast<std::int64_t>(i));
        }
        // Threads in order of their birth, each with its other tracks right behind it.
        std::vector<std::int64_t> next_index(trace_.threads().size());
        std::int64_t index = 0;
        for (std::size_t i = 0; i < trace_.threads().size(); ++i) {
            next_index[i] = index;
            const std::string name = thread_name(trace_.threads()[i]);
            write_metadata(rows_.thread[i], "thread_name", "name", name);
            write_metadata(rows_.thread[i], "thread_sort_index", "sort_index", next_index[i]++);
            index += kIndexStep;
        }
        for (std::size_t i = 0; i < trace_.tracks().size(); ++i) {
            const TrackInfo& track = trace_.tracks()[i];
            const ChromeRow row = rows_.track[i];
            if (track.thread < rows_.thread.size() && row.tid == rows_.thread[track.thread].tid) continue;
            std::string name(trace_.string(track.name));
            if (name.empty()) name = track.kind == TrackKind::Async ? "async" : "track";
            write_metadata(row, "thread_name", "name", name);
            const std::int64_t place =
                track.thread < next_index.size() ? next_index[track.thread]++ : index++;
            write_metadata(row, "thread_sort_index", "sort_index", place);
        }
    }

    std::string thread_name(const ThreadInfo& thread) const {
        const std::string_view name = trace_.string(thread.name);
        return name.empty() ? "thread " + std::to_string(thread.id) : std::string(name);
    }

    void make_site_stamps() {
        stamps_.reserve(trace_.sites().size());
        for (const SiteInfo& site : trace_.sites()) {
            std::string head = "{\"ph\":\"X\",\"cat\":";
            append_json_string(head, category(site.scope));
            head += ",\"name\":";
            append_json_string(head, trace_.string(site.name));
            head += ',';
            std::string place;
            if (site.file != 0) {
                std::string at(trace_.string(site.file));
                if (site.line != 0) at += ":" + std::to_string(site.line);
                place = "\"at\":";
                append_json_string(place, at);
            }
            std::string tail = place.empty() ? "},\n" : ",\"args\":{" + place + "}},\n";
            largest_stamps_ = std::max(largest_stamps_, head.size() + tail.size());
            stamps_.push_back({Stamp(std::move(head)), Stamp(std::move(tail)), Stamp(std::move(place))});
        }
    }

    static std::string row_text(ChromeRow row) {
        return "\"pid\":" + std::to_string(row.pid) + ",\"tid\":" + std::to_string(row.tid) + ",\"ts\":";
    }

    void write_ranges() {
        constexpr std::uint16_t kFlagsShown = kBeganBefore | kUnfinished | kEndInferred;
        const RangeColumns ranges = trace_.ranges();
        const std::vector<ArgumentSlice>& slices = trace_.data().range_arguments;
        auto slice = slices.begin();
        const std::span<const RangeDetail> details = trace_.range_details();
        auto detail = details.begin();
        const auto next_of_both = [&] {
            return std::min(slice == slices.end() ? kNoRow : slice->row,
                            detail == details.end() ? kNoRow : detail->range);
        };
        for (std::size_t i = 0; i < trace_.tracks().size(); ++i) {
            const TrackInfo& track = trace_.tracks()[i];
            const Stamp row_stamp(row_text(rows_.track[i]));
            const std::size_t most = largest_stamps_ + row_stamp.size() + 2 * 24 + 8 + Stamp::kBlock;
            const Row end = track.first_range + track.range_count;
            while (slice != slices.end() && slice->row < track.first_range) ++slice;
            while (detail != details.end() && detail->range < track.first_range) ++detail;
            Row next_with_more = next_of_both();
            for (Row row = track.first_range; row < end; ++row) {
                const std::uint64_t from = since_start(ranges.start_ns[row]);
                const std::uint64_t to = since_start(ranges.start_ns[row] + ranges.duration_ns[row]);
                const SiteStamps& site = stamps_[ranges.site[row]];
                char* out = file_.reserve(most);
                out = site.head.put(out);
                out = row_stamp.put(out);
                out = put_micros(out, from);
                std::memcpy(out, ",\"dur\":", 8);
                out = put_micros(out + 7, to - from);
                const std::uint16_t flags = ranges.flags[row] & kFlagsShown;
                if (flags == 0 && row != next_with_more) [[likely]] {
                    file_.advance(site.tail.put(out));
                    continue;
                }
                file_.advance(out);
                std::span<const Argument> values;
                const RangeDetail* facts = nullptr;
                if (slice != slices.end() && slice->row == row) {
                    values = {trace_.data().arguments.data() + slice->first, slice->count};
                    ++slice;
                }
                if (detail != details.end() && detail->range == row) facts = &*detail++;
                next_with_more = next_of_both();
                write_arguments(site, flags, values, facts);
            }
        }
    }

    void write_arguments(const SiteStamps& site, std::uint16_t flags, std::span<const Argument> values,
                         const RangeDetail* detail = nullptr) {
        scratch_ = ",\"args\":{";
        arguments_.begin();
        arguments_.append_values(values);
        if (detail != nullptr) arguments_.append_detail(*detail);
        if (flags & kBeganBefore) arguments_.separate(), scratch_ += "\"began_before\":true";
        if (flags & kUnfinished) arguments_.separate(), scratch_ += "\"unfinished\":true";
        if (flags & kEndInferred) arguments_.separate(), scratch_ += "\"end_inferred\":true";
        if (site.place.size() > 0) {
            arguments_.separate();
            const std::size_t old = scratch_.size();
            scratch_.resize(old + site.place.size() + Stamp::kBlock);
            site.place.put(scratch_.data() + old);
            scratch_.resize(old + site.place.size());
        }
        scratch_ += "}},\n";
        file_.write(scratch_);
    }

    ChromeRow row_of_thread(Row thread) const {
        return thread < rows_.thread.size() ? rows_.thread[thread] : ChromeRow{rows_.process.front(), 0};
    }

    /// {"ph":"i",...,"ts":12.345  of an event that has no duration; the caller goes on.
    void begin_event(std::string_view start, const SiteInfo& site, Row thread, std::int64_t time_ns) {
        scratch_ = start;
        append_json_string(scratch_, category(site.scope));
        scratch_ += ",\"name\":";
        append_json_string(scratch_, trace_.string(site.name));
        scratch_ += ',';
        scratch_ += row_text(row_of_thread(thread));
        scratch_ += micros(time_ns);
    }

    void write_instants() {
        const InstantColumns instants = trace_.instants();
        for (Row row = 0; row < instants.size(); ++row) {
            const std::uint32_t site = instants.site[row];
            begin_event("{\"ph\":\"i\",\"s\":\"t\",\"cat\":", trace_.sites()[site], instants.thread[row],
                        instants.time_ns[row]);
            file_.write(scratch_);
            write_arguments(stamps_[site], 0, trace_.instant_arguments(row));
        }
    }

    void write_counters() {
        const CounterColumns counters = trace_.counters();
        for (Row row = 0; row < counters.size(); ++row) {
            begin_event("{\"ph\":\"C\",\"cat\":", trace_.sites()[counters.site[row]], counters.thread[row],
                        counters.time_ns[row]);
            scratch_ += ",\"args\":{\"value\":";
            append_json_number(scratch_, counters.value[row]);
            scratch_ += "}},\n";
            file_.write(scratch_);
        }
    }

    /// Arrows: each end lies on the row and at the start of its range, and is bound to what is there.
    void write_links() {
        const RangeColumns ranges = trace_.ranges();
        std::uint64_t id = 0;
        for (const LinkInfo& link : trace_.links()) {
            ++id;
            const Row from = trace_.track_of(link.from);
            const Row to = trace_.track_of(link.to);
            if (from == kNoRow || to == kNoRow) continue;
            const char* const kind = link.kind == LinkKind::Remote ? "remote" : "fwdbwd";
            scratch_.clear();
            append_flow_end("{\"ph\":\"s\",\"id\":", id, kind, rows_.track[from], ranges.start_ns[link.from]);
            scratch_ += "},\n";
            append_flow_end("{\"ph\":\"f\",\"id\":", id, kind, rows_.track[to], ranges.start_ns[link.to]);
            scratch_ += ",\"bp\":\"e\"},\n";
            file_.write(scratch_);
        }
    }

    void append_flow_end(std::string_view start, std::uint64_t id, const char* kind, ChromeRow row,
                         std::int64_t time_ns) {
        scratch_ += start;
        append_json_number(scratch_, id);
        scratch_ += std::string(",\"cat\":\"") + kind + "\",\"name\":\"" + kind + "\",";
        scratch_ += row_text(row);
        scratch_ += micros(time_ns);
    }

    void write_memory() {
        const MemoryColumns memory = trace_.memory();
        for (Row row = 0; row < memory.size(); ++row) {
            const bool out_of_memory = memory.out_of_memory[row] != 0;
            scratch_ = "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":";
            scratch_ += out_of_memory ? "\"[OutOfMemory]\"," : "\"[memory]\",";
            scratch_ += row_text(row_of_thread(memory.thread[row]));
            scratch_ += micros(memory.time_ns[row]);
            scratch_ += ",\"args\":{\"Total Reserved\":";
            append_json_number(scratch_, memory.total_reserved[row]);
            scratch_ += ",\"Total Allocated\":";
            append_json_number(scratch_, memory.total_allocated[row]);
            scratch_ += ",\"Bytes\":";
            append_json_number(scratch_, memory.bytes[row]);
            if (!out_of_memory) {
                scratch_ += ",\"Addr\":";
                append_json_number(scratch_, memory.address[row]);
            }
            scratch_ += ",\"Device Id\":";
            append_json_number(scratch_, std::int64_t{memory.device[row].index});
            scratch_ += ",\"Device Type\":";
            append_json_number(scratch_, static_cast<std::int64_t>(memory.device[row].type));
            scratch_ += "}},\n";
            file_.write(scratch_);
        }
    }

    static constexpr std::int64_t kIndexStep = 1000;  ///< room for a thread's other tracks

    const Trace& trace_;
    ChromeRows rows_;
    OutputFile file_;
    std::int64_t window_start_ns_ = 0;
    std::int64_t window_end_ns_ = 0;
    std::vector<SiteStamps> stamps_;
    std::size_t largest_stamps_ = 0;
    std::string scratch_;
    ChromeArguments arguments_{trace_, scratch_};
};

}  // namespace

void write_chrome_json(const Trace& trace, const std::string& path) {
    ChromeJson(trace, path).write();
}

void write_chrome_json(const Trace& trace, std::ostream& stream) {
    ChromeJson(trace, stream).write();
}

}  // namespace kymo
