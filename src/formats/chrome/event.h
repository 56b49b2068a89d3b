// event.h: one event of a Chrome trace, as it was written.
#pragma once

#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include <marey/trace.h>

#include "base/text_hash.h"
#include "formats/chrome/read_arguments.h"
#include "json/json_cursor.h"
#include "json/json_members.h"
#include "trace/trace_assembler.h"

namespace marey {

/// A pid or a tid: a number or a text.
struct ChromeId {
    static constexpr std::int64_t kMissing = std::numeric_limits<std::int64_t>::min();
    std::int64_t number = kMissing;
    StringId text = 0;  ///< if not 0, the text; then `number` is 0
    friend bool operator==(const ChromeId&, const ChromeId&) noexcept = default;
};

struct ChromeEvent {
    char phase = 0;       ///< 0: missing, or longer than one character
    char bind_point = 0;  ///< 'e': the flow binds to the enclosing slice
    bool has_name = false;
    bool has_time = false;
    bool has_duration = false;
    bool has_text_time = false;  ///< a time or a duration is not a number but a text
    bool has_id = false;
    bool is_local_id = false;  ///< the id is unique only within its pid
    bool flows_in = false;
    bool flows_out = false;
    bool has_bind_id = false;
    StringId name = 0;
    StringId category = 0;
    ChromeId pid, tid;
    std::int64_t time_ns = 0;
    std::int64_t duration_ns = 0;
    std::uint64_t id = 0;             ///< hash of the id as written, combined with its scope
    std::uint64_t id_scope = 0;       ///< hash of the scope
    std::uint64_t number_of_id = 0;   ///< the id itself, if it is a number
    std::uint64_t bind_id = 0;        ///< likewise a hash
    std::string_view id_text;         ///< as written; empty if it contains escapes
    std::string_view arguments_text;  ///< text of "args", if they came before the phase
};

/// Whether events of this phase are imported.
inline bool is_read_phase(char phase) noexcept {
    constexpr std::string_view kPhases = "XBEbneSTpFiIRCstfM";
    constexpr auto kAreRead = [kPhases] {
        std::array<bool, 256> are_read{};
        for (const char read : kPhases) are_read[static_cast<unsigned char>(read)] = true;
        return are_read;
    }();
    return kAreRead[static_cast<unsigned char>(phase)];
}

enum class EventResult : std::uint8_t {
    Read,
    RanOut,     ///< the text ends within the event
    Malformed,  ///< not JSON, or a member of the wrong type; cause() gives the reason
};

/// Reads one object at `cursor`. Its "args" go to `arguments`; for phases that are not imported only if they
/// come before the phase. Strings are added to `assembler`.
class ChromeEventReader {
  public:
    ChromeEventReader(TraceAssembler& assembler, ImportedArguments& arguments) noexcept
        : assembler_(assembler), arguments_(arguments) {}
    EventResult read(JsonCursor& cursor, ChromeEvent& event) {
        event = ChromeEvent();
        arguments_.clear();
        cause_ = "not JSON";
        const auto failed = [&] { return cursor.ran_out() ? EventResult::RanOut : EventResult::Malformed; };
        if (!cursor.take('{')) return failed();
        std::uint32_t member = JsonMembers::kStart;
        while (true) {
            const std::size_t kind = static_cast<unsigned char>(event.phase) % JsonMembers::kKinds;
            member = members_.next(cursor, member, kind, member_of);
            if (member == JsonMembers::kEnd) break;
            if (member == JsonMembers::kFailed || !members()[member - 1].read(*this, cursor, event))
                return failed();
        }
        event.id = mix_hash(event.id, event.id_scope);
        if (!event.arguments_text.empty() && is_read_phase(event.phase)) {
            JsonCursor arguments(event.arguments_text.data(), cursor.end());
            if (!arguments_.read(arguments, event.category)) return EventResult::Malformed;
        }
        return EventResult::Read;
    }
    /// The reason why the last malformed event was rejected.
    const char* cause() const noexcept { return cause_; }

  private:
    static constexpr int kMicrosToNanos = 3;  // decimals

