// request_ranges.cpp: the ranges, names and messages of web requests.
#include <Python.h>

#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "bindings/inherited_context.h"
#include "bindings/requests.h"
#include "bindings/site_cache.h"
#include "sources/python/live_calls.h"

namespace marey::bindings {
namespace {

/// The keys of an ASGI scope and of its messages, and the types of messages that are counted.
enum Word : std::size_t {
    kRouteKey,
    kEndpoint,
    kMethodKey,
    kType,
    kBody,
    kStatus,
    kBytes,
    kText,
    kCode,
    kResponseBody,
    kResponseStart,
    kFirstName,  ///< of ranges until they end
    kWords
};
constexpr const char* kTexts[kWords] = {"route",
                                        "endpoint",
                                        "method",
                                        "type",
                                        "body",
                                        "status",
                                        "bytes",
                                        "text",
                                        "code",
                                        "http.response.body",
                                        "http.response.start",
                                        "request"};
PyObject* words[kWords];       ///< interned
PyObject* variable = nullptr;  ///< a ContextVar: tasks that a request starts inherit the request

// The value of a dict, borrowed; null if it has none. Leaves no error.
PyObject* entry(PyObject* dict, Word key) noexcept {
    PyObject* const value = PyDict_GetItemWithError(dict, words[key]);
    if (value == nullptr) PyErr_Clear();
    return value;
}

/// Where the names of a request are known by its route, if it has an ASGI scope with one; else null.
PyObject** known_place(const Request* request, PyObject*& route) noexcept {
    if (!PyDict_CheckExact(request->argument)) return nullptr;
    route = entry(request->argument, kRouteKey);
    if (route == nullptr) route = entry(request->argument, kEndpoint);
    if (route == nullptr || route == Py_None) return nullptr;
    return &request->owner->known[(reinterpret_cast<std::uintptr_t>(route) >> 4) % Requests::kKnown];
}

bool has_method(const Request* request, PyObject* names) noexcept {
    PyObject* const method = entry(request->argument, kMethodKey);
    PyObject* const known = PyTuple_GET_ITEM(names, kMethod);
    return method == known || (method != nullptr && PyUnicode_CheckExact(method) &&
                               PyUnicode_CheckExact(known) && PyUnicode_Compare(method, known) == 0);
}

bool is_valid(PyObject* names) noexcept {
    if (names == nullptr || !PyTuple_CheckExact(names) || PyTuple_GET_SIZE(names) != kNames) return false;
    for (Py_ssize_t i = kRequest; i < kNames; ++i) {
        if (!PyUnicode_Check(PyTuple_GET_ITEM(names, i))) return false;
    }
    return true;
}

/// Looks the names up: a framework may have found the route since the last time.
void find_names(Request* request) noexcept {
    PyObject* route = nullptr;
    PyObject** const place = known_place(request, route);
    PyObject* names = place != nullptr ? *place : nullptr;
    if (names != nullptr && PyTuple_GET_ITEM(names, kRoute) == route && has_method(request, names)) {
        Py_INCREF(names);
    } else {
        names = PyObject_CallOneArg(request->owner->names, request->argument);
        if (names == nullptr) PyErr_Clear();
        if (!is_valid(names)) Py_CLEAR(names);
        if (place != nullptr && names != nullptr && PyTuple_GET_ITEM(names, kRoute) == route)
            Py_XSETREF(*place, Py_NewRef(names));
    }
    if (names != nullptr) Py_XSETREF(request->found, names);
}

/// The values of a request: its own, and the texts of a dict.
class Values {
  public:
    Values(std::span<const KeyedValue> own, PyObject* texts) noexcept {
        for (const KeyedValue& value : own) values_[count_++] = value;
        PyObject *key = nullptr, *text = nullptr;
        for (Py_ssize_t place = 0; PyDict_Next(texts, &place, &key, &text) != 0;) {
            if (count_ == std::size(values_) || !PyUnicode_Check(key) || !PyUnicode_Check(text)) continue;
            const std::optional<std::string_view> name = utf8(key), value = utf8(text);
            if (name && value) values_[count_++] = {*name, *value};
        }
    }
    std::span<const KeyedValue> all() const noexcept { return {values_, count_}; }

  private:
    /// Valid as long as the text; none if it is not valid Unicode.
    static std::optional<std::string_view> utf8(PyObject* text) noexcept {
        Py_ssize_t size = 0;
        const char* const bytes = PyUnicode_AsUTF8AndSize(text, &size);
        if (bytes != nullptr) return std::string_view(bytes, static_cast<std::size_t>(size));
        PyErr_Clear();
        return std::nullopt;
    }

