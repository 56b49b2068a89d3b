// clock_binding.cpp: comparing the clocks of hosts over a socket.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <marey/clock_exchange.h>

#include "bindings/bind.h"
#include "bindings/trace_values.h"

namespace nb = nanobind;

namespace marey::bindings {

void bind_clock(nb::module_& module) {
    const auto no_gil = nb::call_guard<nb::gil_scoped_release>();
    module.def(
        "ask_clock",
        [](int stream, int exchanges) {
            return ask_clock(stream, {.exchanges = exchanges}).exchanges.size();
        },
        nb::arg("stream"), nb::arg("exchanges") = 8, no_gil,
        "Compare the clock of this host with that of the other end of a socket, and record the result.");
    module.def(
        "answer_clock", [](int stream) { return answer_clock(stream); }, nb::arg("stream"), no_gil,
        "Answer one ask_clock() of the other end. Return False if it is closed.");
    module.def(
        "host_name", [] { return text_object(host_name()); },
        "Return the name of this host, as in captures.");
}

}  // namespace marey::bindings
