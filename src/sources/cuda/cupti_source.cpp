// cupti_source.cpp: enables and disables CUPTI, and runs the thread that reads its buffers.
#include "sources/cuda/cupti_source.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "record/source_writer.h"
#include "sources/cuda/cuda_contexts.h"

namespace marey::cuda {
namespace {

constexpr std::size_t kMaxBufferBytes = std::size_t{128} << 20;
constexpr auto kFlushPeriod = std::chrono::seconds(1);
/// The first flush comes soon after everything is enabled, to measure the clocks.
constexpr auto kFirstFlush = std::chrono::milliseconds(10);
/// Which buffers a flush returns: those without unfinished work, or all.
constexpr std::uint32_t kFinished = 0, kAll = 1;

}  // namespace

CuptiSource* CuptiSource::instance_ = nullptr;

CuptiSource::CuptiSource(std::chrono::milliseconds linger)
    : linger_(linger),
      cupti_(libraries().cupti),
      clock_(device_ticks_per_second()),
      pool_(kMaxBufferBytes),
      calls_(
          cupti_, [this] { wake_worker(); }, [this] { measure_soon(); }),
      records_(cupti_),
      decoder_(cupti_, clock_),
      probe_(clock_) {
    instance_ = this;
}

// ---- called by CUPTI, on threads of the program or its own ----

std::uint64_t CuptiSource::timestamp() {
    return instance_->clock_.to_ns(device_ticks());
}

void CuptiSource::request_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) {
    *max_records = 0;
    *buffer = instance_->pool_.take();
    *bytes = *buffer != nullptr ? BufferPool::kBufferBytes : 0;
}

void CuptiSource::complete_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                                  std::size_t valid_bytes) {
    if (buffer != nullptr) instance_->pool_.put_filled({buffer, valid_bytes, context, stream});
}

// ---- starting and stopping ----

std::string CuptiSource::record(const DeviceNeeds& needs, DeviceLog& log) noexcept {
    if (is_forked_) {
        return needs.activities == 0 || was_cuda_used_ || has_begun_
                   ? ""
                   : "This process was forked from one that recorded a GPU, and CUPTI does not work after a "
                     "fork. Start it with spawn, or start recording in the child.";
    }
    // Checked without the lock: a thread that initialises CUDA calls begins() and may block others.
    const bool waits = needs.activities != 0 && will_begin();
    const ScopedLock lock(kinds_mutex_);
    if (is_over_.load()) return "";
    needs_ = needs;
    {
        const ScopedLock pool_lock(pool_.mutex);
        if (log_ != &log) log_ = &log;  // the worker may be writing there
    }
    if (needs.activities == 0) {
        stop();
        return "";
    }
    // CUPTI is not touched until then: the program may fork first, or load a different CUPTI.
    if (waits && !is_started_ && !has_begun_) return "";
    return adapt();
}

void CuptiSource::begins() noexcept {
    std::string trouble;
    {
        const ScopedLock lock(kinds_mutex_);
        has_begun_ = true;
        if (needs_.activities != 0 && !is_started_ && !is_over_.load() && !is_forked_) trouble = adapt();
    }
    if (!trouble.empty()) note_problem("device_not_recorded", trouble);
}

std::string CuptiSource::adapt() {
    if (!is_started_) {
        if (std::string trouble = start(); !trouble.empty()) {
            needs_ = {};
            return trouble;
        }
    }
    const CuptiResult result = enable(needs_);
    return result == kCuptiSuccess ? ""
                                   : "CUPTI cannot record all requested activities: " + cupti_error(result) +
                                         ". Some GPU work is missing.";
}

std::string CuptiSource::start() {
    if (!find_cupti()) return libraries().cupti_trouble;
    if (std::string trouble = calls_.start(); !trouble.empty()) return trouble;
    if (std::string trouble = register_buffers(); !trouble.empty()) {
        calls_.stop();
        return trouble;
    }
    is_started_ = true;
    {
        const ScopedLock lock(pool_.mutex);
        is_on_ = true;
        off_at_.reset();
        has_started_ = true;
        awaits_context_ = true;
    }
    wake_worker();
    return "";
}

