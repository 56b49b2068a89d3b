// write_arguments.h: the values of an event as members of its "args", with the keys that PyTorch's tools
// expect.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

#include "formats/chrome/text.h"
#include "formats/chrome/value_cache.h"

namespace marey {

/// Numbers that the exporter generates if the values of a range do not contain them.
enum ChromeNumber : std::uint32_t {
    kExternalId = 1 << 0,
    kEventIndex = 1 << 1,
    kFunctionId = 1 << 2,
    kSequence = 1 << 3,
    kForwardThread = 1 << 4,
    kPythonId = 1 << 5,
    kPythonParent = 1 << 6,
    kCorrelation = 1 << 7,
    kDeviceNumber = 1 << 8,
    kStream = 1 << 9,
    kCallNumber = 1 << 10,
    kCallPart = 1 << 11,
    kPythonThread = 1 << 12,
};

struct ChromeNumberKey {
    ChromeNumber number;
    std::string_view key;
    Word start;  ///< start of its member, with a leading comma
    constexpr ChromeNumberKey(ChromeNumber which, std::string_view text)
        : number(which), key(text), start(text, ",\"", "\":") {}
};
/// In bit order.
inline constexpr ChromeNumberKey kChromeNumberKeys[] = {
    {kExternalId, "External id"},        {kEventIndex, "Ev Idx"},
    {kFunctionId, "Record function id"}, {kSequence, "Sequence number"},
    {kForwardThread, "Fwd thread id"},   {kPythonId, "Python id"},
    {kPythonParent, "Python parent id"}, {kCorrelation, "correlation"},
    {kDeviceNumber, "device"},           {kStream, "stream"},
    {kCallNumber, "Call number"},        {kCallPart, "Call part"},
    {kPythonThread, "Python thread"},
};

/// Appends members of a JSON object to a text, separated by commas.
class ChromeArguments {
  public:
    /// Both arguments must outlive this.
    ChromeArguments(const Trace& trace, ChromeText& out);

    /// Call after the opening brace of an object.
    void begin() noexcept {
        is_empty_ = true;
        given_ = 0;
    }

    /// Writes keyword values under their keys (duplicates are renamed); inputs as "Input Dims", "Input type",
    /// "Input Strides" and "Concrete Inputs", lists with one entry per input; outputs in the same way.
    void append_values(std::span<const Argument> values);
    /// Writes "Sequence number" and "Fwd thread id" if there is a sequence number, "Record function id" if
    /// there is an id.
    void append_detail(const RangeDetail& detail);
    /// Writes a generated number unless the values appended since begin() contain it.
    void append_number(ChromeNumber which, std::int64_t value) {
        out_.take(put_number(out_.room(kNumberBytes), which, value));
    }
    /// Writes the same into a buffer with at least kNumberBytes per number. Returns the end.
    static constexpr std::size_t kNumberBytes = 64;
    char* put_number(char* out, ChromeNumber which, std::int64_t value) noexcept {
        return (given_ & which) != 0 ? out : put_integer(put_number_key(out, which), value);
    }
    /// Writes the same as append_detail(): at most 3 numbers.
    char* put_detail(char* out, const RangeDetail& detail) noexcept;
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
    /// Properties of a key, computed when it is first used.
    struct Key {
        Stamp text;                ///< "key":
        std::uint32_t canonical;   ///< equal for keys with the same JSON text
        std::uint32_t number = 0;  ///< the ChromeNumber that this key provides
        bool is_reserved = false;  ///< user keys with this text are renamed
    };

    void separate() {
        if (!is_empty_) out_.put(',');
        is_empty_ = false;
    }
    const Key& key_of(StringId id);
    std::uint32_t canonical(const std::string& text);
    /// Marks a key as used. Returns false if it was used already.
    bool use(std::uint32_t canonical) {
        if (canonical >= 64) return use_late(canonical);
        const std::uint64_t bit = std::uint64_t{1} << canonical;
        const bool is_new = (used_early_ & bit) == 0;
        used_early_ |= bit;
        return is_new;
    }
    bool use_late(std::uint32_t canonical);
    void render_values(std::span<const Argument> values);
    bool append_integer(const Argument& value);
    void append_key(const Argument& value, std::size_t index);
    void append_changed_key(const Argument& value, std::size_t index);
    void append_value(const Argument& value, int level);
    void append_stack(const Argument& stack);
    void append_positional(std::span<const Argument> values, ArgumentRole role);
    bool append_small_positional(std::span<const Argument> values, ArgumentRole role);
    char* put_number_key(char* out, ChromeNumber which) noexcept {
        const auto& key = kChromeNumberKeys[std::countr_zero(static_cast<unsigned>(which))];
        return put_start(out, key.start, is_empty_);
    }
    template <typename Entry>
    void append_list(std::string_view start, std::span<const Argument> values, ArgumentRole role,
                     Entry entry);
    void append_extents(const Argument& value, bool strides);
    void append_extents(const ArrayInfo& array, bool strides);
    void append_type(const Argument& value);
    void append_concrete(const Argument& value);
    void append_concrete(std::string& text, const Argument& value, int level);
    const ArrayInfo* array_of(const Argument& value) const;
    std::span<const Argument> items_of(const Argument& value) const;

    const Trace& trace_;
    const std::span<const ArrayInfo> arrays_;
    const std::span<const std::int64_t> extents_;
    ChromeValueCache cache_;
    ChromeText& out_;
    bool is_empty_ = true;
    std::uint32_t given_ = 0;  ///< ChromeNumbers that the values provide
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
