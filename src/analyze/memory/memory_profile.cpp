// memory_profile.cpp: the memory of arrays over time, with the category of each.
#include <marey/memory_profile.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analyze/memory/live_memory.h"
#include "analyze/memory/memory_categories.h"
#include "analyze/memory/memory_flow.h"

namespace marey {

const char* memory_category_name(MemoryCategory category) noexcept {
    static constexpr const char* kNames[kMemoryCategories] = {
        "parameter",  "optimizer state", "input",           "temporary",
        "activation", "gradient",        "autograd detail", "unknown"};
    const auto index = static_cast<std::size_t>(category);
    return kNames[index < kMemoryCategories ? index : kMemoryCategories - 1];
}

struct MemoryProfile::Data {
    explicit Data(Trace given) : trace(std::move(given)), ids(array_ids(trace)) {
        blocks.resize(std::max<std::size_t>(1, ids.array_in.size()));
        for (std::size_t i = 1; i < blocks.size(); ++i) blocks[i].array = ids.array_in[i];
        measure_blocks();
        if (blocks.size() > 1) {
            const EventTree tree(trace);
            nodes = memory_flow(tree, ids, blocks);
            categories = MemoryCategories(tree, ids, nodes, blocks);
        }
        write_timeline();
    }

    Row process_of(Row thread) const noexcept {
        return thread < trace.threads().size() ? trace.threads()[thread].process : kNoRow;
    }

    /// The extent of an array in its memory. Its fields may have any value.
    std::int64_t reach_of(const ArrayInfo& array) const noexcept {
        if (array.layout != Layout::Strided || !array.has_strides) return 0;
        const std::span<const std::int64_t> extents = trace.array_extents();
        if (array.first_extent + 2 * std::size_t{array.dimensions} > extents.size()) return 0;
        std::int64_t elements = array.dimensions == 0 ? 1 : 0;
        for (std::size_t i = 0; i < array.dimensions; ++i) {
            std::int64_t product = 0;
            if (!__builtin_mul_overflow(extents[array.first_extent + i],
                                        extents[array.first_extent + array.dimensions + i], &product))
                elements = std::max(elements, product);
        }
        std::int64_t bytes = 0;
        return __builtin_mul_overflow(elements, std::int64_t{dtype_bytes(array.dtype)}, &bytes) ? 0 : bytes;
    }
    void measure_blocks() {
        const Row only = trace.processes().size() == 1 ? 0 : kNoRow;
        for (std::size_t row = 0; row < ids.arrays.size(); ++row) {
            if (ids.arrays[row].allocation == 0) continue;
            const ArrayInfo& array = trace.arrays()[row];
            MemoryBlock& block = blocks[ids.arrays[row].allocation];
            block.device = array.device;
            block.address = array.storage;
            block.process = only;
            block.bytes = std::max(block.bytes, reach_of(array));
        }
        const MemoryColumns memory = trace.memory();
        for (std::size_t row = 0; row < ids.reports.size(); ++row) {
            if (ids.reports[row].allocation == 0) continue;
            MemoryBlock& block = blocks[ids.reports[row].allocation];
            block.device = memory.device[row];
            block.address = memory.address[row];
            block.process = process_of(memory.thread[row]);
            block.bytes =
                memory.bytes[row] < 0 ? wrapping_difference(0, memory.bytes[row]) : memory.bytes[row];
        }
    }

    MemoryEvent event_of(std::int64_t time, MemoryAction action, std::uint32_t allocation,
                         std::uint32_t version) const {
        const MemoryBlock& block = blocks[allocation];
        MemoryEvent event{time,          action,       allocation, version, block.bytes,
                          block.process, block.device, {},         {}};
        event.category = categories.get(allocation, version);
        event.next_category = action == MemoryAction::IncrementVersion
                                  ? categories.get(allocation, version + 1)
                                  : MemoryCategory::Unknown;
        return event;
    }

