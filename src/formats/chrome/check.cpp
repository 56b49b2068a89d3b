// check.cpp: checks the text of a Chrome trace against the rules of the format.
#include "formats/chrome/check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "json/json_scanner.h"

namespace marey {
namespace {

/// Converts microseconds to nanoseconds, exactly for up to three decimals; nullopt if the time is not finite.
std::optional<std::int64_t> nanoseconds(std::string_view micros) {
    std::int64_t whole = 0;
    const char* const last = micros.data() + micros.size();
    const auto [end, error] = std::from_chars(micros.data(), last, whole);
    constexpr std::int64_t kMax = std::int64_t{1} << 52;
    if (error == std::errc() && micros[0] != '-' && whole < kMax) {
        if (end == last) return whole * 1000;
        if (*end == '.' && last - end <= 4 && last - end >= 2) {
            std::int64_t part = 0;
            for (int i = 1; i <= 3; ++i) part = part * 10 + (end + i < last ? end[i] - '0' : 0);
            if (std::all_of(end + 1, last, [](char c) { return c >= '0' && c <= '9'; }))
                return whole * 1000 + part;
        }
    }
    double value = 0;
    if (std::from_chars(micros.data(), last, value).ec != std::errc()) return {};
    value *= 1000;
    if (!(std::fabs(value) < 9e18)) return {};
    return std::llround(value);
}

/// The checked fields of one event; views into the text.
struct Event {
    std::string_view phase, name, category, pid, tid, id;
    std::string_view ts, dur;
    bool has_phase = false, has_ts = false, has_dur = false, has_id = false;
    std::size_t offset = 0;
};

struct Interval {
    std::int64_t start, end;
    std::size_t offset;
};
struct Mark {
    std::int64_t time;
    std::size_t offset;
    bool is_begin;
};

class ChromeCheck {
  public:
    ChromeCheck(std::string_view text, FindingList& findings)
        : text_(text), scanner_(text), findings_(findings) {}

    void run() {
        if (!read_file()) {
            findings_.add("strict_json", [&] { return scanner_.error(); });
            return;  // only part of the file was read
        }
        check_rows();
        check_flows();
        check_async();
        check_window();
    }

  private:
    void add(std::string_view rule, const Event& event, std::string_view what) {
        findings_.add(rule, [&] { return describe(event.name, event.offset) + ": " + std::string(what); });
    }
    static std::string describe(std::string_view name, std::size_t offset) {
        return "'" + std::string(name) + "' at byte " + std::to_string(offset);
    }

    // ---- reading; functions return false if the text is not strict JSON

    bool read_file() {
        JsonToken token = scanner_.next();
        bool found = false;
        if (token == JsonToken::BeginArray) {
            found = true;
            if (!read_events()) return false;
        } else if (token == JsonToken::BeginObject) {
            while ((token = scanner_.next()) == JsonToken::Key) {
                const std::string key = scanner_.text();
                top_keys_.push_back(scanner_.raw());
                token = scanner_.next();
                if (key == "traceEvents" && token == JsonToken::BeginArray) {
                    found = true;
                    if (!read_events()) return false;
                } else if (!read_value(token)) {
                    return false;
                }
            }
            if (token == JsonToken::Error) return false;
            check_keys(top_keys_, 0);
        } else if (!scanner_.skip(token)) {
            return false;
        }
        if (scanner_.next() != JsonToken::End) return false;
        if (!found) findings_.add("trace_events", [] { return std::string("the file has no such list"); });
        return true;
    }

    /// Checks that the keys from `first` on, which belong to one object, are unique. Removes them.
    void check_keys(std::vector<std::string_view>& keys, std::size_t first) {
        constexpr std::size_t kFew = 16;
        const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(first);
        auto twice = keys.end();
        if (keys.size() - first > kFew) {
            std::sort(begin, keys.end());
            twice = std::adjacent_find(begin, keys.end());
        } else {
            for (auto key = begin; key != keys.end() && twice == keys.end(); ++key)
                twice = std::find(begin, key, *key) == key ? keys.end() : key;
        }
        if (twice != keys.end())
            findings_.add("unique_keys", [&] {
                return "'" + std::string(*twice) + "' before byte " + std::to_string(scanner_.offset());
            });
        keys.resize(first);
    }

    /// Reads a value of any type and checks the keys of its objects.
    bool read_value(JsonToken first) {
        if (first != JsonToken::BeginObject && first != JsonToken::BeginArray)
            return first != JsonToken::Error;
        const std::size_t outside = scanner_.depth() - 1;
        const std::size_t before = keys_.size();
        std::vector<std::size_t>& starts = starts_;
        starts.assign(1, before);
        while (scanner_.depth() > outside) {
            switch (scanner_.next()) {
                case JsonToken::Error:
                    return false;
                case JsonToken::BeginObject:
                case JsonToken::BeginArray:
                    starts.push_back(keys_.size());
                    break;
                case JsonToken::EndObject:
                case JsonToken::EndArray:
                    check_keys(keys_, starts.back());
                    starts.pop_back();
                    break;
                case JsonToken::Key:
                    keys_.push_back(scanner_.raw());
                    break;
                default:
                    break;
            }
        }
        return true;
    }

