// json_writer.h: writes strict JSON text: valid UTF-8 whatever the bytes, no NaN, correct commas and quotes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace marey {

/// How far each level of a JSON document for people is indented.
inline constexpr int kJsonIndent = 2;

/// Appends `bytes` as a quoted JSON string. Control characters are escaped; invalid UTF-8 becomes U+FFFD, one
/// for each maximal broken part.
void append_json_string(std::string& out, std::string_view bytes);
/// Appends the shortest text that reads back equal. JSON has no NaN and no infinity: they become the strings
/// "NaN", "Infinity" and "-Infinity".
void append_json_number(std::string& out, double value);
void append_json_number(std::string& out, std::int64_t value);
void append_json_number(std::string& out, std::uint64_t value);

/// Appends one JSON value to a string, piece by piece. The caller pairs begins and ends and gives a key
/// before every value of an object; the writer adds commas, quotes and escapes. With `indent` > 0 the text is
/// formatted for people.
class JsonWriter {
  public:
    /// `out` must outlive the writer.
    explicit JsonWriter(std::string& out, int indent = 0) : out_(out), indent_(indent) {}

    JsonWriter& begin_object() { return open('{'); }
    JsonWriter& end_object() { return close('}'); }
    JsonWriter& begin_array() { return open('['); }
    JsonWriter& end_array() { return close(']'); }
    JsonWriter& key(std::string_view name);

    JsonWriter& value(std::string_view text);
    JsonWriter& value(const char* text) { return value(std::string_view(text)); }
    JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
    JsonWriter& value(double number);
    JsonWriter& value(bool truth);
    JsonWriter& value(std::int64_t number);
    JsonWriter& value(std::uint64_t number);
    JsonWriter& value(std::int32_t number) { return value(static_cast<std::int64_t>(number)); }
    JsonWriter& value(std::uint32_t number) { return value(static_cast<std::uint64_t>(number)); }
    JsonWriter& null();

    JsonWriter& member(std::string_view name, const auto& content) { return key(name).value(content); }
    /// An array of objects. write(row) writes the members of one.
    JsonWriter& list(const auto& rows, const auto& write) {
        begin_array();
        for (const auto& row : rows) {
            begin_object();
            write(row);
            end_object();
        }
        return end_array();
    }
    JsonWriter& list(std::string_view name, const auto& rows, const auto& write) {
        return key(name).list(rows, write);
    }

  private:
    void before_value();
    void new_line();
    JsonWriter& open(char bracket);
    JsonWriter& close(char bracket);

    std::string& out_;
    int indent_;
    std::vector<bool> filled_;  ///< per open bracket: it already holds a value
    bool after_key_ = false;
};

}  // namespace marey
