// read_arguments.h: converts the "args" of an event to values.
#pragma once

#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>

#include <marey/trace.h>

#include "base/text_hash.h"
#include "formats/chrome/keys.h"
#include "formats/chrome/read_inputs.h"
#include "json/json_cursor.h"
#include "json/json_members.h"
#include "trace/trace_assembler.h"

namespace marey {

/// The values of texts, so that each distinct text is parsed, and its lists and arrays are stored, only once.
/// Stops adding entries at a size limit.
class ValueCache {
  public:
    /// Null: not known.
    const std::vector<Argument>* find(std::string_view text) const {
        const auto known = values_.find(text);
        return known == values_.end() ? nullptr : &known->second;
    }
    void add(std::string_view text, std::span<const Argument> values) {
        if (text_bytes_ + text.size() > kMaxTextBytes) return;
        text_bytes_ += text.size();
        values_.try_emplace(std::string(text), values.begin(), values.end());
    }

  private:
    static constexpr std::size_t kMaxTextBytes = 64 << 20;
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept { return hash_text(text); }
    };
    std::unordered_map<std::string, std::vector<Argument>, Hash, std::equal_to<>> values_;
    std::size_t text_bytes_ = 0;
};

/// Reads the "args" of one event after another. Nested objects become values with keys like "a.b"; objects in
/// lists, and anything nested more than eight levels deep, become their JSON text; an integer above 2^63
/// becomes its text.
class ImportedArguments {
  public:
    explicit ImportedArguments(TraceAssembler& assembler) : assembler_(assembler) {}

    /// Discards the previous event.
    void clear() {
        values_.clear();
        present_ = 0;
    }
    /// Reads the value at the cursor. Returns false if it is not JSON or the text ends too early. Events of
    /// one category usually have the same keys, which makes reading faster.
    bool read(JsonCursor& cursor, StringId category) {
        if (cursor.peek() == '{') return read_members(cursor, mix_hash(category, 1) % 8);
        Argument value;
        if (!read_value(cursor, value, 0)) return false;
        if (value.kind == ValueKind::None) return true;
        value.key = assembler_.string("args");
        values_.push_back(value);
        return true;
    }

    /// Whether any special key is present.
    bool has_special() const { return present_ != 0; }
    bool has(ChromeKey key) const { return (present_ & bit_of(key)) != 0; }
    /// The value of a special key, if it is present and has the right type. The take functions remove it.
    const Argument* find(ChromeKey key) const {
        return has(key) && !is_positional(key) ? &special_[index_of(key)] : nullptr;
    }
    std::optional<std::int64_t> integer(ChromeKey key) const {
        const Argument* const value = find(key);
        if (value == nullptr || value->kind != ValueKind::Int) return std::nullopt;
        return value->integer;
    }
    std::optional<std::int64_t> take_integer(ChromeKey key) {
        const std::optional<std::int64_t> value = integer(key);
        if (value) drop(key);
        return value;
    }
    /// Returns whether it was present and equal to `wanted`.
    bool take_bool(ChromeKey key, bool wanted) {
        const Argument* const value = find(key);
        if (value == nullptr || value->kind != ValueKind::Bool || value->boolean != wanted) return false;
        drop(key);
        return true;
    }
    void forget(ChromeKey key) { drop(key); }
    StringId take_string(ChromeKey key) {
        const Argument* const value = find(key);
        if (value == nullptr || value->kind != ValueKind::String) return 0;
        drop(key);
        return value->string;
    }
    /// An address may exceed the range of a signed integer.
    std::uint64_t take_address() {
        if (!has(ChromeKey::Address)) return 0;
        drop(ChromeKey::Address);
        return address_;
    }