    bool read_events() {
        JsonToken token = scanner_.next();
        for (; token != JsonToken::EndArray && token != JsonToken::Error; token = scanner_.next()) {
            if (token == JsonToken::BeginObject) {
                if (!read_event()) return false;
                continue;
            }
            findings_.add("trace_events", [&] {
                return "list item that is not an object, before byte " + std::to_string(scanner_.offset());
            });
            if (!scanner_.skip(token)) return false;
        }
        return token != JsonToken::Error;
    }

    bool read_event() {
        Event event;
        event.offset = scanner_.offset() - 1;
        keys_.clear();
        JsonToken token = scanner_.next();
        for (; token == JsonToken::Key; token = scanner_.next()) {
            const std::string_view key = scanner_.raw();
            keys_.push_back(key);
            token = scanner_.next();
            if (!take_field(event, key, token) || !read_value(token)) return false;
        }
        if (token == JsonToken::Error) return false;
        check_keys(keys_, 0);
        use(event);
        return true;
    }

    bool take_field(Event& event, std::string_view key, JsonToken token) {
        const bool is_text = token == JsonToken::String, is_number = token == JsonToken::Number;
        const std::string_view raw = scanner_.raw();
        if (key == "ph" && is_text) {
            event.phase = raw;
            event.has_phase = true;
        } else if (key == "name" && is_text) {
            event.name = raw;
        } else if (key == "cat" && is_text) {
            event.category = raw;
        } else if (key == "pid" && (is_text || is_number)) {
            event.pid = raw;
        } else if (key == "tid" && (is_text || is_number)) {
            event.tid = raw;
        } else if (key == "id" && (is_text || is_number)) {
            event.id = raw;
            event.has_id = true;
        } else if (key == "ts" && is_number) {
            event.ts = raw;
            event.has_ts = true;
        } else if (key == "dur" && is_number) {
            event.dur = raw;
            event.has_dur = true;
        }
        return token != JsonToken::Error;
    }

    void use(const Event& event) {
        if (!event.has_phase || event.phase.size() != 1) {
            add("event_fields", event, "missing or invalid phase (ph)");
            return;
        }
        const char phase = event.phase[0];
        if (phase == 'M') return;
        const std::optional<std::int64_t> time =
            event.has_ts ? nanoseconds(event.ts) : std::optional<std::int64_t>();
        if (!time) {
            add("event_fields", event, "missing or invalid time (ts)");
            return;
        }
        std::int64_t end = *time;
        if (phase == 'X') {
            const std::optional<std::int64_t> duration =
                event.has_dur ? nanoseconds(event.dur) : std::optional<std::int64_t>();
            if (!duration || *duration < 0) {
                add("event_fields", event, "missing, invalid or negative duration (dur)");
                return;
            }
            end += *duration;
            intervals_[row_of(event)].push_back({*time, end, event.offset});
        } else if (phase == 'B' || phase == 'E') {
            marks_[row_of(event)].push_back({*time, event.offset, phase == 'B'});
        } else if (phase == 's' || phase == 't' || phase == 'f') {
            use_flow(event, phase, *time);
        } else if (phase == 'b' || phase == 'e') {
            if (!event.has_id && event.phase[0] == 'b') add("event_fields", event, "missing id");
            Async& async = asyncs_[key_of(event)];
            async.open += phase == 'b' ? 1 : -1;
            if (async.offset == 0) async.offset = event.offset;
        } else if (phase == 'i' && event.name == "Record Window End") {
            window_end_ = *time;
        }
        note_time(event, *time, end);
    }

    void note_time(const Event& event, std::int64_t start, std::int64_t end) {
        if (start < 0) add("file_window", event, "starts before time zero");
        if (end <= latest_) return;
        latest_ = end;
        latest_event_ = describe(event.name, event.offset);
    }

    /// Numbers the rows.
    std::size_t row_of(const Event& event) {
        if (event.pid == last_pid_ && event.tid == last_tid_ && last_row_ < intervals_.size())
            return last_row_;
        std::string key(event.pid);
        key += '\n';  // cannot occur in raw JSON text
        key += event.tid;
        const auto [known, is_new] = rows_.try_emplace(std::move(key), rows_.size());
        if (is_new) {
            intervals_.emplace_back();
            marks_.emplace_back();
        }
        last_pid_ = event.pid;
        last_tid_ = event.tid;
        return last_row_ = known->second;
    }
    static std::string key_of(const Event& event) {
        std::string key(event.category);
        key += '\n';
        key += event.name;
        key += '\n';
        key += event.id;
        return key;
    }

    struct Flow {
        std::uint32_t starts = 0, finishes = 0;
        std::int64_t start = 0, finish = 0;
        std::size_t offset = 0;
    };
    void use_flow(const Event& event, char phase, std::int64_t time) {
        if (!event.has_id) {
            add("event_fields", event, "missing id");
            return;
        }
        Flow& flow = flows_[key_of(event)];
        if (flow.offset == 0) flow.offset = event.offset;
        if (phase == 's') {
            if (flow.starts++ == 0) flow.start = time;
        } else if (phase == 'f') {
            if (flow.finishes++ == 0 || time < flow.finish) flow.finish = time;
        }
    }

