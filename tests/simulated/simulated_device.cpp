// simulated_device.cpp: the machine as a Marey device, and the functions of its library.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <marey/c.h>
#include <marey/device.h>
#include <marey/error.h>
#include "simulated/simulated.h"

#include "simulated/simulation.h"

namespace marey::simulated {
namespace {

struct Current {
    std::int32_t device = 0;
    std::uint32_t stream = 0;
};
thread_local Current current;

class SimulatedEvent final : public DeviceEvent {
  public:
    SimulatedEvent(std::int32_t device, std::uint64_t ticks) : device_(device), ticks_(ticks) {}
    std::int32_t device() const noexcept override { return device_; }
    std::uint64_t ticks() const noexcept { return ticks_; }

  private:
    std::int32_t device_;
    std::uint64_t ticks_;
};

class SimulatedDevice final : public DeviceRuntime {
  public:
    std::string name() const override { return "simulated"; }
    DeviceType type() const noexcept override { return kType; }
    std::string unavailable() const override {
        if (Simulation::get().settings().absent == 0) return {};
        return "No simulated device is present: set 'absent' to 0.";
    }

    std::unique_ptr<DeviceEvent> record() override {
        if (!Simulation::get().has_device(current.device))
            throw Error("there is no simulated device " + std::to_string(current.device));
        return std::make_unique<SimulatedEvent>(
            current.device, Simulation::get().end_of_queue(current.device, current.stream));
    }

    double elapsed_us(const DeviceEvent& from, const DeviceEvent& to) override {
        const auto* const first = dynamic_cast<const SimulatedEvent*>(&from);
        const auto* const last = dynamic_cast<const SimulatedEvent*>(&to);
        if (first == nullptr || last == nullptr)
            throw Error("Events were not recorded for the simulated device");
        if (from.device() != to.device()) {
            throw Error("Events are not on the same device: " + std::to_string(from.device()) + " vs " +
                        std::to_string(to.device()));
        }
        if (!Simulation::wait_until(first->ticks()) || !Simulation::wait_until(last->ticks()))
            throw Error("the simulated device will never reach this event");
        return ticks_to_ns(static_cast<double>(last->ticks()) - static_cast<double>(first->ticks())) / 1000;
    }

    std::optional<bool> has_reached(const DeviceEvent& point) override {
        const auto* const event = dynamic_cast<const SimulatedEvent*>(&point);
        if (event == nullptr || event->ticks() == kNever) return std::nullopt;
        return event->ticks() <= device_ticks();
    }

    void mark(std::string_view name) override { marey_instant(std::string(name).c_str()); }
    void range_push(std::string_view name) override { marey_begin_named(std::string(name).c_str()); }
    void range_pop() override { marey_end(); }

    void on_each_device(const std::function<void(std::int32_t device)>& visit) override {
        const Current before = std::exchange(current, {});
        const auto count = static_cast<std::int32_t>(Simulation::get().settings().devices);
        try {
            for (current.device = 0; current.device < count; ++current.device) visit(current.device);
        } catch (...) {
            current = before;
            throw;
        }
        current = before;
    }

    void synchronize() override {
        if (!Simulation::get().synchronize(-1))
            throw Error("the simulated device will never finish its work");
    }

    DeviceActivitySource* activities() override { return &Simulation::get(); }
};

Job make_job(DeviceWorkKind kind, const char* name, std::int32_t device, std::uint32_t stream,
             std::uint64_t duration_ns, std::uint64_t bytes = 0) {
    Job job;
    job.kind = kind;
    job.name = name != nullptr ? name : "";
    job.device = device;
    job.stream = stream;
    job.duration_ns = duration_ns;
    job.bytes = bytes;
    return job;
}

}  // namespace
}  // namespace marey::simulated

using marey::DeviceWorkKind;
using marey::simulated::Job;
using marey::simulated::make_job;
using marey::simulated::Simulation;

extern "C" {

MAREY_API void marey_register_device() {
    marey::register_device(std::make_shared<marey::simulated::SimulatedDevice>());
}

int marey_simulated_configure(const char* key, double value) {
    return key != nullptr && Simulation::get().configure(key, value) ? 0 : 1;
}

void marey_simulated_reset() {
    Simulation::get().reset();
}

std::uint32_t marey_simulated_launch(std::int32_t device, std::uint32_t stream, const char* name,
                                     std::uint64_t duration_ns) {
    return Simulation::get().launch("simLaunchKernel",
                                    {make_job(DeviceWorkKind::Kernel, name, device, stream, duration_ns)});
}

std::uint32_t marey_simulated_copy(std::int32_t device, std::uint32_t stream, const char* name,
                                   std::uint64_t bytes, std::uint64_t duration_ns) {
    return Simulation::get().launch(
        "simCopyAsync", {make_job(DeviceWorkKind::Copy, name, device, stream, duration_ns, bytes)});
}

std::uint32_t marey_simulated_set(std::int32_t device, std::uint32_t stream, std::uint64_t bytes,
                                  std::uint64_t duration_ns) {
    return Simulation::get().launch("simSetAsync", {make_job(DeviceWorkKind::Set, "Memset (Device)", device,
                                                             stream, duration_ns, bytes)});
}

std::uint32_t marey_simulated_graph(std::int32_t device, std::uint32_t stream, const char* const* names,
                                    const std::uint64_t* durations_ns, std::uint32_t count) {
    std::vector<Job> jobs;
    for (std::uint32_t i = 0; i < count; ++i)
        jobs.push_back(make_job(DeviceWorkKind::Kernel, names[i], device, stream, durations_ns[i]));
    return Simulation::get().launch("simGraphLaunch", std::move(jobs));
}

std::uint32_t marey_simulated_wait(std::int32_t device, std::uint32_t stream, std::uint32_t other) {
    return Simulation::get().add_wait(make_job(DeviceWorkKind::Wait, "Stream Wait Event", device, stream, 0),
                                      other);
}

int marey_simulated_synchronize(std::int32_t device) {
    return Simulation::get().synchronize(device) ? 0 : 1;
}

std::uint64_t marey_simulated_allocate(std::int32_t device, std::uint64_t bytes) {
    return Simulation::get().allocate(device, bytes);
}

int marey_simulated_release(std::int32_t device, std::uint64_t address) {
    return Simulation::get().release(device, address) ? 0 : 1;
}

int marey_simulated_use(std::int32_t device, std::uint32_t stream) {
    if (!Simulation::get().has_device(device)) return 1;
    marey::simulated::current = {device, stream};
    return 0;
}

std::uint64_t marey_simulated_lost() {
    return Simulation::get().lost();
}
}
