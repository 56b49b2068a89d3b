// record_profile.cpp: marey::RecordProfile: a session whose end writes a Chrome trace.
#include <marey/record_profile.h>

#include <unistd.h>

#include <exception>
#include <utility>

#include <marey/export.h>

namespace marey {

namespace {

// One line, whatever happens.
void print_error(const char* what, const char* why) noexcept {
    try {
        const std::string line = std::string("marey: ") + what + ": " + why + "\n";
        if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // nobody to tell
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
        print_error("the profile cannot start", error.what());
    } catch (...) {
        print_error("the profile cannot start", "unknown error");
    }
}

RecordProfile::~RecordProfile() {
    if (session_.id() == 0) return;  // never started, or stopped by its user
    try {
        const Trace trace = session_.stop();
        if (stream_ != nullptr)
            write_chrome_json(trace, *stream_);
        else
            write_chrome_json(trace, path_);
    } catch (const std::exception& error) {
        print_error("the profile is lost", error.what());
    } catch (...) {
        print_error("the profile is lost", "unknown error");
    }
}

}  // namespace marey