    /// A member that is read; its index in JsonMembers is its place in members() and 1.
    struct Member {
        std::string_view name;
        bool (*read)(ChromeEventReader& reader, JsonCursor& cursor, ChromeEvent& event);
    };
    static std::span<const Member> members() noexcept {
        using R = ChromeEventReader;
        using C = JsonCursor;
        using E = ChromeEvent;
        static constexpr Member kMembers[] = {
            {"", [](R&, C& c, E&) { return c.skip_value(); }},  // all others
            {"ph", [](R& r, C& c, E& e) { return r.read_phase(c, e); }},
            {"ts", [](R& r, C& c, E& e) { return r.read_time(c, e, e.has_time, e.time_ns); }},
            {"dur", [](R& r, C& c, E& e) { return r.read_time(c, e, e.has_duration, e.duration_ns); }},
            {"pid", [](R& r, C& c, E& e) { return r.read_row_id(c, e.pid); }},
            {"tid", [](R& r, C& c, E& e) { return r.read_row_id(c, e.tid); }},
            {"cat", [](R& r, C& c, E& e) { return r.read_category(c, e); }},
            {"name", [](R& r, C& c, E& e) { return r.read_name(c, e); }},
            {"args", [](R& r, C& c, E& e) { return r.read_arguments(c, e); }},
            {"id", [](R& r, C& c, E& e) { return r.read_id(c, e, e.id); }},
            {"id2", [](R& r, C& c, E& e) { return r.read_id2(c, e); }},
            {"scope", [](R& r, C& c, E& e) { return r.read_hash(c, e.id_scope); }},
            {"bp", [](R& r, C& c, E& e) { return r.read_letter(c, e.bind_point); }},
            {"bind_id", [](R& r, C& c, E& e) { return e.has_bind_id = true, r.read_hash(c, e.bind_id); }},
            {"flow_in", [](R& r, C& c, E& e) { return r.read_flag(c, e.flows_in); }},
            {"flow_out", [](R& r, C& c, E& e) { return r.read_flag(c, e.flows_out); }},
        };
        return kMembers;
    }
    static std::uint32_t member_of(std::string_view key) noexcept {
        for (std::uint32_t i = 1; i < members().size(); ++i) {
            if (members()[i].name == key) return i + 1;
        }
        return 1;
    }

    static bool whole_number(std::string_view text, std::int64_t& number) {
        const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        return error == std::errc() && stop == text.data() + text.size() && !text.empty();
    }

    /// Parses "12" or "0x1f".
    static bool unsigned_number(std::string_view text, std::uint64_t& number) {
        const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
        if (is_hex) text.remove_prefix(2);
        const auto [stop, error] =
            std::from_chars(text.data(), text.data() + text.size(), number, is_hex ? 16 : 10);
        return error == std::errc() && stop == text.data() + text.size() && !text.empty();
    }

