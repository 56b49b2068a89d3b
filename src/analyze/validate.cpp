// validate.cpp: the rules that every trace must satisfy.
#include <marey/validate.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyze/unread_problems.h"
#include "analyze/violation_list.h"
#include "json/json_writer.h"
#include "trace/torch_names.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

constexpr ValidationRule kRules[] = {
    {"unread", "the whole file was read: nothing is truncated, missing or damaged"},
    {"columns", "rows have all columns and are in order, refer to rows that exist, and are on one track"},
    {"nesting",
     "a range lies within its parent, on its track (but overlap tracks), and apart from its siblings"},
    {"window", "every event lies at least partly within the recording window"},
    {"ids", "thread ids and operation ids are unique within a process"},
    {"links", "a link appears only once"},
    {"kernel_before_launch", "nothing on a device starts before the call that launched it"},
    {"backward_before_forward", "no backward range starts before its forward range"},
    {"sequence", "backward ranges with the same sequence number have the same name"},
    {"sync", "when a wait for a stream ends, no work that started before the wait is still running"},
    {"event_wait", "a wait for an event refers to the earlier call that recorded the event"},
    {"collective", "record_param_comms has the collective name, data type, sizes and group"},
    {"strict_json", "the file is strict JSON: RFC 8259, UTF-8"},
    {"unique_keys", "no object has duplicate keys"},
    {"event_fields", "an event has a phase, a time and a row, with the right types"},
    {"row_nesting", "ranges on one row nest properly"},
    {"begin_end", "every begin event has an end event: on the same row or, if it is async, with the same id"},
    {"file_window", "events lie between time zero and Record Window End"},
    {"flow_without_end", "every flow that starts also ends"},
    {"flow_without_start", "every flow that ends also starts"},
    {"flow_id_repeated", "no two flows with the same category and name have the same id"},
    {"flow_backwards", "no flow ends before it starts"},
};

class TraceCheck {
  public:
    explicit TraceCheck(const Trace& trace)
        : trace_(trace), ranges_(trace.ranges()), window_(trace.window()) {}

    std::vector<Violation> run() {
        check_problems();
        const std::string damage = find_damage(trace_.data());
        if (!damage.empty()) {
            violations_.add("columns", [&] { return std::string(damage); });
        } else {
            check_ranges();
            check_points();
            check_ids();
            check_links();
            check_sequences();
            check_devices();
            check_collectives();
        }
        return violations_.take();
    }

  private:
    std::string at(Row row) const {
        return "'" + std::string(trace_.range_name(row)) + "' (range " + std::to_string(row) +
               ", starts at " + std::to_string(ranges_.start_ns[row] - window_.start_ns) + " ns)";
    }
    std::int64_t start(Row row) const { return ranges_.start_ns[row]; }
    std::int64_t end(Row row) const { return ranges_.start_ns[row] + ranges_.duration_ns[row]; }
    const SiteInfo& site(Row row) const { return trace_.sites()[ranges_.site[row]]; }

    void check_problems() {
        for (const ProblemInfo& problem : trace_.problems()) {
            const std::string_view code = problem.code;
            if (std::ranges::find(kUnreadProblems, code) == std::end(kUnreadProblems)) continue;
            violations_.add("unread", [&] {
                return problem.code + ": " + problem.text +
                       (problem.count > 1 ? " (" + std::to_string(problem.count) + " times)" : "");
            });
        }
    }

    void check_ranges() {
        for (const TrackInfo& track : trace_.tracks()) {
            const Row last = track.first_range + track.range_count;
            std::vector<Row> before;  // by depth: the last range
            for (Row row = track.first_range; row < last; ++row) {
                check_parent(row, track);
                const std::uint32_t depth = ranges_.depth[row];
                if (depth < before.size() && start(row) < end(before[depth]))
                    violations_.add("nesting", [&] {
                        return at(row) + " starts before the end of " + at(before[depth]);
                    });
                check_in_window(row);
                before.resize(depth);
                before.push_back(row);
            }
        }
    }

