// simulation.cpp: the calls of the library, and the recording of calls and work.
#include "simulated/simulation.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace marey::simulated {
namespace {

bool is_requested(const DeviceNeeds& needs, std::uint32_t activity) noexcept {
    return (needs.activities & activity) != 0;
}

void sleep_until(std::uint64_t ticks) noexcept {
    for (std::uint64_t now = device_ticks(); now < ticks; now = device_ticks()) {
        const double left = std::min(ticks_to_ns(static_cast<double>(ticks - now)), 1e8);
        const timespec time{0, static_cast<long>(left)};
        nanosleep(&time, nullptr);
    }
}

/// With the keys of PyTorch's traces. 16 multiprocessors: the 64 blocks of a kernel are 4 on each.
std::string properties_of(int devices) {
    std::string json;
    for (int device = 0; device < devices; ++device) {
        json +=
            (json.empty() ? "[{\"id\": " : ", {\"id\": ") + std::to_string(device) +
            R"(, "name": "Simulated", "computeMajor": 9, "computeMinor": 0, "warpSize": 32, "numSms": 16, )"
            R"("maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, )"
            R"("sharedMemPerMultiprocessor": 102400})";
    }
    return json + "]";
}

}  // namespace

Simulation& Simulation::get() {
    static auto& simulation = *new Simulation;
    return simulation;
}

Simulation::Simulation() : state_(new State(device_ticks())) {}

bool Simulation::configure(std::string_view key, double value) {
    std::lock_guard lock(state_->mutex);
    return state_->settings.set(key, value);
}

void Simulation::reset() {
    std::lock_guard lock(state_->mutex);
    state_->settings = {};
    state_->machine = {};
    state_->buffers = {};
}

Settings Simulation::settings() const {
    std::lock_guard lock(state_->mutex);
    return state_->settings;
}

std::uint64_t Simulation::lost() const {
    std::lock_guard lock(state_->mutex);
    return state_->buffers.lost();
}

bool Simulation::has_device(std::int32_t device) const {
    std::lock_guard lock(state_->mutex);
    return has_device(*state_, device);
}

bool Simulation::has_device(const State& state, std::int32_t device) const {
    return state.settings.absent == 0 && device >= 0 && device < static_cast<int>(state.settings.devices);
}

// ---- calls ----

// A call of the library, which calls the driver: both are recorded with the same correlation id.
std::uint32_t Simulation::call(
    const char* name, std::int32_t device,
    const std::function<void(State&, std::uint64_t now, std::uint32_t correlation)>& body) {
    State& state = *state_;
    CallRecord outer{name, false, gettid(), 0, device_ticks(), 0, 0};
    CallRecord inner{"simDriverCall", true, outer.os_tid, 0, device_ticks(), 0, 0};
    DeviceNeeds needs;
    std::uint64_t earliest_end = 0;
    {
        std::lock_guard lock(state.mutex);
        needs = state.needs;
        outer.correlation = inner.correlation = ++state.last_correlation;
        outer.result = inner.result = has_device(state, device) ? 0 : 1;
        if (outer.result == 0) body(state, device_ticks(), outer.correlation);
        earliest_end = outer.start + static_cast<std::uint64_t>(ns_to_ticks(state.settings.call_ns));
    }
    while (device_ticks() < earliest_end) {
    }
    inner.end = device_ticks();
    outer.end = device_ticks();
    std::lock_guard lock(state.mutex);
    if (state.needs.activities != 0) {
        if (is_requested(needs, kDeviceDriverCalls)) state.buffers.add(inner, state.settings);
        if (is_requested(needs, kDeviceCalls)) state.buffers.add(outer, state.settings);
        collect(state, outer.end);
        if (state.buffers.has_full() && state.settings.hold_buffers == 0) deliver(state, false);
    }
    return outer.result == 0 ? outer.correlation : 0;
}

