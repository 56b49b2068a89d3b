// strict_json_fixture.h: for tests: a JSON text as a tree of values.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "json/json_scanner.h"

namespace marey {

class StrictJson {
  public:
    enum class Kind { Null, Bool, Number, String, Array, Object };
    struct Member;
    struct Value {
        Kind kind = Kind::Null;
        bool truth = false;
        std::string text;  ///< for strings: unescaped; for numbers: as written
        std::vector<Value> items;
        std::vector<Member> members;

        double number() const { return std::strtod(text.c_str(), nullptr); }
        /// The member of that name; a null value when there is none.
        const Value& operator[](std::string_view name) const {
            static const Value none;
            for (const auto& [key, value] : members) {
                if (key == name) return value;
            }
            return none;
        }
    };
    struct Member {
        std::string first;
        Value second;
    };

    /// Returns "" and fills `value`, or the error and its position. A key that comes twice is an error, and
    /// so is an escape that our writer never makes.
    static std::string parse(std::string_view text, Value& value) {
        JsonScanner scanner(text);
        std::string error;
        value = read(scanner, scanner.next(), error);
        if (error.empty() && scanner.next() != JsonToken::End) error = scanner.error();
        return error;
    }

  private:
    static std::string text_of(JsonScanner& scanner, std::string& error) {
        const std::string_view raw = scanner.raw();
        for (std::size_t at = raw.find("\\u"); at != raw.npos; at = raw.find("\\u", at + 1)) {
            if (raw.substr(at + 2, 3) > "007" && raw.substr(at - (at > 0), 2) != "\\\\")
                error = "an escape that our writer never makes";
        }
        return scanner.text();
    }
    static Value read(JsonScanner& scanner, JsonToken token, std::string& error) {
        Value value;
        switch (token) {
            case JsonToken::BeginObject:
                value.kind = Kind::Object;
                while (error.empty() && (token = scanner.next()) == JsonToken::Key) {
                    const std::string key = text_of(scanner, error);
                    for (const Member& other : value.members) {
                        if (other.first == key) error = "a key comes twice: " + key;
                    }
                    value.members.push_back({key, read(scanner, scanner.next(), error)});
                }
                break;
            case JsonToken::BeginArray:
                value.kind = Kind::Array;
                while (error.empty() && (token = scanner.next()) != JsonToken::EndArray)
                    value.items.push_back(read(scanner, token, error));
                break;
            case JsonToken::String:
                value.kind = Kind::String;
                value.text = text_of(scanner, error);
                break;
            case JsonToken::Number:
                value.kind = Kind::Number;
                value.text = scanner.raw();
                break;
            case JsonToken::True:
            case JsonToken::False:
                value.kind = Kind::Bool;
                value.truth = token == JsonToken::True;
                break;
            default:
                break;
        }
        if (error.empty()) error = scanner.error();
        return value;
    }
};

}  // namespace marey
