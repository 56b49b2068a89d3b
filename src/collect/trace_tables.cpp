// trace_tables.cpp: builds the tables around the ranges from the results of the replay.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>

#include "base/enum_names.h"
#include "base/process_text.h"
#include "base/reserve_expected.h"
#include "collect/arguments.h"
#include "collect/device_tracks.h"
#include "collect/links.h"
#include "collect/log_records.h"
#include "collect/problem_list.h"
#include "collect/replayed_log.h"
#include "collect/sample_rows.h"
#include "collect/site_values.h"
#include "json/json_scanner.h"
#include "trace/part_flags.h"
#include "trace/process_links.h"
#include "trace/trace_data.h"

namespace marey {

using namespace detail;

namespace {

const char* source_name(ClockSource source) {
    static constexpr const char* kNames[] = {"monotonic_raw", "tsc", "cntvct_el0", "injected"};
    return name_at(kNames, source);
}

const char* policy_name(std::uint32_t policy) {
    static constexpr const char* kNames[] = {"stop", "drop", "ring"};
    return name_at(kNames, policy, "stop");
}

const char* cost_name(std::uint32_t event) {
    static constexpr const char* kNames[] = {"range",        "range_with_values", "instant",
                                             "counter",      "allocation_report", "python_call",
                                             "python_resume"};
    return name_at(kNames, event);
}

class TableFiller {
  public:
    explicit TableFiller(ReplayedLog& state) : state_(state) {}

    void fill() {
        StringPool strings(state_.data->strings);
        ArgumentDecoder arguments(*state_.data, strings, state_.filter.values, state_.frames);
        fill_process(strings);
        fill_threads();
        site_values_.choose(state_);
        add_thread_tracks(strings, arguments);
        add_async_tracks(strings, arguments);
        mark_parts(*state_.data, parts_);
        add_tasks(strings);
        add_exchanges(strings);
        link_forward_backward(*state_.data);
        if (state_.request.part_details) merge_parts();
        device_findings_ = add_device_tracks(state_, strings, arguments);
        name_device_sites(*state_.data, strings);
        fill_points(arguments);
        fill_memory();
        fill_samples(state_, thread_rows_, strings, arguments.frames());
        fill_messages();
        fill_unknown_site(strings);
        if (!state_.data->messages.empty()) connect_processes(*state_.data);
        fill_infos();
        fill_metadata();
        if (arguments.frames().has_native())
            put_fact(state_.data->metadata, "native_modules", arguments.frames().modules_json());
        fill_problems(arguments.damaged());
    }

    void fill_outline() {
        StringPool strings(state_.data->strings);
        fill_process(strings);
        fill_threads();
        fill_infos();
        state_.data->sites.clear();
    }

  private:
    void fill_process(StringPool& strings) {
        ProcessInfo process{.pid = state_.log.pid,
                            .node = state_.log.node,
                            .name = strings.intern(state_.log.executable),
                            .host = strings.intern(state_.log.host),
                            .command_line = strings.intern(state_.log.command_line),
                            .realtime_offset_ns = state_.fit->realtime_offset_ns()};
        if (state_.journal.identity) fill_identity(process, *state_.journal.identity, strings);
        if (const auto& end = state_.journal.process_end)
            (end->signal != 0 ? process.exit_signal : process.exit_code) =
                end->signal != 0 ? end->signal : end->exit_code;
        state_.data->processes.push_back(process);
    }

    void fill_identity(ProcessInfo& process, const ProcessIdentityRecord& identity,
                       StringPool& strings) const {
        const auto boot = std::string(identity.boot_id, strnlen(identity.boot_id, sizeof identity.boot_id));
        process.tree = strings.intern(tree_text(identity.tree));
        process.realtime_error_ns = std::int64_t{identity.wall_error_us} * 1000;
        if (!state_.request.clock.empty()) {
            process.clock = strings.intern(state_.request.clock);
        } else if (!boot.empty()) {
            process.clock = strings.intern(clock_text(boot, identity.time_namespace));
        }
        process.pid_namespace = identity.pid_namespace;
        process.start = identity.start;
        std::string ancestors;
        for (const AncestorRecord& each : state_.journal.ancestors)
            ancestors +=
                (ancestors.empty() ? "" : " ") + ancestor_text(each.pid, each.start, each.pid_namespace);
        process.ancestors = strings.intern(ancestors);
        process.origin = identity.origin == static_cast<std::uint32_t>(ProcessOriginCode::Fork)
                             ? ProcessOrigin::Fork
                         : identity.origin == static_cast<std::uint32_t>(ProcessOriginCode::Program)
                             ? ProcessOrigin::Spawn
                             : ProcessOrigin::Unknown;
        if (identity.fork_ticks != 0) process.fork_ns = state_.fit->to_ns(identity.fork_ticks);
        process.fork_thread = identity.fork_thread;
    }

