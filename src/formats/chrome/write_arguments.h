// write_arguments.h: the values of an event as members of its "args", with the keys that PyTorch's tools
// expect.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <unordered_map>

#include <marey/trace.h>

#include "analyze/events/event_categories.h"
#include "formats/chrome/keys.h"
#include "formats/chrome/text.h"
#include "formats/chrome/value_cache.h"
#include "json/json_writer.h"
#include "trace/trace_data.h"

namespace marey {

/// The starts of members, with a leading comma, by ChromeKey.
inline constexpr auto kChromeKeyStarts = [] {
    std::array<Word, index_of(ChromeKey::Count)> starts;
    for (std::size_t i = 0; i < starts.size(); ++i) starts[i] = Word(kChromeKeyTexts[i], ",\"", "\":");
    return starts;
}();

/// Appends members of a JSON object to a text, separated by commas.
class ChromeArguments {
  public:
    /// Both arguments must outlive this.
    ChromeArguments(const Trace& trace, ChromeText& out) : trace_(trace), cache_(trace), out_(out) {}

    /// Call after the opening brace of an object.
    void begin() noexcept {
        is_empty_ = true;
        given_ = 0;
    }

    /// Writes keyword values under their keys (duplicates are renamed); inputs as "Input Dims", "Input type",
    /// "Input Strides" and "Concrete Inputs", lists with one entry per input; outputs in the same way.
    void append_values(std::span<const Argument> values) {
        const ChromeValueCache::CachedText* const known = is_empty_ ? cache_.find(values) : nullptr;
        if (known != nullptr) {
            out_.put(known->text);
            if (const Argument* const own = cache_.own(); own != nullptr) {
                out_.integer(own->integer);
                out_.put(known->rest);
            }
            is_empty_ = false;
            given_ |= known->given;
            return;
        }
        const bool is_first = is_empty_;
        const std::uint64_t start = out_.position();
        own_end_ = 0;
        render_values(values);
        if (!is_first) return;
        if (cache_.own() == nullptr)
            cache_.learn(out_.since(start), {}, 0, given_);
        else if (own_end_ != 0)
            cache_.learn(out_.since(start), out_.since(own_end_), own_end_ - own_start_, given_);
    }
    /// Writes "Sequence number" and "Fwd thread id" if there is a sequence number, "Record function id" if
    /// there is an id.
    void append_detail(const RangeDetail& detail) {
        out_.take(put_detail(out_.room(5 * kNumberBytes), detail));
    }
    /// Writes a generated number unless the values appended since begin() contain it.
    void append_number(ChromeKey which, std::int64_t value) {
        out_.take(put_number(out_.room(kNumberBytes), which, value));
    }
    /// Writes the same into a buffer with at least kNumberBytes per number. Returns the end.
    static constexpr std::size_t kNumberBytes = 64;
    char* put_number(char* out, ChromeKey which, std::int64_t value) noexcept {
        return is_given(which) ? out : put_integer(put_key(out, which), value);
    }
    /// Writes the same as append_detail(): at most 3 numbers.
    char* put_detail(char* out, const RangeDetail& detail) noexcept {
        if (detail.sequence >= 0) {
            out = put_number(out, ChromeKey::Sequence, detail.sequence);
            out = put_number(out, ChromeKey::ForwardThread, detail.forward_thread);
        }
        if (detail.id != 0 && !is_given(ChromeKey::RecordFunctionId))
            out = put_decimal(put_key(out, ChromeKey::RecordFunctionId), detail.id);
        if (detail.call != 0 && !is_given(ChromeKey::CallNumber)) {
            out = put_decimal(put_key(out, ChromeKey::CallNumber), detail.call);
            out = put_number(out, ChromeKey::CallPart, detail.part);
        }
        return out;
    }
    /// Appends members that are already rendered: a key, a colon and a value.
    void append_rendered(const Stamp& members) {
        out_.take(put_rendered(out_.room(1 + members.size() + Stamp::kBlock), members));
    }
    char* put_rendered(char* out, const Stamp& members) noexcept {
        if (members.size() == 0) return out;
        if (!is_empty_) *out++ = ',';
        is_empty_ = false;
        return members.put(out);
    }

