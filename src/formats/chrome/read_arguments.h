// read_arguments.h: converts the "args" of an event to values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/trace.h>

#include "base/text_hash.h"
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
    void clear();
    /// Reads the value at the cursor. Returns false if it is not JSON or the text ends too early. Events of
    /// one category usually have the same keys, which makes reading faster.
    bool read(JsonCursor& cursor, StringId category);

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
    std::optional<std::int64_t> take_integer(ChromeKey key);
    bool take_bool(ChromeKey key, bool wanted);  ///< whether it was present and equal to `wanted`
    void forget(ChromeKey key) { drop(key); }
    StringId take_string(ChromeKey key);
    /// An address may exceed the range of a signed integer.
    std::uint64_t take_address();

    /// All values: keyword values in text order, then special ones that were not taken, then inputs and
    /// outputs.
    std::span<const Argument> finish();
    /// The keyword values so far, without special ones.
    std::span<const Argument> plain() const { return values_; }

  private:
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

    std::uint32_t known_key(std::string_view text);
    bool read_members(JsonCursor& cursor, std::size_t kind);
    bool read_object(JsonCursor& cursor, const std::string& prefix, int depth);
    bool read_special(JsonCursor& cursor, ChromeKey which, StringId key);
    bool read_nested(JsonCursor& cursor, StringId key, const std::string& key_text, int depth);
    bool read_array_object(JsonCursor& cursor, Argument& value);
    bool read_value(JsonCursor& cursor, Argument& value, int depth);
    bool read_word(JsonCursor& cursor, Argument& value);
    bool read_list(JsonCursor& cursor, Argument& value, int depth);
    bool read_as_text(JsonCursor& cursor, Argument& value);
    bool skip_positional(JsonCursor& cursor, ChromeKey which);
    void append_positional(ChromeKey first, ArgumentRole role);
    std::vector<Argument> positional_values(ChromeKey first, ArgumentRole role);
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