    bool lived_in_window(std::uint32_t id, const JournalThread& thread) const {
        if (state_.filter.filters_contexts) return id == state_.filter.thread;
        if (thread.birth == 0)
            return (thread.dropped | thread.overwritten_chunks | thread.resyncs | thread.clamped) != 0;
        return thread.birth <= state_.filter.stop_ticks &&
               (thread.death == 0 || thread.death >= state_.filter.start_ticks);
    }

    void fill_threads() {
        std::map<std::uint32_t, const ThreadReplay*> with_rows;
        for (const ThreadReplay& replay : state_.replays) {
            if (replay.rows + replay.async_rows.size() + replay.instants.size() + replay.counters.size() +
                    replay.memory.size() + replay.messages.size() + replay.samples.size() !=
                0) {
                with_rows.emplace(replay.thread, &replay);
                state_.journal.threads.try_emplace(replay.thread);
            }
        }
        for (const auto& [id, thread] : state_.journal.threads) {
            if (with_rows.count(id) == 0 && !lived_in_window(id, thread)) continue;
            ThreadInfo info{.id = id,
                            .os_tid = thread.os_tid,
                            .name = thread.name < state_.data->strings.size() ? thread.name : 0,
                            .birth_ns = thread.birth == 0 ? 0 : state_.fit->to_ns(thread.birth),
                            .death_ns = thread.death == 0 ? 0 : state_.fit->to_ns(thread.death),
                            .dropped = std::max(thread.dropped, state_.dropped_in_log[id]),
                            .overwritten_chunks = thread.overwritten_chunks,
                            .resyncs = thread.resyncs,
                            .clamped = thread.clamped};
            thread_rows_.emplace(id, static_cast<Row>(state_.data->threads.size()));
            state_.data->threads.push_back(info);
        }
    }

    std::string title(Row thread) const {
        const ThreadInfo& info = state_.data->threads[thread];
        if (info.name != 0) return state_.data->strings[info.name];
        return "thread " + std::to_string(info.id);
    }

    void add_thread_tracks(StringPool& strings, ArgumentDecoder& arguments) {
        DeviceCallValues call_values(*state_.data, strings);
        reserve_details();
        for (std::size_t i = 0; i < state_.replays.size(); ++i) {
            ThreadReplay& replay = state_.replays[i];
            if (replay.rows == 0) continue;
            TrackInfo track;
            track.thread = thread_rows_.at(replay.thread);
            track.name = strings.intern(title(track.thread));
            track.first_range = static_cast<Row>(state_.first_rows[i]);
            track.range_count = static_cast<Row>(replay.rows);
            state_.data->tracks.push_back(track);
            auto call = replay.device_calls.begin();
            const auto add_values_before = [&](Row end) {
                for (; call != replay.device_calls.end() && track.first_range + call->row < end; ++call) {
                    add_site_values_before(track.first_range + call->row, arguments);
                    call_values.add(*call, track.first_range + call->row);
                }
                add_site_values_before(end, arguments);
            };
            auto sequenced = replay.sequenced.begin();
            const auto add_sequenced_before = [&](Row end) {
                for (; sequenced != replay.sequenced.end() && track.first_range + sequenced->row < end;
                     ++sequenced)
                    add_sequence(track.first_range + sequenced->row, sequenced->sequence,
                                 sequenced->forward_thread);
            };
            for (const PayloadRef& ref : replay.payloads) {
                const Row row = track.first_range + ref.row;
                add_values_before(row);
                add_sequenced_before(row);
                arguments.decode_range({ref.data, ref.bytes}, site_values_.take(row), row);
            }
            take_parts(replay.parts, track.first_range);
            add_values_before(track.first_range + track.range_count);
            add_sequenced_before(track.first_range + track.range_count);
            replay.sequenced = {};
        }
    }

