// python_device.cpp: forwards the recorder's calls to a Python object.
//
// `record`, `mark` and similar calls come from the thread whose range begins or ends: they run on that
// thread, which acquires the GIL if needed. All other calls come from the thread that starts or stops a
// session and holds the recorder's lock for sources. Another thread that holds the GIL may be waiting for
// that lock (for example to fork). So these calls run on a separate thread, for which the caller waits two
// seconds at most.
#include "bindings/python_device.h"

#include <nanobind/nanobind.h>

#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <marey/error.h>

#include "bindings/python_calls.h"
#include "sources/python/python_text.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kCallTimeout = 2s;

class PythonEvent final : public DeviceEvent {
  public:
    PythonEvent(std::shared_ptr<HeldObject> object, std::int32_t device) noexcept
        : object_(std::move(object)), device_(device) {}
    std::int32_t device() const noexcept override { return device_; }
    const std::shared_ptr<HeldObject>& object() const noexcept { return object_; }

  private:
    std::shared_ptr<HeldObject> object_;
    std::int32_t device_;
};

std::string text_of(nb::handle object) {
    std::string text;
    python::with_text(object.ptr(), [&](std::string_view words) { text = words; });
    return text;
}

/// Runs `use` and returns a Python exception as text, with the name of the called function.
template <class Use>
std::string error_text_of(const char* what, Use use) noexcept {
    try {
        use();
        return {};
    } catch (nb::python_error& error) {
        error.restore();
        return std::string(what) + "() raised " + take_error_text();
    } catch (const std::exception& error) {
        return std::string(what) + "(): " + error.what();
    }
}

nb::object member(nb::handle object, const char* name) {
    if (!nb::hasattr(object, name)) return nb::none();
    return object.attr(name);
}

class PythonActivities final : public DeviceActivitySource {
  public:
    PythonActivities(HeldObject source, std::string name, DeviceType type)
        : shared_(std::make_shared<Shared>()) {
        shared_->source = std::move(source);
        shared_->name = std::move(name);
        shared_->type = type;
    }

    // After the interpreter has ended there is nothing to do: end() has stopped the source.
    std::string record(const DeviceNeeds& needs, DeviceLog& log) noexcept override {
        if (calls_have_ended()) return {};
        log_ = &log;
        const auto answer = std::make_shared<Answer>();
        const bool is_done = run([shared = shared_, answer, needs, &log] {
            answer->trouble = needs == DeviceNeeds() ? stop(*shared) : start(*shared, needs, log);
        });
        return is_done ? answer->trouble : unanswered("start or stop");
    }

    bool flush(std::uint64_t timeout_ns, bool wait_for_work) noexcept override {
        if (calls_have_ended()) return true;
        const auto answer = std::make_shared<Answer>();
        const bool is_done =
            tasks_.run([shared = shared_, answer, timeout_ns,
                        wait_for_work] { *answer = flush(*shared, timeout_ns, wait_for_work); },
                       std::chrono::nanoseconds(timeout_ns));
        if (!is_done) return false;
        report_metadata(*answer);
        return answer->trouble.empty();
    }

    void forked() noexcept override { shared_->is_started = false; }

    /// Called with the GIL before the interpreter ends.
    void end() noexcept {
        report_metadata(flush(*shared_, 0, false));
        stop(*shared_);
    }

  private:
    /// The data that tasks use; they may outlive their callers.
    struct Shared {
        HeldObject source;
        std::string name;
        DeviceType type = DeviceType::Other;
        bool is_started = false;  ///< guarded by the GIL, like the other members
        nb::handle object() const { return source.get(); }
    };
    struct Answer {
        std::string trouble;
        std::vector<std::pair<std::string, std::string>> facts;
    };

    bool run(std::function<void()> work) noexcept { return tasks_.run(std::move(work), kCallTimeout); }

    std::string unanswered(const char* what) const {
        return "The device '" + shared_->name + "' could not " + what +
               " at once: Python was busy, or the caller held the GIL.";
    }

    static std::string start(Shared& shared, const DeviceNeeds& needs, DeviceLog& log) noexcept {
        return error_text_of("start", [&] {
            const nb::object own_log = nb::steal(make_device_log(log, shared.type));
            if (!own_log.is_valid()) throw nb::python_error();
            own_log.attr("needs_memory") = needs.memory;
            const nb::object kinds = nb::module_::import_("marey._devices").attr("DeviceActivity");
            shared.is_started = true;
            shared.object().attr("start")(kinds(needs.activities), own_log);
        });
    }

