// device_tracks.cpp: appends device rows after those of threads. Values use the keys of PyTorch's traces.
#include "collect/device_tracks.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "collect/async_ranges.h"
#include "collect/log_records.h"
#include "native/function_name.h"

namespace marey {

using namespace detail;

namespace {

/// Waiting and measuring are not work: they are shown beside the queue.
bool is_beside(DeviceWorkKind kind) noexcept {
    return kind == DeviceWorkKind::Wait || kind == DeviceWorkKind::Overhead;
}

bool is_launched(DeviceWorkKind kind) noexcept {
    return kind == DeviceWorkKind::Kernel || kind == DeviceWorkKind::Copy || kind == DeviceWorkKind::Set;
}

Argument number(StringId key, std::int64_t integer) {
    Argument argument;
    argument.key = key;
    argument.kind = ValueKind::Int;
    argument.integer = integer;
    return argument;
}

class DeviceTracks {
  public:
    DeviceTracks(ReplayedLog& state, StringPool& strings, ArgumentDecoder& arguments)
        : state_(state), data_(*state.data), strings_(strings), arguments_(arguments) {}

    DeviceFindings add() {
        find_calls();
        if (state_.filter.filters_contexts) drop_other_work();
        using Queue = std::tuple<DeviceType, std::int32_t, std::int64_t, bool>;
        std::map<Queue, std::vector<std::uint32_t>> queues;
        for (std::uint32_t i = 0; i < state_.device_work.size(); ++i) {
            DeviceWorkRow& work = state_.device_work[i];
            if (work.kind == DeviceWorkKind::Timed && !place_beside_range(work)) continue;
            queues[{work.device.type, work.device.index, work.stream, is_beside(work.kind)}].push_back(i);
        }
        reserve();
        for (auto& [queue, members] : queues) add_queue(members, std::get<3>(queue));
        sort_links();
        return findings_;
    }

  private:
    void reserve() {
        const std::size_t rows = data_.range_start_ns.size() + state_.device_work.size();
        const auto make_room = [&](auto&... columns) { (columns.reserve(rows), ...); };
        make_room(data_.range_start_ns, data_.range_duration_ns, data_.range_self_ns, data_.range_site,
                  data_.range_parent, data_.range_depth, data_.range_flags);
        data_.links.reserve(data_.links.size() + state_.device_work.size());
        data_.arguments.reserve(data_.arguments.size() + 6 * state_.device_work.size());
        data_.range_arguments.reserve(data_.range_arguments.size() + state_.device_work.size());
    }

    // In a session of one thread and its tasks: work that its own calls launched.
    void drop_other_work() {
        if ((state_.filter.device_activities & kDeviceCalls) == 0) return;
        std::erase_if(state_.device_work, [&](const DeviceWorkRow& work) {
            return is_launched(work.kind) && launcher_of(work) == kNoRow;
        });
    }

    void find_calls() {
        for (std::size_t i = 0; i < state_.replays.size(); ++i) {
            for (const DeviceCallRow& call : state_.replays[i].device_calls) {
                if (call.correlation != 0)
                    calls_.push_back(
                        {call.log, call.correlation, static_cast<Row>(state_.first_rows[i] + call.row)});
            }
        }
        // If a call and one inside it have the same number, the outer one counts.
        if (!std::is_sorted(calls_.begin(), calls_.end())) std::sort(calls_.begin(), calls_.end());
        const bool times_ranges =
            std::any_of(state_.device_work.begin(), state_.device_work.end(),
                        [](const DeviceWorkRow& work) { return work.kind == DeviceWorkKind::Timed; });
        if (!times_ranges) return;
        for (const RangeDetail& detail : data_.range_details) {
            if (detail.id != 0) ranges_.emplace(detail.id, detail.range);
        }
    }

