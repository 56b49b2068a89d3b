// activity_decoder.h: writes CUPTI's records to the log.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <marey/device.h>

#include "sources/cuda/call_log.h"
#include "sources/cuda/cuda_libraries.h"
#include "sources/cuda/cupti_clock.h"
#include "sources/cuda/cupti_records.h"

namespace marey::cuda {

/// A run of Marey's probe kernel, with the times reported by CUPTI.
struct ProbeRun {
    std::uint32_t correlation;
    int device;
    std::uint64_t start_ns;
    std::uint64_t end_ns;
};

/// Used by one thread at a time. Names are looked up once.
class ActivityDecoder {
  public:
    ActivityDecoder(const Cupti& cupti, const CuptiClock& clock) : cupti_(cupti), clock_(clock) {}

    /// Writes a record; ignores unknown kinds.
    void decode(const ActivityRecord& record, DeviceLog& log);
    void decode_call(std::int32_t os_tid, const RecordedCall& call, DeviceLog& log);
    /// The runs of the clock probe found since the last call.
    std::vector<ProbeRun> take_probe_runs() { return std::exchange(probe_runs_, {}); }

    /// Resets the memory totals.
    void forget_allocations() {
        allocated_.clear();
        allocations_.clear();
    }

    /// CUPTI's number of Marey's thread. The program does not notice its overhead, nor that of CUPTI's own
    /// thread, which is the first to flush a buffer.
    void leave_out_thread(std::uint32_t thread) noexcept { own_thread_ = thread; }

    /// The amount of work without times since the last call: it had not ended when its record was requested.
    std::uint64_t take_unfinished() noexcept { return std::exchange(unfinished_, 0); }

    /// The name of the probe kernel, which is not part of the program's work.
    static constexpr const char* kProbeName = "marey_clock_probe";

  private:
    void decode_kernel(const KernelRecord& record, DeviceLog& log);
    void decode_copy(const CopyRecord& record, DeviceLog& log);
    void decode_peer_copy(const PeerCopyRecord& record, DeviceLog& log);
    void decode_set(const SetRecord& record, DeviceLog& log);
    void decode_wait(const WaitRecord& record, DeviceLog& log);
    void note_event(const EventRecord& record);
    void decode_overhead(const OverheadRecord& record, DeviceLog& log);
    void decode_memory(const MemoryRecord& record, DeviceLog& log);
    void decode_unified_memory(const UnifiedMemoryRecord& record, DeviceLog& log);

    bool is_unfinished(const auto& record) noexcept {
        const bool is_so = record.start == 0 || record.end == 0;
        unfinished_ += is_so ? 1 : 0;
        return is_so;
    }
    DeviceWork work(DeviceWorkKind kind, std::uint32_t site, std::uint32_t device, std::uint32_t context,
                    std::uint32_t stream, std::uint32_t correlation, std::uint64_t start,
                    std::uint64_t end) const noexcept;
    /// Wait records do not contain the device. A context belongs to one device, which work records contain.
    void learn_context(std::uint32_t context, std::uint32_t device);
    std::uint32_t device_of(std::uint32_t context) const;
    std::uint32_t kernel_site(const char* name);
    std::uint32_t call_site(std::uint32_t domain, std::uint32_t callback);
    std::uint32_t named_site(DeviceWorkKind kind, const std::string& name);

    /// CUPTI frees names with their modules and may store another name at the same address.
    struct KernelName {
        std::string name;
        std::uint32_t site = 0;
        bool is_probe = false;
    };
    /// An event that was recorded on a stream, by the call with this correlation.
    struct RecordedEvent {
        std::uint32_t context;
        std::uint32_t event;
        std::uint32_t correlation;
        bool operator<(const RecordedEvent& other) const noexcept {
            return std::tie(context, event, correlation) <
                   std::tie(other.context, other.event, other.correlation);
        }
    };
    const Cupti& cupti_;
    const CuptiClock& clock_;
    std::unordered_map<const char*, KernelName> kernels_;
    std::vector<std::uint32_t> call_sites_[kCallDomains];  ///< by domain, then by callback
    std::map<std::pair<DeviceWorkKind, std::string>, std::uint32_t> sites_;
    std::map<std::uint32_t, std::int64_t> allocated_;  ///< bytes per device
    std::unordered_map<std::uint64_t, std::uint64_t> allocations_;
    std::unordered_map<std::uint32_t, std::uint32_t> devices_;  ///< by context
    std::uint32_t last_context_ = ~0u;                          ///< last context added to `devices_`
    std::vector<ProbeRun> probe_runs_;
    std::set<std::pair<std::uint32_t, std::uint32_t>> probe_streams_;  ///< context and stream
    std::map<RecordedEvent, std::uint32_t> events_;                    ///< to the stream
    std::deque<RecordedEvent> event_order_;                            ///< of `events_`, oldest first
    std::uint64_t unfinished_ = 0;
    std::uint32_t own_thread_ = 0;
    std::uint32_t cupti_thread_ = 0;
};

}  // namespace marey::cuda
