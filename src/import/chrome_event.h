// chrome_event.h: one event of a Chrome trace, as it was written.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include <marey/trace.h>

#include "base/json_cursor.h"
#include "base/json_members.h"
#include "import/chrome_arguments.h"
#include "trace/trace_assembler.h"

namespace marey {

/// A pid or a tid: a number, or a text that is none.
struct ChromeId {
    static constexpr std::int64_t kMissing = std::numeric_limits<std::int64_t>::min();
    std::int64_t number = kMissing;
    StringId text = 0;  ///< not 0: this, and `number` is 0
    friend bool operator==(const ChromeId&, const ChromeId&) noexcept = default;
};

struct ChromeEvent {
    char phase = 0;  ///< 0: missing, or longer than one letter
    char instant_scope = 't';
    char bind_point = 0;  ///< 'e': an arrow's end is in the enclosing slice
    bool has_name = false;
    bool has_time = false;
    bool has_duration = false;
    bool has_id = false;
    bool is_local_id = false;  ///< the id says something only together with the pid
    bool flows_in = false;
    bool flows_out = false;
    bool has_bind_id = false;
    StringId name = 0;
    StringId category = 0;
    ChromeId pid, tid;
    std::int64_t time_ns = 0;
    std::int64_t duration_ns = 0;
    std::uint64_t id = 0;             ///< a hash of what was written, and of the scope beside it
    std::uint64_t id_scope = 0;       ///< that scope's part of it
    std::uint64_t number_of_id = 0;   ///< the id itself, where it is a number
    std::uint64_t bind_id = 0;        ///< likewise a hash
    std::string_view id_text;         ///< as written; empty where that has escapes
    std::string_view arguments_text;  ///< of "args", where they came before the phase
};

/// Whether anything is made from events of that phase.
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
    RanOut,     ///< the text ends before the event does
    Malformed,  ///< not JSON, or a member that must be of another kind; `cause` says which
};

/// Reads one object from `cursor` on; its "args" go to `arguments`, those of phases that nobody reads only if
/// they come before the phase. Strings are put into `assembler`.
class ChromeEventReader {
  public:
    ChromeEventReader(TraceAssembler& assembler, ImportedArguments& arguments) noexcept
        : assembler_(assembler), arguments_(arguments) {}
    EventResult read(JsonCursor& cursor, ChromeEvent& event);
    /// Of the last one that was malformed.
    const char* cause() const noexcept { return cause_; }

  private:
    bool read_category(JsonCursor& cursor, ChromeEvent& event);
    bool read_name(JsonCursor& cursor, ChromeEvent& event);
    bool read_arguments(JsonCursor& cursor, ChromeEvent& event);
    bool read_member(JsonCursor& cursor, std::uint32_t member, ChromeEvent& event);
    bool read_phase(JsonCursor& cursor, ChromeEvent& event);
    bool read_row_id(JsonCursor& cursor, ChromeId& id);
    bool read_time(JsonCursor& cursor, bool& is_there, std::int64_t& time_ns);
    bool read_hash(JsonCursor& cursor, std::uint64_t& hash);
    bool read_id(JsonCursor& cursor, ChromeEvent& event, std::uint64_t& hash);
    bool read_id2(JsonCursor& cursor, ChromeEvent& event);
    bool read_letter(JsonCursor& cursor, char& letter);
    bool read_flag(JsonCursor& cursor, bool& flag);
    bool fail(const char* cause) noexcept;

    TraceAssembler& assembler_;
    ImportedArguments& arguments_;
    JsonMembers members_;
    /// Categories are few: one of each beginning is remembered, with its closing quote.
    struct KnownCategory {
        StringId id = 0;
        std::uint32_t length = 0;
        char text[24] = {};
    };
    std::array<KnownCategory, 16> categories_{};
    const char* cause_ = "";
};

}  // namespace marey