    /// All values: keyword values in text order, then special ones that were not taken, then inputs and
    /// outputs.
    std::span<const Argument> finish() {
        if (present_ == 0) return values_;
        constexpr std::uint64_t kInputs = bit_of(ChromeKey::OutputDims) - bit_of(ChromeKey::InputDims),
                                kOutputs = bit_of(ChromeKey::At) - bit_of(ChromeKey::OutputDims);
        for (std::uint64_t rest = present_ & ~(kInputs | kOutputs); rest != 0; rest &= rest - 1)
            values_.push_back(special_[static_cast<std::size_t>(std::countr_zero(rest))]);
        if ((present_ & kInputs) != 0) append_positional(ChromeKey::InputDims, ArgumentRole::Input);
        if ((present_ & kOutputs) != 0) append_positional(ChromeKey::OutputDims, ArgumentRole::Output);
        present_ = 0;
        return values_;
    }
    /// The keyword values so far, without special ones.
    std::span<const Argument> plain() const { return values_; }

  private:
    static constexpr int kMaxDepth = 8;
    static constexpr std::size_t kLongestCached = 1024;

    static constexpr bool is_positional(ChromeKey key) {
        return key >= ChromeKey::InputDims && key <= ChromeKey::ConcreteOutputs;
    }
    /// A top-level key of "args".
    struct ArgumentKey {
        StringId id = 0;
        ChromeKey special = ChromeKey::None;
    };