    // ---- checks that need the whole file

    /// Describes the event at this offset.
    std::string name_at(std::size_t offset) const {
        JsonScanner event(text_.substr(offset));
        std::string_view name;
        event.next();
        while (event.next() == JsonToken::Key) {
            const bool is_name = event.raw() == "name";
            const JsonToken value = event.next();
            if (is_name && value == JsonToken::String) name = event.raw();
            if (!event.skip(value)) break;
        }
        return describe(name, offset);
    }

    void check_rows() {
        for (std::size_t row = 0; row < intervals_.size(); ++row) {
            match_marks(row);
            std::vector<Interval>& all = intervals_[row];
            std::stable_sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) {
                return a.start != b.start ? a.start < b.start : a.end > b.end;
            });
            std::vector<Interval> open;
            for (const Interval& each : all) {
                while (!open.empty() && open.back().end <= each.start) open.pop_back();
                if (!open.empty() && each.end > open.back().end) {
                    findings_.add("row_nesting", [&] {
                        return name_at(each.offset) + " starts inside " + name_at(open.back().offset) +
                               " and ends after it";
                    });
                    continue;
                }
                open.push_back(each);
            }
            all = {};
        }
    }

    /// Pairs begin and end events, in time order, to intervals.
    void match_marks(std::size_t row) {
        std::vector<Mark>& all = marks_[row];
        std::stable_sort(all.begin(), all.end(),
                         [](const Mark& a, const Mark& b) { return a.time < b.time; });
        std::vector<Mark> open;
        for (const Mark& mark : all) {
            if (mark.is_begin) {
                open.push_back(mark);
            } else if (open.empty()) {
                findings_.add("begin_end", [&] { return name_at(mark.offset) + " has no begin event"; });
            } else {
                intervals_[row].push_back({open.back().time, mark.time, open.back().offset});
                open.pop_back();
            }
        }
        for (const Mark& mark : open)
            findings_.add("begin_end", [&] { return name_at(mark.offset) + " has no end event"; });
        all = {};
    }

    void check_flows() {
        for (const auto& entry : flows_) {
            const Flow& flow = entry.second;
            if (flow.starts == 0) findings_.add("flow_without_start", [&] { return name_at(flow.offset); });
            if (flow.finishes == 0) findings_.add("flow_without_end", [&] { return name_at(flow.offset); });
            if (flow.starts > 1)
                findings_.add("flow_id_repeated",
                              [&] { return name_at(flow.offset) + " starts more than once"; });
            if (flow.starts == 1 && flow.finishes > 0 && flow.finish < flow.start) {
                const bool is_launch = entry.first.starts_with("ac2g\n");
                findings_.add(is_launch ? "kernel_before_launch" : "flow_backwards",
                              [&] { return name_at(flow.offset); });
            }
        }
    }

    struct Async {
        std::int64_t open = 0;
        std::size_t offset = 0;
    };
    void check_async() {
        for (const auto& entry : asyncs_) {
            const Async& async = entry.second;
            if (async.open != 0) findings_.add("async_begin_end", [&] { return name_at(async.offset); });
        }
    }

    void check_window() {
        if (window_end_ && latest_ > *window_end_)
            findings_.add("file_window", [&] {
                return latest_event_ + " ends " + std::to_string(latest_ - *window_end_) +
                       " ns after the window";
            });
    }

    std::string_view text_;
    JsonScanner scanner_;
    FindingList& findings_;
    // Raw keys of the open objects.
    std::vector<std::string_view> top_keys_, keys_;
    std::vector<std::size_t> starts_;  ///< start of each object's keys in keys_
    std::unordered_map<std::string, std::size_t> rows_;
    std::string_view last_pid_, last_tid_;
    std::size_t last_row_ = 0;
    std::vector<std::vector<Interval>> intervals_;  ///< by row
    std::vector<std::vector<Mark>> marks_;          ///< by row
    std::map<std::string, Flow> flows_;
    std::map<std::string, Async> asyncs_;
    std::optional<std::int64_t> window_end_;
    std::int64_t latest_ = 0;
    std::string latest_event_;
};

}  // namespace

bool looks_like_json(std::span<const std::byte> head) noexcept {
    constexpr std::byte kMark[] = {std::byte{0xEF}, std::byte{0xBB}, std::byte{0xBF}};
    // A byte order mark is not valid JSON, but many files have one.
    std::size_t at = head.size() >= 3 && std::equal(std::begin(kMark), std::end(kMark), head.begin()) ? 3 : 0;
    while (at < head.size() && (head[at] == std::byte{' '} || head[at] == std::byte{'\n'} ||
                                head[at] == std::byte{'\r'} || head[at] == std::byte{'\t'}))
        ++at;
    return at < head.size() && (head[at] == std::byte{'{'} || head[at] == std::byte{'['});
}

void check_chrome_json(std::string_view text, FindingList& findings) {
    ChromeCheck(text, findings).run();
}

}  // namespace marey
