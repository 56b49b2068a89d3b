// watcher.cpp: conditions, evaluated on the newest parts of captures.
#include "cli/watcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include <marey/error.h>
#include <marey/process_end.h>
#include <marey/range_filter.h>
#include <marey/steps.h>

#include "cli/text_format.h"

namespace marey::cli {
namespace {

// Each trace has a fit of the clock of its own, which moves times by less than this.
constexpr std::int64_t kClockSlackNs = 100'000;
// Ranges of one async track may be written by several threads.
constexpr std::int64_t kAsyncSlackNs = 100'000'000;

/// "handle" for "shop.py(12): handle".
std::string function_of(std::string_view name) {
    const std::size_t mark = name.find("): ");
    return std::string(mark == std::string_view::npos ? name : name.substr(mark + 3));
}

/// A text that can be a part of a file name everywhere.
std::string label_of(std::string_view kind, std::string_view name) {
    constexpr std::size_t kMost = 40;
    std::string label(kind);
    if (!name.empty()) label += '-';
    for (const unsigned char c : name.substr(0, kMost))
        label += std::isalnum(c) != 0 || c == '_' || c == '.' ? static_cast<char>(c) : '-';
    return label;
}

bool is_close(std::int64_t a, std::int64_t b) {
    return a - b <= kClockSlackNs && b - a <= kClockSlackNs;
}

/// The sites that a condition names, methods with or without their classes. A condition without a name is
/// about all of them.
std::vector<bool> sites_of(const Trace& trace, const WatchCondition& condition) {
    if (condition.name.empty()) return std::vector<bool>(trace.sites().size(), true);
    return matching_sites(trace, {condition.name, "*." + condition.name});
}

/// The finished ranges that a condition is about.
std::vector<Row> finished_ranges(const Trace& trace, const WatchCondition& condition) {
    std::vector<Row> rows;
    const RangeColumns ranges = trace.ranges();
    const auto add = [&](Row row) {
        if ((ranges.flags[row] & (kUnfinished | kRemote)) == 0) rows.push_back(row);
    };
    if (condition.kind == WatchKind::Step) {
        for (const StepInfo& step : step_report(trace, {.slowest = 0}).steps) add(step.range);
        return rows;
    }
    const std::vector<bool> wanted = sites_of(trace, condition);
    if (std::ranges::find(wanted, true) == wanted.end()) return rows;
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind != TrackKind::Thread && track.kind != TrackKind::Async) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            if (wanted[ranges.site[row]]) add(row);
        }
    }
    return rows;
}

}  // namespace

// ---- what is usual

void Watcher::RecentTimes::add(std::int64_t ns) {
    constexpr std::size_t kMost = 1000;
    if (times_.size() < kMost) {
        times_.push_back(ns);
    } else {
        times_[next_++ % kMost] = ns;
    }
}

double Watcher::RecentTimes::quantile(double share) const {
    // p99 needs a hundred times.
    const double fewest = std::max(5.0, share < 1 ? 1 / (1 - share) : 0);
    if (static_cast<double>(times_.size()) < fewest) return 0;
    std::vector<std::int64_t> sorted = times_;
    const auto rank = static_cast<std::size_t>(static_cast<double>(sorted.size()) * share);
    const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(rank, sorted.size() - 1));
    std::ranges::nth_element(sorted, at);
    return static_cast<double>(*at);
}

// ---- one process

std::vector<WatchHit> Watcher::check(const Trace& trace, std::uint64_t memory_bytes) {
    hits_.clear();
    const std::vector<ProcessNow> processes = now(trace);
    for (std::size_t i = 0; i < conditions_.size(); ++i) {
        switch (conditions_[i].kind) {
            case WatchKind::Range:
            case WatchKind::Step:
                check_times(trace, i);
                break;
            case WatchKind::Stall:
                for (const ProcessNow& process : processes) check_stalls(trace, process, i);
                break;
            case WatchKind::Counter:
                check_counter(trace, i);
                break;
            case WatchKind::Memory:
                check_memory(trace, i, memory_bytes);
                break;
            case WatchKind::Gap:
                check_gaps(trace, i);
                break;
            case WatchKind::Exception:
                check_exceptions(trace, i);
                break;
            case WatchKind::Died:
                for (const ProcessNow& process : processes) check_end(trace, process, i);
                break;
            case WatchKind::MissingRank:
                break;  // not of one process
        }
    }
    return std::move(hits_);
}

void Watcher::add_hit(const Trace& trace, std::size_t condition, const std::string& label, std::string reason,
                      std::int64_t begin_ns, std::int64_t end_ns, Row thread) {
    hits_.push_back({condition, label, std::move(reason), begin_ns, end_ns,
                     thread == kNoRow ? 0 : trace.threads()[thread].os_tid});
}

bool Watcher::has_risen(std::size_t condition, const std::string& what, bool is_above) {
    return !std::exchange(is_above_[{condition, what}], is_above) && is_above;
}

