// chrome_event.cpp: the members of an event, in any order.
#include "import/chrome_event.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/text_hash.h"

namespace kymo {
namespace {

constexpr int kMicrosToNanos = 3;  // decimals

/// A key with its quotes as the bytes of a number, the first one lowest.
struct UsualKey {
    consteval explicit UsualKey(std::string_view text) {
        for (std::size_t i = text.size(); i-- > 0;) {
            bytes = bytes << 8 | static_cast<unsigned char>(text[i]);
            mask = mask << 8 | 0xFF;
        }
    }
    std::uint64_t bytes = 0;
    std::uint64_t mask = 0;
};
constexpr UsualKey kTs("\"ts\""), kPh("\"ph\""), kPid("\"pid\""), kTid("\"tid\""), kDur("\"dur\""),
    kCat("\"cat\""), kName("\"name\""), kArgs("\"args\"");

bool whole_number(std::string_view text, std::int64_t& number) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && stop == text.data() + text.size() && !text.empty();
}

/// "12", "0x1f".
bool unsigned_number(std::string_view text, std::uint64_t& number) {
    const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
    if (is_hex) text.remove_prefix(2);
    const auto [stop, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, is_hex ? 16 : 10);
    return error == std::errc() && stop == text.data() + text.size() && !text.empty();
}

}  // namespace

bool ChromeEventReader::fail(const char* cause) noexcept {
    cause_ = cause;
    return false;
}

EventResult ChromeEventReader::read(JsonCursor& cursor, ChromeEvent& event) {
    event = ChromeEvent();
    arguments_.clear();
    cause_ = "not JSON";
    const auto failed = [&] { return cursor.ran_out() ? EventResult::RanOut : EventResult::Malformed; };
    if (!cursor.take('{')) return failed();
    if (cursor.take('}')) return EventResult::Read;
    do {
        const QuickRead quick = read_usual(cursor, event);
        if (quick == QuickRead::Failed) return failed();
        if (quick == QuickRead::Done) continue;
        std::string_view key;
        if (!cursor.read_string(key)) {
            if (!cursor.ran_out() && cursor.peek() == '}') break;  // a comma too many
            return failed();
        }
        // Keys of events have no escapes, so `key` stays valid while the value is read.
        if (!cursor.take(':') || !read_member(cursor, key, event)) return failed();
    } while (cursor.take(','));
    if (!cursor.take('}')) return failed();
    event.id = mix_hash(event.id, event.id_scope);
    if (!event.arguments_text.empty() && is_read_phase(event.phase)) {
        JsonCursor arguments(event.arguments_text.data(), cursor.end());
        if (!arguments_.read(arguments, event.category)) return EventResult::Malformed;
    }
    return EventResult::Read;
}

/// The keys that nearly every event has, without looking for where they end.
ChromeEventReader::QuickRead ChromeEventReader::read_usual(JsonCursor& cursor, ChromeEvent& event) {
    if constexpr (std::endian::native != std::endian::little) return QuickRead::Other;
    cursor.peek();
    const std::uint64_t word = cursor.next_bytes();
    const auto is_key = [&](UsualKey key) { return (word & key.mask) == key.bytes; };
    const auto take = [&](std::ptrdiff_t length) {
        cursor.move_to(std::min(cursor.at() + length, cursor.end()));
        return cursor.take(':');
    };
    const auto done = [](bool is_read) { return is_read ? QuickRead::Done : QuickRead::Failed; };
    switch (static_cast<char>(word >> 8)) {
        case 't':
            if (is_key(kTs)) return done(take(4) && read_time(cursor, event.has_time, event.time_ns));
            if (is_key(kTid)) return done(take(5) && read_row_id(cursor, event.tid));
            break;
        case 'p':
            if (is_key(kPid)) return done(take(5) && read_row_id(cursor, event.pid));
            if (is_key(kPh)) return done(take(4) && read_phase(cursor, event));
            break;
        case 'd':
            if (is_key(kDur))
                return done(take(5) && read_time(cursor, event.has_duration, event.duration_ns));
            break;
        case 'c':
            if (is_key(kCat)) return done(take(5) && read_category(cursor, event));
            break;
        case 'n':
            if (is_key(kName)) return done(take(6) && read_name(cursor, event));
            break;
        case 'a':
            if (is_key(kArgs)) return done(take(6) && read_arguments(cursor, event));
            break;
        default:
            break;
    }
    return QuickRead::Other;
}

bool ChromeEventReader::read_category(JsonCursor& cursor, ChromeEvent& event) {
    std::string_view text;
    if (cursor.peek() != '"') return cursor.skip_value();
    if (!cursor.read_string(text)) return false;
    event.category = assembler_.string(text);
    return true;
}

