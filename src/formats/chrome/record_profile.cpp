// record_profile.cpp: marey::RecordProfile: a session that writes a Chrome trace when it ends.
#include <marey/record_profile.h>

#include <unistd.h>

#include <exception>
#include <utility>

#include <marey/export.h>

namespace marey {

namespace {

/// Prints one line. Never throws.
void print_error(const char* what, const char* why) noexcept {
    try {
        const std::string line = std::string("marey: ") + what + ": " + why + "\n";
        if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // stderr is closed
    } catch (...) {
    }
}

}  // namespace

RecordProfile::RecordProfile(std::string path, const SessionOptions& options) noexcept
    : path_(std::move(path)) {
    start(options);
}

RecordProfile::RecordProfile(std::ostream& stream, const SessionOptions& options) noexcept
    : stream_(&stream) {
    start(options);
}

void RecordProfile::start(const SessionOptions& options) noexcept {
    try {
        session_.start(options);
    } catch (const std::exception& error) {
        print_error("cannot start the profile", error.what());
    } catch (...) {
        print_error("cannot start the profile", "unknown error");
    }
}

RecordProfile::~RecordProfile() {
    if (session_.id() == 0) return;  // never started, or already stopped by the caller
    try {
        const Trace trace = session_.stop();
        if (stream_ != nullptr)
            write_chrome_json(trace, *stream_);
        else
            write_chrome_json(trace, path_);
    } catch (const std::exception& error) {
        print_error("cannot write the profile", error.what());
    } catch (...) {
        print_error("cannot write the profile", "unknown error");
    }
}

}  // namespace marey