// Needed whenever no kind is enabled: another profiler may have used CUPTI since, and every record must have
// times of our clock.
std::string CuptiSource::register_buffers() {
    if (!enabled_.empty()) return "";
    CuptiResult result = cupti_.set_timestamps(&timestamp);
    if (result == kCuptiSuccess) result = cupti_.set_buffers(&request_buffer, &complete_buffer);
    if (result != kCuptiSuccess) return "cannot use CUPTI: " + cupti_error(result) + ".";
    if (has_buffers_.exchange(true)) return "";
    try {
        std::thread([this] { run_worker(); }).detach();
    } catch (const std::system_error& error) {
        has_buffers_ = false;
        return std::string("cannot start the thread that reads CUPTI's records: ") + error.what() + ".";
    }
    std::atexit([] { instance_->finish(); });
    return "";
}

// Unsubscribes from calls at once, so that another profiler can use CUPTI from now on.
void CuptiSource::stop() noexcept {
    if (!std::exchange(is_started_, false)) return;
    calls_.stop();
    const ScopedLock lock(pool_.mutex);
    is_on_ = false;
    off_at_ = std::chrono::steady_clock::now() + linger_;
    lost_ = 0;
}

// The enabled kinds belong to the current user of CUPTI. If that is another profiler by now, they stay.
void CuptiSource::switch_off() noexcept {
    const ScopedLock lock(kinds_mutex_);
    if (needs_.activities == 0) disable_all();
}

void CuptiSource::disable_all() noexcept {
    const std::vector<std::uint32_t> kinds = std::exchange(enabled_, {});
    // CUPTI is not kept during this: if PyTorch's profiler is refused once, it never records the GPU again in
    // this process.
    if (kinds.empty() || !calls_.is_cupti_free()) return;
    for (const std::uint32_t kind : kinds) cupti_.disable(kind);
}

CuptiResult CuptiSource::enable_kind(std::uint32_t kind) {
    if (std::find(enabled_.begin(), enabled_.end(), kind) != enabled_.end()) return kCuptiSuccess;
    const CuptiResult result = cupti_.enable(kind);
    if (result == kCuptiSuccess) enabled_.push_back(kind);
    return result;
}

// Except for unified memory, nothing is disabled before the last session ends, because threads may be
// launching work (see the constructor). Traces contain only the activities that their sessions requested.
CuptiResult CuptiSource::enable(const DeviceNeeds& needs) {
    CuptiResult trouble = kCuptiSuccess;
    const auto keep = [&](CuptiResult result) {
        if (trouble == kCuptiSuccess) trouble = result;
    };
    const auto is_requested = [&](std::uint32_t activity) { return (needs.activities & activity) != 0; };
    if (is_requested(kDeviceCalls)) keep(calls_.trace_calls(kRuntimeCalls));
    if (is_requested(kDeviceDriverCalls)) keep(calls_.trace_calls(kDriverCalls));
    if (needs.memory) keep(enable_kind(kActivityMemory));
    enable_unified_memory();
    if (is_requested(kDeviceOverhead)) keep(enable_kind(kActivityOverhead));
    if (is_requested(kDeviceWaits)) keep(enable_kind(kActivityEvent));
    if (is_requested(kDeviceWaits)) keep(enable_kind(kActivitySynchronization));
    if (is_requested(kDeviceCopies)) keep(enable_kind(kActivityMemcpy));
    if (is_requested(kDeviceCopies)) keep(enable_kind(kActivityMemcpyPeer));
    if (is_requested(kDeviceSets)) keep(enable_kind(kActivityMemset));
    // Last: their launches are recorded by then.
    if (is_requested(kDeviceKernels)) keep(enable_kind(kActivityKernel));
    return trouble;
}

// Enabled only if possible: it needs a context, which the program may create later, and a device with
// support.
void CuptiSource::enable_unified_memory() {
    if (!needs_.memory || cupti_.configure_unified_memory == nullptr) return;
    std::set<int> devices;
    for_each_context([&](int device, void*) { devices.insert(device); });
    if (!std::includes(configured_.begin(), configured_.end(), devices.begin(), devices.end())) {
        // The configuration takes effect only when the kind is enabled afterwards.
        if (std::erase(enabled_, std::uint32_t{kActivityUnifiedMemory}) != 0)
            cupti_.disable(kActivityUnifiedMemory);
        for (const int device : devices) configure_unified_memory(device);
    }
    if (has_unified_memory_) enable_kind(kActivityUnifiedMemory);
}

