// event_tree.cpp: the parent of every range and report, and the children derived from it.
#include <numeric>

#include <marey/event_list.h>

#include "analyze/events/event_order.h"
#include "analyze/memory/range_memory.h"
#include "analyze/tree/child_index.h"

namespace marey {

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
