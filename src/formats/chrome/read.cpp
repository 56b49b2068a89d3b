// read.cpp: reads the document around the events: top-level members, the event list, and its missing
// end.
#include "formats/chrome/read.h"

#include <algorithm>
#include <cstring>

#include <marey/error.h>

#include "formats/chrome/builder.h"
#include "formats/formats.h"
#include "json/json_document.h"
#include "json/json_writer.h"

namespace marey {
namespace {

constexpr std::size_t kLargestEvent = 64 << 20;
constexpr std::size_t kLargestFact = 256 << 20;
constexpr std::uint64_t kFirstCheck = 1 << 14;
constexpr int kMaxResyncs = 16;

class ChromeReader {
  public:
    ChromeReader(const std::string& name, std::unique_ptr<ByteSource> source, std::size_t piece_bytes,
                 ViolationList* violations)
        : name_(name), text_(std::move(source), piece_bytes), builder_(violations) {}

    Trace read() {
        attempt(3, [&] { return text_.end() - text_.begin() >= 3; });
        if (text_.end() - text_.begin() >= 3 && std::memcmp(text_.begin(), "\xEF\xBB\xBF", 3) == 0)
            cursor_.move_to(text_.begin() + 3);
        char first = 0;
        attempt(kLargestFact, [&] {
            first = cursor_.peek();
            return !cursor_.ran_out();
        });
        if (cursor_.take('[')) {
            read_events(true);
        } else if (cursor_.take('{')) {
            read_members();
        } else {
            throw Error(name_ + ": " +
                        (text_.source().damage().empty() ? "not a JSON file" : text_.source().damage()));
        }
        if (!has_events_) throw Error(name_ + ": not a Chrome trace: traceEvents is missing");
        if (!cut_.empty())
            builder_.assembler().add_problem("cut_short", cut_ + "; only the events before that were read");
        return builder_.finish();
    }

  private:
    enum class Outcome : std::uint8_t { Done, Bad, TooLarge, End };

    /// Calls `read` until it succeeds, with more text each time it reaches the end of the text. If it fails,
    /// the cursor is unchanged.
    Outcome attempt(std::size_t most, auto read) {
        while (true) {
            const char* const start = cursor_.at();
            if (read()) return Outcome::Done;
            if (!cursor_.ran_out()) {
                cursor_.move_to(start);
                return Outcome::Bad;
            }
            if (static_cast<std::size_t>(text_.end() - start) > most) {
                cursor_.move_to(start);
                return Outcome::TooLarge;
            }
            const bool is_more = text_.read_on(start);
            cursor_ = JsonCursor(text_.begin(), text_.end());
            if (!is_more) return Outcome::End;
        }
    }

    /// Records why the rest of the file cannot be read.
    void cut_short(Outcome why) {
        if (why == Outcome::End) {
            cut_ = "the file ends too early";
            if (!text_.source().damage().empty()) cut_ += " (" + text_.source().damage() + ")";
        } else {
            const auto at = text_.offset() + static_cast<std::size_t>(cursor_.at() - text_.begin());
            cut_ = "the file cannot be read beyond byte " + std::to_string(at);
        }
    }

    // ---- the top level

    void read_members() {
        std::string key;
        while (true) {
            bool is_over = false;
            const Outcome outcome = attempt(kLargestFact, [&] {
                while (cursor_.take(',')) {
                }
                is_over = cursor_.take('}');
                std::string_view text;
                if (is_over) return true;
                if (!cursor_.read_string(text)) return false;
                key = text;
                if (!cursor_.take(':')) return false;
                cursor_.peek();
                return !cursor_.ran_out();
            });
            if (outcome != Outcome::Done) return cut_short(outcome);
            if (is_over) return;
            if (key == "traceEvents" && cursor_.take('[')) {
                read_events(false);
                if (!cut_.empty()) return;
            } else if (!read_fact(key)) {
                return;
            }
        }
    }

