// source.h: the interface of components that record by themselves (a call tracer, allocation hooks, a
// device).
#pragma once

#include <cstdint>
#include <vector>

#include <marey/session.h>

namespace marey {

/// A live session with Python calls, and which of them it needs.
struct SessionCalls {
    std::uint64_t session;
    CallOptions options;
    bool operator==(const SessionCalls&) const = default;
};

/// The calls that a thread was in when a tracer began, outermost first. They are open in every trace of a
/// session that stops before the thread records them itself.
struct AbsentStack {
    struct Call {
        std::uint32_t site;
        std::uint64_t start;  ///< ticks
        int line = 0;         ///< the line that it was called from; 0: unknown, or not requested
    };
    std::int64_t os_tid = 0;
    std::vector<Call> calls;
};

/// The union of what the live sessions need.
struct RecordingNeeds {
    std::uint32_t scopes = 0;       ///< bits by Scope; 0: nothing records
    std::uint32_t option_bits = 0;  ///< detail::OptionBits
    std::vector<SessionCalls> calls{};
    std::uint32_t sample_rate = 0;   ///< samples per second of CPU time; 0: none
    std::uint32_t device_types = 0;  ///< bits by DeviceType: devices whose work is needed
    std::uint32_t device_activities = 0;
    std::uint32_t timed_devices = 0;  ///< likewise: devices on which ranges are timed with events
    bool is_recording() const noexcept { return scopes != 0; }
};

/// Registered once, for the life of the process. Calls come one at a time, without the recorder's lock, from
/// whichever thread starts or stops a session; they must not throw, wait for the GIL, or start or stop
/// sessions themselves.
class Source {
  public:
    virtual ~Source() = default;
    virtual const char* name() const noexcept = 0;
    /// The union has changed: start, stop or adapt. Called at every change and once when registered.
    virtual void needs_changed(const RecordingNeeds& needs) noexcept = 0;
    /// Hand over buffered records: a session is about to stop or to be read. `wait_for_devices`: a session
    /// that requested devices stops, and the work given to them must complete first. Return within
    /// `timeout_ns`.
    virtual void flush(std::uint64_t timeout_ns, bool wait_for_devices) noexcept = 0;
    /// In the child of a fork, where nothing records any more: discard the parent's state.
    virtual void forked() noexcept = 0;
};

/// Registers the source of samples, once. It is in this library, in a room that this one does not include.
namespace sampling {
void register_source() noexcept;
}

}  // namespace marey
