// read_arguments.h: converts the "args" of an event to values.
#pragma once

#include <array>
#include <bit>
#include <limits>
#include <optional>

#include <marey/trace.h>

#include "base/text_hash.h"
#include "formats/chrome/read_inputs.h"
#include "json/json_cursor.h"
#include "json/json_members.h"
#include "trace/trace_assembler.h"

namespace marey {

/// Caches the values of texts, so that each distinct text is parsed, and its lists and arrays are stored,
/// only once. Stops adding entries at a size limit.
class ValueCache {
  public:
    ValueCache() : slots_(1 << 10, kFree) {}

    std::optional<std::span<const Argument>> find(std::string_view text) const {
        const std::uint64_t hash = hash_text(text);
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t i = hash & mask; slots_[i] != kFree; i = (i + 1) & mask) {
            const Entry& entry = entries_[slots_[i]];
            if (entry.hash == hash && text == std::string_view(texts_).substr(entry.text, entry.length))
                return std::span<const Argument>(values_).subspan(entry.first, entry.count);
        }
        return std::nullopt;
    }
    void add(std::string_view text, std::span<const Argument> values) {
        if (texts_.size() + text.size() > kMaxTextBytes) return;
        if (2 * (entries_.size() + 1) > slots_.size()) grow();
        const std::uint64_t hash = hash_text(text);
        insert(hash, static_cast<std::uint32_t>(entries_.size()));
        entries_.push_back(
            {hash, static_cast<std::uint32_t>(texts_.size()), static_cast<std::uint32_t>(text.size()),
             static_cast<std::uint32_t>(values_.size()), static_cast<std::uint32_t>(values.size())});
        texts_.append(text);
        values_.insert(values_.end(), values.begin(), values.end());
    }

  private:
    static constexpr std::uint32_t kFree = ~std::uint32_t{0};
    static constexpr std::size_t kMaxTextBytes = 64 << 20;
    struct Entry {
        std::uint64_t hash;
        std::uint32_t text, length;  ///< in texts_
        std::uint32_t first, count;  ///< in values_
    };
    void insert(std::uint64_t hash, std::uint32_t entry) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t i = hash & mask;
        while (slots_[i] != kFree) i = (i + 1) & mask;
        slots_[i] = entry;
    }
    void grow() {
        slots_.assign(2 * slots_.size(), kFree);
        for (std::uint32_t i = 0; i < entries_.size(); ++i) insert(entries_[i].hash, i);
    }

    std::vector<std::uint32_t> slots_;  ///< size is a power of two, at most half used
    std::vector<Entry> entries_;
    std::string texts_;
    std::vector<Argument> values_;
};

