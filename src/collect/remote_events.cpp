// remote_events.cpp: turns events from other processes into rows: placed in time, nested, linked to their
// calls.
#include "collect/remote_events.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include <marey/error.h>

#include "collect/problem_list.h"

namespace marey {

using namespace detail;

namespace {

constexpr std::size_t kMaxPrefixBytes = 1024;  // a recorder allows no more

struct Message {
    EventMessage events;
    const RemoteEventsRecord* record;
    std::string prefix;
    std::int64_t shift_ns = 0;
    std::vector<Row> process_rows;  // of events.processes; kNoRow: not needed so far
    std::vector<StringId> names;    // with their prefix, by string of the message; 0: not yet there
    std::vector<Row> range_rows;    // by event
};

/// A range, a mark or an allocation, at its place in our time.
struct Placed {
    std::uint32_t message;
    std::uint32_t event;
    std::int64_t start_ns;
    std::int64_t end_ns;
    std::uint16_t flags;
};

/// A thread of another process, with its events in the window.
struct RemoteTrack {
    std::int64_t os_tid = 0;
    StringId name = 0;
    std::vector<Placed> ranges;
    std::vector<Placed> points;
    Row row = kNoRow;
};

class RemoteBuilder {
  public:
    RemoteBuilder(ReplayedLog& state, StringPool& strings)
        : state_(state), data_(*state.data), strings_(strings) {}

    void build() {
        read_messages();
        index_sites();
        for (std::uint32_t i = 0; i < messages_.size(); ++i) place_events(i);
        for (std::uint32_t i = 0; i < messages_.size(); ++i) name_threads(i);
        add_threads();
        for (auto& [key, track] : tracks_) add_ranges(track);
        for (auto& [key, track] : tracks_) add_points(track);
        for (const Message& message : messages_) add_links(message);
        std::stable_sort(data_.links.begin(), data_.links.end(),
                         [](const LinkInfo& a, const LinkInfo& b) { return a.from < b.from; });
        add_problems();
    }

  private:
    void read_messages() {
        for (const JournalMessage& source : state_.journal.messages) {
            Message message;
            try {
                message.events =
                    unpack_events({reinterpret_cast<const char*>(source.bytes.data()), source.bytes.size()});
            } catch (const Error&) {
                ++damaged_;
                continue;
            }
            message.record = &source.record;
            if (source.record.prefix < data_.strings.size())
                message.prefix = data_.strings[source.record.prefix].substr(0, kMaxPrefixBytes);
            if (source.record.node >= 0) message.events.processes[0].node = source.record.node;
            message.process_rows.assign(message.events.processes.size(), kNoRow);
            message.names.assign(message.events.strings.size(), 0);
            message.range_rows.assign(message.events.events.size(), kNoRow);
            message.shift_ns = shift_of(message);
            add_exchange(message);
            messages_.push_back(std::move(message));
        }
    }

    // The offset to add to the sender's times. Another host's clock is known only through the call: the
    // request is assumed to take as long as the answer, so both middles are the same moment.
    std::int64_t shift_of(const Message& message) {
        const RemoteEventsRecord& record = *message.record;
        if ((record.head.reserved & kRemoteClockIsOurs) != 0) return 0;
        const std::int64_t end_ns = state_.fit->to_ns(record.call_end);
        if (record.call_start == 0) {
            ++guessed_;
            return end_ns - message.events.end_ns;
        }
        const std::int64_t start_ns = state_.fit->to_ns(record.call_start);
        return (start_ns + end_ns) / 2 - (message.events.start_ns + message.events.end_ns) / 2;
    }

    // A call to another host is an exchange: it began before the sender's period and ended after it. A period
    // that is longer than the call began earlier, and proves nothing.
    void add_exchange(const Message& message) {
        const RemoteEventsRecord& record = *message.record;
        if ((record.head.reserved & kRemoteClockIsOurs) != 0 || record.call_start == 0) return;
        const std::int64_t sent_ns = state_.fit->to_ns(record.call_start);
        const std::int64_t received_ns = state_.fit->to_ns(record.call_end);
        const std::int64_t arrived_ns = message.events.start_ns, answered_ns = message.events.end_ns;
        constexpr std::int64_t kMaxTime = std::int64_t{1} << 61;
        const bool fits = arrived_ns > -kMaxTime && answered_ns < kMaxTime && arrived_ns <= answered_ns;
        if (!fits || answered_ns - arrived_ns > received_ns - sent_ns) return;
        data_.clock_exchanges.push_back({0, strings_.intern(message.events.processes[0].host), sent_ns,
                                         arrived_ns, answered_ns, received_ns});
    }

