// trace_fixture.h: hand-made traces for tests.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <marey/trace.h>

#include "trace/part_flags.h"
#include "trace/trace_data.h"

namespace marey {

/// A range and the ranges inside it. Times are in nanoseconds.
struct RangeSpec {
    std::string name;
    std::int64_t start;
    std::int64_t duration;
    std::vector<RangeSpec> inside = {};
    std::uint16_t flags = 0;
};

/// TraceFixture().thread("main", {{"load", 0, 100, {{"read", 10, 20}}}}).trace(): one thread, two ranges, and
/// a window that contains them all unless window() sets another one.
class TraceFixture {
  public:
    TraceFixture() {
        data_->processes.push_back({});
        data_->processes[0].pid = 100;
        data_->processes[0].name = string("/opt/bin/app");
        data_->processes[0].host = string("box");
        data_->processes[0].realtime_offset_ns = 1'000'000'000;
    }

    TraceFixture& window(std::int64_t start, std::int64_t end) {
        data_->window.start_ns = start;
        data_->window.end_ns = end;
        fixed_window_ = true;
        return *this;
    }
    TraceFixture& thread(const std::string& name, const std::vector<RangeSpec>& ranges,
                         std::int64_t os_tid = -1) {
        ThreadInfo info;
        info.id = static_cast<std::uint32_t>(data_->threads.size() + 1);
        info.os_tid = os_tid >= 0 ? os_tid : 1000 + info.id;
        info.name = string(name);
        data_->threads.push_back(info);
        return track(TrackKind::Thread, name, ranges);
    }
    /// Adds an async track to the last thread.
    TraceFixture& async(const std::string& name, const std::vector<RangeSpec>& ranges) {
        return track(TrackKind::Async, name, ranges);
    }
    TraceFixture& instant(const std::string& name, std::int64_t time) {
        data_->instant_site.push_back(site(name));
        data_->instant_time_ns.push_back(time);
        data_->instant_thread.push_back(last_thread());
        return *this;
    }
    TraceFixture& counter(const std::string& name, std::int64_t time, double value) {
        data_->counter_site.push_back(site(name));
        data_->counter_time_ns.push_back(time);
        data_->counter_thread.push_back(last_thread());
        data_->counter_value.push_back(value);
        return *this;
    }
    /// Attaches a value to the last range. `key` and the fields of the value are as in Argument.
    TraceFixture& value(const std::string& key, Argument argument) {
        argument.key = string(key);
        const Row row = static_cast<Row>(data_->range_start_ns.size() - 1);
        std::vector<ArgumentSlice>& index = data_->range_arguments;
        if (index.empty() || index.back().row != row)
            index.push_back({row, static_cast<std::uint32_t>(data_->arguments.size()), 0});
        data_->arguments.push_back(argument);
        ++index.back().count;
        return *this;
    }
    TraceFixture& problem(const std::string& code, const std::string& text) {
        data_->problems.push_back({code, text, 1});
        return *this;
    }

    /// The site for a name; a different `scope` or `file` makes another site with the same name.
    std::uint32_t site(const std::string& name, Scope scope = Scope::User, const std::string& file = "",
                       std::uint32_t line = 0) {
        const SiteInfo wanted{string(name), string(file), line, scope};
        for (std::uint32_t i = 0; i < data_->sites.size(); ++i) {
            const SiteInfo& known = data_->sites[i];
            if (known.name == wanted.name && (file.empty() || known.file == wanted.file)) return i;
        }
        data_->sites.push_back(wanted);
        return static_cast<std::uint32_t>(data_->sites.size() - 1);
    }
    StringId string(const std::string& text) {
        const auto found = std::find(data_->strings.begin(), data_->strings.end(), text);
        if (found != data_->strings.end()) return static_cast<StringId>(found - data_->strings.begin());
        data_->strings.push_back(text);
        return static_cast<StringId>(data_->strings.size() - 1);
    }
    /// Direct access, for anything the functions above do not cover.
    TraceData& data() { return *data_; }

    /// Returns the trace. The fixture cannot be used afterwards.
    Trace trace() {
        if (!fixed_window_) {
            data_->window.start_ns = latest_ < earliest_ ? 0 : earliest_;
            data_->window.end_ns = latest_ < earliest_ ? 0 : latest_;
        }
        fill_self_times();
        mark_parts(*data_);
        return Trace(std::shared_ptr<const TraceData>(std::move(data_)));
    }

  private:
    Row last_thread() const { return static_cast<Row>(data_->threads.size() - 1); }

    TraceFixture& track(TrackKind kind, const std::string& name, const std::vector<RangeSpec>& ranges) {
        TrackInfo info;
        info.kind = kind;
        info.thread = last_thread();
        info.name = string(name);
        info.first_range = static_cast<Row>(data_->range_start_ns.size());
        for (const RangeSpec& range : ranges) add(range, kNoRow, 0);
        info.range_count = static_cast<Row>(data_->range_start_ns.size()) - info.first_range;
        data_->tracks.push_back(info);
        return *this;
    }

    void add(const RangeSpec& range, Row parent, std::uint32_t depth) {
        const Row row = static_cast<Row>(data_->range_start_ns.size());
        data_->range_start_ns.push_back(range.start);
        data_->range_duration_ns.push_back(range.duration);
        data_->range_self_ns.push_back(0);
        data_->range_site.push_back(site(range.name));
        data_->range_parent.push_back(parent);
        data_->range_depth.push_back(depth);
        data_->range_flags.push_back(range.flags);
        earliest_ = std::min(earliest_, range.start);
        latest_ = std::max(latest_, range.start + range.duration);
        for (const RangeSpec& child : range.inside) add(child, row, depth + 1);
    }

    void fill_self_times() {
        for (Row row = 0; row < data_->range_start_ns.size(); ++row) {
            const std::int64_t start = std::max(data_->range_start_ns[row], data_->window.start_ns);
            const std::int64_t end =
                std::min(data_->range_start_ns[row] + data_->range_duration_ns[row], data_->window.end_ns);
            const std::int64_t clipped = std::max<std::int64_t>(0, end - start);
            data_->range_self_ns[row] += clipped;
            if (data_->range_parent[row] != kNoRow) data_->range_self_ns[data_->range_parent[row]] -= clipped;
        }
    }

    std::shared_ptr<TraceData> data_ = std::make_shared<TraceData>();
    bool fixed_window_ = false;
    std::int64_t earliest_ = std::numeric_limits<std::int64_t>::max();
    std::int64_t latest_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace marey
