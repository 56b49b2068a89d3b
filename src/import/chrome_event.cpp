// chrome_event.cpp: the members of an event, in any order.
#include "import/chrome_event.h"

#include <charconv>

#include "base/text_hash.h"

namespace kymo {
namespace {

constexpr int kMicrosToNanos = 3;  // decimals

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
        if (!arguments_.read(arguments)) return EventResult::Malformed;
    }
    return EventResult::Read;
}

bool ChromeEventReader::read_member(JsonCursor& cursor, std::string_view key, ChromeEvent& event) {
    std::string_view text;
    switch (key.size()) {
        case 1:
            if (key[0] == 's') return read_letter(cursor, event.instant_scope);
            break;
        case 2:
            if (key == "ph") return read_phase(cursor, event);
            if (key == "ts") return read_time(cursor, event.has_time, event.time_ns);
            if (key == "id") {
                event.has_id = true;
                return read_id(cursor, event.id, &event.number_of_id, &event.id_text);
            }
            if (key == "bp") return read_letter(cursor, event.bind_point);
            break;
        case 3:
            if (key == "dur") return read_time(cursor, event.has_duration, event.duration_ns);
            if (key == "pid") return read_row_id(cursor, event.pid);
            if (key == "tid") return read_row_id(cursor, event.tid);
            if (key == "cat") {
                if (cursor.peek() != '"') return cursor.skip_value();
                if (!cursor.read_string(text)) return false;
                event.category = assembler_.string(text);
                return true;
            }
            if (key == "id2") return read_id2(cursor, event);
            break;
        case 4:
            if (key == "name") {
                event.has_name = true;
                if (cursor.peek() == '"') {
                    if (!cursor.read_string(text)) return false;
                } else if (!cursor.skip_value(text)) {
                    return false;
                }
                event.name = assembler_.string(text);
                return true;
            }
            if (key == "args") {
                if (is_read_phase(event.phase)) return arguments_.read(cursor);
                return cursor.skip_value(event.arguments_text);
            }
            break;
        case 5:
            if (key == "scope") return read_id(cursor, event.id_scope, nullptr);
            break;
        case 7:
            if (key == "bind_id") {
                event.has_bind_id = true;
                return read_id(cursor, event.bind_id, nullptr);
            }
            if (key == "flow_in") return read_flag(cursor, event.flows_in);
            break;
        case 8:
            if (key == "flow_out") return read_flag(cursor, event.flows_out);
            break;
        default:
            break;
    }
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

bool ChromeEventReader::read_id(JsonCursor& cursor, std::uint64_t& hash, std::uint64_t* number,
                                std::string* id_text) {
    std::string_view text;
    if (cursor.peek() == '"' ? !cursor.read_string(text) : !cursor.skip_value(text)) return false;
    hash = hash_text(text);
    if (id_text != nullptr) *id_text = text;
    if (number != nullptr && !unsigned_number(text, *number)) *number = 0;
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
        if (!cursor.take(':') || !read_id(cursor, hash, nullptr)) return false;
        if (!is_known) continue;
        event.has_id = true;
        event.is_local_id = is_local;
        event.id = hash;
    } while (cursor.take(','));
    return cursor.take('}');
}

}  // namespace kymo
