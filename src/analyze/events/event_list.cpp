// event_list.cpp: sorts the events immediately; computes everything else on first use. The tree has the
// parent of every range and report, and the children derived from it.
#include <marey/event_list.h>

#include <algorithm>
#include <mutex>
#include <numeric>

#include <marey/flops.h>

#include "analyze/averages/range_groups.h"
#include "analyze/events/event_categories.h"
#include "analyze/events/event_order.h"
#include "analyze/gpu/device_time.h"
#include "analyze/memory/range_memory.h"
#include "analyze/track_place.h"
#include "analyze/tree/child_index.h"
#include "analyze/tree/range_stack.h"
#include "analyze/tree/step_ranges.h"

namespace marey {
namespace {

/// A value that is computed on first use.
template <typename T>
class Once {
  public:
    const T& get(auto make) const {
        std::call_once(flag_, [&] { value_ = make(); });
        return value_;
    }

  private:
    mutable std::once_flag flag_;
    mutable T value_{};
};

}  // namespace

struct EventList::Data {
    Trace trace;
    std::size_t range_count = 0;
    std::vector<std::uint32_t> nodes;  ///< per event: the range row, or the range count plus the report row
    std::vector<std::uint32_t> of_range;  ///< per range: its event
    std::vector<std::int64_t> own_self;   ///< per event; empty: those of its range
    CrossingSteps crossing;

    struct Launches {
        std::vector<LaunchedTime> all;    ///< sorted by the owner's event, then by start
        std::vector<Row> ranges;          ///< of `all`
        std::vector<std::int64_t> total;  ///< per range
    };
    struct Memory {
        std::vector<RangeBytes> self, total;  ///< sorted by range
    };
    struct Links {
        std::vector<std::uint32_t> incoming;  ///< rows of links, sorted by target
    };
    Once<ChildIndex> children;
    Once<Launches> launches;
    Once<Memory> memory;
    Once<Links> links;
    Once<std::vector<RangeFlops>> flops;
    Once<std::shared_ptr<const RangeStacks>> stacks;
    Once<bool> is_torch;

    explicit Data(Trace given)
        : trace(std::move(given)), range_count(trace.ranges().size()), crossing(trace) {
        const RangeGroups groups(trace, {}, true);
        nodes.reserve(groups.size());
        for (Row row = 0; row < range_count; ++row) {
            if ((groups[row] & RangeGroups::kMerged) == 0) nodes.push_back(row);
        }
        const bool is_merged = nodes.size() < range_count;
        if (trace.memory().size() > 0) add_reports_outside_ranges();
        EventOrder(trace).sort(nodes);
        of_range.assign(range_count, kNoRow);
        for (std::uint32_t event = 0; event < nodes.size(); ++event) {
            if (nodes[event] < range_count) of_range[nodes[event]] = event;
        }
        if (!is_merged && crossing.parent.empty()) return;
        own_self.assign(nodes.size(), 0);
        const RangeColumns ranges = trace.ranges();
        for (Row row = 0; row < range_count; ++row) {  // a parent's row comes first
            if (of_range[row] == kNoRow) of_range[row] = of_range[ranges.parent[row]];
            own_self[of_range[row]] += ranges.self_ns[row];
        }
        for (const auto& [row, more_ns] : crossing.more_self_ns) own_self[of_range[row]] += more_ns;
    }

    void add_reports_outside_ranges() {
        const RangeMemory owners = range_memory(trace);
        for (std::size_t i = 0; i < owners.owner.size(); ++i) {
            if (owners.owner[i] == kNoRow || trace.memory().out_of_memory[i] != 0)
                nodes.push_back(static_cast<std::uint32_t>(range_count + i));
        }
    }

    bool is_range(std::size_t event) const noexcept { return nodes[event] < range_count; }

    /// Whether the event is a nested call on a thread.
    bool nests(std::size_t event) const noexcept {
        return is_range(event) && !crossing.open.contains(nodes[event]) &&
               (place_of(trace.tracks()[trace.track_of(nodes[event])]) == Place::Host ||
                crossing.contains(nodes[event]));
    }

