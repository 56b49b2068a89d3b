// assemble.cpp: turns described events into lanes, ranges, links and reports.
#include <marey/assemble.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include <marey/error.h>

#include "native/function_name.h"
#include "trace/trace_assembler.h"

namespace marey {
namespace {

class Assembly {
  public:
    Assembly(std::span<const DescribedEvent> events, DeviceType kernel_device)
        : events_(events), kernel_device_(kernel_device) {}

    AssembledTrace run() {
        for (const DescribedEvent& event : events_) add(event);
        for (std::size_t i = 0; i < events_.size(); ++i) add_kernels(events_[i], ranges_[i]);
        if (last_ns_ >= first_ns_) assembler_.set_window(first_ns_, last_ns_);
        AssembledTrace made;
        made.trace = assembler_.finish();
        for (const TraceAssembler::RangeId range : ranges_) made.row_of.push_back(assembler_.row_of(range));
        return made;
    }

  private:
    struct Thread {
        Row row;
        std::uint32_t id;
    };

    Row process(std::int32_t node) {
        const auto [place, is_new] = processes_.try_emplace(node, 0);
        if (is_new) {
            place->second =
                assembler_.add_process({.pid = static_cast<std::int64_t>(processes_.size()), .node = node});
        }
        return place->second;
    }

    /// Device streams belong to a row that is not a thread.
    Row device_thread(std::int32_t node) { return thread(node, kDeviceThread).row; }

    const Thread& thread(std::int32_t node, std::int64_t number) {
        const auto [place, is_new] = threads_.try_emplace({node, number}, Thread{});
        if (is_new) {
            ThreadInfo info{.process = process(node),
                            .id = static_cast<std::uint32_t>(threads_.size()),
                            .os_tid = number > 0 ? number : 0};
            place->second = {assembler_.add_thread(info), info.id};
        }
        return place->second;
    }

    std::uint32_t lane(const DescribedEvent& event) {
        const TrackKind kind = event.device.type != DeviceType::Cpu ? TrackKind::Device
                               : event.is_async                     ? TrackKind::Async
                                                                    : TrackKind::Thread;
        const bool on_device = kind == TrackKind::Device;
        if (on_device) return lane(device_thread(event.node), kind, event.device, event.stream);
        return lane(thread(event.node, event.thread).row, kind, Device{}, -1);
    }

    std::uint32_t lane(Row thread, TrackKind kind, Device device, std::int64_t stream) {
        const auto [place, is_new] = lanes_.try_emplace({thread, kind, device.type, device.index, stream}, 0);
        if (is_new) place->second = assembler_.add_lane({thread, kind, device, stream, 0});
        return place->second;
    }

    /// The end of something that starts with the event.
    static std::int64_t end_of(const DescribedEvent& event, std::int64_t duration_ns) {
        constexpr std::int64_t kMax = std::int64_t{1} << 61;  // so that sums and differences do not overflow
        if (event.start_ns < -kMax || event.start_ns > kMax || duration_ns < -kMax || duration_ns > kMax)
            throw Error("the timestamps of event '" + event.name + "' are out of range");
        return event.start_ns + duration_ns;
    }

    void add(const DescribedEvent& event) {
        const std::int64_t end_ns = end_of(event, event.duration_ns);
        SiteInfo site{.name = assembler_.string(event.name),
                      .scope = event.scope,
                      .overload = assembler_.string(event.overload)};
        const std::uint16_t flags =
            static_cast<std::uint16_t>((event.is_async ? kAsync : 0) | (event.is_remote ? kRemote : 0));
        const auto range = assembler_.add_range(lane(event), event.start_ns, event.duration_ns,
                                                assembler_.site(site), flags);
        ranges_.push_back(range);
        first_ns_ = std::min(first_ns_, event.start_ns);
        last_ns_ = std::max(last_ns_, end_ns);
        if (event.sequence >= 0) {
            const bool is_backward = event.forward_thread >= 0 && event.scope == Scope::BackwardFunction;
            assembler_.add_detail(range, event.sequence,
                                  is_backward ? thread(event.node, event.forward_thread).id : 0, 0);
        }
        add_values(event, range);
        add_bytes(event, {DeviceType::Cpu, -1}, event.cpu_bytes);
        add_bytes(event, {kernel_device_, 0}, event.device_bytes);
        if (event.device.type != DeviceType::Cpu) unlinked_[{event.name, event.duration_ns}].push_back(range);
    }

    void add_values(const DescribedEvent& event, TraceAssembler::RangeId range) {
        std::vector<Argument> values;
        for (const std::vector<std::int64_t>& shape : event.input_shapes) {
            ArrayInfo array;
            array.dimensions = static_cast<std::uint32_t>(shape.size());
            Argument& value = values.emplace_back();
            value.kind = ValueKind::Array;
            value.role = ArgumentRole::Input;
            value.array = assembler_.add_array(array, shape);
        }
        if (!event.stack.empty()) {
            std::vector<Argument> entries;
            for (const std::string& entry : event.stack) {
                Argument& item = entries.emplace_back();
                item.kind = ValueKind::String;
                item.string = assembler_.string(entry);
            }
            Argument& value = values.emplace_back();
            value.key = assembler_.string("Call stack");
            value.kind = ValueKind::List;
            value.list = assembler_.add_list(entries);
        }
        assembler_.add_values(range, values);
    }

    void add_bytes(const DescribedEvent& event, Device device, std::int64_t bytes) {
        if (bytes == 0) return;
        assembler_.add_memory(thread(event.node, event.thread).row,
                              {.time_ns = event.start_ns, .bytes = bytes, .device = device});
    }

    void add_kernels(const DescribedEvent& event, TraceAssembler::RangeId range) {
        for (const DescribedKernel& kernel : event.kernels) {
            std::vector<TraceAssembler::RangeId>& same = unlinked_[{kernel.name, kernel.duration_ns}];
            if (!same.empty()) {
                assembler_.add_link(range, same.front(), LinkKind::Launch);
                same.erase(same.begin());
                continue;
            }
            SiteInfo site{.name = assembler_.string(kernel.name), .scope = Scope::Device};
            const Device device{kernel_device_, kernel.device};
            const std::uint32_t on = lane(device_thread(event.node), TrackKind::Device, device, -1);
            last_ns_ = std::max(last_ns_, end_of(event, kernel.duration_ns));
            assembler_.add_link(
                range, assembler_.add_range(on, event.start_ns, kernel.duration_ns, assembler_.site(site)),
                LinkKind::Launch);
        }
    }

    static constexpr std::int64_t kDeviceThread = std::numeric_limits<std::int64_t>::min();

    std::span<const DescribedEvent> events_;
    DeviceType kernel_device_;
    TraceAssembler assembler_;
    std::vector<TraceAssembler::RangeId> ranges_;
    std::int64_t first_ns_ = 0;  ///< of the window, so that times are not shifted
    std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
    std::map<std::int32_t, Row> processes_;
    std::map<std::pair<std::int32_t, std::int64_t>, Thread> threads_;
    std::map<std::tuple<Row, TrackKind, DeviceType, std::int32_t, std::int64_t>, std::uint32_t> lanes_;
    std::map<std::pair<std::string, std::int64_t>, std::vector<TraceAssembler::RangeId>> unlinked_;
};

}  // namespace

AssembledTrace assemble_trace(std::span<const DescribedEvent> events, DeviceType kernel_device) {
    return Assembly(events, kernel_device).run();
}

std::string readable_symbol(const std::string& symbol) {
    return demangle(symbol).value_or(symbol);
}

}  // namespace marey