void CuptiSource::configure_unified_memory(int device) {
    if (!configured_.insert(device).second) return;
    UnifiedMemoryConfig configs[4];
    for (std::uint32_t i = 0; i < 4; ++i) configs[i] = {1, i + 1, static_cast<std::uint32_t>(device), 1};
    if (cupti_.configure_unified_memory(configs, 4) == kCuptiSuccess) has_unified_memory_ = true;
}

// ---- delivering records ----

bool CuptiSource::flush(std::uint64_t timeout_ns, bool wait_for_work) noexcept {
    if (is_forked_ || is_over_.load()) return true;
    const ScopedLock lock(pool_.mutex);
    DeviceLog* const log = log_;
    if (log == nullptr) return true;
    if (!is_on_) {  // CUPTI's records belong to another profiler
        const ScopedUnlock unlocked(pool_.mutex);
        write_device_facts(*log);
        return true;
    }
    const std::uint64_t request = ++flushes_requested_;
    flush_waits_ = flush_waits_ || wait_for_work;
    pool_.changed.notify_all();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
    while (flushes_done_ < request && pool_.changed.wait_until(pool_.mutex, limit)) {
    }
    const bool is_whole = flushes_done_ >= request && sync_error_.empty();
    const ScopedUnlock unlocked(pool_.mutex);
    // Not on the worker: looking for a library waits for threads that are loading one, possibly this one.
    const SuppressCalls ours;
    if (const int version = runtime_version(); version != 0)
        log->write_fact(DeviceType::Cuda, "cuda_runtime_version", std::to_string(version));
    return is_whole;
}

void CuptiSource::run_worker() {
    using Clock = std::chrono::steady_clock;
    const SuppressCalls ours;
    decoder_.leave_out_thread(static_cast<std::uint32_t>(pthread_self()));
    auto next_flush = Clock::now() + kFirstFlush;
    const ScopedLock lock(pool_.mutex);
    while (!is_over_.load()) {
        wait_for_work_or(next_flush);
        if (std::exchange(has_started_, false)) {
            next_flush = Clock::now() + kFirstFlush;
            decoder_.forget_allocations();  // releases since then were not recorded
        }
        if (std::exchange(measures_soon_, false))
            next_flush = std::min(next_flush, Clock::now() + kFirstFlush);
        const bool is_on = is_on_;
        const bool goes_off = off_at_.has_value() && Clock::now() >= *off_at_;
        if (goes_off) off_at_.reset();
        const std::uint64_t request = flushes_requested_;
        const bool is_requested = request != flushes_done_;
        const bool waits = std::exchange(flush_waits_, false);
        {
            const ScopedUnlock unlocked(pool_.mutex);
            if (goes_off) switch_off();
            if (is_requested || (is_on && Clock::now() >= next_flush)) {
                flush_on_worker(is_requested && waits, !is_requested || waits);
                next_flush = Clock::now() + kFlushPeriod;
            }
            if (is_on || is_requested) {
                decode_filled();
            } else {
                discard_filled();
            }
        }
        if (is_requested) {
            flushes_done_ = request;
            pool_.changed.notify_all();
        }
    }
}

/// Until there is something to do, or it is time for the next flush or for switching off.
void CuptiSource::wait_for_work_or(std::chrono::steady_clock::time_point next_flush) {
    const bool has_limit = is_on_ || off_at_.has_value();
    const auto limit = is_on_ ? next_flush : off_at_.value_or(next_flush);
    while (!has_started_ && !measures_soon_ && !pool_.has_filled() && !calls_.has_full() &&
           flushes_requested_ == flushes_done_) {
        if (!has_limit)
            pool_.changed.wait(pool_.mutex);
        else if (!pool_.changed.wait_until(pool_.mutex, limit))
            return;
    }
}

void CuptiSource::flush_on_worker(bool wait_for_work, bool measure_clocks) {
    std::string trouble;
    if (is_over_.load()) return;
    {
        const ScopedLock lock(kinds_mutex_);
        enable_unified_memory();
    }
    if (const std::uint64_t lost = take_lost()) log_->count_lost(lost);
    write_device_facts(*log_);
    if (wait_for_work) trouble = synchronize_contexts();
    if (measure_clocks) probe_.run();  // may have to wait for the GPU
    deliver_records(kFinished);
    // CUPTI does not return a buffer that contains unfinished work, so a program that keeps launching holds
    // back earlier work. Work that is still unfinished now was launched since; it is lost to sessions that
    // keep recording.
    if (wait_for_work) deliver_records(kAll);
    const ScopedLock lock(pool_.mutex);
    lost_ += decoder_.take_unfinished();
    sync_error_ = std::move(trouble);
}