    void reserve_details() {
        std::size_t count = 0;
        for (const ThreadReplay& replay : state_.replays)
            count += replay.sequenced.size() + replay.payloads.size();
        state_.data->range_details.reserve(count);
    }
    // Most programs have their parts on one thread: then they are not copied.
    void take_parts(std::vector<CallPart>& parts, Row first_row) {
        if (first_row != 0) {
            for (CallPart& part : parts) part.row += first_row;
        }
        if (parts_.empty()) {
            parts_ = std::move(parts);
        } else {
            parts_.insert(parts_.end(), parts.begin(), parts.end());
        }
        parts = {};
    }
    void add_sequence(Row row, std::uint32_t sequence, std::uint32_t forward_thread) {
        state_.data->range_details.push_back({row, sequence, forward_thread});
    }

    void add_site_values_before(Row end, ArgumentDecoder& arguments) {
        for (Row row = site_values_.next_row(); row < end; row = site_values_.next_row())
            arguments.decode_range({}, site_values_.take(row), row);
    }

    // Each async track holds ranges that do not overlap, so that none becomes another's child by accident.
    void add_async_tracks(StringPool& strings, ArgumentDecoder& arguments) {
        std::size_t row = state_.nested_rows;
        for (ThreadReplay& replay : state_.replays) {
            std::vector<AsyncRow>& ranges = replay.async_rows;
            if (ranges.empty()) continue;
            std::reverse(ranges.begin(), ranges.end());  // the replay goes backwards
            const auto [places, order] = arrange_async(ranges);
            TrackInfo track{.kind = TrackKind::Async, .thread = thread_rows_.at(replay.thread)};
            for (std::size_t i = 0; i < order.size(); ++i) {
                const std::uint32_t place = places[order[i]];
                if (i == 0 || place != places[order[i - 1]]) {
                    if (track.range_count != 0) state_.data->tracks.push_back(track);
                    const std::string number = place == 0 ? "" : " " + std::to_string(place + 1);
                    track.name = strings.intern(title(track.thread) + " async" + number);
                    track.first_range = static_cast<Row>(row);
                    track.range_count = 0;
                }
                const AsyncRow& range = ranges[order[i]];
                state_.data->range_start_ns[row] = range.start_ns;
                state_.data->range_duration_ns[row] = range.end_ns - range.start_ns;
                state_.data->range_self_ns[row] = std::max<std::int64_t>(
                    range.end_ns - std::max(range.start_ns, state_.filter.start_ns), 0);
                state_.data->range_site[row] = range.site;
                state_.data->range_parent[row] = kNoRow;
                state_.data->range_depth[row] = 0;
                state_.data->range_flags[row] = range.flags;
                const auto of_site = site_values_.take_of_site(range.site);
                if (range.payload_bytes != 0 || !of_site.empty()) {
                    arguments.decode_range({range.payload, range.payload_bytes}, of_site,
                                           static_cast<Row>(row));
                }
                if (range.is_sequenced)
                    add_sequence(static_cast<Row>(row), range.sequence, range.forward_thread);
                if (range.call != 0) parts_.push_back({range.call, static_cast<Row>(row), range.part});
                ++track.range_count;
                ++row;
            }
            state_.data->tracks.push_back(track);
        }
    }

    // Both are in the order of their rows.
    void merge_parts() {
        if (parts_.empty()) return;
        std::vector<RangeDetail>& details = state_.data->range_details;
        std::vector<RangeDetail> merged;
        reserve_filled(merged, details.size() + parts_.size());
        auto detail = details.begin();
        for (const CallPart& part : parts_) {
            while (detail != details.end() && detail->range < part.row) merged.push_back(*detail++);
            const bool has_other = detail != details.end() && detail->range == part.row;
            RangeDetail& made = merged.emplace_back(has_other ? *detail++ : RangeDetail());
            made.range = part.row;
            made.call = part.call;
            made.part = part.flags;
        }
        merged.insert(merged.end(), detail, details.end());
        details = std::move(merged);
    }

    void add_exchanges(StringPool& strings) {
        constexpr std::int64_t kMaxTime = std::int64_t{1} << 61;  // those of the clock's fit end there too
        for (const auto& [record, peer] : state_.journal.exchanges) {
            const std::int64_t times[] = {record.sent_ns, record.arrived_ns, record.answered_ns,
                                          record.received_ns};
            if (std::any_of(std::begin(times), std::end(times),
                            [](std::int64_t ns) { return ns < -kMaxTime || ns > kMaxTime; }))
                continue;
            state_.data->clock_exchanges.push_back(
                {0, strings.intern(peer), times[0], times[1], times[2], times[3]});
        }
    }

