// event.h: one event of a Chrome trace, as it was written.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include <marey/trace.h>

#include "formats/chrome/read_arguments.h"
#include "json/json_cursor.h"
#include "json/json_members.h"
#include "trace/trace_assembler.h"

namespace marey {

/// A pid or a tid: a number or a text.
struct ChromeId {
    static constexpr std::int64_t kMissing = std::numeric_limits<std::int64_t>::min();
    std::int64_t number = kMissing;
    StringId text = 0;  ///< if not 0, the text; then `number` is 0
    friend bool operator==(const ChromeId&, const ChromeId&) noexcept = default;
};

struct ChromeEvent {
    char phase = 0;  ///< 0: missing, or longer than one character
    char instant_scope = 't';
    char bind_point = 0;  ///< 'e': the flow binds to the enclosing slice
    bool has_name = false;
    bool has_time = false;
    bool has_duration = false;
    bool has_text_time = false;  ///< a time or a duration is not a number but a text
    bool has_id = false;
    bool is_local_id = false;  ///< the id is unique only within its pid
    bool flows_in = false;
    bool flows_out = false;
    bool has_bind_id = false;
    StringId name = 0;
    StringId category = 0;
    ChromeId pid, tid;
    std::int64_t time_ns = 0;
    std::int64_t duration_ns = 0;
    std::uint64_t id = 0;             ///< hash of the id as written, combined with its scope
    std::uint64_t id_scope = 0;       ///< hash of the scope
    std::uint64_t number_of_id = 0;   ///< the id itself, if it is a number
    std::uint64_t bind_id = 0;        ///< likewise a hash
    std::string_view id_text;         ///< as written; empty if it contains escapes
    std::string_view arguments_text;  ///< text of "args", if they came before the phase
};

/// Whether events of this phase are imported.
inline bool is_read_phase(char phase) noexcept {
    constexpr std::string_view kPhases = "XBEbneSTpFiIRCstfM";
    constexpr auto kAreRead = [kPhases] {
        std::array<bool, 256> are_read{};
        for (const char read : kPhases) are_read[static_cast<unsigned char>(read)] = true;
        return are_read;
    }();
    return kAreRead[static_cast<unsigned char>(phase)];
}

enum class EventResult : std::uint8_t {
    Read,
    RanOut,     ///< the text ends within the event
    Malformed,  ///< not JSON, or a member of the wrong type; cause() gives the reason
};

/// Reads one object at `cursor`. Its "args" go to `arguments`; for phases that are not imported only if they
/// come before the phase. Strings are added to `assembler`.
class ChromeEventReader {
  public:
    ChromeEventReader(TraceAssembler& assembler, ImportedArguments& arguments) noexcept
        : assembler_(assembler), arguments_(arguments) {}
    EventResult read(JsonCursor& cursor, ChromeEvent& event);
    /// The reason why the last malformed event was rejected.
    const char* cause() const noexcept { return cause_; }

  private:
    bool read_category(JsonCursor& cursor, ChromeEvent& event);
    bool read_name(JsonCursor& cursor, ChromeEvent& event);
    bool read_arguments(JsonCursor& cursor, ChromeEvent& event);
    bool read_member(JsonCursor& cursor, std::uint32_t member, ChromeEvent& event);
    bool read_phase(JsonCursor& cursor, ChromeEvent& event);
    bool read_row_id(JsonCursor& cursor, ChromeId& id);
    bool read_time(JsonCursor& cursor, ChromeEvent& event, bool& is_there, std::int64_t& time_ns);
    bool read_hash(JsonCursor& cursor, std::uint64_t& hash);
    bool read_id(JsonCursor& cursor, ChromeEvent& event, std::uint64_t& hash);
    bool read_id2(JsonCursor& cursor, ChromeEvent& event);
    bool read_letter(JsonCursor& cursor, char& letter);
    bool read_flag(JsonCursor& cursor, bool& flag);
    bool fail(const char* cause) noexcept;

    TraceAssembler& assembler_;
    ImportedArguments& arguments_;
    JsonMembers members_;
    /// There are few categories: one per hash of the first characters is cached, with its closing quote.
    struct KnownCategory {
        StringId id = 0;
        std::uint32_t length = 0;
        char text[24] = {};
    };
    std::array<KnownCategory, 16> categories_{};
    const char* cause_ = "";
};

}  // namespace marey