  private:
    static constexpr int kMaxDepth = 16;  // of nested lists; a hand-made trace could contain a cycle

    /// Keys that are reserved for the exporter.
    static constexpr bool is_reserved(ChromeKey key) {
        return key != ChromeKey::None && key < ChromeKey::Sequence;
    }
    bool is_given(ChromeKey key) const { return (given_ & bit_of(key)) != 0; }

    /// Prints scalars as PyTorch does, so that both outputs can be compared: whole numbers keep a decimal
    /// point, others have 17 digits.
    static void append_real_text(std::string& text, double value) {
        char digits[32];
        const bool is_short = std::abs(value) < 0x1p63 && value == std::trunc(value);
        const auto format = is_short ? std::chars_format::fixed : std::chars_format::general;
        if (is_short) value += 0.0;  // no negative zero
        const auto end = std::to_chars(digits, digits + sizeof digits, value, format, is_short ? 0 : 17).ptr;
        text.append(digits, end);
        if (is_short) text += '.';
    }

    /// Properties of a key, computed when it is first used.
    struct Key {
        Stamp text;               ///< "key":
        std::uint32_t canonical;  ///< equal for keys with the same JSON text
        ChromeKey special = ChromeKey::None;
        bool is_reserved = false;  ///< user keys with this text are renamed
    };