    void write_timeline() {
        std::vector<char> is_taken(blocks.size(), 0);
        for (const DeviceReports& device : reports_by_device(trace)) write_reports(device, is_taken);
        for (std::uint32_t i = 1; i < blocks.size(); ++i) {
            if (blocks[i].array != kNoRow && blocks[i].versions != 0 && is_taken[i] == 0)
                timeline.push_back(event_of(MemoryEvent::kBefore, MemoryAction::Preexisting, i, 0));
        }
        for (const FlowNode& node : nodes) {
            for (const FlowEdge& edge : node.edges) {
                if (edge.is_written && !edge.is_taken)
                    timeline.push_back(event_of(node.start_ns, MemoryAction::IncrementVersion,
                                                edge.allocation, edge.version));
            }
        }
        std::stable_sort(timeline.begin(), timeline.end(), [](const MemoryEvent& a, const MemoryEvent& b) {
            return std::pair(a.time_ns, a.action) < std::pair(b.time_ns, b.action);
        });
    }

    /// The event for one report: of an array's memory, or of memory without an array.
    MemoryEvent report_event(std::uint32_t row, MemoryAction action) const {
        const MemoryColumns memory = trace.memory();
        const std::int64_t time =
            action == MemoryAction::Preexisting ? MemoryEvent::kBefore : memory.time_ns[row];
        if (ids.reports[row].array != kNoRow) {
            const std::uint32_t allocation = ids.reports[row].allocation;
            const std::uint32_t last = std::max(blocks[allocation].versions, 1u) - 1;
            return event_of(time, action, allocation, action == MemoryAction::Destroy ? last : 0);
        }
        MemoryEvent event;
        event.time_ns = time;
        event.action = action;
        event.bytes = memory.bytes[row] < 0 ? wrapping_difference(0, memory.bytes[row]) : memory.bytes[row];
        event.process = process_of(memory.thread[row]);
        event.device = memory.device[row];
        return event;
    }
    void write_reports(const DeviceReports& device, std::vector<char>& is_taken) {
        const MemoryColumns memory = trace.memory();
        LiveMemory live(memory);
        for (const std::uint32_t row : device.rows) {
            const auto before = live.live().find(memory.address[row]);
            const std::uint32_t hidden = before != live.live().end() ? before->second : kNoRow;
            const LiveMemory::Change change = live.follow(row);
            const bool is_of_array = ids.reports[row].array != kNoRow;
            if (change.effect == LiveMemory::Effect::None) continue;
            if (change.effect == LiveMemory::Effect::Taken) {
                if (change.hides_free &&
                    hidden != kNoRow) {  // the free was not reported, but must have happened
                    timeline.push_back(report_event(hidden, MemoryAction::Destroy));
                    timeline.back().time_ns = memory.time_ns[row];
                }
                if (is_of_array) is_taken[ids.reports[row].allocation] = 1;
                timeline.push_back(report_event(row, MemoryAction::Create));
                continue;
            }
            // Memory of arrays is added with the arrays that were only observed.
            if (change.effect == LiveMemory::Effect::Earlier && !is_of_array)
                timeline.push_back(report_event(row, MemoryAction::Preexisting));
            timeline.push_back(report_event(row, MemoryAction::Destroy));
        }
    }

    Trace trace;
    ArrayIds ids;
    std::vector<MemoryBlock> blocks;
    std::vector<FlowNode> nodes;
    MemoryCategories categories;
    std::vector<MemoryEvent> timeline;
};

MemoryProfile::MemoryProfile(Trace trace) : data_(std::make_shared<const Data>(std::move(trace))) {}

const Trace& MemoryProfile::trace() const noexcept {
    return data_->trace;
}
const ArrayIds& MemoryProfile::ids() const noexcept {
    return data_->ids;
}
std::span<const MemoryBlock> MemoryProfile::blocks() const noexcept {
    return data_->blocks;
}
std::span<const FlowNode> MemoryProfile::nodes() const noexcept {
    return data_->nodes;
}
MemoryCategory MemoryProfile::category(std::uint32_t allocation, std::uint32_t version) const noexcept {
    return data_->categories.get(allocation, version);
}
std::span<const MemoryEvent> MemoryProfile::timeline() const noexcept {
    return data_->timeline;
}

}  // namespace marey
