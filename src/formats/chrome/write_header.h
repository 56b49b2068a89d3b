// write_header.h: the part of a Chrome trace before the events: facts about the trace, and the names of its
// rows.
#pragma once

#include <algorithm>
#include <set>

#include <marey/export.h>
#include <marey/merge.h>
#include <marey/trace.h>

#include "analyze/result_keys.h"
#include "formats/chrome/text.h"
#include "formats/chrome/write_clock.h"
#include "formats/chrome/write_rows.h"
#include "formats/chrome/write_tables.h"
#include "json/json_scanner.h"
#include "json/json_writer.h"
#include "trace/program_names.h"

namespace marey {

class ChromeHeader {
  public:
    /// All arguments must outlive this.
    ChromeHeader(const ChromeTables& tables, ChromeText& out, ChromeStyle style)
        : trace_(tables.trace), rows_(tables.rows), out_(out), clock_(tables.clock), style_(style) {}

    /// Writes everything from the opening brace to the opening bracket of the event list.
    void write_facts() {
        const WindowInfo& window = trace_.window();
        std::string_view host;
        std::int32_t rank = -1;
        if (!trace_.processes().empty()) {
            host = trace_.string(trace_.processes().front().host);
            if (trace_.processes().size() == 1) rank = trace_.processes().front().node;
        }
        std::string text = "{\"schemaVersion\":1";
        MemberList members(
            text, {"schemaVersion", "displayTimeUnit", "baseTimeNanoseconds", "otherData", "traceEvents"});
        std::string ours = ",\"metadata\":{";  // our keys that the user has taken
        MemberList displaced(ours, {});
        const auto is_given = [&](std::string_view key) {
            return std::ranges::any_of(trace_.metadata(),
                                       [&](const MetadataInfo& fact) { return fact.key == key; });
        };
        if (!is_given("deviceProperties")) members.add("deviceProperties", "[]");
        for (const MetadataInfo& fact : trace_.metadata())
            (members.is_taken(fact.key) ? displaced : members).add(fact.key, fact.json);
        if (rank >= 0 && !is_given("distributedInfo"))
            members.add("distributedInfo", "{\"rank\":" + std::to_string(rank) + "}");
        if (!host.empty() && !is_given("host_name")) {
            std::string name;
            append_json_string(name, host);
            members.add("host_name", name);
        }
        text += ",\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":" + std::to_string(clock_.base_ns());

        std::string other;
        JsonWriter json(other);
        json.begin_object();
        json.member("producer", "marey").member("marey_version", MAREY_VERSION).member("host", host);
        json.member("session", window.session_name).member("finished", window.finished);
        json.member("clock_source", trace_.clock().source);
        json.member("clock_max_error_ns", trace_.clock().max_error_ns);
        if (!trace_.host_clocks().empty()) write_rows(json.key("clocks"), clocks_table(trace_).table);
        write_rows(json.key("problems"), problems_table(trace_.problems()).table);
        text += ",\"otherData\":" + other;
        if (!ours.ends_with('{')) text += ours + "}";
        text += "},\"traceEvents\":[\n";
        out_.put(text);
    }
    /// Writes events that name and order processes, threads and devices.
    void write_names() {
        write_processes();
        write_devices();
        write_tracks();
    }

  private:
    static constexpr std::int64_t kFirstDeviceIndex =
        5'000'000;                                    // sorts devices after all processes, as PyTorch does
    static constexpr std::int64_t kIndexStep = 1000;  // leaves space for a thread's other tracks

    /// Members of the top level or of an object in it, whose values are JSON already. Keys are unique.
    class MemberList {
      public:
        explicit MemberList(std::string& text, std::initializer_list<std::string_view> taken) : text_(text) {
            for (const std::string_view key : taken) used_.insert(rendered(key));
        }
        bool is_taken(std::string_view key) const { return used_.contains(rendered(key)); }
        /// Adds a comma first, unless `text` ends in a brace. Text that is not a complete JSON value becomes
        /// a string.
        void add(const std::string& key, const std::string& json) {
            std::string name = rendered(key);
            for (int i = 2; !used_.insert(name).second; ++i)
                name = rendered(key + " (" + std::to_string(i) + ")");
            if (!text_.ends_with('{')) text_ += ',';
            text_ += name + ':';
            if (is_json(json)) {
                text_ += json;
            } else {
                append_json_string(text_, json);
            }
        }

      private:
        static std::string rendered(std::string_view key) {
            std::string text;
            append_json_string(text, key);
            return text;
        }
        std::string& text_;
        std::set<std::string> used_;
    };

    static std::string device_name(Device device) {
        const bool is_known = device.type != DeviceType::Other && device.type != DeviceType::None;
        return (is_known ? "GPU " : "device ") + std::to_string(std::max(device.index, 0));
    }

