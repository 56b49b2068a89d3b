// python_events.cpp: FunctionEvents and averages that Python made or changed, read from their attributes.
#include "bindings/python_events.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace nb = nanobind;

namespace marey::bindings {
namespace {

/// Converts microseconds, given as any kind of number.
std::int64_t nanoseconds(nb::handle value) {
    const double ns = nb::cast<double>(value) * 1000.0;
    if (!(std::abs(ns) < 9.2e18)) throw nb::value_error("time out of range, or not a number");
    return std::llround(ns);
}

/// int(value).
std::int64_t integer(nb::handle value) {
    return nb::cast<std::int64_t>(nb::int_(value));
}

/// str(value); None, and all else that is false, is an empty text.
std::string text(nb::handle value) {
    return is_true(value) ? nb::cast<std::string>(nb::str(value)) : std::string();
}

/// A list of shapes as text; a text is one already, and an empty list is "[]".
std::string shapes_text(nb::handle shapes) {
    if (shapes.is_none() || nb::isinstance<nb::str>(shapes)) return text(shapes);
    return nb::len(shapes) > 0 ? text(shapes) : "[]";
}

std::vector<std::string> texts(nb::handle list) {
    std::vector<std::string> all;
    if (!is_true(list)) return all;
    for (const nb::handle entry : list) all.push_back(nb::cast<std::string>(nb::str(entry)));
    return all;
}

/// A number that fits T; `otherwise` for all else.
template <class T>
T small(nb::handle value, T otherwise) {
    if (!PyLong_Check(value.ptr())) return otherwise;
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    return overflow == 0 && std::in_range<T>(number) ? static_cast<T>(number) : otherwise;
}

/// The sizes of an input; empty for a list of arrays, and for all else that is not an array.
std::vector<std::int64_t> shape_of(nb::handle shape) {
    std::vector<std::int64_t> extents;
    try {
        for (const nb::handle extent : nb::iter(shape)) extents.push_back(integer(extent));
    } catch (const nb::python_error& error) {
        if (!error.matches(PyExc_TypeError)) throw;
        extents.clear();
    }
    return extents;
}

/// Numbers threads: those that are not identified by an integer get one.
class ThreadNumbers {
  public:
    std::int64_t of(nb::handle thread) {
        constexpr std::int64_t kFirst = std::int64_t{1} << 40;
        constexpr auto kNone = std::numeric_limits<std::int64_t>::min();
        const std::int64_t number = small(thread, kNone);
        if (number > -kMost && number < kMost) return number;
        return integer(
            numbers_.attr("setdefault")(thread, kFirst + static_cast<std::int64_t>(nb::len(numbers_))));
    }

