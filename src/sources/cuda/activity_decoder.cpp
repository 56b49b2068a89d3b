// activity_decoder.cpp: one function per record kind.
#include "sources/cuda/activity_decoder.h"

#include <algorithm>

#include "base/enum_names.h"
#include "sources/cuda/call_names.h"
#include "trace/device_names.h"

namespace marey::cuda {
namespace {

constexpr std::uint32_t kNoStream = ~0u;

/// CUPTI numbers them 1, then multiples of 65536.
const char* overhead_name(std::uint32_t kind) noexcept {
    static constexpr const char* kNames[] = {"Overhead",
                                             "Buffer Flush",
                                             "Instrumentation",
                                             "Resource",
                                             "Runtime Triggered Module Loading",
                                             "Lazy Function Loading",
                                             "Command Buffer Full",
                                             "Activity Buffer Request",
                                             "UVM Activity Init"};
    if (kind == 1) return "Driver Compiler";
    return kind % 65536 == 0 ? name_at(kNames, kind / 65536, "Overhead") : "Overhead";
}

const char* migration_name(std::uint32_t kind) noexcept {
    static constexpr const char* kNames[] = {"Unified memory",
                                             "Memcpy HtoD (unified memory)",
                                             "Memcpy DtoH (unified memory)",
                                             "Page fault of the CPU (unified memory)",
                                             "Page fault of the GPU (unified memory)",
                                             "Thrashing (unified memory)",
                                             "Throttling (unified memory)",
                                             "Remote map (unified memory)",
                                             "Memcpy DtoD (unified memory)"};
    return name_at(kNames, kind, "Unified memory");
}

bool moves_bytes(std::uint32_t kind) noexcept {
    return kind == 1 || kind == 2 || kind == 8;
}

std::string copy_text(std::uint8_t kind, std::uint8_t source, std::uint8_t target) {
    return std::string(copy_name(kind)) + " (" + std::string(cupti_memory_kind(source)) + " -> " +
           std::string(cupti_memory_kind(target)) + ")";
}

}  // namespace

void ActivityDecoder::decode(const ActivityRecord& record, DeviceLog& log) {
    switch (record.kind) {
        case kActivityKernel:
            return decode_kernel(reinterpret_cast<const KernelRecord&>(record), log);
        case kActivityMemcpy:
            return decode_copy(reinterpret_cast<const CopyRecord&>(record), log);
        case kActivityMemcpyPeer:
            return decode_peer_copy(reinterpret_cast<const PeerCopyRecord&>(record), log);
        case kActivityMemset:
            return decode_set(reinterpret_cast<const SetRecord&>(record), log);
        case kActivityEvent:
            return note_event(reinterpret_cast<const EventRecord&>(record));
        case kActivitySynchronization:
            return decode_wait(reinterpret_cast<const WaitRecord&>(record), log);
        case kActivityOverhead:
            return decode_overhead(reinterpret_cast<const OverheadRecord&>(record), log);
        case kActivityMemory:
            return decode_memory(reinterpret_cast<const MemoryRecord&>(record), log);
        case kActivityUnifiedMemory:
            return decode_unified_memory(reinterpret_cast<const UnifiedMemoryRecord&>(record), log);
        default:
            return;
    }
}

DeviceWork ActivityDecoder::work(DeviceWorkKind kind, std::uint32_t site, std::uint32_t device,
                                 std::uint32_t context, std::uint32_t stream, std::uint32_t correlation,
                                 std::uint64_t start, std::uint64_t end) const noexcept {
    return DeviceWork{.kind = kind,
                      .site = site,
                      .device = {DeviceType::Cuda, static_cast<std::int32_t>(device)},
                      .stream = stream == kNoStream ? -1 : std::int64_t{stream},
                      .context = context,
                      .correlation = correlation,
                      .start = clock_.to_ticks(start),
                      .end = clock_.to_ticks(std::max(start, end))};
}

void ActivityDecoder::learn_context(std::uint32_t context, std::uint32_t device) {
    if (context == last_context_) return;
    last_context_ = context;
    devices_[context] = device;
}

std::uint32_t ActivityDecoder::device_of(std::uint32_t context) const {
    const auto found = devices_.find(context);
    return found != devices_.end() ? found->second : 0;
}

std::uint32_t ActivityDecoder::named_site(DeviceWorkKind kind, const std::string& name) {
    const auto [place, is_new] = sites_.try_emplace({kind, name}, 0u);
    if (is_new) place->second = DeviceLog::work_site(kind, name);
    return place->second;
}

std::uint32_t ActivityDecoder::kernel_site(const char* name) {
    KernelName& known = kernels_[name];
    const char* const text = name != nullptr ? name : "(kernel without a name)";
    if (known.site == 0 || known.name != text) {
        known.name = text;
        known.is_probe = known.name == kProbeName;
        known.site = DeviceLog::work_site(DeviceWorkKind::Kernel, text);
    }
    return known.is_probe ? 0 : known.site;
}

void ActivityDecoder::decode_kernel(const KernelRecord& record, DeviceLog& log) {
    learn_context(record.context, record.device);
    const std::uint32_t site = kernel_site(record.name);
    if (site == 0) {
        probe_streams_.emplace(record.context, record.stream);
        if (record.end != 0)
            probe_runs_.push_back(
                {record.correlation, static_cast<int>(record.device), record.start, record.end});
        return;
    }
    if (is_unfinished(record)) return;
    DeviceWork made = work(DeviceWorkKind::Kernel, site, record.device, record.context, record.stream,
                           record.correlation, record.start, record.end);
    for (int i = 0; i < 3; ++i) {
        made.kernel.grid[i] = static_cast<std::uint32_t>(record.grid[i]);
        made.kernel.block[i] = static_cast<std::uint16_t>(record.block[i]);
    }
    made.kernel.registers = record.registers_per_thread;
    made.kernel.static_shared = static_cast<std::uint32_t>(record.static_shared);
    made.kernel.dynamic_shared = static_cast<std::uint32_t>(record.dynamic_shared);
    made.kernel.graph_node = record.graph_node;
    const KeyedValue graph{"graph id", std::int64_t{record.graph}};
    if (record.graph_node != 0) made.values = {&graph, 1};
    log.write(made);
}

std::uint32_t ActivityDecoder::call_site(std::uint32_t domain, std::uint32_t callback) {
    constexpr std::uint32_t kMaxCallbacks = 1 << 16;
    std::vector<std::uint32_t>& sites = call_sites_[domain];
    const std::uint32_t index = std::min(callback, kMaxCallbacks);
    if (index >= sites.size()) sites.resize(index + 64);
    if (sites[index] == 0) {
        const char* name = nullptr;
        cupti_.callback_name(domain, callback, &name);
        const bool is_driver = domain == kDriverCalls;
        const std::string text = name != nullptr ? plain_call_name(name)
                                                 : std::string(is_driver ? "CUDA driver" : "CUDA runtime") +
                                                       " call " + std::to_string(callback);
        sites[index] = DeviceLog::call_site(text, is_driver, callback);
    }
    return sites[index];
}

void ActivityDecoder::decode_call(std::int32_t os_tid, const RecordedCall& recorded, DeviceLog& log) {
    DeviceCall call{.site = call_site(recorded.domain, recorded.callback),
                    .os_tid = os_tid,
                    .correlation = recorded.correlation,
                    .start = recorded.start,
                    .end = std::max(recorded.start, recorded.end),
                    .result = recorded.result,
                    .device_type = DeviceType::Cuda};
    log.write(call);
}

void ActivityDecoder::decode_copy(const CopyRecord& record, DeviceLog& log) {
    if (is_unfinished(record)) return;
    learn_context(record.context, record.device);
    const std::uint32_t site =
        named_site(DeviceWorkKind::Copy, copy_text(record.copy_kind, record.source_kind, record.target_kind));
    DeviceWork made = work(DeviceWorkKind::Copy, site, record.device, record.context, record.stream,
                           record.correlation, record.start, record.end);
    made.bytes = record.bytes;
    log.write(made);
}

void ActivityDecoder::decode_peer_copy(const PeerCopyRecord& record, DeviceLog& log) {
    if (is_unfinished(record)) return;
    const std::uint32_t site =
        named_site(DeviceWorkKind::Copy, copy_text(record.copy_kind, record.source_kind, record.target_kind));
    DeviceWork made = work(DeviceWorkKind::Copy, site, record.device, record.context, record.stream,
                           record.correlation, record.start, record.end);
    made.bytes = record.bytes;
    const KeyedValue places[] = {{"fromDevice", std::int64_t{record.source_device}},
                                 {"inDevice", std::int64_t{record.device}},
                                 {"toDevice", std::int64_t{record.target_device}},
                                 {"fromContext", std::int64_t{record.source_context}},
                                 {"inContext", std::int64_t{record.context}},
                                 {"toContext", std::int64_t{record.target_context}}};
    made.values = places;
    log.write(made);
}

void ActivityDecoder::decode_set(const SetRecord& record, DeviceLog& log) {
    if (is_unfinished(record)) return;
    learn_context(record.context, record.device);
    const std::string name = "Memset (" + std::string(cupti_memory_kind(record.memory_kind)) + ")";
    DeviceWork made = work(DeviceWorkKind::Set, named_site(DeviceWorkKind::Set, name), record.device,
                           record.context, record.stream, record.correlation, record.start, record.end);
    made.bytes = record.bytes;
    log.write(made);
}

void ActivityDecoder::decode_wait(const WaitRecord& record, DeviceLog& log) {
    if (probe_streams_.contains({record.context, record.stream})) return;
    const std::string name(synchronization_name(record.type));
    DeviceWork made =
        work(DeviceWorkKind::Wait, named_site(DeviceWorkKind::Wait, name), device_of(record.context),
             record.context, record.stream, record.correlation, record.start, record.end);
    std::vector<KeyedValue> values = {{"cuda_sync_kind", std::string_view(name)}};
    if (record.event != ~0u) {
        values.push_back({"wait_on_cuda_event_id", std::int64_t{record.event}});
        // The last time that it was recorded before the wait.
        const auto next = events_.upper_bound({record.context, record.event, record.correlation});
        if (next != events_.begin()) {
            const auto& [event, stream] = *std::prev(next);
            if (event.context == record.context && event.event == record.event) {
                values.push_back({"wait_on_stream", std::int64_t{stream}});
                values.push_back({"wait_on_cuda_event_record_corr_id", std::int64_t{event.correlation}});
            }
        }
    }
    made.values = values;
    log.write(made);
}

void ActivityDecoder::note_event(const EventRecord& record) {
    constexpr std::size_t kMaxEvents = 1 << 16;  // waits soon follow; programs may record events for ever
    const RecordedEvent event{record.context, record.event, record.correlation};
    if (!events_.emplace(event, record.stream).second) return;
    event_order_.push_back(event);
    if (event_order_.size() <= kMaxEvents) return;
    events_.erase(event_order_.front());
    event_order_.pop_front();
}

void ActivityDecoder::decode_overhead(const OverheadRecord& record, DeviceLog& log) {
    constexpr std::uint32_t kThread = 2, kBufferFlush = 1 << 16;
    if (record.object_kind == kThread) {
        const std::uint32_t thread = record.object[1];
        if (cupti_thread_ == 0 && record.overhead_kind == kBufferFlush) cupti_thread_ = thread;
        if (thread == own_thread_ || thread == cupti_thread_) return;
    }
    const char* const name = overhead_name(record.overhead_kind);
    log.write(work(DeviceWorkKind::Overhead, named_site(DeviceWorkKind::Overhead, name), 0, 0, kNoStream, 0,
                   record.start, record.end));
}

void ActivityDecoder::decode_memory(const MemoryRecord& record, DeviceLog& log) {
    constexpr std::uint32_t kPinned = 2, kAllocation = 1, kRelease = 2;
    if (record.memory_kind == kPinned || record.memory_kind == 1) return;  // host memory
    MemoryReport report{.address = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(record.address)),
                        .device = {DeviceType::Cuda, static_cast<std::int32_t>(record.device)}};
    if (record.operation == kAllocation) {
        report.bytes = static_cast<std::int64_t>(record.bytes);
        allocations_[record.address] = record.bytes;
    } else if (record.operation == kRelease) {
        const auto found = allocations_.find(record.address);
        const std::uint64_t bytes = found != allocations_.end() ? found->second : record.bytes;
        if (found != allocations_.end()) allocations_.erase(found);
        report.bytes = -static_cast<std::int64_t>(bytes);
    } else {
        return;
    }
    std::int64_t& allocated = allocated_[record.device];
    allocated = std::max<std::int64_t>(allocated + report.bytes, 0);
    report.total_allocated = report.total_reserved = allocated;
    log.write(report, clock_.to_ticks(record.time));
}

void ActivityDecoder::decode_unified_memory(const UnifiedMemoryRecord& record, DeviceLog& log) {
    const char* const name = migration_name(record.counter_kind);
    const std::uint32_t device = record.counter_kind == 2 ? record.source : record.target;
    DeviceWork made = work(DeviceWorkKind::Migration, named_site(DeviceWorkKind::Migration, name), device, 0,
                           record.stream, 0, record.start, record.end);
    const KeyedValue values[] = {{"address", static_cast<std::int64_t>(record.address)},
                                 {"value", static_cast<std::int64_t>(record.value)}};
    if (moves_bytes(record.counter_kind)) made.bytes = record.value;
    made.values = {values, moves_bytes(record.counter_kind) ? std::size_t{1} : std::size_t{2}};
    log.write(made);
}

}  // namespace marey::cuda