    void write_processes() {
        std::set<std::string_view> hosts;
        for (const ProcessInfo& process : trace_.processes()) {
            if (process.host != 0) hosts.insert(trace_.string(process.host));
        }
        for (std::size_t i = 0; i < trace_.processes().size(); ++i) {
            const ChromeRow row{rows_.process[i], 0};
            const std::string name = process_name(trace_.processes()[i]);
            if (!name.empty()) write_metadata(row, "process_name", "name", name);
            const std::string_view host = trace_.string(trace_.processes()[i].host);
            write_metadata(row, "process_labels", "labels",
                           hosts.size() > 1 && !host.empty() ? "CPU, " + std::string(host) : "CPU");
            write_metadata(row, "process_sort_index", "sort_index", static_cast<std::int64_t>(i));
        }
    }
    void write_devices() {
        std::int64_t more = 0;
        for (const ChromeRows::DeviceProcess& device : rows_.devices) {
            const ChromeRow row{device.pid, 0};
            const std::string label = device_name(device.device);
            std::string name = label;
            const bool is_of_other = device.process != 0 && device.process < trace_.processes().size();
            if (is_of_other) name += " of " + process_name(trace_.processes()[device.process]);
            // If a process has the same number, the rows of both appear under its name.
            if (!device.shares_pid) write_metadata(row, "process_name", "name", name);
            write_metadata(row, "process_labels", "labels", device.shares_pid ? "CPU, " + label : label);
            if (!device.shares_pid)  // after the labels: PyTorch's own tests expect that order
                write_metadata(row, "process_sort_index", "sort_index",
                               kFirstDeviceIndex + std::max(device.device.index, 0) +
                                   (is_of_other ? kIndexStep * ++more : 0));
        }
    }
    void write_tracks() {
        // Threads in order of creation, each followed by its other tracks.
        std::vector<std::int64_t> next_index(trace_.threads().size());
        std::int64_t index = 0;
        for (std::size_t i = 0; i < trace_.threads().size(); ++i, index += kIndexStep) {
            next_index[i] = index;
            if (rows_.is_device_thread[i]) continue;
            write_thread_name(rows_.thread[i], thread_name(trace_.threads()[i]));
            write_metadata(rows_.thread[i], "thread_sort_index", "sort_index", next_index[i]++);
        }
        for (std::size_t i = 0; i < trace_.tracks().size(); ++i) {
            const TrackInfo& track = trace_.tracks()[i];
            const ChromeRow row = rows_.track[i];
            const bool has_thread = track.thread < rows_.thread.size();
            const bool on_device = is_of_device(track);
            if (has_thread && !on_device && row == rows_.thread[track.thread]) continue;
            const bool is_queue = track.kind == TrackKind::Device;
            write_thread_name(row, track_name(track), is_queue ? nullptr : &track);
            std::int64_t place = has_thread ? next_index[track.thread]++ : index++;
            if (on_device && track.stream >= 0) place = track.stream;
            write_metadata(row, "thread_sort_index", "sort_index", place);
        }
    }
    void write_metadata(ChromeRow row, std::string_view what, std::string_view key, const auto& value) {
        std::string text;
        JsonWriter json(text);
        json.begin_object()
            .member("ph", "M")
            .member("name", what)
            .member("pid", row.pid)
            .member("tid", row.tid);
        json.key("args").begin_object().member(key, value).end_object().end_object();
        text += ",\n";
        out_.put(text);
    }
    /// A row that is not a thread names its kind and the row of its thread.
    void write_thread_name(ChromeRow row, std::string_view name, const TrackInfo* track = nullptr) {
        std::string text;
        JsonWriter json(text);
        json.begin_object().member("ph", "M").member("name", "thread_name");
        json.member("pid", row.pid).member("tid", row.tid).key("args").begin_object().member("name", name);
        if (track != nullptr) {
            const ChromeRow owner = rows_.of_thread(track->thread);
            json.member("track", track->kind == TrackKind::Async     ? "async"
                                 : track->kind == TrackKind::Overlap ? "overlap"
                                                                     : "track");
            if (owner.pid != row.pid) json.member("thread_pid", owner.pid);
            json.member("thread", owner.tid);
        }
        json.end_object().end_object();
        text += ",\n";
        out_.put(text);
    }
    std::string process_name(const ProcessInfo& process) const {
        std::string name = style_ == ChromeStyle::Viewer ? program_name(trace_, process)
                                                         : program_name(trace_.string(process.name), {});
        if (process.node >= 0) name += " (rank " + std::to_string(process.node) + ")";
        return name;
    }
    std::string thread_name(const ThreadInfo& thread) const {
        const std::string name = style_ == ChromeStyle::Viewer ? shown_thread_name(trace_, thread)
                                                               : std::string(trace_.string(thread.name));
        return name.empty() ? "thread " + std::to_string(thread.id) : name;
    }
    std::string track_name(const TrackInfo& track) const {
        const std::string_view name = trace_.string(track.name);
        if (!is_of_device(track)) {
            if (!name.empty()) return std::string(name);
            return track.kind == TrackKind::Async     ? "async"
                   : track.kind == TrackKind::Overlap ? "overlap"
                                                      : "track";
        }
        std::string stream = track.stream >= 0 ? "stream " + std::to_string(track.stream) : std::string(name);
        if (stream.empty()) stream = "stream";
        if (track.kind == TrackKind::Overlap) stream += " overlapping";
        return stream;
    }

    const Trace& trace_;
    const ChromeRows& rows_;
    ChromeText& out_;
    ChromeClock clock_;
    ChromeStyle style_;
};

}  // namespace marey