    // Keeps the tasks whose calls are in the trace.
    void add_tasks(StringPool& strings) {
        std::unordered_map<std::uint64_t, bool> is_shown;  // by call
        for (const ThreadReplay& replay : state_.replays) {
            for (const TaskRef& task : replay.tasks) is_shown.emplace(task.call, false);
        }
        if (is_shown.empty()) return;
        for (const CallPart& part : parts_) {
            if (const auto found = is_shown.find(part.call); found != is_shown.end()) found->second = true;
        }
        std::vector<TaskInfo>& tasks = state_.data->tasks;
        for (const ThreadReplay& replay : state_.replays) {
            for (const TaskRef& task : replay.tasks) {
                if (is_shown[task.call]) tasks.push_back({0, task.call, strings.intern(task.name)});
            }
        }
        sort_tasks(tasks);
    }

    void fill_points(ArgumentDecoder& arguments) {
        for (const ThreadReplay& replay : state_.replays) {
            if (replay.instants.empty() && replay.counters.empty()) continue;
            const Row thread = thread_rows_.at(replay.thread);
            for (const InstantRow& instant : replay.instants) {
                if (instant.payload_bytes != 0) {
                    arguments.decode_instant({instant.payload, instant.payload_bytes},
                                             static_cast<Row>(state_.data->instant_time_ns.size()));
                }
                state_.data->instant_time_ns.push_back(instant.time_ns);
                state_.data->instant_site.push_back(instant.site);
                state_.data->instant_thread.push_back(thread);
            }
            for (const CounterRow& counter : replay.counters) {
                state_.data->counter_time_ns.push_back(counter.time_ns);
                state_.data->counter_site.push_back(counter.site);
                state_.data->counter_thread.push_back(thread);
                state_.data->counter_value.push_back(counter.value);
            }
        }
    }

    void fill_memory() {
        for (const ThreadReplay& replay : state_.replays) {
            damaged_memory_ += replay.damaged_memory;
            if (replay.memory.empty()) continue;
            const Row thread = thread_rows_.at(replay.thread);
            for (const MemoryRow& row : replay.memory) {
                const auto report = read_as<MemoryPayload>(row.payload);
                add_report(*state_.data, thread,
                           {row.time_ns,
                            row.address,
                            report.bytes,
                            report.total_allocated,
                            report.total_reserved,
                            {static_cast<DeviceType>(report.device_type), report.device_index},
                            report.out_of_memory != 0});
            }
        }
    }

    void fill_messages() {
        for (const ThreadReplay& replay : state_.replays) {
            const auto thread = thread_rows_.find(replay.thread);
            if (thread == thread_rows_.end()) continue;
            const auto track = std::find_if(
                state_.data->tracks.begin(), state_.data->tracks.end(), [&](const TrackInfo& info) {
                    return info.kind == TrackKind::Thread && info.thread == thread->second;
                });
            for (auto row = replay.messages.rbegin(); row != replay.messages.rend(); ++row) {
                MessageInfo message{.time_ns = state_.fit->to_ns(row->time),
                                    .sender = row->token.sender,
                                    .number = row->token.number,
                                    .thread = thread->second,
                                    .is_received = row->is_received};
                if (track != state_.data->tracks.end())
                    message.range = range_open_at(*state_.data, *track, message.time_ns);
                state_.data->messages.push_back(message);
            }
        }
    }

    void fill_unknown_site(StringPool& strings) {
        const auto is_used = [&](const auto& column) {
            return std::find(column.begin(), column.end(), state_.filter.site_rows.count()) != column.end();
        };
        if (!is_used(state_.data->range_site) && !is_used(state_.data->instant_site) &&
            !is_used(state_.data->counter_site))
            return;
        SiteInfo site;
        site.name = strings.intern("(unknown)");
        state_.data->sites.push_back(site);
        unknown_site_ = true;
    }