std::uint64_t CuptiSource::take_lost() {
    const ScopedLock lock(pool_.mutex);
    return std::exchange(lost_, 0);
}

// Written from the first flush on, because the program, and CUDA with it, may end at any time.
void CuptiSource::write_device_facts(DeviceLog& log) {
    const auto write_fact = [&log](std::string_view key, const std::string& json) {
        log.write_fact(DeviceType::Cuda, key, json);
    };
    if (const std::string properties = device_properties(); !properties.empty()) {
        was_cuda_used_ = true;
        write_fact("deviceProperties", properties);
    }
    int version = 0;
    if (libraries().has_driver && libraries().driver.driver_version(&version) == kCudaSuccess)
        write_fact("cuda_driver_version", std::to_string(version));
    if (const std::uint32_t cupti = cupti_version(); cupti != 0)
        write_fact("cupti_version", std::to_string(cupti));
}

void CuptiSource::deliver_records(std::uint32_t which) {
    cupti_.flush_all(which);
    decode_filled();
    for (const ClockMeasurement& measured : probe_.measure(decoder_.take_probe_runs())) {
        const auto ticks = [](double ns) {
            return ns * static_cast<double>(device_ticks_per_second()) / 1e9;
        };
        const auto [least, most] = measured.offset;
        DeviceClockReading reading;
        reading.device = {DeviceType::Cuda, measured.device};
        reading.ticks = clock_.to_ticks(measured.at_ns);
        reading.offset = std::llround(ticks((least + most) / 2));
        reading.error = static_cast<std::uint32_t>(std::llround(ticks(std::abs(most - least) / 2)));
        log_->write(reading);
    }
}

void CuptiSource::decode_filled() {
    for (FilledBuffer filled; pool_.next(filled);) {
        ActivityRecord* record = nullptr;
        while (records_.next(filled.data, filled.bytes, record)) decoder_.decode(*record, *log_);
        count_dropped(filled.context, filled.stream);
        pool_.recycle(filled.data);
    }
    calls_.take(
        [&](std::int32_t os_tid, const RecordedCall& call) { decoder_.decode_call(os_tid, call, *log_); });
    if (const std::uint64_t lost = calls_.take_lost()) log_->count_lost(lost);
}

// Does nothing if a session has begun in the meantime.
void CuptiSource::discard_filled() {
    const ScopedLock lock(kinds_mutex_);
    if (needs_.activities != 0) return;
    for (FilledBuffer filled; pool_.next(filled);) pool_.recycle(filled.data);
    calls_.take([](std::int32_t, const RecordedCall&) {});
    calls_.take_lost();
}

void CuptiSource::wake_worker() noexcept {
    // After this the worker either has not checked yet or is waiting.
    { const ScopedLock lock(pool_.mutex); }
    pool_.changed.notify_all();
}

// A device's clock can be read only once the program has a context.
void CuptiSource::measure_soon() noexcept {
    {
        const ScopedLock lock(pool_.mutex);
        if (!std::exchange(awaits_context_, false)) return;
        measures_soon_ = true;
    }
    pool_.changed.notify_all();
}

void CuptiSource::count_dropped(void* context, std::uint32_t stream) {
    std::size_t dropped = 0;
    if (cupti_.dropped(context, stream, &dropped) == kCuptiSuccess && dropped != 0) log_->count_lost(dropped);
}

void CuptiSource::finish() noexcept {
    if (is_forked_ || is_over_.load()) return;
    flush(2'000'000'000, true);
    const ScopedLock lock(kinds_mutex_);
    needs_ = {};
    stop();
    disable_all();
    is_over_.store(true);
}

void CuptiSource::forked() noexcept {
    if (!has_buffers_) {                   // CUPTI was never used, so the child may use it
        std::construct_at(&kinds_mutex_);  // a thread of the parent may have held it
        const ScopedLock lock(kinds_mutex_);
        needs_ = {};
        return;
    }
    is_forked_ = true;
    calls_.forked();
}

}  // namespace marey::cuda