void Watcher::check_times(const Trace& trace, std::size_t condition) {
    const WatchCondition& wanted = conditions_[condition];
    const RangeColumns ranges = trace.ranges();
    RecentTimes& recent = usual_[condition];
    const double usual = wanted.of_usual != 0 ? recent.quantile(wanted.of_usual) : 0;
    const double limit = wanted.of_usual != 0 ? usual * wanted.limit : wanted.limit;
    const auto before = progress_;
    const std::vector<Row> rows = finished_ranges(trace, wanted);
    if (!rows.empty()) seen_.insert(condition);
    for (const Row row : rows) {
        const TrackInfo& track = trace.tracks()[trace.track_of(row)];
        const std::tuple key{condition, trace.threads()[track.thread].os_tid, track.kind};
        const std::int64_t slack = track.kind == TrackKind::Async ? kAsyncSlackNs : kClockSlackNs;
        const std::int64_t begin = ranges.start_ns[row], end = begin + ranges.duration_ns[row];
        const std::string_view name = trace.range_name(row);
        if (const auto known = before.find(key); known != before.end()) {
            const auto is_this = [&](const SeenRange& seen) {
                return seen.name == name && seen.depth == ranges.depth[row] &&
                       is_close(seen.begin_ns, begin) && is_close(seen.end_ns, end);
            };
            if (end < known->second.end_ns - slack || std::ranges::any_of(known->second.last, is_this))
                continue;
        }
        Progress& progress = progress_[key];
        progress.end_ns = std::max(progress.end_ns, end);
        std::erase_if(progress.last,
                      [&](const SeenRange& seen) { return seen.end_ns < progress.end_ns - slack; });
        progress.last.push_back({std::string(name), begin, end, ranges.depth[row]});
        const std::int64_t taken = ranges.duration_ns[row];
        if (wanted.of_usual != 0) recent.add(taken);
        if (limit == 0 || static_cast<double>(taken) <= limit) continue;
        const std::string function = function_of(name);
        std::string text = fmt::format("{} took {} (limit {}", printable(function), format_duration(taken),
                                       wanted.limit_text);
        if (wanted.of_usual != 0) text += ": " + format_duration(limit);
        add_hit(trace, condition, label_of("slow", wanted.kind == WatchKind::Step ? "step" : function),
                text + ")", begin, end, track.thread);
    }
}

// Waiting is what idle threads do, unless it is inside something that the program marks, such as a request.
void Watcher::check_stalls(const Trace& trace, const ProcessNow& process, std::size_t condition) {
    if (process.state != ProcessState::Running) return;
    const WatchCondition& wanted = conditions_[condition];
    const std::vector<bool> sites = sites_of(trace, wanted);
    const RangeColumns ranges = trace.ranges();
    for (const ThreadNow& thread : process.threads) {
        const OpenNow* stalled = nullptr;
        if (wanted.name.empty()) {
            const bool is_marked = std::ranges::any_of(thread.ranges, [&](const OpenNow& open) {
                const Scope scope = trace.sites()[ranges.site[open.range]].scope;
                return scope == Scope::User || scope == Scope::Step;
            });
            if (!thread.ranges.front().is_waiting || is_marked) stalled = &thread.ranges.front();
        } else {
            const auto found = std::ranges::find_if(
                thread.ranges, [&](const OpenNow& open) { return sites[ranges.site[open.range]]; });
            if (found != thread.ranges.end()) stalled = &*found;
        }
        if (stalled == nullptr || static_cast<double>(stalled->open_ns) <= wanted.limit) continue;
        const std::int64_t begin = ranges.start_ns[stalled->range];
        const ThreadInfo& info = trace.threads()[thread.thread];
        const auto [told, is_new] =
            stalls_.try_emplace({condition, info.os_tid, ranges.depth[stalled->range]}, begin);
        if (!is_new && is_close(told->second, begin)) continue;
        told->second = begin;
        const std::string name = function_of(trace.range_name(stalled->range));
        add_hit(trace, condition, label_of("stall", name),
                fmt::format("{} is open for {} (limit {})", printable(name),
                            format_duration(stalled->open_ns), wanted.limit_text),
                begin, begin + stalled->open_ns, thread.thread);
    }
}

void Watcher::check_counter(const Trace& trace, std::size_t condition) {
    const WatchCondition& wanted = conditions_[condition];
    const std::vector<bool> sites = sites_of(trace, wanted);
    const CounterColumns counters = trace.counters();
    for (Row row = 0; row < counters.size(); ++row) {
        if (!sites[counters.site[row]]) continue;
        const std::string name(trace.string(trace.sites()[counters.site[row]].name));
        std::int64_t& until = told_until_[{condition, name}];
        if (counters.time_ns[row] <= until + kClockSlackNs) continue;
        until = counters.time_ns[row];
        if (has_risen(condition, name, counters.value[row] > wanted.limit))
            add_hit(
                trace, condition, label_of("counter", name),
                fmt::format("{} was {} (limit {})", printable(name), counters.value[row], wanted.limit_text),
                until, until, counters.thread[row]);
    }
}

