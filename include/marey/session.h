// session.h: starts and stops recordings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <marey/detail/export.h>
#include <marey/remote.h>
#include <marey/session_options.h>
#include <marey/trace.h>

namespace marey {

/// One recording. Any number may run at the same time, nested or overlapping, started and stopped by any
/// thread. A Session that is destroyed while it is running is discarded. The object itself is not
/// thread-safe.
class MAREY_API Session {
  public:
    Session() noexcept = default;
    explicit Session(const SessionOptions& options) { start(options); }
    ~Session();
    Session(Session&& other) noexcept;
    Session& operator=(Session&& other) noexcept;

    /// Starts recording. Throws marey::Error if the capture file cannot be created or the session is already
    /// running.
    void start(const SessionOptions& options = {});
    /// Stops recording and returns the trace. Other threads continue undisturbed. With an output file, the
    /// file is complete afterwards. Stopping twice is harmless and returns the same trace.
    Trace stop();
    /// Returns the trace so far and continues recording. Open ranges are marked unfinished.
    Trace snapshot() const;
    /// Writes the records so far as a capture and continues recording. `path` appears complete or not at all.
    /// The capture has the reason, if there is one. Throws marey::Error if the file cannot be written or this
    /// session is not running.
    void snapshot_to(const std::string& path, const std::string& reason = {}) const;
    /// Stops without building a trace (a capture file is completed all the same).
    void discard() noexcept;
    bool is_running() const noexcept;
    /// Adds events of another process (pack_events). The trace shows them under that process, flagged
    /// kRemote. With an output file, they survive a crash of this process from then on. Throws marey::Error
    /// if the message is invalid (see unpack_events), over 256 MiB or larger than max_bytes allows, or if
    /// this session is not running.
    void add_events(std::string_view message, const RemoteOptions& options = {});
    /// Adds a fact to the trace (Trace::metadata): `json` is a complete JSON value of up to 128 KiB; it
    /// replaces an earlier value of the same key. Throws marey::Error if it is not valid JSON or this session
    /// is not running.
    void add_metadata(std::string_view key, std::string_view json);
    /// Stops recording the session's devices (after waiting for work already launched), or resumes it. If
    /// another session records the devices at the same time, that work is in this session's trace too. Throws
    /// marey::Error if this session is not running.
    void record_devices(bool is_wanted);
    /// The path of the capture. Differs from the requested output if that file existed. Empty without a file.
    const std::string& output_path() const noexcept { return output_path_; }
    std::uint64_t id() const noexcept { return id_; }

  private:
    std::uint64_t id_ = 0;  // 0: never started, or stopped
    std::string output_path_;
    Trace trace_;
};

/// Returns the combined options of all sessions that record the calling thread: the union of scopes and
/// switches, and the largest max_bytes. No scopes means that there is no such session. Takes a lock.
MAREY_API SessionOptions active_options();

}  // namespace marey