    /// For timed work only the length is known: it begins with its range. False: this session did not request
    /// that range.
    bool place_beside_range(DeviceWorkRow& work) const {
        const Row range = launcher_of(work);
        if (range == kNoRow) return false;
        const std::int64_t length = work.end_ns - work.start_ns;
        work.start_ns = data_.range_start_ns[range];
        work.end_ns = work.start_ns + length;
        return true;
    }

    Row launcher_of(const DeviceWorkRow& work) const {
        if (work.kind != DeviceWorkKind::Kernel) {
            const auto facts = read_as<DeviceOtherPayload>(work.payload.data());
            if (facts.range != 0) {
                const auto found = ranges_.find(facts.range);
                return found != ranges_.end() ? found->second : kNoRow;
            }
        }
        if (work.correlation == 0) return kNoRow;
        const Call wanted{work.log, work.correlation, 0};
        const auto found = std::lower_bound(calls_.begin(), calls_.end(), wanted);
        const bool is_it =
            found != calls_.end() && found->log == wanted.log && found->correlation == wanted.correlation;
        return is_it ? found->row : kNoRow;
    }

    /// A row of the thread table for a queue; both its tracks share it.
    Row thread_of(const DeviceWorkRow& work) {
        const auto [place, is_new] =
            threads_.try_emplace(std::tuple(work.device.type, work.device.index, work.stream), Row{0});
        if (!is_new) return place->second;
        ThreadInfo thread{
            .id = thread_id(work),
            .name = strings_.intern(work.stream >= 0 ? "stream " + std::to_string(work.stream)
                                                     : std::string(device_type_name(work.device.type)) + " " +
                                                           std::to_string(work.device.index))};
        data_.threads.push_back(thread);
        return place->second = static_cast<Row>(data_.threads.size() - 1);
    }

    /// The same id for a queue in every trace of a process (join_traces relies on it), and different from all
    /// threads.
    std::uint32_t thread_id(const DeviceWorkRow& work) const {
        std::uint32_t id = 1u << 31 | static_cast<std::uint32_t>(work.device.type) << 26 |
                           (static_cast<std::uint32_t>(work.device.index) & 63) << 20 |
                           (static_cast<std::uint32_t>(work.stream + 1) & 0xfffff);
        const auto is_taken = [&] {
            return std::any_of(data_.threads.begin(), data_.threads.end(),
                               [&](const ThreadInfo& other) { return other.id == id; });
        };
        while (is_taken()) ++id;
        return id;
    }