void Watcher::check_memory(const Trace& trace, std::size_t condition, std::uint64_t bytes) {
    const WatchCondition& wanted = conditions_[condition];
    const std::int64_t end = trace.window().end_ns;
    if (has_risen(condition, "", static_cast<double>(bytes) > wanted.limit))
        add_hit(
            trace, condition, "memory",
            fmt::format("the process uses {} of memory (limit {})", format_bytes(bytes), wanted.limit_text),
            end, end, kNoRow);
}

// Before its first work, and after its last, a device is not used.
void Watcher::check_gaps(const Trace& trace, std::size_t condition) {
    const WatchCondition& wanted = conditions_[condition];
    struct Work {
        std::int64_t begin_ns, end_ns;
    };
    std::map<std::string, std::vector<Work>> devices;
    const RangeColumns ranges = trace.ranges();
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind != TrackKind::Device) continue;
        std::string device = device_type_name(track.device.type);
        if (track.device.index >= 0) device += fmt::format(":{}", track.device.index);
        if (!wanted.name.empty() && device != wanted.name && !device.starts_with(wanted.name + ":")) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row)
            devices[device].push_back({ranges.start_ns[row], ranges.start_ns[row] + ranges.duration_ns[row]});
    }
    for (auto& [device, work] : devices) {
        std::ranges::sort(work, {}, &Work::begin_ns);
        std::int64_t& until = told_until_[{condition, device}];
        for (const Work& each : work) {
            if (each.end_ns <= until) continue;
            const std::int64_t gap = each.begin_ns - until;
            if (until != 0 && static_cast<double>(gap) > wanted.limit)
                add_hit(trace, condition, label_of("gap", device),
                        fmt::format("{} had nothing to do for {} (limit {})", device, format_duration(gap),
                                    wanted.limit_text),
                        until, each.begin_ns, kNoRow);
            until = each.end_ns;
        }
    }
}

void Watcher::check_exceptions(const Trace& trace, std::size_t condition) {
    const WatchCondition& wanted = conditions_[condition];
    const InstantColumns instants = trace.instants();
    for (Row row = 0; row < instants.size(); ++row) {
        constexpr std::string_view kPrefix = "exception ";
        const std::string_view name = trace.string(trace.sites()[instants.site[row]].name);
        if (!name.starts_with(kPrefix)) continue;
        const std::string type(name.substr(kPrefix.size()));
        const std::int64_t time = instants.time_ns[row];
        std::int64_t& until =
            told_until_[{condition, std::to_string(trace.threads()[instants.thread[row]].os_tid)}];
        if (time <= until + kClockSlackNs) continue;
        until = time;
        if (!wanted.name.empty() && wanted.name != type) continue;
        std::string message;
        for (const Argument& value : trace.instant_arguments(row)) {
            if (trace.string(value.key) == "message" && value.kind == ValueKind::String)
                message = ": " + printable(trace.string(value.string));
        }
        add_hit(trace, condition, label_of("exception", type), printable(type) + message, time, time,
                instants.thread[row]);
    }
}

void Watcher::check_end(const Trace& trace, const ProcessNow& process, std::size_t condition) {
    const bool has_died = process.state == ProcessState::Killed || process.state == ProcessState::Ended ||
                          (process.state == ProcessState::Exited && process.exit_code != 0);
    if (!has_risen(condition, "", has_died)) return;
    const EndedProcess end = ended_process(trace, process.process);
    std::string how = "ended without closing its capture";
    if (end.exit_signal > 0) how = "was killed by " + signal_name(end.exit_signal);
    if (end.exit_code > 0) how = fmt::format("exited with code {}", end.exit_code);
    if (!end.open_range.empty()) how += " in " + printable(function_of(end.open_range));
    add_hit(trace, condition, "died", fmt::format("process {} {}", end.pid, how), process.end_ns,
            process.end_ns, kNoRow);
}

// ---- a job

bool MissingRanks::is_wanted() const {
    return std::ranges::find(conditions_, WatchKind::MissingRank, &WatchCondition::kind) != conditions_.end();
}

std::vector<WatchHit> MissingRanks::check(const std::vector<Trace>& traces) {
    std::vector<WatchHit> hits;
    if (!is_wanted() || traces.size() < 2) return hits;
    RankReader reader;
    std::int64_t end = 0;
    std::vector<RankFinding> findings;
    try {
        for (const Trace& trace : traces) {
            reader.add(trace);
            end = std::max(end, trace.window().end_ns);
        }
        findings = reader.report().findings;
    } catch (const Error&) {  // not a job, or a rank that has just begun
        return hits;
    }
    std::erase_if(findings, [](const RankFinding& each) { return each.rule != "hang"; });
    std::erase_if(since_ns_, [&](const auto& each) {
        return std::ranges::find(findings, each.first, &RankFinding::rank) == findings.end();
    });
    for (const RankFinding& finding : findings) {
        const std::int64_t since = since_ns_.try_emplace(finding.rank, end).first->second;
        for (std::size_t i = 0; i < conditions_.size(); ++i) {
            if (conditions_[i].kind != WatchKind::MissingRank ||
                static_cast<double>(end - since) <= conditions_[i].limit || !told_.insert({i, since}).second)
                continue;
            hits.push_back({i, "missing-rank", finding.text, since, end, 0});
        }
    }
    return hits;
}

}  // namespace marey::cli
