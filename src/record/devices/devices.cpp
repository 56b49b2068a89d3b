// devices.cpp: the registered devices, the libraries that register them, and what they
// report of their work.
#include "record/devices/devices.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include <marey/detail/log_format.h>
#include <marey/detail/thread_safety.h>
#include <marey/device.h>
#include <marey/error.h>

#include "record/recorder.h"
#include "record/source_writer.h"

namespace marey {
namespace {

struct Registry {
    Mutex mutex;
    std::vector<std::shared_ptr<DeviceRuntime>> devices MAREY_GUARDED_BY(mutex);
    std::vector<std::string> tried_libraries MAREY_GUARDED_BY(mutex);  ///< of devices, that were loaded
};

Registry& registry() {
    static auto& registry = *new Registry;  // devices may be requested until the very end
    return registry;
}

std::shared_ptr<DeviceRuntime> find_registered(std::string_view name) {
    const ScopedLock lock(registry().mutex);
    for (const auto& device : registry().devices) {
        if (device->name() == name) return device;
    }
    return nullptr;
}

/// Loads libmarey_NAME.so: Marey's own are in the same folder as this library, those of others where the
/// loader searches.
void* open_device_library(std::string_view name) {
    Dl_info info{};
    std::string folder;
    if (dladdr(reinterpret_cast<const void*>(&find_device), &info) != 0 && info.dli_fname != nullptr)
        folder = info.dli_fname;
    folder.resize(folder.rfind('/') + 1);  // npos + 1: none of it
    const std::string file = "libmarey_" + std::string(name) + ".so";
    void* const own = dlopen((folder + file).c_str(), RTLD_NOW | RTLD_LOCAL);
    return own != nullptr || name == "cuda" ? own : dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

/// Why the library of a device cannot be loaded; empty: it has registered its device, or there is none.
std::string load_device_library(std::string_view name) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (name.empty() || name.find_first_not_of(kLetters) != name.npos) return {};
    {
        const ScopedLock lock(registry().mutex);
        auto& tried_libraries = registry().tried_libraries;
        if (std::find(tried_libraries.begin(), tried_libraries.end(), name) != tried_libraries.end())
            return {};
    }
    void* const library = open_device_library(name);
    if (library == nullptr) {
        const char* const given = dlerror();
        const std::string why = given != nullptr ? given : "unknown cause";
        const bool is_absent = why.find("cannot open shared object file") != why.npos;
        return is_absent && name != "cuda" ? "" : why;
    }
    using Register = void (*)();
    const auto register_it = reinterpret_cast<Register>(dlsym(library, "marey_register_device"));
    if (register_it == nullptr) return "it does not export marey_register_device";
    {
        const ScopedLock lock(registry().mutex);
        auto& tried_libraries = registry().tried_libraries;
        if (std::find(tried_libraries.begin(), tried_libraries.end(), name) != tried_libraries.end())
            return {};
        tried_libraries.emplace_back(name);
    }
    register_it();
    return {};
}

std::atomic<CurrentQueue>& current_queue_of(DeviceType type) noexcept {
    static constinit std::atomic<CurrentQueue> by_type[64] = {};
    return by_type[static_cast<unsigned>(type) % 64];
}

}  // namespace

void set_current_queue(DeviceType type, CurrentQueue query) noexcept {
    current_queue_of(type).store(query, std::memory_order_release);
}

void* current_queue(DeviceType type) noexcept {
    const CurrentQueue query = current_queue_of(type).load(std::memory_order_acquire);
    return query != nullptr ? query() : nullptr;
}

void register_device(std::shared_ptr<DeviceRuntime> device) {
    if (device == nullptr) throw Error("register_device: the device is null");
    const std::string name = device->name();
    if (name.empty()) throw Error("register_device: a device needs a name");
    if (device_bit(device->type()) == 0 || device->type() == DeviceType::Cpu)
        throw Error("register_device: " + name + " needs a device type that is not the CPU's");
    {
        const ScopedLock lock(registry().mutex);
        for (const auto& other : registry().devices) {
            if (other->name() == name)
                throw Error("register_device: a device named " + name + " is already registered");
            if (other->type() == device->type()) {
                throw Error("register_device: " + name + " has the same type as " + other->name() +
                            ", which is already registered");
            }
        }
        registry().devices.push_back(device);
    }
    Recorder::get().add_source(device_timer(device));
    if (device->activities() != nullptr) Recorder::get().add_source(device_source(std::move(device)));
}

std::shared_ptr<DeviceRuntime> find_device(std::string_view name) {
    if (auto device = find_registered(name)) return device;
    load_device_library(name);
    return find_registered(name);
}

std::string device_error(std::string_view name) {
    if (find_registered(name) == nullptr) {
        const std::string why = load_device_library(name);
        if (!why.empty())
            return "The library of the device '" + std::string(name) + "' cannot be loaded: " + why;
    }
    const std::shared_ptr<DeviceRuntime> device = find_registered(name);
    if (device == nullptr) return "There is no device named '" + std::string(name) + "'.";
    return device->unavailable();
}

void synchronize_devices() noexcept {
    // If the program has loaded NVIDIA's driver, it may have work there.
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr) find_device("cuda");
    std::vector<std::shared_ptr<DeviceRuntime>> devices;
    {
        const ScopedLock lock(registry().mutex);
        devices = registry().devices;
    }
    for (const auto& device : devices) {
        try {
            device->synchronize();
        } catch (const std::exception&) {  // the device has reported it to the code that gave it the work
        }
    }
}

