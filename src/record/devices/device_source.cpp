// device_source.cpp: what a device reports of its work.
#include <memory>
#include <string>
#include <utility>

#include <marey/detail/log_format.h>
#include <marey/device.h>

#include "record/devices/devices.h"
#include "record/source_writer.h"

namespace marey {

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