    ChildIndex make_children() const {
        std::vector<std::uint32_t> parent(nodes.size(), kNoRow);
        const RangeColumns ranges = trace.ranges();
        const auto place = [&](Row row, Row above) {
            if (above == kNoRow || of_range[above] == of_range[row]) return;
            if (crossing.open.contains(row) || crossing.open.contains(above)) return;
            parent[of_range[row]] = of_range[above];
        };
        for (const TrackInfo& track : trace.tracks()) {
            if (place_of(track) != Place::Host) continue;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row)
                place(row, ranges.parent[row]);
        }
        for (const auto& [row, above] : crossing.parent) place(row, above);
        std::vector<std::uint32_t> order(nodes.size());
        std::iota(order.begin(), order.end(), 0u);
        return {parent, order};
    }

    Launches make_launches() const {
        Launches made;
        made.all = launched_times(trace);
        made.total = device_times(trace, made.all).total;
        const RangeColumns ranges = trace.ranges();
        std::ranges::stable_sort(made.all, [&](const LaunchedTime& a, const LaunchedTime& b) {
            if (of_range[a.owner] != of_range[b.owner]) return of_range[a.owner] < of_range[b.owner];
            return ranges.start_ns[a.range] < ranges.start_ns[b.range];
        });
        for (const LaunchedTime& entry : made.all) made.ranges.push_back(entry.range);
        return made;
    }

    std::span<const LaunchedTime> launched(const Launches& made, std::size_t event) const {
        const auto owner = [&](const LaunchedTime& entry) { return of_range[entry.owner]; };
        return {std::ranges::lower_bound(made.all, event, {}, owner),
                std::ranges::upper_bound(made.all, event, {}, owner)};
    }

    Memory make_memory() const {
        Memory made;
        if (trace.memory().size() == 0) return made;
        made.self = range_memory(trace).self;
        made.total = total_range_memory(trace, made.self);
        const std::vector<RangeBytes> of_steps = memory_during(trace, crossing.steps);
        made.total.insert(made.total.end(), of_steps.begin(), of_steps.end());
        std::ranges::sort(made.total, {}, &RangeBytes::range);
        return made;
    }

    Links make_links() const {
        Links made;
        made.incoming.resize(trace.links().size());
        std::iota(made.incoming.begin(), made.incoming.end(), 0u);
        std::ranges::stable_sort(made.incoming, {}, [&](std::uint32_t a) { return trace.links()[a].to; });
        return made;
    }

    /// The links that end at a range.
    std::span<const std::uint32_t> incoming(Row range) const {
        const std::vector<std::uint32_t>& all = links.get([&] { return make_links(); }).incoming;
        const auto first = std::ranges::lower_bound(
            all, range, {}, [&](std::uint32_t link) { return trace.links()[link].to; });
        auto last = first;
        while (last != all.end() && trace.links()[*last].to == range) ++last;
        return {first, last};
    }
};

EventList::EventList(Trace trace) : data_(std::make_shared<const Data>(std::move(trace))) {}

const Trace& EventList::trace() const noexcept {
    return data_->trace;
}
std::size_t EventList::size() const noexcept {
    return data_->nodes.size();
}
Row EventList::range(std::size_t event) const noexcept {
    return data_->is_range(event) ? data_->nodes[event] : kNoRow;
}
Row EventList::report(std::size_t event) const noexcept {
    return data_->is_range(event) ? kNoRow : static_cast<Row>(data_->nodes[event] - data_->range_count);
}
std::uint32_t EventList::event_of(Row range) const noexcept {
    return range < data_->of_range.size() ? data_->of_range[range] : kNoRow;
}

std::uint32_t EventList::parent(std::size_t event) const {
    if (!data_->nests(event)) return kNoRow;
    const Row row = data_->nodes[event];
    const CrossingSteps& crossing = data_->crossing;
    const auto found = crossing.parent.find(row);
    const Row above = found != crossing.parent.end() ? found->second : data_->trace.ranges().parent[row];
    return crossing.open.contains(above) ? kNoRow : event_of(above);
}

std::span<const std::uint32_t> EventList::children(std::size_t event) const {
    return data_->children.get([&] { return data_->make_children(); }).of(event);
}

bool EventList::is_async(std::size_t event) const {
    if (!data_->is_range(event) || data_->crossing.contains(data_->nodes[event])) return false;
    return data_->crossing.open.contains(data_->nodes[event]) ||
           place_of(data_->trace.tracks()[data_->trace.track_of(data_->nodes[event])]) == Place::Async;
}