    KeyedValue values_[16];
    std::size_t count_ = 0;
};

void add_size(Request* self, PyObject* data) noexcept {
    const Py_ssize_t size = data != nullptr && data != Py_None ? PyObject_Size(data) : 0;
    if (size >= 0) self->bytes += size;
    PyErr_Clear();
}

void set_status(Request* self, PyObject* number) noexcept {
    const long long status = number != nullptr && PyLong_Check(number) ? PyLong_AsLongLong(number) : -1;
    if (status >= 0) self->status = status;
    PyErr_Clear();
}

void count_message(Request* self, PyObject* message) noexcept {
    PyObject* const type = entry(message, kType);
    if (type == nullptr || !PyUnicode_Check(type)) return;
    // Literals in a program are interned, mostly.
    const auto is = [type](Word word) { return PyUnicode_CompareWithASCIIString(type, kTexts[word]) == 0; };
    if (type == words[kResponseStart] || (type != words[kResponseBody] && is(kResponseStart))) {
        set_status(self, entry(message, kStatus));
    } else if (type == words[kResponseBody] || is(kResponseBody)) {
        add_size(self, entry(message, kBody));
    } else if (PyUnicode_CompareWithASCIIString(type, "websocket.send") == 0) {
        PyObject* const bytes = entry(message, kBytes);
        add_size(self, bytes != nullptr && bytes != Py_None ? bytes : entry(message, kText));
    } else if (PyUnicode_CompareWithASCIIString(type, "websocket.close") == 0) {
        self->status = 1000;
        set_status(self, entry(message, kCode));
    }
}

/// A server may start the next request of a connection while this one answers, and so in a task of it. That
/// task is then one of the next request.
void take_over_task(Request* next) noexcept {
    PyObject* const object = current_request();
    if (object == nullptr) return;
    Request* const task = request_of(object);
    if (task->is_task && task->argument != next->argument) {
        Py_XSETREF(task->argument, Py_NewRef(next->argument));
        Py_INCREF(next->owner);
        Py_SETREF(task->owner, next->owner);
        Py_CLEAR(task->found);
    }
    Py_DECREF(object);
}

}  // namespace

PyObject* current_request() noexcept {
    PyObject* request = nullptr;
    if (PyContextVar_Get(variable, nullptr, &request) != 0) PyErr_Clear();
    return request;
}

PyObject* enter_request(Request* request) noexcept {
    PyObject* const token = PyContextVar_Set(variable, reinterpret_cast<PyObject*>(request));
    if (token == nullptr) PyErr_Clear();
    return token;
}

void leave_request(PyObject* token) noexcept {
    if (token == nullptr) return;
    if (PyContextVar_Reset(variable, token) != 0) PyErr_Clear();
    Py_DECREF(token);
}

void begin_request(Request* request, bool nests) noexcept {
    if (!nests) return request->range.begin(0);
    open_if_recording(Scope::User, [request]() noexcept {
        const std::uint32_t site = site_cache.site(words[kFirstName], Scope::User);
        if (site != 0) request->range.begin(site);
    });
}

PyObject* names_of(Request* request) noexcept {
    // An ASGI request has found them at the end of its last part.
    if (request->argument != nullptr && (request->found == nullptr || !request->ends_itself))
        find_names(request);
    return request->found;
}

void end_request(Request* request) noexcept {
    if (!request->range.is_open()) return;
    PyObject* const names = names_of(request);
    if (names == nullptr) return request->range.drop();
    const auto finish = [&](std::span<const KeyedValue> values) noexcept {
        request->range.end(site_cache.site(PyTuple_GET_ITEM(names, kRequest), Scope::User), values);
    };
    const auto with_values = [&]() noexcept {
        const KeyedValue own[] = {{"status", request->status}, {"bytes", request->bytes}};
        if (PyDict_GET_SIZE(request->values) == 0) return finish(own);
        finish(Values(own, request->values).all());
    };
    if (detail::should_record(Scope::User) || followed_variable == nullptr) {
        with_values();
    } else {
        const FollowedContext context;
        with_values();
    }
}

PyObject* send_message(PyObject* object, PyObject* const* args, std::size_t flagged_count,
                       PyObject* keywords) {
    if (PyVectorcall_NARGS(flagged_count) != 1 || (keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0)) {
        PyErr_SetString(PyExc_TypeError, "send() takes one message");
        return nullptr;
    }
    Request* const self = request_of(object);
    if (self->send == nullptr) {
        PyErr_SetString(PyExc_TypeError, "this request has no function that takes messages");
        return nullptr;
    }
    if (PyDict_Check(args[0])) count_message(self, args[0]);
    return PyObject_CallOneArg(self->send, args[0]);
}

RequestRange::RequestRange(Request* request) noexcept : request_(request) {
    open_if_recording(Scope::User, [this]() noexcept {
        const std::uint32_t site = site_cache.site(words[kFirstName], Scope::User);
        if (site != 0) range_.begin(site);
    });
}

void RequestRange::end(Names which) noexcept {
    if (!range_.is_open()) return;
    if (request_->argument != nullptr) find_names(request_);
    PyObject* const names = request_->found;
    range_.end(names != nullptr ? site_cache.site(PyTuple_GET_ITEM(names, which), Scope::User) : 0, {});
}

Part::Part(Request* request) noexcept : RequestRange(request), start_(range_.start()) {
    if (start_ != 0 && request_->has_begun) begin_live(false);
    if (request_->has_begun || !range_.is_open()) return;
    if (!request_->is_task) take_over_task(request_);
    request_->token = enter_request(request_);
}

void Part::begin_live(bool is_start) noexcept {
    python::begin_part(request_, is_start, start_);
    request_->is_live = true;
}

Part::~Part() {
    const KeptError kept;
    if (is_last) leave_request(std::exchange(request_->token, nullptr));
    if (range_.is_open()) {
        // The only part of a request is a plain range.
        if (start_ != 0 && !request_->has_begun && !is_last) begin_live(true);
        if (start_ != 0 && (request_->has_begun || !is_last)) python::end_part(request_, start_, is_last);
        request_->has_begun = true;
        end(request_->is_task ? kTask : kPart);
    }
    if (is_last && request_->ends_itself) {
        if (request_->status == 0 && kept.is(PyExc_Exception) && !kept.is(PyExc_StopIteration))
            request_->status = 500;
        end_request(request_);
    }
}

ThreadWork::~ThreadWork() {
    const KeptError kept;
    leave_request(token_);
    end(kThread);
}

bool make_request_texts() noexcept {
    for (std::size_t i = 0; i < kWords; ++i) {
        words[i] = PyUnicode_InternFromString(kTexts[i]);
        if (words[i] == nullptr) return false;
    }
    variable = PyContextVar_New("marey request", nullptr);
    return variable != nullptr;
}

}  // namespace marey::bindings
