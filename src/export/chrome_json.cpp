// chrome_json.cpp: Chrome's trace JSON, streamed.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <kymo/export.h>

#include "base/json_writer.h"
#include "base/output_file.h"
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
        write_instants();
        write_counters();
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
        for (std::size_t i = 0; i < trace_.tracks().size(); ++i) {
            const TrackInfo& track = trace_.tracks()[i];
            const Stamp row_stamp(row_text(rows_.track[i]));
            const std::size_t most = largest_stamps_ + row_stamp.size() + 2 * 24 + 8 + Stamp::kBlock;
            const Row end = track.first_range + track.range_count;
            while (slice != slices.end() && slice->row < track.first_range) ++slice;
            Row next_with_values = slice == slices.end() ? kNoRow : slice->row;
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
                if (flags == 0 && row != next_with_values) [[likely]] {
                    file_.advance(site.tail.put(out));
                    continue;
                }
                file_.advance(out);
                std::span<const Argument> values;
                if (row == next_with_values) {
                    values = {trace_.data().arguments.data() + slice->first, slice->count};
                    ++slice;
                    next_with_values = slice == slices.end() ? kNoRow : slice->row;
                }
                write_arguments(site, flags, values);
            }
        }
    }

    void write_arguments(const SiteStamps& site, std::uint16_t flags, std::span<const Argument> values) {
        scratch_ = ",\"args\":{";
        const std::size_t empty = scratch_.size();
        auto comma = [&] {
            if (scratch_.size() > empty) scratch_ += ',';
        };
        for (std::size_t i = 0; i < values.size(); ++i) {
            comma();
            append_key(values, i);
            scratch_ += ':';
            append_argument(values[i], 0);
        }
        if (flags & kBeganBefore) comma(), scratch_ += "\"began_before\":true";
        if (flags & kUnfinished) comma(), scratch_ += "\"unfinished\":true";
        if (flags & kEndInferred) comma(), scratch_ += "\"end_inferred\":true";
        if (site.place.size() > 0) {
            comma();
            const std::size_t old = scratch_.size();
            scratch_.resize(old + site.place.size() + Stamp::kBlock);
            site.place.put(scratch_.data() + old);
            scratch_.resize(old + site.place.size());
        }
        scratch_ += "}},\n";
        file_.write(scratch_);
    }

    /// Keys of one object differ: strict readers refuse equal ones, lenient ones lose all but the last.
    void append_key(std::span<const Argument> values, std::size_t index) {
        std::string key(trace_.string(values[index].key));
        if (key.empty()) key = "value";
        auto taken = [&](const std::string& candidate) {
            for (std::size_t i = 0; i < index; ++i) {
                if (trace_.string(values[i].key) == candidate) return true;
            }
            return candidate == "at" || candidate == "began_before" || candidate == "unfinished" ||
                   candidate == "end_inferred";
        };
        if (taken(key)) key += " (" + std::to_string(index + 1) + ")";
        append_json_string(scratch_, key);
    }

    void append_argument(const Argument& value, int level) {
        constexpr int kDeepest = 16;  // of lists in lists; a hostile capture could make a cycle
        switch (value.kind) {
            case ValueKind::Array:
            case ValueKind::None:
                scratch_ += "null";
                return;
            case ValueKind::Bool:
                scratch_ += value.boolean ? "true" : "false";
                return;
            case ValueKind::Int:
                append_json_number(scratch_, value.integer);
                return;
            case ValueKind::Double:
                append_json_number(scratch_, value.real);
                return;
            case ValueKind::String: {
                std::string text(trace_.string(value.string));
                if (value.truncated) text += "...";
                append_json_string(scratch_, text);
                return;
            }
            case ValueKind::List:
                break;
        }
        scratch_ += '[';
        const std::span<const Argument> items = trace_.list_items();
        if (level < kDeepest && value.list.first <= items.size()) {
            bool first = true;
            for (const Argument& item :
                 items.subspan(value.list.first,
                               std::min<std::size_t>(value.list.count, items.size() - value.list.first))) {
                if (!first) scratch_ += ',';
                first = false;
                append_argument(item, level + 1);
            }
        }
        if (value.truncated) scratch_ += scratch_.back() == '[' ? "\"...\"" : ",\"...\"";
        scratch_ += ']';
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

    static constexpr std::int64_t kIndexStep = 1000;  ///< room for a thread's other tracks

    const Trace& trace_;
    ChromeRows rows_;
    OutputFile file_;
    std::int64_t window_start_ns_ = 0;
    std::int64_t window_end_ns_ = 0;
    std::vector<SiteStamps> stamps_;
    std::size_t largest_stamps_ = 0;
    std::string scratch_;
};

}  // namespace

void write_chrome_json(const Trace& trace, const std::string& path) {
    ChromeJson(trace, path).write();
}

void write_chrome_json(const Trace& trace, std::ostream& stream) {
    ChromeJson(trace, stream).write();
}

}  // namespace kymo
