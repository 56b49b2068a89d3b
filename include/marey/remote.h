// remote.h: events of other processes: packs the events of a trace into a message that a session can add.
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

/// A process that events come from. Within a trace, (pid, host, node) identifies a process.
struct RemoteProcess {
    std::int64_t pid = 0;
    std::int32_t node = -1;  ///< rank or node id; -1: none
    std::string host;
    std::string name;  ///< path of the executable
};

/// A thread of such a process. Threads that only appear in events need no entry.
struct RemoteThread {
    std::uint32_t process = 0;  ///< index into EventMessage::processes
    std::uint64_t id = 0;       ///< RemoteEvent::thread
    std::int64_t os_tid = 0;    ///< 0: unknown
    StringId name = 0;
};

/// A keyword value. A StringId is an index into EventMessage::strings.
struct RemoteValue {
    StringId key = 0;
    std::variant<bool, std::int64_t, double, StringId> value = false;
};

/// One event. Strings are indexes into EventMessage::strings.
struct RemoteEvent {
    enum class Kind : std::uint8_t {
        Mark = 0,    ///< a point in time
        Range = 1,   ///< start to end
        Memory = 2,  ///< memory was allocated or freed
    };
    Kind kind = Kind::Range;
    Scope scope = Scope::User;
    bool is_async = false;       ///< crossed threads or ended out of order
    bool is_unfinished = false;  ///< was open when its session ended
    bool is_refused = false;     ///< Memory: the allocation failed
    StringId name = 0;
    std::uint32_t process = 0;  ///< index into EventMessage::processes, which has the node id
    Device device;
    std::uint64_t thread = 0;
    std::uint64_t id = 0;  ///< id for observers, of operations; 0: none
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;  ///< not before the start; ignored for Mark and Memory
    /// Index, in this message, of the event of the call that caused this one in another process; -1: none.
    std::int64_t caller = -1;
    std::int64_t sequence = -1;  ///< as in RangeDetail
    std::uint32_t forward_thread = 0;
    std::int64_t device_ns = -1;                    ///< time on its device; -1: not measured
    std::int64_t cpu_memory_bytes = 0;              ///< Memory: change on the CPU. Range: total it allocated
    std::int64_t device_memory_bytes = 0;           ///< the same for its device
    std::uint64_t address = 0;                      ///< Memory
    std::int64_t total_allocated = 0;               ///< Memory: in use afterwards
    std::int64_t total_reserved = 0;                ///< Memory: held by the allocator afterwards
    std::vector<std::vector<std::int64_t>> shapes;  ///< of its inputs, in order
    std::vector<StringId> stack;                    ///< innermost frame first
    std::vector<RemoteValue> values;
};

/// Events that one process sends to another. A plain value: fill it with events_of() or by hand. Times are
/// nanoseconds of the sender's CLOCK_MONOTONIC_RAW.
struct EventMessage {
    std::vector<std::string> strings{std::string()};        ///< [0] is ""; duplicates are allowed
    std::string boot_id;                                    ///< identifies the clock; empty: unknown
    std::int64_t start_ns = 0;                              ///< start of the recorded period
    std::int64_t end_ns = 0;                                ///< end of the recorded period
    std::vector<RemoteProcess> processes{RemoteProcess()};  ///< [0] is the sender
    std::vector<RemoteThread> threads;
    std::vector<RemoteEvent> events;  ///< in any order

    StringId add_string(std::string_view text) {
        strings.emplace_back(text);
        return static_cast<StringId>(strings.size() - 1);
    }
};

/// Encodes a message as bytes: compact, with version and checksum (docs/formats/event_message.md). Throws
/// marey::Error if the message is inconsistent (an invalid index, a range that ends before it starts).
MAREY_API std::string pack_events(const EventMessage& message);
/// Decodes a message. Throws marey::Error with the reason if the bytes have a newer version, are truncated or
/// damaged, have fields of wrong types, or are inconsistent. Uses memory at most proportional to the number
/// of bytes. The checksum detects accidental damage, not forgery: the transport must authenticate the sender.
MAREY_API EventMessage unpack_events(std::string_view bytes);

/// Selects events of a trace.
struct EventFilter {
    ScopeSet scopes = ScopeSet::all();
    std::vector<std::string> names{};   ///< names of ranges and marks; empty: all
    std::function<bool(Row)> ranges{};  ///< called for each range that passes the other filters; empty: all
    bool marks = true;
    bool memory = true;
};

/// Returns the events of a trace as a message, including events that came from other processes, with their
/// processes and names. A server that called another server can thus return all events to its own caller.
/// Includes the shapes of inputs and all keyword values except lists, but no counters.
MAREY_API EventMessage events_of(const Trace& trace, const EventFilter& filter = {});

/// The time of a call to another process: begins at construction and ends with end(). A plain value that may
/// be ended on another thread than it began on (the response to an asynchronous call).
class MAREY_API RemoteCall {
  public:
    RemoteCall() noexcept;  ///< begins now, on this thread
    void end() noexcept;    ///< the response has arrived; only the first call counts

  private:
    friend class Session;
    std::uint64_t start_ = 0;   // ticks
    std::uint64_t end_ = 0;     // ticks; 0: not ended
    std::uint32_t thread_ = 0;  // the thread that began it; 0: cannot record
};

/// Options of Session::add_events().
struct RemoteOptions {
    std::string prefix{};    ///< added before every name: "rpc_sync#f(a -> b)#remote_op: "; up to 1024 bytes
    std::int32_t node = -1;  ///< replaces the sender's node id, unless -1
    /// The call during which the events happened: they are linked to the range that made it. For events from
    /// another host it also determines their times: the middle of the message's period is placed at the
    /// middle of the call. Null: unknown; then events from another host end at the time when the message was
    /// added, and the trace marks their times as estimated. Used only during the call of add_events().
    const RemoteCall* call = nullptr;
};

}  // namespace marey
