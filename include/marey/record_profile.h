// record_profile.h: records a scope and writes the trace when it ends.
#pragma once

#include <iosfwd>
#include <string>

#include <marey/detail/export.h>
#include <marey/session.h>

namespace marey {

/// Records from construction to destruction and then writes a Chrome trace (export.h):
/// `marey::RecordProfile guard("trace.json");`. Never throws: failures, including a failure to start, are
/// printed on standard error, and the program continues. Must be used by one thread; `options` select what is
/// recorded.
class MAREY_API RecordProfile {
  public:
    /// Writes to a file, completely or not at all. Compresses if `path` ends in ".gz".
    explicit RecordProfile(std::string path, const SessionOptions& options = {}) noexcept;
    /// Writes to a stream, which must outlive this object.
    explicit RecordProfile(std::ostream& stream, const SessionOptions& options = {}) noexcept;
    ~RecordProfile();
    RecordProfile(const RecordProfile&) = delete;
    RecordProfile& operator=(const RecordProfile&) = delete;

    /// The session, for adding events of other processes or taking a snapshot.
    Session& session() noexcept { return session_; }

  private:
    void start(const SessionOptions& options) noexcept;

    std::string path_;
    std::ostream* stream_ = nullptr;  // null: the file
    Session session_;
};

}  // namespace marey
