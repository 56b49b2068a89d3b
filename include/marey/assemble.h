// assemble.h: builds a trace from a list of events in any order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/scope.h>
#include <marey/trace.h>
#include <marey/value.h>

namespace marey {

/// Device work launched by an event; only its duration is known.
struct DescribedKernel {
    std::string name;
    std::int32_t device = 0;
    std::int64_t duration_ns = 0;
};

/// One event. Times are in nanoseconds.
struct DescribedEvent {
    std::string name;
    std::string overload;
    std::int64_t thread = 0;  ///< any number; together with `node` it selects the row in the timeline
    std::int32_t node = -1;
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    Scope scope = Scope::Function;
    bool is_async = false;
    bool is_remote = false;
    Device device{DeviceType::Cpu, -1};
    std::int64_t stream = -1;
    std::int64_t sequence = -1;
    std::int64_t forward_thread = -1;  ///< numbered as `thread`; -1: none
    std::vector<std::vector<std::int64_t>> input_shapes;
    std::vector<std::string> stack;  ///< innermost frame first
    std::vector<DescribedKernel> kernels;
    std::int64_t cpu_bytes = 0;  ///< allocated in this event, but not in the events inside it
    std::int64_t device_bytes = 0;
};

/// The result of assemble_trace().
struct AssembledTrace {
    Trace trace;
    std::vector<Row> row_of;  ///< for each event, the row of its range
};

/// Builds a trace from events. Nests the events of each thread by their times, as PyTorch does: in order of
/// (start, longer first), an event is the child of the nearest earlier event that contains it completely;
/// earlier events that end before it does can have no more children. Async events and device events have no
/// parents. If a kernel also occurs as a device event with the same name and duration, it is linked to that
/// event; other kernels become ranges on `kernel_device` that start with their call. Throws marey::Error if
/// there are more events than a trace can hold.
MAREY_API AssembledTrace assemble_trace(std::span<const DescribedEvent> events,
                                        DeviceType kernel_device = DeviceType::Cuda);

/// Demangles a C++ symbol. Any other text is returned unchanged.
MAREY_API std::string readable_symbol(const std::string& symbol);

}  // namespace marey