std::uint32_t Simulation::launch(const char* name, std::vector<Job> jobs) {
    if (jobs.empty()) return 0;
    return call(name, jobs.front().device, [&](State& state, std::uint64_t now, std::uint32_t correlation) {
        for (Job& job : jobs) {
            job.correlation = correlation;
            job.is_recorded = is_requested(state.needs, device_activity(job.kind));
            if (jobs.size() > 1) job.graph_node = ++state.last_node;
        }
        state.machine.give(std::move(jobs), now, state.settings);
    });
}

std::uint32_t Simulation::add_wait(Job wait, std::uint32_t other) {
    return call("simStreamWait", wait.device,
                [&](State& state, std::uint64_t now, std::uint32_t correlation) {
                    wait.correlation = correlation;
                    wait.is_recorded = is_requested(state.needs, kDeviceWaits);
                    state.machine.add_wait(std::move(wait), other, now);
                });
}

bool Simulation::synchronize(std::int32_t device) {
    std::uint64_t end = 0;
    State& state = *state_;
    CallRecord record{"simDeviceSynchronize", false, gettid(), 0, device_ticks(), 0, 0};
    DeviceNeeds needs;
    {
        std::lock_guard lock(state.mutex);
        needs = state.needs;
        record.correlation = ++state.last_correlation;
        const bool is_there = device == -1 ? state.settings.absent == 0 : has_device(state, device);
        end = is_there ? state.machine.end_of_device(device, record.start) : kNever;
        record.result = end == kNever ? 1 : 0;
    }
    if (end != kNever) sleep_until(end);
    const std::uint64_t waited_until = device_ticks();
    record.end = waited_until;
    std::lock_guard lock(state.mutex);
    if (state.needs.activities != 0) {
        collect(state, record.end);
        if (is_requested(needs, kDeviceCalls)) state.buffers.add(record, state.settings);
        if (is_requested(needs, kDeviceWaits) && record.result == 0) {
            Job wait{DeviceWorkKind::Wait, "Device Synchronize", std::max(device, 0), 0};
            wait.correlation = record.correlation;
            state.buffers.add(WorkRecord{std::move(wait), state.clock.show(record.start, state.settings),
                                         state.clock.show(waited_until, state.settings)},
                              state.settings);
        }
        if (state.buffers.has_full() && state.settings.hold_buffers == 0) deliver(state, false);
    }
    return record.result == 0;
}

std::uint64_t Simulation::allocate(std::int32_t device, std::uint64_t bytes) {
    std::uint64_t address = 0;
    call("simAllocate", device, [&](State& state, std::uint64_t, std::uint32_t) {
        address = state.machine.allocate(device, bytes, state.settings);
        report(state, device, address, static_cast<std::int64_t>(bytes), address == 0);
    });
    return address;
}

bool Simulation::release(std::int32_t device, std::uint64_t address) {
    std::uint64_t bytes = 0;
    call("simRelease", device, [&](State& state, std::uint64_t, std::uint32_t) {
        bytes = state.machine.release(device, address);
        if (bytes != 0) report(state, device, address, -static_cast<std::int64_t>(bytes), false);
    });
    return bytes != 0;
}

void Simulation::report(State& state, std::int32_t device, std::uint64_t address, std::int64_t bytes,
                        bool refused) {
    if (!state.needs.memory) return;
    MemoryReport made;
    made.address = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address));
    made.bytes = bytes;
    made.total_allocated = static_cast<std::int64_t>(state.machine.allocated(device));
    made.total_reserved = static_cast<std::int64_t>(state.settings.memory_bytes);
    made.device = {kType, device};
    made.is_out_of_memory = refused;
    state.buffers.add(MemoryRecord{made, device_ticks()}, state.settings);
}

std::uint64_t Simulation::end_of_queue(std::int32_t device, std::uint32_t stream) const {
    std::lock_guard lock(state_->mutex);
    return state_->machine.end_of_queue(device, stream, device_ticks());
}