    bool read_fact(const std::string& key) {
        std::string_view json;
        const Outcome outcome = attempt(kLargestFact, [&] { return cursor_.skip_value(json); });
        if (outcome != Outcome::Done) {
            cut_short(outcome);
            return false;
        }
        keep_fact(key, json);
        return true;
    }

    void keep_fact(const std::string& key, std::string_view json) {
        ChromeMetadata& facts = builder_.facts();
        if (key == "displayTimeUnit" || key == "schemaVersion" || key == "traceEvents") return;
        if (key == "baseTimeNanoseconds" && read_base(JsonDocument(json).root())) return;
        if (key == "otherData" && read_marey_facts(JsonDocument(json).root())) return;
        if (key == "distributedInfo") {
            const std::int64_t rank = JsonDocument(json).root()["rank"].integer().value_or(-1);
            if (rank >= 0 && rank <= std::numeric_limits<std::int32_t>::max())
                facts.rank = static_cast<std::int32_t>(rank);
            if (facts.is_marey_trace || json == "{\"rank\":" + std::to_string(facts.rank) + "}") return;
        }
        if (key == "host_name" && json.starts_with('"')) {
            facts.host = JsonDocument(json).root().text();
            return;
        }
        if (key == "traceName" && facts.is_marey_trace) return;
        if (key == "viztracer_metadata") read_base(JsonDocument(json).root()["baseTimeNanoseconds"]);
        if (key == "deviceProperties" && json == "[]") return;
        builder_.assembler().add_metadata(key, whole_json(json));
    }

    /// Returns the JSON itself, or a string if it is valid only for lenient readers.
    static std::string whole_json(std::string_view json) {
        std::string text(json);
        if (is_json(json)) return text;
        text.clear();
        append_json_string(text, json);
        return text;
    }

    bool read_base(const JsonDocument::Value& value) {
        const auto base = value.scaled(0);
        if (base) builder_.facts().base_ns = *base;
        return base.has_value();
    }

    /// Reads the facts that our exporter writes. Returns false if another program wrote the file.
    bool read_marey_facts(const JsonDocument::Value& given) {
        if (given["producer"].text() != "marey") return false;
        TraceAssembler& assembler = builder_.assembler();
        builder_.facts().is_marey_trace = true;
        if (const auto host = given["host"]; !host.is_null()) builder_.facts().host = host.text();
        assembler.window().session_name = given["session"].text();
        if (const auto finished = given["finished"]; !finished.is_null())
            assembler.window().finished = finished.is_true();
        assembler.clock().source = given["clock_source"].text();
        assembler.clock().max_error_ns = given["clock_max_error_ns"].scaled(0).value_or(0);
        given["problems"].each_item([&](const JsonDocument::Value& problem) {
            const std::int64_t count = problem["count"].scaled(0).value_or(1);
            assembler.add_problem(problem["code"].text(), problem["text"].text(),
                                  static_cast<std::uint64_t>(std::max<std::int64_t>(count, 1)));
        });
        // Metadata whose keys are already used at the top level.
        given["metadata"].each_member([&](const std::string& key, const JsonDocument::Value& value) {
            assembler.add_metadata(key, std::string(value.json()));
        });
        return true;
    }

    // ---- the list of events

    /// The closing bracket is often missing if the list is the whole file.
    void read_events(bool is_whole_file) {
        has_events_ = true;
        while (true) {
            char next = 0;
            const Outcome outcome = attempt(kLargestEvent, [&] {
                while (cursor_.take(',')) {
                }
                next = cursor_.peek();
                return !cursor_.ran_out();
            });
            if (outcome != Outcome::Done) {
                if (!is_whole_file || !text_.source().damage().empty()) cut_short(outcome);
                return;
            }
            if (next == ']') {
                cursor_.take(']');
                return;
            }
            if (!(next == '{' ? read_event() : skip_event("not an object"))) return;
        }
    }