    void check_parent(Row row, const TrackInfo& track) {
        const Row parent = ranges_.parent[row];
        if (parent == kNoRow) return;
        if (ranges_.depth[row] == 0 && track.kind != TrackKind::Overlap)
            violations_.add("nesting", [&] { return at(row) + " has a parent on another track"; });
        else if (start(row) < start(parent) || end(row) > end(parent))
            violations_.add("nesting", [&] { return at(row) + " is not within " + at(parent); });
    }

    void check_in_window(Row row) {
        if ((ranges_.flags[row] & kRemote) != 0) return;  // has a different clock and window
        if (end(row) < window_.start_ns || start(row) > window_.end_ns)
            violations_.add("window", [&] { return at(row) + " is outside the window"; });
    }

    void check_points() {
        const auto check = [&](std::span<const std::int64_t> times, std::span<const Row> threads,
                               const char* what) {
            for (std::size_t i = 0; i < times.size(); ++i) {
                if (trace_.threads()[threads[i]].process != 0) continue;
                if (times[i] < window_.start_ns || times[i] > window_.end_ns)
                    violations_.add("window", [&] {
                        return std::string(what) + " " + std::to_string(i) + " is outside the window";
                    });
            }
        };
        check(trace_.instants().time_ns, trace_.instants().thread, "instant");
        check(trace_.counters().time_ns, trace_.counters().thread, "counter value");
        check(trace_.memory().time_ns, trace_.memory().thread, "allocation report");
    }

    Row process_of(Row row) const {
        return trace_.threads()[trace_.tracks()[trace_.track_of(row)].thread].process;
    }

    void check_ids() {
        std::set<std::pair<Row, std::uint32_t>> threads;
        for (const ThreadInfo& thread : trace_.threads()) {
            if (thread.id != 0 && !threads.emplace(thread.process, thread.id).second)
                violations_.add("ids",
                                [&] { return "thread " + std::to_string(thread.id) + " appears twice"; });
        }
        std::vector<std::tuple<Row, std::uint64_t, Row>> ids;
        for (const RangeDetail& detail : trace_.range_details()) {
            if (detail.id != 0) ids.emplace_back(process_of(detail.range), detail.id, detail.range);
        }
        std::ranges::sort(ids);
        for (std::size_t i = 1; i < ids.size(); ++i) {
            const Row row = std::get<2>(ids[i]);
            if (std::get<0>(ids[i - 1]) == std::get<0>(ids[i]) &&
                std::get<1>(ids[i - 1]) == std::get<1>(ids[i]))
                violations_.add("ids", [&] { return at(row) + " has the same id as another operation"; });
        }
    }

    void check_links() {
        std::vector<std::tuple<Row, Row, LinkKind, StringId>> seen;
        for (const LinkInfo& link : trace_.links()) {
            if (link.kind == LinkKind::Launch && start(link.to) < start(link.from))
                violations_.add("kernel_before_launch",
                                [&] { return at(link.to) + " starts before its launch " + at(link.from); });
            if (link.kind == LinkKind::ForwardBackward && start(link.to) < start(link.from))
                violations_.add("backward_before_forward", [&] {
                    return at(link.to) + " starts before its forward range " + at(link.from);
                });
            seen.emplace_back(link.from, link.to, link.kind, link.name);
        }
        std::ranges::sort(seen);
        const auto twice = std::ranges::adjacent_find(seen);
        if (twice != seen.end())
            violations_.add("links", [&] { return "duplicate link from " + at(std::get<0>(*twice)); });
    }

    /// The autograd engine's range around a backward range has the same sequence number.
    static std::string_view backward_name(std::string_view name) {
        return is_engine_range(name) ? name.substr(kEngineRange.size()) : name;
    }

    void check_sequences() {
        std::map<std::tuple<Row, std::uint32_t, std::int64_t>, Row> first;
        for (const RangeDetail& detail : trace_.range_details()) {
            if (detail.forward_thread == 0 || detail.sequence < 0) continue;
            const auto entry = first.try_emplace(
                {process_of(detail.range), detail.forward_thread, detail.sequence}, detail.range);
            const Row known = entry.first->second;
            if (!entry.second &&
                backward_name(trace_.range_name(known)) != backward_name(trace_.range_name(detail.range)))
                violations_.add("sequence", [&] {
                    return at(detail.range) + " and " + at(known) +
                           " have different names but the same sequence number " +
                           std::to_string(detail.sequence);
                });
        }
    }