bool ChromeEventReader::read_name(JsonCursor& cursor, ChromeEvent& event) {
    std::string_view text;
    event.has_name = true;
    if (cursor.peek() == '"' ? !cursor.read_string(text) : !cursor.skip_value(text)) return false;
    event.name = assembler_.string(text);
    return true;
}

bool ChromeEventReader::read_arguments(JsonCursor& cursor, ChromeEvent& event) {
    if (is_read_phase(event.phase)) return arguments_.read(cursor, event.category);
    return cursor.skip_value(event.arguments_text);
}

/// The others, and the usual ones where they stand at the end of what was read so far.
bool ChromeEventReader::read_member(JsonCursor& cursor, std::string_view key, ChromeEvent& event) {
    if (key == "id") return read_id(cursor, event, event.id);
    if (key == "bp") return read_letter(cursor, event.bind_point);
    if (key == "s") return read_letter(cursor, event.instant_scope);
    if (key == "id2") return read_id2(cursor, event);
    if (key == "scope") return read_hash(cursor, event.id_scope);
    if (key == "bind_id") {
        event.has_bind_id = true;
        return read_hash(cursor, event.bind_id);
    }
    if (key == "flow_in") return read_flag(cursor, event.flows_in);
    if (key == "flow_out") return read_flag(cursor, event.flows_out);
    if (key == "ts") return read_time(cursor, event.has_time, event.time_ns);
    if (key == "ph") return read_phase(cursor, event);
    if (key == "pid") return read_row_id(cursor, event.pid);
    if (key == "tid") return read_row_id(cursor, event.tid);
    if (key == "dur") return read_time(cursor, event.has_duration, event.duration_ns);
    if (key == "cat") return read_category(cursor, event);
    if (key == "name") return read_name(cursor, event);
    if (key == "args") return read_arguments(cursor, event);
    return cursor.skip_value();
}

bool ChromeEventReader::read_phase(JsonCursor& cursor, ChromeEvent& event) {
    std::string_view text;
    if (cursor.peek() != '"') return cursor.skip_value();
    if (!cursor.read_string(text)) return false;
    event.phase = text.size() == 1 ? text[0] : '\0';
    return true;
}

bool ChromeEventReader::read_letter(JsonCursor& cursor, char& letter) {
    std::string_view text;
    if (cursor.peek() != '"') return cursor.skip_value();
    if (!cursor.read_string(text)) return false;
    if (!text.empty()) letter = text[0];
    return true;
}

bool ChromeEventReader::read_flag(JsonCursor& cursor, bool& flag) {
    std::string_view text;
    if (!cursor.skip_value(text)) return false;
    flag = text == "true" || text == "1";
    return true;
}

bool ChromeEventReader::read_row_id(JsonCursor& cursor, ChromeId& id) {
    id = {};
    std::string_view text;
    const char first = cursor.peek();
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

bool ChromeEventReader::read_time(JsonCursor& cursor, bool& is_there, std::int64_t& time_ns) {
    if (cursor.peek() == '"') {
        std::string_view text;
        if (!cursor.read_string(text)) return false;
        is_there = scaled_decimal(text, kMicrosToNanos, time_ns);
        return is_there || fail("a time that is no number, or too large");
    }
    const char* const start = cursor.at();
    is_there = cursor.read_scaled(kMicrosToNanos, time_ns);
    if (is_there || cursor.ran_out()) return is_there;
    cursor.move_to(start);
    std::string_view text;
    if (cursor.skip_value(text) && text == "null") return true;
    return cursor.ran_out() ? false : fail("a time that is no number, or too large");
}

bool ChromeEventReader::read_hash(JsonCursor& cursor, std::uint64_t& hash) {
    std::string_view text;
    if (cursor.peek() == '"' ? !cursor.read_string(text) : !cursor.skip_value(text)) return false;
    hash = hash_text(text);
    return true;
}

bool ChromeEventReader::read_id(JsonCursor& cursor, ChromeEvent& event, std::uint64_t& hash) {
    std::string_view text;
    if (cursor.peek() == '"' ? !cursor.read_string(text) : !cursor.skip_value(text)) return false;
    hash = hash_text(text);
    event.has_id = true;
    event.id_text = text;
    if (!unsigned_number(text, event.number_of_id)) event.number_of_id = 0;
    return true;
}

bool ChromeEventReader::read_id2(JsonCursor& cursor, ChromeEvent& event) {
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

}  // namespace kymo