std::vector<std::string> registered_devices() {
    const ScopedLock lock(registry().mutex);
    std::vector<std::string> names;
    for (const auto& device : registry().devices) names.push_back(device->name());
    return names;
}

RequestedDevices find_devices(std::span<const std::string> names, std::uint32_t device_activities) {
    RequestedDevices wanted;
    for (const std::string& name : names) {
        std::string trouble = device_error(name);
        const std::shared_ptr<DeviceRuntime> device = find_registered(name);
        if (trouble.empty()) {
            wanted.types |= device_bit(device->type());
            if (device->activities() != nullptr) continue;
            wanted.without_source |= device_bit(device->type());
            trouble = (device_activities & kDeviceTimes) == 0 ? device->activities_error() : "";
            if (!trouble.empty())
                wanted.problems.push_back(trouble + " Ranges are timed with its events instead.");
        } else {
            wanted.problems.push_back(std::move(trouble));
        }
    }
    return wanted;
}

void device_begins(std::string_view name) noexcept {
    if (const std::shared_ptr<DeviceRuntime> device = find_registered(name)) device->begins();
}

DeviceRuntime::~DeviceRuntime() = default;

std::string DeviceRuntime::activities_error() const {
    return "The device '" + name() + "' does not report its work.";
}

namespace {

class DeviceSource final : public Source {
  public:
    explicit DeviceSource(std::shared_ptr<DeviceRuntime> device)
        : device_(std::move(device)), activities_(*device_->activities()), name_(device_->name()) {}

    const char* name() const noexcept override { return name_.c_str(); }

    void needs_changed(const RecordingNeeds& needs) noexcept override {
        DeviceNeeds own;
        if (needs.is_recording() && (needs.device_types & device_bit(device_->type())) != 0) {
            own.activities = needs.device_activities & ~std::uint32_t{kDeviceTimes};
            own.memory = (needs.option_bits & detail::kOptionMemory) != 0;
        }
        if (own == needs_) return;
        needs_ = own;
        if (!log_) log_ = std::make_unique<DeviceLog>(name_);
        const std::string trouble = activities_.record(own, *log_);
        if (!trouble.empty()) note_problem("device_not_recorded", trouble);
    }

    void flush(std::uint64_t timeout_ns, bool wait_for_devices) noexcept override {
        if (needs_ == DeviceNeeds()) return;
        if (!activities_.flush(timeout_ns, wait_for_devices)) {
            note_problem(
                "device_work_missing",
                "The work of " + name_ +
                    " did not all complete, or was not all delivered, in time: some of it is missing.");
        }
    }

    void forked() noexcept override {
        needs_ = {};
        activities_.forked();
    }

  private:
    std::shared_ptr<DeviceRuntime> device_;
    DeviceActivitySource& activities_;
    std::string name_;
    DeviceNeeds needs_;
    std::unique_ptr<DeviceLog> log_;
};

}  // namespace

std::shared_ptr<Source> device_source(std::shared_ptr<DeviceRuntime> device) {
    return std::make_shared<DeviceSource>(std::move(device));
}

}  // namespace marey
