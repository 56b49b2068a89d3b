// device_fixture.h: for tests: a device that logs the calls it receives.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <marey/all.h>

namespace marey::testing {

/// Logs the calls it receives.
class FakeDevice : public DeviceRuntime, public DeviceActivitySource {
  public:
    FakeDevice(std::string name, DeviceType type) : name_(std::move(name)), type_(type) {}
    std::string name() const override { return name_; }
    DeviceType type() const noexcept override { return type_; }
    std::string unavailable() const override { return why_not; }
    std::unique_ptr<DeviceEvent> record() override { throw Error("it has no events"); }
    double elapsed_us(const DeviceEvent&, const DeviceEvent&) override { return 0; }
    void mark(std::string_view) override {}
    void range_push(std::string_view) override {}
    void range_pop() override {}
    void on_each_device(const std::function<void(std::int32_t)>&) override {}
    void synchronize() override {}
    void begins() noexcept override { calls += "begins "; }
    DeviceActivitySource* activities() override { return has_activities ? this : nullptr; }

    std::string record(const DeviceNeeds& needs, DeviceLog& log) noexcept override {
        received.push_back(needs);
        to = &log;
        return needs.activities != 0 ? trouble : "";
    }
    bool flush(std::uint64_t timeout_ns, bool wait_for_work) noexcept override {
        calls += wait_for_work ? "wait " : "flush ";
        timeout = timeout_ns;
        if (to != nullptr) to->write_fact(type_, "fake_clock", "7");
        return is_whole;
    }
    void forked() noexcept override { calls += "forked "; }

    /// Work that starts now and lasts as long as requested.
    void work(std::string_view what, std::uint64_t ticks = 10) const {
        const std::uint64_t now = device_ticks();
        DeviceWork work;
        work.site = DeviceLog::work_site(DeviceWorkKind::Kernel, what);
        work.device = {type_, 0};
        work.stream = 7;
        work.start = now;
        work.end = now + ticks;
        to->write(work);
    }

    std::string why_not;
    std::string trouble;
    bool has_activities = true;
    bool is_whole = true;
    std::vector<DeviceNeeds> received;
    std::string calls;
    std::uint64_t timeout = 0;
    DeviceLog* to = nullptr;

  private:
    std::string name_;
    DeviceType type_;
};

// A device is registered for the life of the process; all tests share one.
inline FakeDevice& fake() {
    static const std::shared_ptr<FakeDevice> device = [] {
        auto made = std::make_shared<FakeDevice>("fake", DeviceType::Xpu);
        register_device(made);
        return made;
    }();
    device->received.clear();
    device->calls.clear();
    device->why_not.clear();
    device->trouble.clear();
    device->is_whole = true;
    return *device;
}

inline SessionOptions with_fake() {
    SessionOptions options;
    options.devices = {"fake"};
    return options;
}

inline std::string problem_text(const Trace& trace, std::string_view code) {
    for (const ProblemInfo& problem : trace.problems()) {
        if (problem.code == code) return problem.text;
    }
    return "";
}

inline std::uint64_t problem_count(const Trace& trace, std::string_view code) {
    for (const ProblemInfo& problem : trace.problems()) {
        if (problem.code == code) return problem.count;
    }
    return 0;
}

inline std::map<std::string, int> counts(const Trace& trace) {
    std::map<std::string, int> found;
    for (Row row = 0; row < trace.ranges().size(); ++row) ++found[std::string(trace.range_name(row))];
    return found;
}

}  // namespace marey::testing