    // Names made here have no place in a source file, like any name recorded without one.
    void index_sites() {
        if (messages_.empty()) return;
        for (std::uint32_t row = 0; row < data_.sites.size(); ++row) {
            const SiteInfo& site = data_.sites[row];
            if (site.file == 0 && site.line == 0) sites_.try_emplace({site.name, site.scope}, row);
        }
    }

    Row process_row(Message& message, std::uint32_t index) {
        Row& row = message.process_rows[index];
        if (row != kNoRow) return row;
        const RemoteProcess& process = message.events.processes[index];
        const auto [place, is_new] = processes_.try_emplace({process.pid, process.host, process.node},
                                                            static_cast<Row>(data_.processes.size()));
        row = place->second;
        if (is_new) {
            ProcessInfo info;
            info.pid = process.pid;
            info.node = process.node;
            info.name = strings_.intern(process.name);
            info.host = strings_.intern(process.host);
            info.realtime_offset_ns = data_.processes[0].realtime_offset_ns;
            data_.processes.push_back(info);
        }
        return row;
    }

    void place_events(std::uint32_t index) {
        Message& message = messages_[index];
        const View& view = state_.view;
        std::vector<bool> is_used(message.events.processes.size(), false);
        std::vector<Placed> kept;
        for (std::uint32_t i = 0; i < message.events.events.size(); ++i) {
            const RemoteEvent& event = message.events.events[i];
            Placed placed{index, i, event.start_ns + message.shift_ns, 0, kRemote};
            const bool is_range = event.kind == RemoteEvent::Kind::Range;
            placed.end_ns = is_range ? event.end_ns + message.shift_ns : placed.start_ns;
            if (placed.end_ns < view.start_ns || placed.start_ns > view.end_ns) {
                ++outside_;
                continue;
            }
            if (placed.start_ns < view.start_ns) placed.flags |= kBeganBefore;
            if (placed.end_ns > view.end_ns || event.is_unfinished) placed.flags |= kUnfinished;
            placed.end_ns = std::min(placed.end_ns, view.end_ns);
            is_used[event.process] = true;
            kept.push_back(placed);
        }
        // In the order of the message's processes, not of their events.
        for (std::uint32_t i = 0; i < is_used.size(); ++i) {
            if (is_used[i]) process_row(message, i);
        }
        for (const Placed& placed : kept) {
            const RemoteEvent& event = message.events.events[placed.event];
            RemoteTrack& track = tracks_[{process_row(message, event.process), event.thread}];
            (event.kind == RemoteEvent::Kind::Range ? track.ranges : track.points).push_back(placed);
        }
    }

    void name_threads(std::uint32_t index) {
        Message& message = messages_[index];
        for (const RemoteThread& thread : message.events.threads) {
            const Row process = message.process_rows[thread.process];
            if (process == kNoRow) continue;
            const auto found = tracks_.find({process, thread.id});
            if (found == tracks_.end()) continue;
            if (thread.os_tid != 0) found->second.os_tid = thread.os_tid;
            if (thread.name != 0) found->second.name = strings_.intern(message.events.strings[thread.name]);
        }
    }

    // Logical ids have 32 bits here. Larger ones get the next free ids, in their order.
    void add_threads() {
        std::uint32_t last_id = 0;
        for (auto& [key, track] : tracks_) {
            const auto& [process, id] = key;
            ThreadInfo info;
            info.process = process;
            if (id <= std::numeric_limits<std::uint32_t>::max()) {
                info.id = static_cast<std::uint32_t>(id);
            } else {
                info.id = last_id + 1;
                if (track.os_tid == 0) track.os_tid = static_cast<std::int64_t>(id);
            }
            last_id = info.id;
            info.os_tid = track.os_tid;
            info.name = track.name;
            track.row = static_cast<Row>(data_.threads.size());
            data_.threads.push_back(info);
        }
    }