    /// Returns false at the end of the text.
    bool read_event() {
        EventResult result = EventResult::Read;
        const Outcome outcome = attempt(kLargestEvent, [&] {
            result = events_.read(cursor_, event_);
            return result == EventResult::Read;
        });
        if (outcome == Outcome::Bad) return skip_event(events_.cause());
        if (outcome != Outcome::Done) {
            // The event is not closed. If more events follow, only its own braces are wrong.
            if (outcome == Outcome::End && !has_more_events()) {
                cut_short(outcome);
                return false;
            }
            builder_.add_malformed("unclosed braces or quotes, or longer than the largest allowed event");
            return resync();
        }
        is_resyncing_ = false;
        builder_.add(event_);
        if (++event_count_ == next_check_) {
            next_check_ *= 2;
            builder_.expect(text_.source().fraction_read());
        }
        return true;
    }

    /// Counts and skips the current value. Returns false at the end of the text.
    bool skip_event(const char* cause) {
        builder_.add_malformed(cause);
        if (is_resyncing_ || resync_count_ >= kMaxResyncs) return skip_to_next();
        const Outcome outcome = attempt(kLargestEvent, [&] { return cursor_.skip_value(); });
        return outcome == Outcome::Done || resync();
    }

    /// Continues after an unclosed value, because later events may be intact. Each attempt scans the rest of
    /// the text, so the number of attempts is limited. Returns false at the end of the text or at the limit.
    bool resync() {
        is_resyncing_ = true;
        if (++resync_count_ < kMaxResyncs) return skip_to_next();
        cut_short(Outcome::Bad);
        return false;
    }

    /// Whether the rest of the text contains more than one event.
    bool has_more_events() const {
        const std::string_view rest(cursor_.at(), static_cast<std::size_t>(text_.end() - cursor_.at()));
        const std::size_t first = rest.find("\"ph\"");
        return first != rest.npos && rest.find("\"ph\"", first + 1) != rest.npos;
    }

    /// Moves to the next opening brace. Returns false if there is none.
    bool skip_to_next() {
        const char* from = cursor_.at() + 1;
        while (true) {
            if (from < text_.end()) {
                const void* const found =
                    std::memchr(from, '{', static_cast<std::size_t>(text_.end() - from));
                if (found != nullptr) {
                    cursor_.move_to(static_cast<const char*>(found));
                    return true;
                }
            }
            const bool is_more = text_.read_on(text_.end());
            cursor_ = JsonCursor(text_.begin(), text_.end());
            if (!is_more) {
                cut_short(Outcome::End);
                return false;
            }
            from = text_.begin();
        }
    }

    std::string name_;
    InputText text_;
    JsonCursor cursor_{text_.begin(), text_.end()};
    ChromeBuilder builder_;
    ChromeEventReader events_{builder_.assembler(), builder_.arguments()};
    ChromeEvent event_;
    std::uint64_t event_count_ = 0;
    std::uint64_t next_check_ = kFirstCheck;  ///< event count at which to estimate the remaining size
    bool has_events_ = false;
    std::string cut_;  ///< why the file was not read completely; empty: it was
    int resync_count_ = 0;
    bool is_resyncing_ = false;  ///< braces were not closed, and no complete event has followed yet
};

}  // namespace

Trace read_chrome_json(const std::string& name, std::unique_ptr<ByteSource> source, std::size_t piece_bytes,
                       ViolationList* violations) {
    return ChromeReader(name, std::move(source), piece_bytes, violations).read();
}

bool is_chrome_json(std::span<const std::byte> head) noexcept {
    std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == text.npos || (text[first] != '{' && text[first] != '[')) return false;
    // After the bracket comes a member, an event, or nothing.
    const std::size_t second = text.find_first_not_of(" \t\r\n", first + 1);
    if (second == text.npos) return true;
    return text[first] == '{' ? text[second] == '"' || text[second] == '}'
                              : text[second] == '{' || text[second] == ']';
}

FileFormat chrome_format() {
    static constexpr std::string_view kSuffixes[] = {".json", ".json.gz"};
    return {"chrome",
            "Chrome trace JSON, for the Perfetto UI and chrome://tracing",
            "",
            kSuffixes,
            write_chrome_json,
            is_chrome_json,
            nullptr,
            [](const std::string& path) { return read_chrome_json(path, open_source(path)); }};
}

}  // namespace marey
