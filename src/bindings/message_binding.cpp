// message_binding.cpp: tokens on the messages that multiprocessing pickles, and comparing the clocks of hosts
// over a socket.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <string_view>

#include <marey/clock_exchange.h>
#include <marey/range.h>
#include <marey/token.h>

#include "bindings/bind.h"
#include "bindings/trace_values.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

/// The pickle of a message with a token is longer than this before its token.
constexpr Py_ssize_t kSearchedBytes = 256;

void receive_from(nb::handle bytes, std::string_view mark) {
    Py_buffer view;
    if (PyObject_GetBuffer(bytes.ptr(), &view, PyBUF_SIMPLE) != 0) {
        PyErr_Clear();  // the function that reads the message reports it
        return;
    }
    const std::string_view text(
        static_cast<const char*>(view.buf),
        static_cast<std::size_t>(view.len < kSearchedBytes ? view.len : kSearchedBytes));
    const std::size_t place = text.find(mark);
    Token token;
    if (place != text.npos && text.size() - place - mark.size() >= sizeof token) {
        std::memcpy(&token, text.data() + place + mark.size(), sizeof token);
        receive_token(token);
    }
    PyBuffer_Release(&view);
}

/// Returns `dumps` and `loads` with tokens. They add no frame to tracebacks. `wrap(bytes, message)` returns
/// an object that pickles to the message, with the bytes in it; `mark` is what wrap() puts before them.
nb::tuple with_tokens(const nb::object& dumps, const nb::object& loads, const nb::object& wrap,
                      const nb::bytes& mark) {
    nb::object dumps_message =
        nb::cpp_function([dumps, wrap](const nb::args& args, const nb::kwargs& kwargs) {
            const Token token = args.size() >= 2 && is_recording() ? send_token() : Token();
            if (token.sender == 0) return nb::object(dumps(*args, **kwargs));
            nb::list changed(args);
            changed[1] = wrap(nb::bytes(reinterpret_cast<const char*>(&token), sizeof token), args[1]);
            return nb::object(dumps(*changed, **kwargs));
        });
    nb::object loads_message =
        nb::cpp_function([loads, mark](const nb::args& args, const nb::kwargs& kwargs) {
            if (!args.empty() && is_recording()) receive_from(args[0], {mark.c_str(), mark.size()});
            return nb::object(loads(*args, **kwargs));
        });
    return nb::make_tuple(dumps_message, loads_message);
}

}  // namespace

void bind_messages(nb::module_& module) {
    module.def("with_tokens", with_tokens, nb::arg("dumps"), nb::arg("loads"), nb::arg("wrap"),
               nb::arg("mark"));
}

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