    const Argument* keyword(Row row, std::string_view key) const {
        for (const Argument& value : trace_.range_arguments(row)) {
            if (value.role == ArgumentRole::Keyword && trace_.string(value.key) == key) return &value;
        }
        return nullptr;
    }
    std::int64_t number(Row row, std::string_view key, std::int64_t otherwise) const {
        const Argument* const value = keyword(row, key);
        return value != nullptr && value->kind == ValueKind::Int ? value->integer : otherwise;
    }
    bool is_wait(Row row) const {
        return trace_.string(site(row).category) == "cuda_sync" ||
               (site(row).scope == Scope::Device && trace_.range_name(row).starts_with("Stream Sync"));
    }

    void check_devices() {
        for (const TrackInfo& track : trace_.tracks()) {
            if (track.kind != TrackKind::Device) continue;
            const Row last = track.first_range + track.range_count;
            for (Row row = track.first_range; row < last; ++row) {
                if (!is_wait(row)) continue;
                check_wait(row);
                check_event_wait(row);
            }
        }
    }

    /// Work that starts before a wait in the same stream and ends after it is the parent of the wait.
    void check_wait(Row row) {
        const Row around = ranges_.parent[row];
        if (around != kNoRow && site(around).scope == Scope::Device && !is_wait(around) &&
            start(around) < start(row) && end(around) > end(row))
            violations_.add("sync", [&] { return at(around) + " still runs after " + at(row); });
    }

    void check_event_wait(Row row) {
        const std::int64_t recorded = number(row, "wait_on_cuda_event_record_corr_id", -1);
        if (recorded < 0) return;
        if (correlations_.empty()) {
            for (Row each = 0; each < ranges_.size(); ++each) {
                if (site(each).scope != Scope::DeviceRuntime) continue;
                const std::int64_t correlation = number(each, "correlation", -1);
                if (correlation >= 0) correlations_.emplace(correlation, each);
            }
        }
        const auto call = correlations_.find(recorded);
        if (call == correlations_.end() || start(call->second) > end(row))
            violations_.add("event_wait", [&] {
                return at(row) + " waits for the event recorded by call " + std::to_string(recorded) +
                       (call == correlations_.end() ? ", which is missing from the trace"
                                                    : ", which comes later");
            });
    }

    void check_collectives() {
        constexpr std::string_view kKeys[] = {"Collective name", "dtype", "In msg nelems", "Out msg nelems",
                                              "Group size"};
        std::vector<bool> is_collective(trace_.sites().size());
        bool any = false;
        for (std::size_t i = 0; i < is_collective.size(); ++i) {
            is_collective[i] = trace_.string(trace_.sites()[i].name) == "record_param_comms";
            any |= is_collective[i];
        }
        for (Row row = 0; any && row < ranges_.size(); ++row) {
            if (!is_collective[ranges_.site[row]]) continue;
            for (const std::string_view key : kKeys) {
                if (keyword(row, key) != nullptr) continue;
                violations_.add("collective",
                                [&] { return at(row) + " has no argument '" + std::string(key) + "'"; });
                break;
            }
        }
    }

    const Trace& trace_;
    const RangeColumns ranges_;
    const WindowInfo& window_;
    std::map<std::int64_t, Row> correlations_;  ///< correlation id to host call
    ViolationList violations_;
};

}  // namespace

std::span<const ValidationRule> validation_rules() noexcept {
    return kRules;
}

std::vector<Violation> validate(const Trace& trace) {
    return TraceCheck(trace).run();
}

std::string violations_json(std::span<const Violation> violations, std::string_view file) {
    std::string text;
    JsonWriter json(text, 2);
    json.begin_object().member("file", file).member("clean", violations.empty());
    json.list("violations", violations, [&](const Violation& violation) {
        json.member("rule", violation.rule)
            .member("count", violation.count)
            .member("example", violation.example);
    });
    json.end_object();
    return text + "\n";
}

}  // namespace marey
