// memory_binding.cpp: allocation reports from Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <marey/memory.h>
#include <marey/value.h>

#include "bindings/bind.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

Device device_of(const std::string& text) {
    return text == "cpu" ? Device{} : parse_device(text);
}

}  // namespace

void bind_memory(nb::module_& module) {
    module.def(
        "report_allocation",
        [](std::uint64_t address, std::int64_t bytes, std::int64_t total_allocated,
           std::int64_t total_reserved, const std::string& device) {
            const Device where = device_of(device);
            // NOLINTNEXTLINE(performance-no-int-to-ptr): Python passes addresses as integers
            report_allocation(reinterpret_cast<const void*>(address), bytes, total_allocated, total_reserved,
                              where);
        },
        nb::arg("address"), nb::arg("bytes"), nb::arg("total_allocated") = 0, nb::arg("total_reserved") = 0,
        nb::arg("device") = "cpu",
        "Report that an allocator has allocated (bytes > 0) or freed (bytes < 0) memory.");
    module.def(
        "report_out_of_memory",
        [](std::int64_t bytes, std::int64_t total_allocated, std::int64_t total_reserved,
           const std::string& device) {
            report_out_of_memory(bytes, total_allocated, total_reserved, device_of(device));
        },
        nb::arg("bytes"), nb::arg("total_allocated") = 0, nb::arg("total_reserved") = 0,
        nb::arg("device") = "cpu", "Report that an allocator could not allocate memory.");
    module.def("is_recording_memory", &is_recording_memory,
               "Return whether allocation reports of this thread are recorded.");
}

}  // namespace marey::bindings
