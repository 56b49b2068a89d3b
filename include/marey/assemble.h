// assemble.h: a trace from events that somebody wrote down, as they come.
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

/// Work of a device that a call started, of which only the length is known.
struct DescribedKernel {
    std::string name;
    std::int32_t device = 0;
    std::int64_t duration_ns = 0;
};

/// One event. Times in nanoseconds.
struct DescribedEvent {
    std::string name;
    std::string overload;
    std::int64_t thread = 0;  ///< any number; with `node` it says on whose row it stands
    std::int32_t node = -1;
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    Scope scope = Scope::Function;
    bool is_async = false;
    bool is_remote = false;
    Device device{DeviceType::Cpu, -1};
    std::int64_t stream = -1;
    std::int64_t sequence = -1;
    std::int64_t forward_thread = -1;  ///< as `thread`; -1: none
    std::vector<std::vector<std::int64_t>> input_shapes;
    std::vector<std::string> stack;  ///< the innermost first
    std::vector<DescribedKernel> kernels;
    std::int64_t cpu_bytes = 0;  ///< taken in it and in no event inside it
    std::int64_t device_bytes = 0;
};

struct AssembledTrace {
    Trace trace;
    std::vector<Row> row_of;  ///< of each event: its range
};

/// Nests the events of each thread by their times, as PyTorch does: in order of (start, longer first), an
/// event is the child of the nearest one before it that holds it whole, and those that it outlasts are
/// nobody's parent any more. Async events and those of devices have no parents. A kernel that is also an
/// event, one of a device with its name and length, is linked to it; others become ranges of `kernel_device`
/// that begin with their call. Throws marey::Error when there are more than a trace holds.
MAREY_API AssembledTrace assemble_trace(std::span<const DescribedEvent> events,
                                        DeviceType kernel_device = DeviceType::Cuda);

/// The readable form of a C++ symbol; any other text is itself.
MAREY_API std::string readable_symbol(const std::string& symbol);

}  // namespace marey