/// Keys with a special meaning.
enum class ChromeKey : std::uint8_t {
    None,
    // Lists with one entry per input or output; kept as text until all of them are known.
    InputDims,
    InputType,
    InputStrides,
    ConcreteInputs,
    OutputDims,
    OutputType,
    OutputStrides,
    ConcreteOutputs,
    // Other keys.
    Sequence,
    ForwardThread,
    RecordFunctionId,
    Correlation,
    DeviceNumber,
    Stream,
    Bytes,
    Address,
    TotalAllocated,
    TotalReserved,
    DeviceType,
    DeviceId,
    Name,
    Labels,
    SortIndex,
    // Keys that our exporter adds.
    At,
    ScopeName,
    Overload,
    MangledName,
    BeganBefore,
    Finished,
    EndInferred,
    ExternalId,
    EventIndex,
    PythonId,
    PythonParent,
    CallNumber,
    CallPart,
    PythonThread,
    TrackKind,
    ThreadOwner,
    ThreadPid,
    Derived,
    Count,
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
    bool has(ChromeKey key) const { return (present_ >> static_cast<unsigned>(key) & 1) != 0; }
    /// The value of a special key, if it is present and has the right type. The take functions remove it.
    const Argument* find(ChromeKey key) const {
        return has(key) && !is_positional(key) ? &special_[static_cast<std::size_t>(key)] : nullptr;
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
        constexpr auto kBit = [](ChromeKey key) { return std::uint64_t{1} << static_cast<unsigned>(key); };
        constexpr std::uint64_t kInputs = kBit(ChromeKey::OutputDims) - kBit(ChromeKey::InputDims),
                                kOutputs = kBit(ChromeKey::Sequence) - kBit(ChromeKey::OutputDims);
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
    struct NamedKey {
        std::string_view name;
        ChromeKey key;
    };
    static constexpr NamedKey kKeys[] = {
        {"Input Dims", ChromeKey::InputDims},
        {"Input type", ChromeKey::InputType},
        {"Input Strides", ChromeKey::InputStrides},
        {"Concrete Inputs", ChromeKey::ConcreteInputs},
        {"Output Dims", ChromeKey::OutputDims},
        {"Output type", ChromeKey::OutputType},
        {"Output Strides", ChromeKey::OutputStrides},
        {"Concrete Outputs", ChromeKey::ConcreteOutputs},
        {"Sequence number", ChromeKey::Sequence},
        {"Fwd thread id", ChromeKey::ForwardThread},
        {"Record function id", ChromeKey::RecordFunctionId},
        {"correlation", ChromeKey::Correlation},
        {"device", ChromeKey::DeviceNumber},
        {"stream", ChromeKey::Stream},
        {"Bytes", ChromeKey::Bytes},
        {"Addr", ChromeKey::Address},
        {"Total Allocated", ChromeKey::TotalAllocated},
        {"Total Reserved", ChromeKey::TotalReserved},
        {"Device Type", ChromeKey::DeviceType},
        {"Device Id", ChromeKey::DeviceId},
        {"name", ChromeKey::Name},
        {"labels", ChromeKey::Labels},
        {"sort_index", ChromeKey::SortIndex},
        {"at", ChromeKey::At},
        {"scope", ChromeKey::ScopeName},
        {"Overload name", ChromeKey::Overload},
        {"Mangled name", ChromeKey::MangledName},
        {"began_before", ChromeKey::BeganBefore},
        {"finished", ChromeKey::Finished},
        {"end_inferred", ChromeKey::EndInferred},
        {"External id", ChromeKey::ExternalId},
        {"Ev Idx", ChromeKey::EventIndex},
        {"Python id", ChromeKey::PythonId},
        {"Python parent id", ChromeKey::PythonParent},
        {"Call number", ChromeKey::CallNumber},
        {"Call part", ChromeKey::CallPart},
        {"Python thread", ChromeKey::PythonThread},
        {"track", ChromeKey::TrackKind},
        {"thread", ChromeKey::ThreadOwner},
        {"thread_pid", ChromeKey::ThreadPid},
        {"derived", ChromeKey::Derived},
    };

    static constexpr int kMaxDepth = 8;
    static constexpr std::size_t kLongestCached = 1024;

    static constexpr bool is_positional(ChromeKey key) {
        return key >= ChromeKey::InputDims && key <= ChromeKey::ConcreteOutputs;
    }
    /// A top-level key of "args".
    struct KnownKey {
        StringId id = 0;
        ChromeKey special = ChromeKey::None;
    };

    std::uint32_t known_key(std::string_view text) {
        const StringId id = assembler_.string(text);
        if (id >= key_of_.size()) key_of_.resize(id + id / 2 + 64);
        if (key_of_[id] == 0) {
            key_of_[id] = static_cast<std::uint32_t>(keys_.size());
            KnownKey& key = keys_.emplace_back();
            key.id = id;
            for (const NamedKey& named : kKeys) {
                if (named.name == text) key.special = named.key;
            }
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
            const KnownKey& key = keys_[index];
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
        const auto bit = std::uint64_t{1} << static_cast<unsigned>(which);
        const char first = cursor.peek();
        if (is_positional(which) && first == '[') {
            present_ |= bit;
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
        Argument& value = special_[static_cast<std::size_t>(which)];
        value = Argument();
        value.key = key;
        if (cursor.read_short_integer(value.integer)) {
            value.kind = ValueKind::Int;
        } else if (!read_value(cursor, value, 0)) {
            return false;
        }
        present_ |= bit;
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
            value.kind = ValueKind::String;
            value.string = assembler_.string(text);
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
                value.kind = ValueKind::Int;
                value.integer = number.integer;
                return true;
            case JsonNumber::Kind::Real:
                value.kind = ValueKind::Double;
                value.real = number.real;
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
            value.kind = ValueKind::Bool;
            value.boolean = word == "true";
            return true;
        }
        if (word == "null") return true;
        // Python writes these non-standard values.
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        value.kind = ValueKind::Double;
        if (word == "NaN" || word == "nan" || word == "-nan") {
            value.real = std::numeric_limits<double>::quiet_NaN();
        } else if (word == "Infinity" || word == "inf") {
            value.real = kInfinity;
        } else if (word == "-Infinity" || word == "-inf") {
            value.real = -kInfinity;
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
            if (const auto known = cache_.find(text)) {
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
        value.kind = ValueKind::List;
        value.list = assembler_.add_list(items);
        if (text.size() <= kLongestCached) cache_.add(text, {&value, 1});
        return true;
    }
    bool read_as_text(JsonCursor& cursor, Argument& value) {
        std::string_view text;
        if (!cursor.skip_value(text)) return false;
        value.kind = ValueKind::String;
        value.string = assembler_.string(text);
        return true;
    }
    /// Skips a list, which is often the same as in the previous event.
    bool skip_positional(JsonCursor& cursor, ChromeKey which) {
        std::string_view& text = positional_[static_cast<std::size_t>(which)];
        std::string& last = last_positional_[static_cast<std::size_t>(which)];
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
            const auto key = static_cast<ChromeKey>(static_cast<std::size_t>(first) + i);
            if (has(key)) key_ += texts[i] = positional_[static_cast<std::size_t>(key)];
            key_ += '\0';
        }
        if (const auto known = cache_.find(key_)) return {known->begin(), known->end()};
        std::vector<Argument> values =
            read_chrome_inputs(assembler_, {texts[0], texts[1], texts[2], texts[3]}, role);
        if (key_.size() <= 4 * kLongestCached) cache_.add(key_, values);
        return values;
    }
    void drop(ChromeKey key) { present_ &= ~(std::uint64_t{1} << static_cast<unsigned>(key)); }

    TraceAssembler& assembler_;
    std::vector<Argument> values_;
    std::array<Argument, static_cast<std::size_t>(ChromeKey::Count)> special_{};
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
    std::vector<KnownKey> keys_{1};        ///< by index in members_
    std::vector<std::uint32_t> key_of_{};  ///< by string: index in keys_; 0: none
    ValueCache cache_;
    std::string key_;
};

}  // namespace marey