    static std::string stop(Shared& shared) noexcept {
        if (!std::exchange(shared.is_started, false)) return {};
        return error_text_of("stop", [&] { shared.object().attr("stop")(); });
    }

    static Answer flush(Shared& shared, std::uint64_t timeout_ns, bool wait_for_work) noexcept {
        Answer answer;
        if (!shared.is_started) return answer;
        answer.trouble = error_text_of("flush", [&] {
            const nb::object flush = member(shared.object(), "flush");
            if (!flush.is_none() &&
                flush(static_cast<double>(timeout_ns) * 1e-9, wait_for_work).is(nb::bool_(false)))
                throw Error("records are missing");
        });
        const std::string about_facts = error_text_of("facts", [&] {
            const nb::object facts = member(shared.object(), "facts");
            if (facts.is_none()) return;
            const nb::object dumps = nb::module_::import_("json").attr("dumps");
            const nb::object given = facts();
            if (!nb::isinstance<nb::dict>(given)) throw Error("did not return a dict");
            for (const auto [key, value] : nb::borrow<nb::dict>(given))
                answer.facts.emplace_back(text_of(nb::str(key)), text_of(dumps(value)));
        });
        if (answer.trouble.empty()) answer.trouble = about_facts;
        return answer;
    }

    void report_metadata(const Answer& answer) const {
        if (log_ == nullptr) return;
        for (const auto& [key, json] : answer.facts) log_->write_fact(shared_->type, key, json);
        if (!answer.trouble.empty())
            log_->write_fact(shared_->type, "device_trouble_" + shared_->name, quoted(answer.trouble));
    }

    static std::string quoted(const std::string& text) {
        std::string json = "\"";
        for (const char c : text) {
            if (c == '"' || c == '\\') json += '\\';
            json += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
        }
        return json + '"';
    }

    std::shared_ptr<Shared> shared_;
    PythonTaskQueue tasks_;
    DeviceLog* log_ = nullptr;
};

class PythonDevice final : public DeviceRuntime {
  public:
    explicit PythonDevice(nb::handle device) : shared_(std::make_shared<HeldObject>(device.inc_ref().ptr())) {
        const nb::object name = member(device, "name");
        if (!nb::isinstance<nb::str>(name) || nb::len(name) == 0)
            throw Error("register_device: the name of a device must be a str that is not empty");
        name_ = text_of(name);
        const nb::object type = member(device, "type");
        const long number = type.is_none() ? static_cast<long>(DeviceType::Other) : PyLong_AsLong(type.ptr());
        if (PyErr_Occurred() != nullptr || number < 1 || number > 31) {
            PyErr_Clear();
            throw Error("register_device: the type of " + name_ +
                        " must be a marey.DeviceType other than CPU");
        }
        type_ = static_cast<DeviceType>(number);
        const nb::object source = member(device, "activities");
        require(source, {"start", "stop"}, "activity source");
        if (source.is_none()) require(device, {"record", "elapsed"}, "device");
        if (!source.is_none())
            activities_ = std::make_unique<PythonActivities>(HeldObject(nb::object(source).release().ptr()),
                                                             name_, type_);
    }

    std::string name() const override { return name_; }
    DeviceType type() const noexcept override { return type_; }

    std::string unavailable() const override {
        const auto why = std::make_shared<std::string>();
        const std::string trouble = call("unavailable", [why, name = name_](nb::handle device) {
            const nb::object enabled = member(device, "enabled");
            const nb::object reason = member(device, "unavailable");
            if (!reason.is_none()) *why = text_of(nb::str(reason()));
            if (why->empty() && !enabled.is_none() && PyObject_IsTrue(enabled().ptr()) == 0)
                *why = "The device '" + name + "' is not enabled.";
        });
        return trouble.empty() ? *why : trouble;
    }

    std::unique_ptr<DeviceEvent> record() override {
        std::unique_ptr<DeviceEvent> event;
        here("record", [&](nb::handle device) {
            nb::object object = device.attr("record")();
            const nb::object number = member(object, "device");
            const auto index = number.is_none() ? 0 : nb::cast<std::int32_t>(number);
            event =
                std::make_unique<PythonEvent>(std::make_shared<HeldObject>(object.release().ptr()), index);
        });
        return event;
    }