    const RemoteEvent& event_of(const Placed& placed) const {
        return messages_[placed.message].events.events[placed.event];
    }

    // Sorts a thread's ranges into a tree by their times. Ranges that overlap others without nesting, and
    // ranges declared async, go to async tracks.
    void add_ranges(RemoteTrack& track) {
        std::vector<Placed>& ranges = track.ranges;
        if (ranges.empty()) return;
        std::stable_sort(ranges.begin(), ranges.end(), [](const Placed& a, const Placed& b) {
            return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
        });
        TrackInfo info;
        info.thread = track.row;
        info.name = strings_.intern(title(track.row));
        info.first_range = next_row();
        std::vector<Row> open;
        std::vector<Placed> async;
        for (const Placed& range : ranges) {
            const auto end_of = [&](Row row) {
                return data_.range_start_ns[row] + data_.range_duration_ns[row];
            };
            while (!open.empty() && range.end_ns > end_of(open.back()) &&
                   end_of(open.back()) <= range.start_ns)
                open.pop_back();
            if (event_of(range).is_async || (!open.empty() && range.end_ns > end_of(open.back()))) {
                async.push_back(range);
                continue;
            }
            const Row parent = open.empty() ? kNoRow : open.back();
            open.push_back(add_row(range, parent));
        }
        info.range_count = next_row() - info.first_range;
        if (info.range_count != 0) data_.tracks.push_back(info);
        if (!async.empty()) add_async(track, std::move(async));
    }

    void add_async(const RemoteTrack& track, std::vector<Placed> ranges) {
        const auto [places, order] = arrange_async(ranges);
        for (std::size_t i = 0; i < order.size();) {
            const std::uint32_t place = places[order[i]];
            TrackInfo info;
            info.kind = TrackKind::Async;
            info.thread = track.row;
            const std::string number = place == 0 ? "" : " " + std::to_string(place + 1);
            info.name = strings_.intern(title(track.row) + " async" + number);
            info.first_range = next_row();
            for (; i < order.size() && places[order[i]] == place; ++i) {
                Placed& range = ranges[order[i]];
                range.flags |= kAsync;
                add_row(range, kNoRow);
            }
            info.range_count = next_row() - info.first_range;
            data_.tracks.push_back(info);
        }
    }

    std::string title(Row thread) const {
        const ThreadInfo& info = data_.threads[thread];
        if (info.name != 0) return data_.strings[info.name];
        return "thread " + std::to_string(info.id);
    }

    Row next_row() const { return static_cast<Row>(data_.range_start_ns.size()); }

    Row add_row(const Placed& range, Row parent) {
        if (data_.range_start_ns.size() + 1 >= kNoRow)
            throw Error("more than 4 billion ranges: too many for one trace");
        const Row row = next_row();
        const RemoteEvent& event = event_of(range);
        const std::int64_t inside_ns = range.end_ns - std::max(range.start_ns, state_.view.start_ns);
        data_.range_start_ns.push_back(range.start_ns);
        data_.range_duration_ns.push_back(range.end_ns - range.start_ns);
        data_.range_self_ns.push_back(inside_ns);
        if (parent != kNoRow) data_.range_self_ns[parent] -= inside_ns;
        data_.range_site.push_back(site_of(range));
        data_.range_parent.push_back(parent);
        data_.range_depth.push_back(parent == kNoRow ? 0 : data_.range_depth[parent] + 1);
        data_.range_flags.push_back(range.flags);
        messages_[range.message].range_rows[range.event] = row;
        if (event.id != 0 || event.sequence != -1 || event.forward_thread != 0)
            data_.range_details.push_back({row, event.sequence, event.forward_thread, event.id});
        add_arguments(range, row, data_.range_arguments);
        return row;
    }