    // Each of its tracks holds work that does not overlap, the first one as much as it can.
    void add_queue(std::vector<std::uint32_t>& members, bool is_beside) {
        const auto work_of = [&](std::uint32_t i) -> const DeviceWorkRow& { return state_.device_work[i]; };
        std::stable_sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
            return std::pair(work_of(a).start_ns, work_of(a).end_ns) <
                   std::pair(work_of(b).start_ns, work_of(b).end_ns);
        });
        std::vector<std::int64_t> starts, ends;
        for (const std::uint32_t i : members) {
            starts.push_back(work_of(i).start_ns);
            ends.push_back(work_of(i).end_ns);
        }
        const std::vector<std::uint32_t> place_of = place_on_rows(starts, ends);
        std::vector<std::vector<std::uint32_t>> places;
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (place_of[i] == places.size()) places.emplace_back();
            places[place_of[i]].push_back(members[i]);
        }
        for (std::size_t place = 0; place < places.size(); ++place) {
            const DeviceWorkRow& first = work_of(places[place].front());
            TrackInfo track{.kind = is_beside    ? TrackKind::Async
                                    : place == 0 ? TrackKind::Device
                                                 : TrackKind::Overlap,
                            .thread = thread_of(first),
                            .device = first.device,
                            .stream = first.stream};
            track.name = track_name(track, place);
            track.first_range = static_cast<Row>(data_.range_start_ns.size());
            track.range_count = static_cast<Row>(places[place].size());
            for (const std::uint32_t i : places[place]) add_row(work_of(i), is_beside);
            data_.tracks.push_back(track);
        }
    }

    StringId track_name(const TrackInfo& track, std::size_t place) {
        std::string name = data_.strings[data_.threads[track.thread].name];
        if (track.kind == TrackKind::Async) name += " async";
        if (track.kind == TrackKind::Overlap) name += " overlapping";
        const std::size_t shown = track.kind == TrackKind::Overlap ? place : place + 1;
        if (shown > 1) name += " " + std::to_string(shown);
        return strings_.intern(name);
    }

    void add_row(const DeviceWorkRow& work, bool is_beside) {
        const auto row = static_cast<Row>(data_.range_start_ns.size());
        const std::int64_t inside =
            std::min(work.end_ns, state_.filter.end_ns) - std::max(work.start_ns, state_.filter.start_ns);
        const int flags = (work.start_ns < state_.filter.start_ns ? kBeganBefore : 0) |
                          (work.runs_on ? kUnfinished : 0) | (is_beside ? kAsync : 0);
        data_.range_start_ns.push_back(work.start_ns);
        data_.range_duration_ns.push_back(work.end_ns - work.start_ns);
        data_.range_self_ns.push_back(std::max<std::int64_t>(inside, 0));
        data_.range_site.push_back(work.site);
        data_.range_parent.push_back(kNoRow);
        data_.range_depth.push_back(0);
        data_.range_flags.push_back(static_cast<std::uint16_t>(flags));
        const Row launcher = launcher_of(work);
        if (launcher != kNoRow && !is_beside) data_.links.push_back({launcher, row, LinkKind::Launch, 0});
        if (launcher == kNoRow && is_launched(work.kind)) ++findings_.without_call;
        add_values(work, row);
    }

    void add_values(const DeviceWorkRow& work, Row row) {
        const std::size_t slices = data_.range_arguments.size();
        if (!values_of(work).empty()) arguments_.decode_range(values_of(work), row);
        if (data_.range_arguments.size() == slices)
            data_.range_arguments.push_back({row, static_cast<std::uint32_t>(data_.arguments.size()), 0});
        const std::size_t before = data_.arguments.size();
        if (work.context != 0) data_.arguments.push_back(number(context_key_, work.context));
        if (work.correlation != 0) data_.arguments.push_back(number(correlation_key_, work.correlation));
        if (work.kind == DeviceWorkKind::Kernel) {
            add_kernel_values(read_as<DeviceKernelPayload>(work.payload.data()));
        } else if (const auto facts = read_as<DeviceOtherPayload>(work.payload.data()); facts.bytes != 0) {
            add_bytes(facts.bytes, work);
        }
        ArgumentSlice& slice = data_.range_arguments.back();
        slice.count += static_cast<std::uint32_t>(data_.arguments.size() - before);
        if (slice.count == 0) data_.range_arguments.pop_back();
    }

    void add_kernel_values(const DeviceKernelPayload& facts) {
        data_.arguments.push_back(number(registers_key_, facts.registers));
        data_.arguments.push_back(
            number(shared_key_, std::int64_t{facts.static_shared} + facts.dynamic_shared));
        add_triple(grid_key_, {facts.grid[0], facts.grid[1], facts.grid[2]});
        add_triple(block_key_, {facts.block[0], facts.block[1], facts.block[2]});
        if (facts.graph_node != 0)
            data_.arguments.push_back(number(node_key_, static_cast<std::int64_t>(facts.graph_node)));
    }

    void add_bytes(std::uint64_t bytes, const DeviceWorkRow& work) {
        data_.arguments.push_back(number(bytes_key_, static_cast<std::int64_t>(bytes)));
        if (work.end_ns == work.start_ns) return;
        Argument bandwidth;
        bandwidth.key = bandwidth_key_;
        bandwidth.kind = ValueKind::Double;
        bandwidth.real = static_cast<double>(bytes) / static_cast<double>(work.end_ns - work.start_ns);
        data_.arguments.push_back(bandwidth);
    }

    using Triple = std::array<std::uint32_t, 3>;
    struct TripleHash {
        std::size_t operator()(const Triple& triple) const noexcept {
            return (triple[0] * 0x9e3779b97f4a7c15u ^ triple[1]) * 0x9e3779b97f4a7c15u ^ triple[2];
        }
    };
    /// Equal ones share their items.
    void add_triple(StringId key, const Triple& triple) {
        const auto [place, is_new] = triples_.try_emplace(triple, ListItems{});
        if (is_new) {
            place->second = {static_cast<std::uint32_t>(data_.list_items.size()), 3};
            for (const std::uint32_t each : triple) data_.list_items.push_back(number(0, each));
        }
        Argument list;
        list.key = key;
        list.kind = ValueKind::List;
        list.list = place->second;
        data_.arguments.push_back(list);
    }

    void sort_links() {
        const auto is_before = [](const LinkInfo& a, const LinkInfo& b) { return a.from < b.from; };
        if (!std::is_sorted(data_.links.begin(), data_.links.end(), is_before))
            std::stable_sort(data_.links.begin(), data_.links.end(), is_before);
    }

    struct Call {
        std::uint32_t log;
        std::uint32_t correlation;
        Row row;
        bool operator<(const Call& other) const noexcept {
            return std::tie(log, correlation, row) < std::tie(other.log, other.correlation, other.row);
        }
    };
    ReplayedLog& state_;
    TraceData& data_;
    StringPool& strings_;
    ArgumentDecoder& arguments_;
    std::vector<Call> calls_;                        ///< in order
    std::unordered_map<std::uint64_t, Row> ranges_;  ///< by id
    std::map<std::tuple<DeviceType, std::int32_t, std::int64_t>, Row> threads_;
    std::unordered_map<Triple, ListItems, TripleHash> triples_;
    DeviceFindings findings_;
    const StringId context_key_ = strings_.intern("context");
    const StringId correlation_key_ = strings_.intern("correlation");
    const StringId registers_key_ = strings_.intern("registers per thread");
    const StringId shared_key_ = strings_.intern("shared memory");
    const StringId grid_key_ = strings_.intern("grid");
    const StringId block_key_ = strings_.intern("block");
    const StringId node_key_ = strings_.intern("graph node id");
    const StringId bytes_key_ = strings_.intern("bytes");
    const StringId bandwidth_key_ = strings_.intern("memory bandwidth (GB/s)");
};

}  // namespace