    void separate() {
        if (!is_empty_) out_.put(',');
        is_empty_ = false;
    }
    const Key& key_of(StringId id) {
        if (id >= key_index_.size()) key_index_.resize(std::max<std::size_t>(id + 1, trace_.string_count()));
        if (key_index_[id] == 0) {
            const std::string_view name = trace_.string(id);
            std::string text;
            append_json_string(text, name.empty() ? "value" : name);
            text += ':';
            const std::uint32_t number = canonical(text);
            const ChromeKey special = chrome_key(name);
            if (special == ChromeKey::Correlation) cache_.set_own_key(id);
            keys_.push_back({Stamp(std::move(text)), number, special, is_reserved(special)});
            key_index_[id] = static_cast<std::uint32_t>(keys_.size());
        }
        return keys_[key_index_[id] - 1];
    }
    std::uint32_t canonical(const std::string& text) {
        return canonical_.try_emplace(text, static_cast<std::uint32_t>(canonical_.size())).first->second;
    }
    /// Marks a key as used. Returns false if it was used already.
    bool use(std::uint32_t canonical) {
        if (canonical >= 64) return use_late(canonical);
        const std::uint64_t bit = std::uint64_t{1} << canonical;
        const bool is_new = (used_early_ & bit) == 0;
        used_early_ |= bit;
        return is_new;
    }
    bool use_late(std::uint32_t canonical) {
        if (std::ranges::find(used_, canonical) != used_.end()) return false;
        used_.push_back(canonical);
        return true;
    }
    void render_values(std::span<const Argument> values) {
        bool has_inputs = false;
        bool has_outputs = false;
        used_.clear();
        used_early_ = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            has_inputs |= values[i].role == ArgumentRole::Input;
            has_outputs |= values[i].role == ArgumentRole::Output;
            if (values[i].role != ArgumentRole::Keyword) continue;
            if (values[i].kind == ValueKind::Int && append_integer(values[i])) continue;
            separate();
            append_key(values[i], i);
            if (values[i].kind == ValueKind::List && trace_.string(values[i].key) == "Call stack")
                append_stack(values[i]);
            else
                append_value(values[i], 0);
        }
        if (has_inputs) append_positional(values, ArgumentRole::Input);
        if (has_outputs) append_positional(values, ArgumentRole::Output);
    }
    /// Fast path for the most frequent kind of value, an integer with a known, unused key. Returns false and
    /// appends nothing otherwise.
    bool append_integer(const Argument& value) {
        if (value.key >= key_index_.size() || key_index_[value.key] == 0) return false;
        const Key& key = keys_[key_index_[value.key] - 1];
        if (key.is_reserved || !use(key.canonical)) return false;
        given_ |= bit_of(key.special);
        char* out = out_.room(1 + key.text.size() + Stamp::kBlock + kIntegerBytes);
        *out = ',';
        out += is_empty_ ? 0 : 1;
        is_empty_ = false;
        out_.take(key.text.put(out));
        own_start_ = &value == cache_.own() ? out_.position() : own_start_;
        out_.integer(value.integer);
        own_end_ = &value == cache_.own() ? out_.position() : own_end_;
        return true;
    }
    /// Keys of one object must differ: strict readers reject duplicates, lenient readers keep only the last.
    void append_key(const Argument& value, std::size_t index) {
        const Key& key = value.key < key_index_.size() && key_index_[value.key] != 0
                             ? keys_[key_index_[value.key] - 1]
                             : key_of(value.key);
        if (key.is_reserved || !use(key.canonical)) {
            append_changed_key(value, index);
            return;
        }
        given_ |= bit_of(key.special);
        out_.put(key.text);
    }
    void append_changed_key(const Argument& value, std::size_t index) {
        const std::string_view name = trace_.string(value.key);
        const std::string wanted(name.empty() ? "value" : name);
        std::string text;
        do {
            text.clear();
            append_json_string(text, wanted + " (" + std::to_string(++index) + ")");
            text += ':';
        } while (!use(canonical(text)));
        out_.put(text);
    }
    void append_value(const Argument& value, int level) {
        switch (value.kind) {
            case ValueKind::Array:
                if (const ArrayInfo* const array = array_of(trace_, value);
                    array != nullptr && array->is_defined) {
                    out_.put("{\"dims\":");
                    append_extents(*array, false);
                    out_.put(",\"type\":");
                    append_type(value);
                    out_.put('}');
                    return;
                }
                out_.put("null");
                return;
            case ValueKind::None:
                out_.put("null");
                return;
            case ValueKind::Bool:
                out_.put(value.boolean ? "true" : "false");
                return;
            case ValueKind::Int:
                out_.integer(value.integer);
                return;
            case ValueKind::Double:
                out_.real(value.real);
                return;
            case ValueKind::String:
                if (value.truncated) {
                    out_.string(std::string(trace_.string(value.string)) + "...");
                } else {
                    out_.string(trace_.string(value.string));
                }
                return;
            case ValueKind::List:
                break;
        }
        out_.put('[');
        bool is_first = true;
        if (level < kMaxDepth) {
            for (const Argument& item : items_of(trace_, value)) {
                if (!is_first) out_.put(',');
                is_first = false;
                append_value(item, level + 1);
            }
        }
        if (value.truncated) out_.put(is_first ? "\"...\"" : ",\"...\"");
        out_.put(']');
    }
    // One string, as viewers expect it: ";" after each frame.
    void append_stack(const Argument& stack) {
        scratch_.clear();
        for (const Argument& frame : items_of(trace_, stack)) {
            if (frame.kind != ValueKind::String) continue;
            scratch_ += trace_.string(frame.string);
            scratch_ += ';';
        }
        out_.string(scratch_);
    }
    void append_positional(std::span<const Argument> values, ArgumentRole role) {
        const ChromeKey first = role == ArgumentRole::Input ? ChromeKey::InputDims : ChromeKey::OutputDims;
        append_list(first, values, role, [&](const Argument& value) { append_extents(value, false); });
        append_list(key_after(first, 1), values, role, [&](const Argument& value) { append_type(value); });
        append_list(key_after(first, 2), values, role,
                    [&](const Argument& value) { append_extents(value, true); });
        append_list(key_after(first, 3), values, role,
                    [&](const Argument& value) { append_concrete(value); });
    }
    char* put_key(char* out, ChromeKey key) noexcept {
        return put_start(out, kChromeKeyStarts[index_of(key)], is_empty_);
    }
    void append_list(ChromeKey key, std::span<const Argument> values, ArgumentRole role, auto entry) {
        out_.take(put_key(out_.room(Word::kBytes), key));
        out_.put('[');
        bool is_first = true;
        for (const Argument& value : values) {
            if (value.role != role) continue;
            if (!is_first) out_.put(',');
            is_first = false;
            entry(value);
        }
        out_.put(']');
    }
    void append_extents(const Argument& value, bool strides) {
        if (const ArrayInfo* const array = array_of(trace_, value); array != nullptr) {
            append_extents(*array, strides);
            return;
        }
        out_.put('[');
        if (is_array_list(trace_, value)) {
            bool is_first = true;
            for (const Argument& item : items_of(trace_, value)) {
                if (!is_first) out_.put(',');
                is_first = false;
                append_extents(*array_of(trace_, item), strides);
            }
        }
        out_.put(']');
    }
    void append_extents(const ArrayInfo& array, bool strides) {
        const std::span<const std::int64_t> extents = extents_of(trace_, array, strides);
        char* out = out_.room(extents.size() * (kIntegerBytes + 1) + 2);
        *out++ = '[';
        for (std::size_t i = 0; i < extents.size(); ++i) {
            if (i != 0) *out++ = ',';
            out = put_integer(out, extents[i]);
        }
        *out++ = ']';
        out_.take(out);
    }
    void append_type(const Argument& value) {
        const std::string_view type = input_type_text(trace_, value);
        char* out = out_.room(type.size() + 2);
        *out++ = '"';
        out = std::copy(type.begin(), type.end(), out);
        *out++ = '"';
        out_.take(out);
    }
    void append_concrete(const Argument& value) {
        if (value.kind == ValueKind::None || value.kind == ValueKind::Array ||
            value.left_out == ValueKind::Array) {
            out_.put("\"\"");
            return;
        }
        if (value.kind == ValueKind::Int) {
            char* out = out_.room(kIntegerBytes + 2);
            *out++ = '"';
            out = put_integer(out, value.integer);
            *out++ = '"';
            out_.take(out);
            return;
        }
        scratch_.clear();
        append_concrete(scratch_, value, 0);
        out_.string(scratch_);
    }
    void append_concrete(std::string& text, const Argument& value, int level) {
        switch (value.kind) {
            case ValueKind::None:
            case ValueKind::Array:
                return;
            case ValueKind::Bool:
                text += value.boolean ? "True" : "False";
                return;
            case ValueKind::Int:
                append_json_number(text, value.integer);
                return;
            case ValueKind::Double:
                append_real_text(text, value.real);
                return;
            case ValueKind::String:
                text += trace_.string(value.string);
                if (value.truncated) text += "...";
                return;
            case ValueKind::List:
                break;
        }
        if (level == kMaxDepth) return;
        const std::span<const Argument> items = items_of(trace_, value);
        if (level == 0 &&
            std::ranges::any_of(items, [](const Argument& item) { return item.kind == ValueKind::Array; }))
            return;  // metadata, which is written elsewhere
        text += '[';
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (i != 0) text += ", ";
            append_concrete(text, items[i], level + 1);
        }
        if (value.truncated) text += items.empty() ? "..." : ", ...";
        text += ']';
    }
    const Trace& trace_;
    ChromeValueCache cache_;
    ChromeText& out_;
    bool is_empty_ = true;
    std::uint64_t given_ = 0;  ///< a bit for each ChromeKey that the values provide
    std::string scratch_;
    std::vector<Key> keys_;
    std::vector<std::uint32_t> key_index_;  ///< by StringId: 1 + index in keys_; 0: not used yet
    std::unordered_map<std::string, std::uint32_t> canonical_;
    // Canonical numbers of the current event's keys: numbers below 64 as bits, others in a list.
    std::uint64_t used_early_ = 0;
    std::vector<std::uint32_t> used_;
    // Position in the text of the number that is unique to this range; an end of 0: none yet.
    std::uint64_t own_start_ = 0;
    std::uint64_t own_end_ = 0;
};

}  // namespace marey
