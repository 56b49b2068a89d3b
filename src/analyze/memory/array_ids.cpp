// array_ids.cpp: follows addresses over time, then joins the allocations that belonged to the same array.
#include <marey/array_ids.h>

#include <algorithm>
#include <unordered_map>

#include "analyze/events/event_order.h"
#include "analyze/memory/memory_flow.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// An address on a device, within a process.
struct ArrayPlace {
    Row process;
    Device device;
    std::uint64_t address;
    friend bool operator==(const ArrayPlace&, const ArrayPlace&) noexcept = default;
};
/// An array as identified by its process.
struct Object {
    Row process;
    std::uint64_t word;
    friend bool operator==(const Object&, const Object&) noexcept = default;
};
struct Hash {
    static std::size_t mix(std::uint64_t word) noexcept { return (word ^ word >> 29) * 0x9e3779b97f4a7c15; }
    std::size_t operator()(const ArrayPlace& place) const noexcept {
        const auto device = static_cast<std::uint64_t>(place.device.type) << 32 |
                            static_cast<std::uint32_t>(place.device.index);
        return mix(place.address ^ mix(device << 20 ^ place.process));
    }
    std::size_t operator()(const Object& object) const noexcept { return mix(object.word ^ object.process); }
};

class Numbering {
  public:
    explicit Numbering(const Trace& trace) : trace_(trace) {
        ids_.arrays.resize(trace.arrays().size());
        ids_.reports.resize(trace.memory().size());
    }

    ArrayIds run() {
        const std::span<const ArrayInfo> arrays = trace_.arrays();
        if (std::ranges::none_of(arrays, [](const ArrayInfo& a) { return a.object != 0; }))
            return std::move(ids_);
        const std::size_t ranges = trace_.ranges().size();
        for (const std::uint32_t node : nodes_in_order()) {
            if (node < ranges) {
                see_range(node);
            } else {
                see_report(node - static_cast<std::uint32_t>(ranges));
            }
        }
        number_arrays();
        return std::move(ids_);
    }

  private:
    std::vector<std::uint32_t> nodes_in_order() const {
        std::vector<std::uint32_t> nodes;
        for (const ArgumentSlice& slice : trace_.data().range_arguments) nodes.push_back(slice.row);
        const auto ranges = static_cast<std::uint32_t>(trace_.ranges().size());
        for (std::uint32_t row = 0; row < trace_.memory().size(); ++row) {
            if (trace_.memory().out_of_memory[row] == 0) nodes.push_back(ranges + row);
        }
        EventOrder(trace_).sort(nodes);
        return nodes;
    }
    Row process_of(Row thread) const noexcept {
        return thread < trace_.threads().size() ? trace_.threads()[thread].process : kNoRow;
    }
    static ArrayPlace place(Row process, Device device, std::uint64_t address) noexcept {
        if (device.type == DeviceType::Cpu) device.index = -1;
        return {process, device, address};
    }
    std::uint32_t new_allocation() {
        joined_.push_back(static_cast<std::uint32_t>(joined_.size()));
        has_array_.push_back(false);
        return joined_.back();
    }

    void see_range(Row range) {
        const Row process = process_of(trace_.tracks()[trace_.track_of(range)].thread);
        for (const Argument& value : trace_.range_arguments(range)) {
            if (value.role == ArgumentRole::Input || value.role == ArgumentRole::Site)
                visit_arrays(trace_, value, [&](Row array) { see_array(array, process); });
        }
    }
    void see_array(Row row, Row process) {
        const ArrayInfo& array = trace_.arrays()[row];
        if (!array.is_defined || array.object == 0) return;
        std::uint32_t& live = live_[place(process, array.device, array.storage)];
        if (live == 0) live = new_allocation();
        if (array.storage == 0) return;  // no memory takes one number, as in PyTorch
        ids_.arrays[row].allocation = live;
        has_array_[live] = true;
        const auto [known, is_new] = first_of_.try_emplace(Object{process, array.object}, live);
        if (!is_new) join(known->second, live);
    }
    void see_report(Row row) {
        const MemoryColumns memory = trace_.memory();
        if (memory.address[row] == 0) return;
        const ArrayPlace where =
            place(process_of(memory.thread[row]), memory.device[row], memory.address[row]);
        std::uint32_t& live = live_[where];
        // An allocation is new even if freeing the previous one was not reported.
        if (live == 0 || memory.bytes[row] > 0) live = new_allocation();
        ids_.reports[row].allocation = live;
        if (memory.bytes[row] < 0) live_.erase(where);
    }

    std::uint32_t head_of(std::uint32_t allocation) noexcept {
        while (joined_[allocation] != allocation)
            allocation = joined_[allocation] = joined_[joined_[allocation]];
        return allocation;
    }
    /// The first allocation of a group represents it.
    void join(std::uint32_t a, std::uint32_t b) noexcept {
        a = head_of(a);
        b = head_of(b);
        joined_[std::max(a, b)] = std::min(a, b);
    }
    void number_arrays() {
        ids_.array_in.assign(joined_.size(), kNoRow);
        std::uint32_t next = 0;
        for (std::uint32_t i = 1; i < joined_.size(); ++i) {
            if (!has_array_[i]) continue;
            const std::uint32_t head = head_of(i);
            ids_.array_in[i] = head == i ? next++ : ids_.array_in[head];
        }
        for (std::vector<ArrayId>* const list : {&ids_.arrays, &ids_.reports}) {
            for (ArrayId& id : *list) id.array = ids_.array_in[id.allocation];
        }
    }

    const Trace& trace_;
    ArrayIds ids_;
    std::unordered_map<ArrayPlace, std::uint32_t, Hash> live_;
    std::unordered_map<Object, std::uint32_t, Hash> first_of_;  ///< the first allocation of each array
    std::vector<std::uint32_t> joined_{0};                      ///< per allocation: another one of its group
    std::vector<bool> has_array_{false};
};

}  // namespace

ArrayIds array_ids(const Trace& trace) {
    return Numbering(trace).run();
}

}  // namespace marey