    bool read_category(JsonCursor& cursor, ChromeEvent& event) {
        if (cursor.peek() != '"') return cursor.skip_value();
        const char* const start = cursor.at() + 1;
        CachedCategory& known =
            categories_[static_cast<unsigned char>(start[0] ^ start[1] * 4) % categories_.size()];
        if (known.length != 0 && cursor.end() - start >= known.length &&
            std::memcmp(start, known.text, known.length) == 0) {
            event.category = known.id;
            cursor.move_to(start + known.length);
            return true;
        }
        std::string_view text;
        if (!cursor.read_string(text)) return false;
        event.category = assembler_.string(text);
        const auto length = static_cast<std::size_t>(cursor.at() - start);
        if (length == text.size() + 1 && length <= sizeof known.text) {
            known.id = event.category;
            known.length = static_cast<std::uint32_t>(length);
            std::memcpy(known.text, start, length);
        }
        return true;
    }
    bool read_name(JsonCursor& cursor, ChromeEvent& event) {
        std::string_view text;
        event.has_name = true;
        if (cursor.peek() == '"' ? !cursor.read_string(text) : !cursor.skip_value(text)) return false;
        event.name = assembler_.string(text);
        return true;
    }
    bool read_arguments(JsonCursor& cursor, ChromeEvent& event) {
        if (is_read_phase(event.phase)) return arguments_.read(cursor, event.category);
        return cursor.skip_value(event.arguments_text);
    }
    bool read_phase(JsonCursor& cursor, ChromeEvent& event) {
        std::string_view text;
        if (cursor.peek() != '"') return cursor.skip_value();
        const char* const at = cursor.at();
        if (cursor.end() - at > 2 && at[2] == '"' && at[1] != '\\' && at[1] != '"') {
            event.phase = at[1];
            cursor.move_to(at + 3);
            return true;
        }
        if (!cursor.read_string(text)) return false;
        event.phase = text.size() == 1 ? text[0] : '\0';
        return true;
    }
    bool read_row_id(JsonCursor& cursor, ChromeId& id) {
        id = {};
        std::string_view text;
        const char first = cursor.peek();
        if (cursor.read_short_integer(id.number)) return true;
        id.number = ChromeId::kMissing;
        if (first == '"') {
            if (!cursor.read_string(text)) return false;
        } else {
            const char* const start = cursor.at();
            JsonNumber number;
            if (cursor.read_number(number) && number.kind == JsonNumber::Kind::Int) {
                id.number = number.integer;
                return true;
            }
            if (cursor.ran_out()) return false;
            cursor.move_to(start);
            if (!cursor.skip_value(text)) return false;
            if (text == "null") return true;
        }
        if (whole_number(text, id.number)) return true;
        id.number = 0;
        id.text = assembler_.string(text.empty() ? std::string_view("(empty)") : text);
        return true;
    }
    bool read_time(JsonCursor& cursor, ChromeEvent& event, bool& is_there, std::int64_t& time_ns) {
        if (cursor.peek() == '"') {
            std::string_view text;
            if (!cursor.read_string(text)) return false;
            event.has_text_time = true;
            is_there = scaled_decimal(text, kMicrosToNanos, time_ns);
            return is_there || fail("a time that is not a number or is out of range");
        }
        const char* const start = cursor.at();
        is_there = cursor.read_scaled(kMicrosToNanos, time_ns);
        if (is_there || cursor.ran_out()) return is_there;
        cursor.move_to(start);
        std::string_view text;
        if (cursor.skip_value(text) && text == "null") return true;
        return cursor.ran_out() ? false : fail("a time that is not a number or is out of range");
    }
    bool read_hash(JsonCursor& cursor, std::uint64_t& hash) {
        std::string_view text;
        if (cursor.peek() == '"' ? !cursor.read_string(text) : !cursor.skip_value(text)) return false;
        hash = hash_text(text);
        return true;
    }
    bool read_id(JsonCursor& cursor, ChromeEvent& event, std::uint64_t& hash) {
        const char* const start = cursor.at();
        std::string_view text;
        if (cursor.peek() == '"' ? !cursor.read_string(text) : !cursor.skip_value(text)) return false;
        hash = hash_text(text);
        event.has_id = true;
        event.id_text =
            text.data() + text.size() < cursor.end() && text.data() >= start ? text : std::string_view();
        if (!unsigned_number(text, event.number_of_id)) event.number_of_id = 0;
        return true;
    }
    bool read_id2(JsonCursor& cursor, ChromeEvent& event) {
        if (cursor.peek() != '{') return cursor.skip_value();
        cursor.take('{');
        if (cursor.take('}')) return true;
        do {
            std::string_view key;
            if (!cursor.read_string(key)) return false;
            const bool is_local = key == "local";
            const bool is_known = is_local || key == "global";
            std::uint64_t hash = 0;
            if (!cursor.take(':') || !read_hash(cursor, hash)) return false;
            if (!is_known) continue;
            event.has_id = true;
            event.is_local_id = is_local;
            event.id = hash;
        } while (cursor.take(','));
        return cursor.take('}');
    }
    bool read_letter(JsonCursor& cursor, char& letter) {
        std::string_view text;
        if (cursor.peek() != '"') return cursor.skip_value();
        if (!cursor.read_string(text)) return false;
        if (!text.empty()) letter = text[0];
        return true;
    }
    bool read_flag(JsonCursor& cursor, bool& flag) {
        std::string_view text;
        if (!cursor.skip_value(text)) return false;
        flag = text == "true" || text == "1";
        return true;
    }
    bool fail(const char* cause) noexcept {
        cause_ = cause;
        return false;
    }

    TraceAssembler& assembler_;
    ImportedArguments& arguments_;
    JsonMembers members_;
    /// There are few categories: one per hash of the first characters is cached, with its closing quote.
    struct CachedCategory {
        StringId id = 0;
        std::uint32_t length = 0;
        char text[24] = {};
    };
    std::array<CachedCategory, 16> categories_{};
    const char* cause_ = "";
};

}  // namespace marey