bool Simulation::wait_until(std::uint64_t ticks, std::uint64_t max_ns) {
    const double most = static_cast<double>(device_ticks()) + ns_to_ticks(static_cast<double>(max_ns));
    const bool can_be = ticks != kNever && static_cast<double>(ticks) <= most;
    if (!can_be && max_ns == ~std::uint64_t{0}) return false;
    sleep_until(can_be ? ticks : static_cast<std::uint64_t>(most));
    return can_be;
}

// ---- recording ----

// Moves finished work to the buffers.
void Simulation::collect(State& state, std::uint64_t now) {
    for (Job& job : state.machine.take_finished(now)) {
        if (!job.is_recorded) continue;
        const double start = state.clock.show(job.start, state.settings);
        const double end = state.clock.show(job.end, state.settings);
        state.buffers.add(WorkRecord{std::move(job), start, end}, state.settings);
    }
}

// The device's clock is read between two readings of the host's clock; the closest of a few attempts counts.
void Simulation::read_clock(State& state) {
    ClockReading best{0, 0, 1e18};
    for (int i = 0; i < 5; ++i) {
        const std::uint64_t before = device_ticks();
        const double shown = state.clock.show(device_ticks(), state.settings);
        const std::uint64_t after = device_ticks();
        const double half_width = static_cast<double>(after - before) / 2 + 1;
        if (half_width >= best.half_width) continue;
        best = {static_cast<double>(before) + static_cast<double>(after - before) / 2, shown, half_width};
    }
    const double noise = state.settings.clock_noise_ns;
    best.device_ns += std::uniform_real_distribution<double>(-noise, noise)(state.random);
    best.half_width += ns_to_ticks(noise);
    state.relation.add(best);
}

void Simulation::deliver(State& state, bool everything) {
    if (state.log == nullptr) return;
    const std::uint64_t start = device_ticks();
    read_clock(state);
    state.buffers.deliver_records(everything, *state.log, state.relation, state.settings);
    if (!is_requested(state.needs, kDeviceOverhead)) return;
    DeviceWork work;
    work.kind = DeviceWorkKind::Overhead;
    work.site = DeviceLog::work_site(work.kind, "Buffer Flush");
    work.device = {kType, 0};
    work.start = start;
    work.end = device_ticks();
    state.log->write(work);
}

std::string Simulation::record(const DeviceNeeds& needs, DeviceLog& log) noexcept {
    State& state = *state_;
    std::lock_guard lock(state.mutex);
    state.log = &log;
    if (needs.activities != 0 && state.settings.refuse != 0) {
        state.needs = {};
        return "Another profiler is using the simulated device: stop it first.";
    }
    const bool was_off = state.needs == DeviceNeeds();
    state.needs = needs;
    if (was_off && needs.activities != 0) {
        state.relation.forget();
        read_clock(state);
    }
    if (needs == DeviceNeeds()) state.buffers.forget();
    return {};
}

bool Simulation::flush(std::uint64_t timeout_ns, bool wait_for_work) noexcept {
    State& state = *state_;
    bool is_whole = true;
    if (wait_for_work) {
        std::uint64_t end = 0;
        {
            std::lock_guard lock(state.mutex);
            end = state.machine.end_of_recorded(device_ticks());
        }
        is_whole = wait_until(end, timeout_ns);
    }
    std::lock_guard lock(state.mutex);
    if (state.needs == DeviceNeeds()) return true;
    collect(state, device_ticks());
    deliver(state, true);
    report_metadata(state);
    return is_whole;
}

void Simulation::forked() noexcept {
    const Settings settings = state_->settings;
    if (State* const fresh = new (std::nothrow) State(device_ticks())) {
        fresh->settings = settings;
        state_ = fresh;  // the parent's state may be inconsistent and is not touched
    }
}

void Simulation::report_metadata(const State& state) {
    if (state.relation.empty()) return;
    state.log->write_fact(kType, "deviceProperties", properties_of(static_cast<int>(state.settings.devices)));
    state.log->write_fact(kType, "simulated_clock", state.relation.report());
}

}  // namespace marey::simulated
