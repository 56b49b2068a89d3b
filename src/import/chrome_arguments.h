// chrome_arguments.h: the "args" of an event as values of the model.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/trace.h>

#include "base/json_cursor.h"
#include "base/json_members.h"
#include "import/value_cache.h"
#include "trace/trace_assembler.h"

namespace marey {

/// The keys that may mean more than a value of their name.
enum class ChromeKey : std::uint8_t {
    None,
    // Lists with an entry for each input or output; kept as text until it is known that they are.
    InputDims,
    InputType,
    InputStrides,
    ConcreteInputs,
    OutputDims,
    OutputType,
    OutputStrides,
    ConcreteOutputs,
    // The others.
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
    // What our own exporter adds.
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
    Count,
};

/// Reads "args", one event after the other. Objects in objects become values with keys like "a.b"; objects
/// in lists, and what lies deeper than eight objects or lists, become the text of their JSON; a number above
/// 2^63 becomes its text.
class ImportedArguments {
  public:
    explicit ImportedArguments(TraceAssembler& assembler) : assembler_(assembler) {}

    /// Forgets the event before.
    void clear();
    /// The value at the cursor. False: it is no JSON, or the text ends too early.
    /// Events of one category are expected to have the same keys.
    bool read(JsonCursor& cursor, StringId category);

    /// Whether any key of those that may mean more is there.
    bool has_special() const { return present_ != 0; }
    bool has(ChromeKey key) const { return (present_ >> static_cast<unsigned>(key) & 1) != 0; }
    /// What a special key has, if it has it and is of that kind. take... removes it.
    const Argument* find(ChromeKey key) const {
        return has(key) && !is_positional(key) ? &special_[static_cast<std::size_t>(key)] : nullptr;
    }
    std::optional<std::int64_t> integer(ChromeKey key) const {
        const Argument* const value = find(key);
        if (value == nullptr || value->kind != ValueKind::Int) return std::nullopt;
        return value->integer;
    }
    std::optional<std::int64_t> take_integer(ChromeKey key);
    bool take_bool(ChromeKey key, bool wanted);  ///< whether it was there and was `wanted`
    void forget(ChromeKey key) { drop(key); }
    StringId take_string(ChromeKey key);
    /// Addresses may be above what an integer holds.
    std::uint64_t take_address();

    /// Every value: keyword values in the order of the text, then special ones that nobody took, then inputs
    /// and outputs.
    std::span<const Argument> finish();
    /// The keyword values so far, without special ones.
    std::span<const Argument> plain() const { return values_; }

  private:
    static constexpr int kMaxDepth = 8;
    static constexpr std::size_t kLongestCached = 1024;

    static constexpr bool is_positional(ChromeKey key) {
        return key >= ChromeKey::InputDims && key <= ChromeKey::ConcreteOutputs;
    }
    /// A key of "args" itself.
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
    std::array<std::string, 9> last_positional_{};  ///< likewise, of the event before
    /// The inputs, and the outputs, of the event before that had any: many operators pass on what they got.
    struct LastValues {
        std::uint64_t present = 0;  ///< the keys that they were made from; 0: there are none
        bool is_old = false;        ///< a text was not what it was then
        std::vector<Argument> values;
    };
    LastValues last_inputs_, last_outputs_;
    std::uint64_t present_ = 0;  ///< a bit for each ChromeKey
    std::uint64_t address_ = 0;
    JsonMembers members_;
    std::vector<KnownKey> keys_{1};        ///< by the index that members_ has for them
    std::vector<std::uint32_t> key_of_{};  ///< by string: index into keys_; 0: none
    ValueCache cache_;
    std::string key_;
};

}  // namespace marey