    std::uint32_t site_of(const Placed& placed) {
        Message& message = messages_[placed.message];
        const RemoteEvent& event = event_of(placed);
        StringId& name = message.names[event.name];
        if (name == 0) name = strings_.intern(message.prefix + message.events.strings[event.name]);
        const auto [place, is_new] =
            sites_.try_emplace({name, event.scope}, static_cast<std::uint32_t>(data_.sites.size()));
        if (is_new) {
            SiteInfo site;
            site.name = name;
            site.scope = event.scope;
            data_.sites.push_back(site);
        }
        return place->second;
    }

    void add_arguments(const Placed& placed, Row row, std::vector<ArgumentSlice>& index) {
        const RemoteEvent& event = event_of(placed);
        const std::vector<std::string>& texts = messages_[placed.message].events.strings;
        const auto first = static_cast<std::uint32_t>(data_.arguments.size());
        for (const std::vector<std::int64_t>& shape : event.shapes) {
            ArrayInfo array;
            array.first_extent = static_cast<std::uint32_t>(data_.array_extents.size());
            array.dimensions = static_cast<std::uint32_t>(shape.size());
            data_.array_extents.insert(data_.array_extents.end(), shape.begin(), shape.end());
            Argument argument;
            argument.kind = ValueKind::Array;
            argument.role = ArgumentRole::Input;
            argument.array = static_cast<Row>(data_.arrays.size());
            data_.arrays.push_back(array);
            data_.arguments.push_back(argument);
        }
        for (const RemoteValue& value : event.values) {
            Argument argument;
            argument.key = strings_.intern(texts[value.key]);
            if (const auto* const boolean = std::get_if<bool>(&value.value)) {
                argument.kind = ValueKind::Bool;
                argument.boolean = *boolean;
            } else if (const auto* const integer = std::get_if<std::int64_t>(&value.value)) {
                argument.kind = ValueKind::Int;
                argument.integer = *integer;
            } else if (const auto* const real = std::get_if<double>(&value.value)) {
                argument.kind = ValueKind::Double;
                argument.real = *real;
            } else {
                argument.kind = ValueKind::String;
                argument.string = strings_.intern(texts[std::get<StringId>(value.value)]);
            }
            data_.arguments.push_back(argument);
        }
        if (!(event.device == Device())) {
            const StringId text = strings_.intern(device_text(event.device));
            add_keyword(remote_keys::kDevice, ValueKind::String).string = text;
        }
        if (event.device_ns >= 0)
            add_keyword(remote_keys::kDeviceTime, ValueKind::Int).integer = event.device_ns;
        if (event.cpu_memory_bytes != 0)
            add_keyword(remote_keys::kCpuMemory, ValueKind::Int).integer = event.cpu_memory_bytes;
        if (event.device_memory_bytes != 0)
            add_keyword(remote_keys::kDeviceMemory, ValueKind::Int).integer = event.device_memory_bytes;
        if (!event.stack.empty()) {
            add_keyword(remote_keys::kStack, ValueKind::List).list = {
                static_cast<std::uint32_t>(data_.list_items.size()),
                static_cast<std::uint32_t>(event.stack.size())};
            for (const StringId frame : event.stack) {
                Argument item;
                item.kind = ValueKind::String;
                item.string = strings_.intern(texts[frame]);
                data_.list_items.push_back(item);
            }
        }
        const auto count = static_cast<std::uint32_t>(data_.arguments.size()) - first;
        if (count != 0) index.push_back({row, first, count});
    }

    Argument& add_keyword(const char* key, ValueKind kind) {
        Argument argument;
        argument.key = strings_.intern(key);
        argument.kind = kind;
        return data_.arguments.emplace_back(argument);
    }

    void add_points(RemoteTrack& track) {
        std::stable_sort(track.points.begin(), track.points.end(),
                         [](const Placed& a, const Placed& b) { return a.start_ns < b.start_ns; });
        for (const Placed& point : track.points) {
            const RemoteEvent& event = event_of(point);
            if (event.kind == RemoteEvent::Kind::Memory) {
                add_memory(event, point.start_ns, track.row);
                continue;
            }
            add_arguments(point, static_cast<Row>(data_.instant_time_ns.size()), data_.instant_arguments);
            data_.instant_time_ns.push_back(point.start_ns);
            data_.instant_site.push_back(site_of(point));
            data_.instant_thread.push_back(track.row);
        }
    }