DeviceFindings add_device_tracks(ReplayedLog& state, StringPool& strings, ArgumentDecoder& arguments) {
    if (state.device_work.empty()) return {};
    return DeviceTracks(state, strings, arguments).add();
}

DeviceCallValues::DeviceCallValues(TraceData& data, StringPool& strings)
    : data_(data),
      number_key_(strings.intern("cbid")),
      correlation_key_(strings.intern("correlation")),
      error_key_(strings.intern("error")) {}

void DeviceCallValues::add(const DeviceCallRow& call, Row row) {
    const auto first = static_cast<std::uint32_t>(data_.arguments.size());
    if (call.site < data_.sites.size()) {
        const SiteInfo& site = data_.sites[call.site];
        if (site.file == 0 && site.line != 0) data_.arguments.push_back(number(number_key_, site.line));
    }
    if (call.correlation != 0) data_.arguments.push_back(number(correlation_key_, call.correlation));
    if (call.result != 0) data_.arguments.push_back(number(error_key_, call.result));
    const auto count = static_cast<std::uint32_t>(data_.arguments.size()) - first;
    if (count != 0) data_.range_arguments.push_back({row, first, count});
}

void name_device_sites(TraceData& data, StringPool& strings) {
    for (SiteInfo& site : data.sites) {
        if (site.category == 0 || site.scope != Scope::Device) continue;
        if (const auto readable = demangle(data.strings[site.name])) {
            site.raw_name = site.name;
            site.name = strings.intern(*readable);
        }
    }
}

}  // namespace marey
