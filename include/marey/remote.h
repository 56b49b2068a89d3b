// remote.h: events from elsewhere: a trace's events as a message, and what a session needs to take one in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <marey/detail/export.h>
#include <marey/scope.h>
#include <marey/trace.h>
#include <marey/value.h>

namespace marey {

/// A process that events come from. Within a trace, (pid, host, node) tells processes apart.
struct RemoteProcess {
    std::int64_t pid = 0;
    std::int32_t node = -1;  ///< rank or node id, -1 when it has none
    std::string host;
    std::string name;  ///< path of the executable
};

/// A thread of such a process. Threads that only appear in events need no entry.
struct RemoteThread {
    std::uint32_t process = 0;  ///< index into EventMessage::processes
    std::uint64_t id = 0;       ///< as events name it
    std::int64_t os_tid = 0;    ///< 0: unknown
    StringId name = 0;
};

/// A keyword value. A StringId is a text of the message.
struct RemoteValue {
    StringId key = 0;
    std::variant<bool, std::int64_t, double, StringId> value = false;
};

/// One event. Strings are indexes into EventMessage::strings.
struct RemoteEvent {
    enum class Kind : std::uint8_t {
        Mark = 0,    ///< a point in time
        Range = 1,   ///< start to end
        Memory = 2,  ///< memory was taken or given back
    };
    Kind kind = Kind::Range;
    Scope scope = Scope::User;
    bool is_async = false;       ///< crossed threads or ended out of order
    bool is_unfinished = false;  ///< was open when its session ended
    bool is_refused = false;     ///< Memory: was asked for and not given
    StringId name = 0;
    std::uint32_t process = 0;  ///< index into EventMessage::processes, which has the node id
    Device device;
    std::uint64_t thread = 0;
    std::uint64_t id = 0;  ///< as observers saw it, of operations; 0: none
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;  ///< not before the start; Mark, Memory: not looked at
    /// Index of the event, in this message, of the call that led to this one in another process; -1: none.
    std::int64_t caller = -1;
    std::int64_t sequence = -1;  ///< as in RangeDetail, as is forward_thread
    std::uint32_t forward_thread = 0;
    std::int64_t device_ns = -1;                    ///< time on its device; -1: not measured
    std::int64_t cpu_memory_bytes = 0;              ///< Memory: change on the CPU. Range: what it took in all
    std::int64_t device_memory_bytes = 0;           ///< the same of its device
    std::uint64_t address = 0;                      ///< Memory
    std::int64_t total_allocated = 0;               ///< Memory: in use afterwards
    std::int64_t total_reserved = 0;                ///< Memory: held by the allocator afterwards
    std::vector<std::vector<std::int64_t>> shapes;  ///< of its inputs, in their order
    std::vector<StringId> stack;                    ///< innermost frame first
    std::vector<RemoteValue> values;
};

/// What one process tells another. A plain value: fill it by events_of() or by hand.
/// Times are nanoseconds of the sender's CLOCK_MONOTONIC_RAW.
struct EventMessage {
    std::vector<std::string> strings{std::string()};        ///< [0] is ""; repeating one is harmless
    std::string boot_id;                                    ///< whose clock it is; empty: unknown
    std::int64_t start_ns = 0;                              ///< what the events are of
    std::int64_t end_ns = 0;                                ///< not before the start
    std::vector<RemoteProcess> processes{RemoteProcess()};  ///< [0] is the sender
    std::vector<RemoteThread> threads;
    std::vector<RemoteEvent> events;  ///< in any order

    StringId add_string(std::string_view text) {
        strings.emplace_back(text);
        return static_cast<StringId>(strings.size() - 1);
    }
};

/// The message as bytes: compact, with version and checksum (docs/formats/event_message.md). Throws marey::Error when
/// it contradicts itself (an index that leads nowhere, a range that ends before it starts).
MAREY_API std::string pack_events(const EventMessage& message);
/// The other way. Throws marey::Error, saying why, when the bytes are of a newer version, cut short, damaged,
/// have fields of wrong types or contradict themselves. Memory is at most in proportion to the bytes. The
/// checksum tells accidents, not forgers: whom to believe is for the transport to know.
MAREY_API EventMessage unpack_events(std::string_view bytes);

/// Which events of a trace are wanted.
struct EventFilter {
    ScopeSet scopes = ScopeSet::all();
    std::vector<std::string> names{};   ///< of ranges and marks; empty: all
    std::function<bool(Row)> ranges{};  ///< asked for each range that the above let pass; empty: all
    bool marks = true;
    bool memory = true;
};

/// The events of a trace as a message, those that came from elsewhere included, with their processes and
/// names: so a server that called another passes everything on to its own caller. Of inputs it takes the
/// shapes, of keyword values all but lists; counters stay behind.
MAREY_API EventMessage events_of(const Trace& trace, const EventFilter& filter = {});

/// When a call to another process was under way: begins where it is made, ends with end(). A plain value,
/// which may be ended on another thread than it began on (the answer to an asynchronous call).
class MAREY_API RemoteCall {
  public:
    RemoteCall() noexcept;  ///< begins now, on this thread
    void end() noexcept;    ///< the answer is here; only the first time counts

  private:
    friend class Session;
    std::uint64_t start_ = 0;   // ticks
    std::uint64_t end_ = 0;     // ticks; 0: not ended
    std::uint32_t thread_ = 0;  // that began it; 0: cannot record
};

/// How a session takes in a message.
struct RemoteOptions {
    std::string prefix{};    ///< put before every name: "rpc_sync#f(a -> b)#remote_op: "; up to 1024 bytes
    std::int32_t node = -1;  ///< the sender's node id, where it is not -1 and the message says otherwise
    /// The call during which the events happened: they are linked to the range that made it. It also tells
    /// when they happened if they come from another host: the middle of the message's time is laid on the
    /// middle of the call. Null: unknown; times of another host then end when the message was added, and the
    /// trace says that they are a guess. Looked at during the call of add_events only.
    const RemoteCall* call = nullptr;
};

}  // namespace marey