  private:
    static constexpr std::int64_t kMost = std::int64_t{1} << 62;
    nb::dict numbers_;
};

Scope scope_of(nb::handle event, bool is_on_cpu) {
    if (is_true(event.attr("is_user_annotation"))) return Scope::User;
    if (!is_on_cpu) return Scope::Device;
    if (is_true(event.attr("is_python_function"))) return Scope::PythonFunction;
    const std::int64_t scope = is_true(event.attr("scope")) ? integer(event.attr("scope")) : 0;
    return scope >= 0 && scope < kScopeCount ? static_cast<Scope>(scope) : Scope::Function;
}

DescribedEvent described(nb::handle event, ThreadNumbers& threads) {
    DescribedEvent made;
    nb::object name = event.attr("trace_name");
    if (name.is_none()) name = event.attr("name");
    made.name = nb::cast<std::string>(nb::str(name));
    made.overload = text(event.attr("overload_name"));
    made.thread = threads.of(event.attr("thread"));
    made.node = nb::cast<std::int32_t>(event.attr("node_id"));
    const nb::object times = event.attr("time_range");
    made.start_ns = nanoseconds(times.attr("start"));
    made.duration_ns = std::max<std::int64_t>(0, nanoseconds(times.attr("end") - times.attr("start")));
    made.is_async = is_true(event.attr("is_async"));
    made.is_remote = is_true(event.attr("is_remote"));
    made.device.type = static_cast<DeviceType>(integer(event.attr("device_type")));
    const bool is_on_cpu = made.device.type == DeviceType::Cpu;
    made.scope = scope_of(event, is_on_cpu);
    if (!is_on_cpu) {
        made.device.index = small<std::int32_t>(event.attr("device_index"), -1);
        made.stream = small<std::int32_t>(event.attr("device_resource_id"), -1);
    }
    if (!event.attr("sequence_nr").is_none()) made.sequence = integer(event.attr("sequence_nr"));
    if (!event.attr("fwd_thread").is_none()) made.forward_thread = threads.of(event.attr("fwd_thread"));
    if (is_true(event.attr("input_shapes"))) {
        for (const nb::handle shape : event.attr("input_shapes"))
            made.input_shapes.push_back(shape_of(shape));
    }
    made.stack = texts(event.attr("stack"));
    for (const nb::handle kernel : event.attr("kernels"))
        made.kernels.push_back({nb::cast<std::string>(nb::str(nb::handle(kernel.attr("name")))),
                                small<std::int32_t>(kernel.attr("device"), -1),
                                nanoseconds(kernel.attr("duration"))});
    made.cpu_bytes = integer(event.attr("self_cpu_memory_usage"));
    made.device_bytes = integer(event.attr("self_device_memory_usage"));
    return made;
}

}  // namespace

bool is_true(nb::handle value) {
    const int result = PyObject_IsTrue(value.ptr());
    if (result < 0) throw nb::python_error();
    return result != 0;
}

AverageRow given_row(nb::handle event) {
    const auto time_ns = [&](const char* name) { return nanoseconds(event.attr(name)); };
    AverageRow row;
    row.name =
        event.attr("key").is_none() ? "" : nb::cast<std::string>(nb::str(nb::handle(event.attr("key"))));
    row.count = nb::cast<std::uint64_t>(event.attr("count"));
    row.node = nb::cast<std::int32_t>(event.attr("node_id"));
    row.is_async = is_true(event.attr("is_async"));
    row.is_remote = is_true(event.attr("is_remote"));
    row.cpu_time_total_ns = time_ns("cpu_time_total");
    row.device_time_total_ns = time_ns("device_time_total");
    row.self_cpu_time_total_ns = time_ns("self_cpu_time_total");
    row.self_device_time_total_ns = time_ns("self_device_time_total");
    row.input_shapes = shapes_text(event.attr("input_shapes"));
    row.overload = text(event.attr("overload_name"));
    row.stack = texts(event.attr("stack"));
    row.scope = event.attr("scope").is_none() ? Scope{} : static_cast<Scope>(integer(event.attr("scope")));
    row.cpu_memory_bytes = integer(event.attr("cpu_memory_usage"));
    row.device_memory_bytes = integer(event.attr("device_memory_usage"));
    row.self_cpu_memory_bytes = integer(event.attr("self_cpu_memory_usage"));
    row.self_device_memory_bytes = integer(event.attr("self_device_memory_usage"));
    row.device_type = static_cast<DeviceType>(integer(event.attr("device_type")));
    row.is_legacy = is_true(event.attr("is_legacy"));
    row.flops = nb::cast<std::optional<double>>(event.attr("flops"));
    row.is_user_annotation = is_true(event.attr("is_user_annotation"));
    row.is_top_level = event.attr("cpu_parent").is_none();
    const std::int64_t length = row.cpu_time_total_ns != 0 ? row.cpu_time_total_ns : row.device_time_total_ns;
    // Only averages have these, and percentiles only if they were requested.
    const auto own_ns = [&](const char* name, std::int64_t otherwise) {
        return nb::hasattr(event, name) ? time_ns(name) : otherwise;
    };
    row.min_ns = own_ns("min", length);
    row.max_ns = own_ns("max", length);
    row.p50_ns = own_ns("p50", 0);
    row.p90_ns = own_ns("p90", 0);
    row.p99_ns = own_ns("p99", 0);
    row.async_count = row.is_async ? row.count : 0;
    row.first_range = 0;
    return row;
}

std::vector<DescribedEvent> described_events(const nb::list& events) {
    ThreadNumbers threads;
    std::vector<DescribedEvent> all;
    all.reserve(events.size());
    for (const nb::handle event : events) all.push_back(described(event, threads));
    return all;
}

}  // namespace marey::bindings