    void add_memory(const RemoteEvent& event, std::int64_t time_ns, Row thread) {
        const bool on_cpu = event.device.type == DeviceType::Cpu;
        add_report(data_, thread,
                   {time_ns, event.address, on_cpu ? event.cpu_memory_bytes : event.device_memory_bytes,
                    event.total_allocated, event.total_reserved, event.device, event.is_refused});
    }

    // ---- callers ----

    // The outermost ranges of a message are linked to the call, those of a further process to their own call.
    void add_links(const Message& message) {
        const RemoteEventsRecord& record = *message.record;
        Row call = kNoRow;
        if (record.call_start != 0 && record.thread != 0)
            call = find_call(record.thread, state_.fit->to_ns(record.call_start),
                             state_.fit->to_ns(record.call_end));
        for (std::size_t i = 0; i < message.range_rows.size(); ++i) {
            const Row row = message.range_rows[i];
            if (row == kNoRow) continue;
            const std::int64_t caller = message.events.events[i].caller;
            Row from = caller >= 0 ? message.range_rows[static_cast<std::size_t>(caller)] : kNoRow;
            if (from == kNoRow && data_.range_parent[row] == kNoRow) from = call;
            if (from != kNoRow && from != row) data_.links.push_back({from, row, LinkKind::Remote});
        }
    }

    // The innermost range of the thread that contains the entire call or, failing that (the answer arrived on
    // another thread), its start. Rows of a track start in order, so each costs one search and a walk
    // upwards.
    Row find_call(std::uint32_t thread, std::int64_t start_ns, std::int64_t end_ns) const {
        Row best = kNoRow;
        bool best_holds_call = false;
        for (const TrackInfo& track : data_.tracks) {
            const ThreadInfo& info = data_.threads[track.thread];
            if (info.process != 0 || info.id != thread) continue;
            const auto first = data_.range_start_ns.begin() + track.first_range;
            const auto after_start = std::upper_bound(first, first + track.range_count, start_ns);
            if (after_start == first) continue;
            auto row = static_cast<Row>(after_start - data_.range_start_ns.begin() - 1);
            Row holds_start = kNoRow;
            for (; row != kNoRow; row = data_.range_parent[row]) {
                const std::int64_t row_end_ns = data_.range_start_ns[row] + data_.range_duration_ns[row];
                if (row_end_ns >= end_ns) break;
                if (holds_start == kNoRow && row_end_ns >= start_ns) holds_start = row;
            }
            const bool is_whole = row != kNoRow;
            if (!is_whole) row = holds_start;
            if (row == kNoRow || is_whole < best_holds_call) continue;
            if (best == kNoRow || is_whole > best_holds_call ||
                data_.range_duration_ns[row] < data_.range_duration_ns[best]) {
                best = row;
                best_holds_call = is_whole;
            }
        }
        return best;
    }

    void add_problems() {
        ProblemList problems(data_.problems);
        if (damaged_ != 0)
            problems.add("remote_damaged", "Messages with events from other processes could not be read.",
                         damaged_);
        if (guessed_ != 0)
            problems.add("remote_clock",
                         "Events from another host arrived without the call that they belong to: their times "
                         "are estimates.",
                         guessed_);
        if (outside_ != 0)
            problems.add("remote_outside",
                         "Events from other processes that lie outside the session's time were left out.",
                         outside_);
    }

    ReplayedLog& state_;
    TraceData& data_;
    StringPool& strings_;
    std::vector<Message> messages_;
    std::map<std::pair<StringId, Scope>, std::uint32_t> sites_;
    std::map<std::tuple<std::int64_t, std::string, std::int32_t>, Row> processes_;
    std::map<std::pair<Row, std::uint64_t>, RemoteTrack> tracks_;  // by process row and thread id
    std::uint64_t damaged_ = 0;
    std::uint64_t guessed_ = 0;
    std::uint64_t outside_ = 0;
};

}  // namespace

void add_remote_events(ReplayedLog& state, StringPool& strings) {
    if (!state.journal.messages.empty()) RemoteBuilder(state, strings).build();
}

}  // namespace marey