std::int64_t EventList::start_ns(std::size_t event) const noexcept {
    const WindowInfo& window = data_->trace.window();
    const Row row = range(event);
    const std::int64_t start =
        row == kNoRow ? data_->trace.memory().time_ns[report(event)] : data_->trace.ranges().start_ns[row];
    return std::clamp(start, window.start_ns, std::max(window.start_ns, window.end_ns)) - window.start_ns;
}

std::int64_t EventList::duration_ns(std::size_t event) const noexcept {
    const Row row = range(event);
    return row == kNoRow ? 0 : data_->trace.clipped_duration_ns(row);
}

std::int64_t EventList::self_ns(std::size_t event) const noexcept {
    if (!data_->nests(event)) return 0;
    return data_->own_self.empty() ? data_->trace.ranges().self_ns[data_->nodes[event]]
                                   : data_->own_self[event];
}

std::int64_t EventList::device_total_ns(std::size_t event) const {
    const Row row = range(event);
    if (row == kNoRow) return 0;
    const Trace& trace = data_->trace;
    switch (place_of(trace.tracks()[trace.track_of(row)])) {
        case Place::Host: {
            const auto& total = data_->launches.get([&] { return data_->make_launches(); }).total;
            return total.empty() ? 0 : total[row];
        }
        case Place::Device:
            return duration_ns(event);
        default:
            return 0;
    }
}

std::span<const Row> EventList::launches(std::size_t event) const {
    const auto& made = data_->launches.get([&] { return data_->make_launches(); });
    const std::span<const LaunchedTime> own = data_->launched(made, event);
    return {made.ranges.data() + (own.data() - made.all.data()), own.size()};
}

bool EventList::is_timed(std::size_t event) const {
    const auto& made = data_->launches.get([&] { return data_->make_launches(); });
    const std::span<const LaunchedTime> own = data_->launched(made, event);
    return std::ranges::any_of(own, [](const LaunchedTime& entry) { return entry.is_timed; });
}

EventBytes EventList::bytes(std::size_t event) const {
    EventBytes bytes;
    const Row row = range(event);
    if (row == kNoRow) {
        const MemoryColumns reports = data_->trace.memory();
        const Row report = this->report(event);
        if (reports.out_of_memory[report] != 0) return bytes;  // nothing was allocated
        (is_cpu_memory(reports.device[report]) ? bytes.cpu : bytes.device) = reports.bytes[report];
        bytes.self_cpu = bytes.cpu;
        bytes.self_device = bytes.device;
        return bytes;
    }
    const Data::Memory& memory = data_->memory.get([&] { return data_->make_memory(); });
    const auto of = [](const std::vector<RangeBytes>& all, Row wanted) {
        const auto found = std::ranges::lower_bound(all, wanted, {}, &RangeBytes::range);
        return found != all.end() && found->range == wanted ? *found : RangeBytes{};
    };
    const RangeBytes total = of(memory.total, row);
    bytes.cpu = bytes.self_cpu = total.cpu_bytes;
    bytes.device = bytes.self_device = total.device_bytes;
    if (memory.total.empty()) return bytes;
    if (data_->crossing.open.contains(row)) bytes.self_cpu = bytes.self_device = 0;
    for (const std::uint32_t child : children(event)) {
        const RangeBytes inside = of(memory.total, range(child));
        bytes.self_cpu -= inside.cpu_bytes;
        bytes.self_device -= inside.device_bytes;
    }
    return bytes;
}

std::optional<double> EventList::flops(std::size_t event) const {
    const Row row = range(event);
    if (row == kNoRow) return std::nullopt;
    const std::vector<RangeFlops>& all = data_->flops.get([&] { return all_flops(data_->trace); });
    const auto found = std::ranges::lower_bound(all, row, {}, &RangeFlops::range);
    if (found == all.end() || found->range != row) return std::nullopt;
    return found->flops;
}

std::vector<std::string_view> EventList::stack(std::size_t event) const {
    std::vector<std::string_view> entries;
    const Row row = range(event);
    if (row == kNoRow) return entries;
    const auto& stacks = data_->stacks.get([&] { return std::make_shared<const RangeStacks>(data_->trace); });
    stacks->visit(row, ~std::size_t{0}, [&](std::string_view entry) { entries.push_back(entry); });
    return entries;
}