    void fill_infos() {
        ClockInfo& clock = state_.data->clock;
        clock.source = source_name(state_.log.clock_source);
        clock.ticks_per_second = state_.fit->ticks_per_second();
        clock.pairs = state_.fit->pairs_used();
        clock.max_error_ns = state_.fit->max_error_ns();
        clock.extrapolated = state_.fit->is_extrapolated_at(state_.filter.stop_ticks);
        std::map<std::uint32_t, std::uint64_t> costs;  // the last of each kind
        for (const CostRecord& cost : state_.journal.costs) costs[cost.event] = cost.picoseconds;
        for (const auto& [event, picoseconds] : costs)
            state_.data->costs.push_back({cost_name(event), static_cast<double>(picoseconds) / 1000});
        WindowInfo& window = state_.data->window;
        window.start_ns = state_.filter.start_ns;
        window.end_ns = state_.filter.end_ns;
        window.finished = state_.session != nullptr ? state_.filter.stopped : state_.log.finished;
        window.log_bytes = state_.log_bytes;
        window.policy = policy_name(0);
        if (state_.session != nullptr) {
            const SessionMarks& marks = state_.session->marks;
            if (state_.session->name < state_.data->strings.size())
                window.session_name = state_.data->strings[state_.session->name];
            window.session_id = marks.id;
            window.max_bytes = marks.max_bytes;
            window.policy = policy_name(marks.policy);
            // A killed program has not written that its ring was full.
            const auto& threads = state_.journal.threads;
            window.size_limit_reached =
                marks.size_limit_reached ||
                (window.policy == "ring" && std::any_of(threads.begin(), threads.end(), [](const auto& each) {
                     return each.second.overwritten_chunks != 0;
                 }));
        }
    }

    void fill_metadata() {
        if (state_.filter.device_types != 0) {
            std::string clocks = state_.device_clocks.report(state_.fit->ticks_per_second());
            if (!clocks.empty()) put_fact(state_.data->metadata, "gpu_clock", std::move(clocks));
        }
        if (const auto& end = state_.journal.process_end) {
            const bool is_signal = end->signal != 0;
            put_fact(state_.data->metadata, is_signal ? "process_exit_signal" : "process_exit_code",
                     std::to_string(is_signal ? end->signal : end->exit_code));
        }
        for (JournalFact& fact : state_.journal.facts) {
            if (fact.key < state_.data->strings.size() && is_json(fact.json))
                put_fact(state_.data->metadata, state_.data->strings[fact.key], std::move(fact.json));
        }
    }

    /// Drops for lack of space leave a mark in the log, unless the space never came back: then the session's
    /// size limit or a note gives the reason. The other drops were made inside the recorder.
    std::uint64_t interrupted_records() {
        if (state_.data->window.size_limit_reached || !state_.journal.notes.empty()) return 0;
        std::uint64_t count = 0;
        for (const ThreadInfo& thread : state_.data->threads)
            count += thread.os_tid == 0 ? 0 : thread.dropped - state_.dropped_in_log[thread.id];
        return count;
    }

    void fill_problems(std::uint64_t damaged_arguments) {
        ProblemList problems(state_.data->problems);
        for (const RawProblem& problem : state_.log.problems)
            problems.add(problem.code, problem.text, problem.count);
        for (const JournalNote& note : state_.journal.notes) {
            const auto text = [&](std::uint32_t id) {
                return id < state_.data->strings.size() ? state_.data->strings[id] : std::string();
            };
            problems.add(text(note.code), text(note.text), std::max<std::uint64_t>(note.count, 1));
        }
        for (const ProblemInfo& problem : state_.journal.run_problems)
            problems.add(problem.code, problem.text, std::max<std::uint64_t>(problem.count, 1));
        std::uint64_t adjusted = 0;
        std::uint64_t misplaced = 0;
        for (const ThreadReplay& replay : state_.replays) {
            adjusted += replay.adjusted;
            misplaced += replay.misplaced;
        }
        const bool sees_calls = (state_.filter.device_activities & kDeviceCalls) != 0;
        if (sees_calls && device_findings_.without_call != 0) {
            problems.add("device_work_without_call",
                         "The launch of some device work was not recorded: it is on the device's tracks but "
                         "belongs to no range.",
                         device_findings_.without_call);
        }
        const bool crashed = !state_.data->window.finished && !state_.log.finished &&
                             !state_.log.is_running && state_.log.end_ticks == 0;
        problems.add_findings(*state_.data, {crashed, interrupted_records(), state_.unknown_records,
                                             state_.lost_begins, adjusted, misplaced, damaged_arguments,
                                             damaged_memory_, state_.damaged_device, unknown_site_});
    }

    ReplayedLog& state_;
    SiteValues site_values_;
    std::map<std::uint32_t, Row> thread_rows_;
    std::vector<CallPart> parts_;
    std::uint64_t damaged_memory_ = 0;
    DeviceFindings device_findings_;
    bool unknown_site_ = false;
};

}  // namespace

void fill_tables(ReplayedLog& state) {
    TableFiller(state).fill();
}

void fill_outline(ReplayedLog& state) {
    TableFiller(state).fill_outline();
}

}  // namespace marey