    double elapsed_us(const DeviceEvent& from, const DeviceEvent& to) override {
        const auto* const begin = dynamic_cast<const PythonEvent*>(&from);
        const auto* const end = dynamic_cast<const PythonEvent*>(&to);
        if (begin == nullptr || end == nullptr) throw Error("Events were not recorded for " + name_);
        const auto us = std::make_shared<double>(0);
        const std::string trouble =
            call("elapsed", [us, first = begin->object(), second = end->object()](nb::handle device) {
                *us = nb::cast<double>(
                    device.attr("elapsed")(nb::handle(first->get()), nb::handle(second->get())));
            });
        if (!trouble.empty()) throw Error(trouble);
        return *us;
    }

    void mark(std::string_view name) override { call_if_defined("mark", name); }
    void range_push(std::string_view name) override { call_if_defined("range_push", name); }
    void range_pop() override {
        here("range_pop", [](nb::handle device) {
            const nb::object method = member(device, "range_pop");
            if (!method.is_none()) method();
        });
    }

    void on_each_device(const std::function<void(std::int32_t)>& visit) override {
        here("on_each_device", [&](nb::handle device) {
            const nb::object method = member(device, "on_each_device");
            if (method.is_none()) return visit(0);
            method(nb::cpp_function([&](std::int32_t index) { visit(index); }));
        });
    }

    void synchronize() override {
        const std::string trouble = call("synchronize", [](nb::handle device) {
            const nb::object method = member(device, "synchronize");
            if (!method.is_none()) method();
        });
        if (!trouble.empty()) throw Error(trouble);
    }

    DeviceActivitySource* activities() override { return activities_.get(); }
    std::string activities_error() const override {
        return {};
    }  // whether to have an activity source is up to the device
    void end() noexcept {
        if (activities_ != nullptr) activities_->end();
    }

  private:
    void require(nb::handle object, std::initializer_list<const char*> methods, const char* what) const {
        if (object.is_none()) return;
        for (const char* const method : methods) {
            if (PyCallable_Check(member(object, method).ptr()) == 0)
                throw Error("register_device: the " + std::string(what) + " of " + name_ + " has no method " +
                            method + "()");
        }
    }

    /// Calls the device on this thread; throws if the call fails.
    template <class Use>
    void here(const char* what, Use use) const {
        std::string trouble;
        with_gil([&] { trouble = error_text_of(what, [&] { use(nb::handle(shared_->get())); }); });
        if (!trouble.empty()) throw Error(trouble);
    }

    void call_if_defined(const char* what, std::string_view name) const {
        here(what, [&](nb::handle device) {
            const nb::object method = member(device, what);
            if (!method.is_none()) method(nb::str(name.data(), name.size()));
        });
    }

    /// Calls the device on this thread if it holds the GIL, otherwise as a task. Returns the error text.
    /// `use` must own everything that it uses: it may run after the caller has stopped waiting.
    template <class Use>
    std::string call(const char* what, Use use) const {
        if (PyGILState_Check() != 0) {
            std::string trouble;
            with_gil([&] { trouble = error_text_of(what, [&] { use(nb::handle(shared_->get())); }); });
            return trouble;
        }
        const auto trouble = std::make_shared<std::string>();
        const bool is_done = tasks_.run(
            [what, use, trouble, device = shared_] {
                *trouble = error_text_of(what, [&] { use(nb::handle(device->get())); });
            },
            kCallTimeout);
        return is_done ? *trouble
                       : std::string(what) + "() of the device '" + name_ + "' did not return in time";
    }

    std::shared_ptr<HeldObject> shared_;
    std::string name_;
    DeviceType type_ = DeviceType::Other;
    std::unique_ptr<PythonActivities> activities_;
    mutable PythonTaskQueue tasks_;
};

}  // namespace

std::shared_ptr<DeviceRuntime> make_python_device(PyObject* device) {
    // Devices exist for the lifetime of the process.
    static auto& all = *new std::vector<std::shared_ptr<PythonDevice>>;
    all.push_back(std::make_shared<PythonDevice>(nb::handle(device)));
    end_calls_with_interpreter([] {
        for (const auto& each : all) each->end();
    });
    return all.back();
}

}  // namespace marey::bindings