std::string_view EventList::category(std::size_t event) const {
    const Row row = range(event);
    if (row == kNoRow) return "cpu_instant_event";
    const Trace& trace = data_->trace;
    const bool on_device = trace.tracks()[trace.track_of(row)].device.type != DeviceType::Cpu;
    return chrome_category(trace, trace.sites()[trace.ranges().site[row]], on_device);
}

std::string_view EventList::input_type(const Argument& input) const {
    return input_type_text(data_->trace, input);
}

std::optional<EventFlow> EventList::flow(std::size_t event) const {
    const Row row = range(event);
    const std::span<const LinkInfo> links = data_->trace.links();
    if (row == kNoRow || links.empty()) return std::nullopt;
    const auto start = std::ranges::lower_bound(links, row, {}, &LinkInfo::from);
    if (start != links.end() && start->from == row)
        return EventFlow{static_cast<std::uint32_t>(start - links.begin()), start->kind, true};
    const std::span<const std::uint32_t> ends = data_->incoming(row);
    if (ends.empty()) return std::nullopt;
    return EventFlow{ends.front(), links[ends.front()].kind, false};
}

Row EventList::launch(std::size_t event) const {
    const Row row = range(event);
    if (row == kNoRow) return kNoRow;
    const Trace& trace = data_->trace;
    if (trace.tracks()[trace.track_of(row)].device.type == DeviceType::Cpu)
        return trace.sites()[trace.ranges().site[row]].scope == Scope::DeviceRuntime ? row : kNoRow;
    for (const std::uint32_t link : data_->incoming(row)) {
        if (trace.links()[link].kind == LinkKind::Launch) return trace.links()[link].from;
    }
    return kNoRow;
}

bool EventList::has_id(std::size_t event) const {
    const std::string_view its = category(event);
    if (its != "user_annotation") return its == "cpu_op";
    return data_->is_torch.get([&] { return has_torch_operators(data_->trace); });
}

Row EventList::operator_around(Row range) const noexcept {
    const RangeColumns ranges = data_->trace.ranges();
    do {
        range = ranges.parent[range];
    } while (range != kNoRow && !is_operator(data_->trace.sites()[ranges.site[range]].scope));
    return range;
}

Row EventList::function_around(Row range) const noexcept {
    const RangeColumns ranges = data_->trace.ranges();
    do {
        range = ranges.parent[range];
    } while (range != kNoRow && !is_python_frame(data_->trace.sites()[ranges.site[range]].scope));
    return range;
}

struct EventTree::Data {
    Trace trace;
    std::vector<std::uint32_t> parent;
    ChildIndex children;

    explicit Data(Trace given) : trace(std::move(given)) {
        const RangeColumns ranges = trace.ranges();
        parent.assign(ranges.parent.begin(), ranges.parent.end());
        for (std::size_t i = trace.links().size(); i-- > 0;) {  // the first of several links wins
            const LinkInfo& link = trace.links()[i];
            if (link.kind != LinkKind::Launch || link.from >= ranges.size() || link.to >= ranges.size())
                continue;
            const bool is_device = trace.tracks()[trace.track_of(link.to)].device.type != DeviceType::Cpu;
            const bool from_host = trace.tracks()[trace.track_of(link.from)].device.type == DeviceType::Cpu;
            if (is_device && from_host) parent[link.to] = link.from;
        }
        const RangeMemory memory = range_memory(trace);
        parent.insert(parent.end(), memory.owner.begin(), memory.owner.end());
        std::vector<std::uint32_t> order(parent.size());
        std::iota(order.begin(), order.end(), 0u);
        EventOrder(trace).sort(order);
        children = ChildIndex(parent, order);
    }
};

EventTree::EventTree(Trace trace) : data_(std::make_shared<const Data>(std::move(trace))) {}

const Trace& EventTree::trace() const noexcept {
    return data_->trace;
}
std::size_t EventTree::size() const noexcept {
    return data_->parent.size();
}
std::span<const std::uint32_t> EventTree::roots() const noexcept {
    return data_->children.roots();
}
std::uint32_t EventTree::parent(std::uint32_t node) const noexcept {
    return data_->parent[node];
}
std::span<const std::uint32_t> EventTree::children(std::uint32_t node) const noexcept {
    return data_->children.of(node);
}

}  // namespace marey