    std::uint32_t known_key(std::string_view text) {
        const StringId id = assembler_.string(text);
        if (id >= key_of_.size()) key_of_.resize(id + id / 2 + 64);
        if (key_of_[id] == 0) {
            key_of_[id] = static_cast<std::uint32_t>(keys_.size());
            ArgumentKey& key = keys_.emplace_back();
            key.id = id;
            key.special = chrome_key(text);
        }
        return key_of_[id];
    }
    bool read_members(JsonCursor& cursor, std::size_t kind) {
        cursor.take('{');
        std::uint32_t index = JsonMembers::kStart;
        while (true) {
            index =
                members_.next(cursor, index, kind, [&](std::string_view text) { return known_key(text); });
            if (index == JsonMembers::kEnd) return true;
            if (index == JsonMembers::kFailed) return false;
            const ArgumentKey& key = keys_[index];
            if (key.special != ChromeKey::None) {
                if (!read_special(cursor, key.special, key.id)) return false;
            } else if (*cursor.at() == '{') {
                if (!read_nested(cursor, key.id, std::string(assembler_.text(key.id)), 0)) return false;
            } else {
                Argument& value = values_.emplace_back();
                value.key = key.id;
                if (cursor.read_short_integer(value.integer)) {
                    value.kind = ValueKind::Int;
                } else if (!read_value(cursor, value, 0)) {
                    return false;
                }
            }
        }
    }
    /// The members of an object in "args".
    bool read_object(JsonCursor& cursor, const std::string& prefix, int depth) {
        cursor.take('{');
        if (cursor.take('}')) return true;
        do {
            std::string_view text;
            if (!cursor.read_string(text)) return false;
            const std::string key = prefix + std::string(text);
            if (!cursor.take(':') || !read_nested(cursor, assembler_.string(key), key, depth)) return false;
        } while (cursor.take(','));
        return cursor.take('}');
    }
    bool read_special(JsonCursor& cursor, ChromeKey which, StringId key) {
        const char first = cursor.peek();
        if (is_positional(which) && first == '[') {
            present_ |= bit_of(which);
            return skip_positional(cursor, which);
        }
        if (first == '{' || is_positional(which))
            return read_nested(cursor, key, std::string(assembler_.text(key)), 0);
        if (which == ChromeKey::Address) {
            const char* const start = cursor.at();
            JsonNumber number;
            address_ = 0;
            if (cursor.read_number(number) && number.kind != JsonNumber::Kind::Real)
                address_ = number.magnitude;
            if (cursor.ran_out()) return false;
            cursor.move_to(start);
        }
        Argument& value = special_[index_of(which)];
        value = Argument();
        value.key = key;
        if (cursor.read_short_integer(value.integer)) {
            value.kind = ValueKind::Int;
        } else if (!read_value(cursor, value, 0)) {
            return false;
        }
        present_ |= bit_of(which);
        return true;
    }
    /// Reads an object: array metadata, or members with longer keys. Anything else is read as a plain value.
    bool read_nested(JsonCursor& cursor, StringId key, const std::string& key_text, int depth) {
        Argument value;
        value.key = key;
        if (cursor.peek() != '{') {
            if (!read_value(cursor, value, depth)) return false;
            value.key = key;
            values_.push_back(value);
            return true;
        }
        const std::string prefix = key_text + ".";
        const char* const start = cursor.at();
        if (read_array_object(cursor, value)) {
            values_.push_back(value);
            return true;
        }
        cursor.move_to(start);
        cursor.take('{');
        const bool is_empty = cursor.peek() == '}';
        cursor.move_to(start);
        if (is_empty || depth + 1 >= kMaxDepth) {
            if (!read_as_text(cursor, value)) return false;
            values_.push_back(value);
            return true;
        }
        return read_object(cursor, prefix, depth + 1);
    }
    /// {"dims":[2,3],"type":"float"}
    bool read_array_object(JsonCursor& cursor, Argument& value) {
        std::string_view key, dims, type;
        if (!cursor.take('{') || !cursor.read_string(key) || key != "dims" || !cursor.take(':') ||
            cursor.peek() != '[' || !cursor.skip_value(dims) || !cursor.take(',') ||
            !cursor.read_string(key) || key != "type" || !cursor.take(':') || cursor.peek() != '"' ||
            !cursor.skip_value(type) || !cursor.take('}'))
            return false;
        const std::string one_dims = "[" + std::string(dims) + "]", one_type = "[" + std::string(type) + "]";
        const std::vector<Argument> read =
            read_chrome_inputs(assembler_, {one_dims, one_type, {}, {}}, ArgumentRole::Keyword);
        if (read.size() != 1 || read[0].kind != ValueKind::Array) return false;
        const StringId own = value.key;
        value = read[0];
        value.key = own;
        return true;
    }
    bool read_value(JsonCursor& cursor, Argument& value, int depth) {
        const char first = cursor.peek();
        if (first == '"') {
            std::string_view text;
            if (!cursor.read_string(text)) return false;
            value.set_string(assembler_.string(text));
            return true;
        }
        if (first == '[')
            return depth + 1 >= kMaxDepth ? read_as_text(cursor, value) : read_list(cursor, value, depth);
        if (first == '{') return read_as_text(cursor, value);
        const char* const start = cursor.at();
        JsonNumber number;
        if (!cursor.read_number(number)) {
            if (cursor.ran_out()) return false;
            cursor.move_to(start);
            return read_word(cursor, value);
        }
        switch (number.kind) {
            case JsonNumber::Kind::Int:
                value.set_integer(number.integer);
                return true;
            case JsonNumber::Kind::Real:
                value.set_real(number.real);
                return true;
            case JsonNumber::Kind::Unsigned:
                break;
        }
        cursor.move_to(start);
        return read_as_text(cursor, value);
    }
    bool read_word(JsonCursor& cursor, Argument& value) {
        std::string_view word;
        if (!cursor.skip_value(word)) return false;
        if (word == "true" || word == "false") {
            value.set_bool(word == "true");
            return true;
        }
        if (word == "null") return true;
        // Python writes these non-standard values.
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        if (word == "NaN" || word == "nan" || word == "-nan") {
            value.set_real(std::numeric_limits<double>::quiet_NaN());
        } else if (word == "Infinity" || word == "inf") {
            value.set_real(kInfinity);
        } else if (word == "-Infinity" || word == "-inf") {
            value.set_real(-kInfinity);
        } else {
            return false;
        }
        return true;
    }
    bool read_list(JsonCursor& cursor, Argument& value, int depth) {
        const char* const start = cursor.at();
        std::string_view text;
        if (!cursor.skip_value(text)) return false;
        const char* const end = cursor.at();
        if (text.size() <= kLongestCached) {
            if (const auto* const known = cache_.find(text)) {
                const StringId key = value.key;
                value = (*known)[0];
                value.key = key;
                return true;
            }
        }
        cursor.move_to(start);
        cursor.take('[');
        std::vector<Argument> items;
        if (!cursor.take(']')) {
            do {
                if (!read_value(cursor, items.emplace_back(), depth + 1)) return false;
            } while (cursor.take(','));
            if (!cursor.take(']')) return false;
        }
        cursor.move_to(end);
        value.set_list(assembler_.add_list(items));
        if (text.size() <= kLongestCached) cache_.add(text, {&value, 1});
        return true;
    }
    bool read_as_text(JsonCursor& cursor, Argument& value) {
        std::string_view text;
        if (!cursor.skip_value(text)) return false;
        value.set_string(assembler_.string(text));
        return true;
    }
    /// Skips a list, which is often the same as in the previous event.
    bool skip_positional(JsonCursor& cursor, ChromeKey which) {
        std::string_view& text = positional_[index_of(which)];
        std::string& last = last_positional_[index_of(which)];
        const std::string_view rest(cursor.at(), static_cast<std::size_t>(cursor.end() - cursor.at()));
        if (!last.empty() && rest.starts_with(last)) {
            text = rest.substr(0, last.size());
            cursor.move_to(cursor.at() + last.size());
            return true;
        }
        (which < ChromeKey::OutputDims ? last_inputs_ : last_outputs_).is_old = true;
        if (!cursor.skip_value(text)) return false;
        last = text.size() <= kLongestCached ? text : std::string_view();
        return true;
    }
    void append_positional(ChromeKey first, ArgumentRole role) {
        LastValues& last = role == ArgumentRole::Input ? last_inputs_ : last_outputs_;
        const std::uint64_t present = present_ & std::uint64_t{0xF} << static_cast<unsigned>(first);
        if (last.is_old || last.present != present) {
            last.values = positional_values(first, role);
            last.present = present;
            last.is_old = false;
        }
        values_.insert(values_.end(), last.values.begin(), last.values.end());
    }
    std::vector<Argument> positional_values(ChromeKey first, ArgumentRole role) {
        std::array<std::string_view, 4> texts;
        key_.assign(1, role == ArgumentRole::Input ? 'i' : 'o');
        for (std::size_t i = 0; i < texts.size(); ++i) {
            const ChromeKey key = key_after(first, i);
            if (has(key)) key_ += texts[i] = positional_[index_of(key)];
            key_ += '\0';
        }
        if (const auto* const known = cache_.find(key_)) return *known;
        std::vector<Argument> values =
            read_chrome_inputs(assembler_, {texts[0], texts[1], texts[2], texts[3]}, role);
        if (key_.size() <= 4 * kLongestCached) cache_.add(key_, values);
        return values;
    }
    void drop(ChromeKey key) { present_ &= ~bit_of(key); }

    TraceAssembler& assembler_;
    std::vector<Argument> values_;
    std::array<Argument, index_of(ChromeKey::Count)> special_{};
    std::array<std::string_view, 9> positional_{};  ///< by ChromeKey
    std::array<std::string, 9> last_positional_{};  ///< likewise, of the previous event
    /// The inputs and outputs of the last event that had any: many operators pass on their inputs.
    struct LastValues {
        std::uint64_t present = 0;  ///< the keys that they were read from; 0: none
        bool is_old = false;        ///< a text has changed since then
        std::vector<Argument> values;
    };
    LastValues last_inputs_, last_outputs_;
    std::uint64_t present_ = 0;  ///< one bit per ChromeKey
    std::uint64_t address_ = 0;
    JsonMembers members_;
    std::vector<ArgumentKey> keys_{1};     ///< by index in members_
    std::vector<std::uint32_t> key_of_{};  ///< by string: index in keys_; 0: none
    ValueCache cache_;
    std::string key_;
};

}  // namespace marey
