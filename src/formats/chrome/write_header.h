// write_header.h: the part of a Chrome trace before the events: facts about the trace, and the names of its
// rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <marey/export.h>
#include <marey/trace.h>

#include "formats/chrome/text.h"
#include "formats/chrome/write_clock.h"
#include "formats/chrome/write_rows.h"
#include "formats/chrome/write_tables.h"

namespace marey {

class ChromeHeader {
  public:
    /// All arguments must outlive this.
    ChromeHeader(const ChromeTables& tables, ChromeText& out, ChromeStyle style)
        : trace_(tables.trace), rows_(tables.rows), out_(out), clock_(tables.clock), style_(style) {}

    /// Writes everything from the opening brace to the opening bracket of the event list.
    void write_facts();
    /// Writes events that name and order processes, threads and devices.
    void write_names();

  private:
    void write_processes();
    void write_devices();
    void write_tracks();
    template <typename T>
    void write_metadata(ChromeRow row, std::string_view what, std::string_view key, const T& value);
    void write_thread_name(ChromeRow row, std::string_view name, const TrackInfo* track = nullptr);
    std::string process_name(const ProcessInfo& process) const;
    std::string thread_name(const ThreadInfo& thread) const;
    std::string track_name(const TrackInfo& track) const;

    const Trace& trace_;
    const ChromeRows& rows_;
    ChromeText& out_;
    ChromeClock clock_;
    ChromeStyle style_;
};

}  // namespace marey
