// record_profile.h: a profile of one scope, written when it ends.
#pragma once

#include <iosfwd>
#include <string>

#include <marey/detail/export.h>
#include <marey/session.h>

namespace marey {

/// Records from its construction to its destruction and then writes a Chrome trace (export.h):
/// `marey::RecordProfile guard("trace.json");`. Nothing here throws: a failure, of the start too, is a line
/// on standard error, and the program goes on. Used by one thread; records what `options` say.
class MAREY_API RecordProfile {
  public:
    /// To a file, which appears whole or not at all. ".gz" compresses.
    explicit RecordProfile(std::string path, const SessionOptions& options = {}) noexcept;
    /// To a stream, which must outlive this.
    explicit RecordProfile(std::ostream& stream, const SessionOptions& options = {}) noexcept;
    ~RecordProfile();
    RecordProfile(const RecordProfile&) = delete;
    RecordProfile& operator=(const RecordProfile&) = delete;

    /// To add events of other processes, or to look at the trace so far.
    Session& session() noexcept { return session_; }

  private:
    void start(const SessionOptions& options) noexcept;

    std::string path_;
    std::ostream* stream_ = nullptr;  // null: the file
    Session session_;
};

}  // namespace marey
