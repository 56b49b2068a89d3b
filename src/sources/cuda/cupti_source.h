// cupti_source.h: what GPUs do, as CUPTI tells it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <marey/device.h>

#include "sources/cuda/activity_decoder.h"
#include "sources/cuda/buffer_pool.h"
#include "sources/cuda/call_recorder.h"
#include "sources/cuda/clock_probe.h"
#include "sources/cuda/cuda_libraries.h"
#include "sources/cuda/record_iterator.h"

namespace marey::cuda {

/// One of a process, never destroyed: CUPTI calls back until the very end. A thread of its own turns buffers
/// into the log, asks for what is buffered once a second, and measures the clocks then.
class CuptiSource final : public DeviceActivitySource {
  public:
    /// `linger`: how long CUPTI stays switched on behind the last session. It does not always survive being
    /// switched off while a thread launches: that thread's kernels are not told of from then on. Sessions
    /// that follow one another do not run into that.
    explicit CuptiSource(std::chrono::milliseconds linger = std::chrono::seconds(1));

    std::string record(const DeviceNeeds& needs, DeviceLog& log) noexcept override;
    bool flush(std::uint64_t timeout_ns, bool wait_for_work) noexcept override;
    void forked() noexcept override;

    /// The program initialises CUDA: what was asked for before begins now.
    void begins() noexcept;
    /// At the end of the program, while CUDA still stands: what is buffered goes into the log.
    void finish() noexcept;

  private:
    static CuptiSource* instance_;  ///< for CUPTI's callbacks, which carry no pointer of ours
    static std::uint64_t timestamp();
    static void request_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records);
    static void complete_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                                std::size_t valid_bytes);

    std::string start();
    std::string adapt();
    std::string register_buffers();
    void stop() noexcept;
    void switch_off() noexcept;
    void disable_all() noexcept;
    CuptiResult enable(const DeviceNeeds& needs);
    CuptiResult enable_kind(std::uint32_t kind);
    void enable_unified_memory();
    void configure_unified_memory(int device);

    void run_worker();
    void flush_on_worker(bool wait_for_work, bool measure_clocks);
    void write_device_facts(DeviceLog& log);
    void deliver_records(std::uint32_t which);
    std::uint64_t take_lost();
    void decode_filled();
    void discard_filled();
    void wake_worker() noexcept;
    void measure_soon() noexcept;
    void count_dropped(void* context, std::uint32_t stream);

    const std::chrono::milliseconds linger_;
    const Cupti& cupti_;
    const CuptiClock clock_;
    BufferPool pool_;
    CallRecorder calls_;

    std::mutex kinds_mutex_;  ///< held while kinds are switched; CUPTI calls back meanwhile

    // Under kinds_mutex_.
    DeviceNeeds needs_;
    bool is_started_ = false;
    bool has_begun_ = false;                ///< the driver has said that CUDA is initialised
    std::vector<std::uint32_t> enabled_;    ///< kinds
    std::atomic<bool> has_buffers_{false};  ///< CUPTI was given some, and the worker runs: it stays
    std::set<int> configured_;              ///< devices of which unified memory is told, or cannot be
    bool has_unified_memory_ = false;
    bool is_forked_ = false;
    std::atomic<bool> was_cuda_used_{false};  ///< in the child of a fork it cannot be then

    // Of the worker, under the pool's mutex where others ask.
    DeviceLog* log_ = nullptr;
    RecordIterator records_;
    ActivityDecoder decoder_;
    ClockProbe probe_;
    bool is_on_ = false;           ///< something is recorded
    bool awaits_context_ = false;  ///< the first since then
    bool measures_soon_ = false;
    bool has_started_ = false;                                     ///< since the worker last looked
    std::optional<std::chrono::steady_clock::time_point> off_at_;  ///< CUPTI is on still, for nobody
    std::uint64_t flushes_requested_ = 0;
    std::uint64_t flushes_done_ = 0;
    bool flush_waits_ = false;
    std::uint64_t lost_ = 0;  ///< work whose record was taken before it ended
    std::string sync_error_;
    std::atomic<bool> is_over_{false};  ///< CUDA is being taken down
};

}  // namespace marey::cuda
