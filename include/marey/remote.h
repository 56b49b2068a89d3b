// remote.h: events of other processes: packs the events of a trace into a message that a session can add.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/scope.h>
#include <marey/trace.h>

namespace marey {

/// Selects events of a trace.
struct EventFilter {
    ScopeSet scopes = ScopeSet::all();
    std::vector<std::string> names{};   ///< names of ranges and marks; empty: all
    std::function<bool(Row)> ranges{};  ///< called for each range that passes the other filters; empty: all
    bool marks = true;                  ///< and counters
    bool memory = true;
};

/// Returns the events of a trace as a message: the bytes of a saved trace (docs/formats/event_message.md). It
/// includes events that came from other processes, so a server that called another server can return all
/// events to its own caller, and facts such as the command line, which redact() removes. Ranges inside those
/// that the filter leaves out become children of the range around them; values of ranges and marks that are
/// left out are not sent.
MAREY_API std::string pack_events(const Trace& trace, const EventFilter& filter = {});

/// Reads a message. Throws marey::Error with the reason if the bytes have a newer version, are truncated or
/// damaged, or are inconsistent. Uses memory at most proportional to the number of bytes. Checksums detect
/// accidental damage, not forgery: the transport must authenticate the sender.
MAREY_API Trace unpack_events(std::string_view bytes);

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
