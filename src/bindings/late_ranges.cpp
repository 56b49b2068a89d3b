// late_ranges.cpp: marey._marey.late_range: a range that gets its name and its values at its end.
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include "bindings/inherited_context.h"
#include "bindings/range_objects.h"
#include "bindings/site_cache.h"
#include "sources/python/late_range.h"

namespace marey::bindings {
namespace {

struct LateRangeObject {
    PyObject_HEAD python::LateRange range;
    PyObject* send;  ///< receives the messages of an ASGI response, or null
    long long status;
    long long bytes;
};

PyTypeObject* late_range_type = nullptr;
PyObject* type_key = nullptr;  ///< "type"

LateRangeObject* self_of(PyObject* object) noexcept {
    return reinterpret_cast<LateRangeObject*>(object);
}

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    PyObject *name = Py_None, *send = nullptr;
    static const char* const kNames[] = {"name", "send", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:late_range", const_cast<char**>(kNames), &name,
                                     &send))
        return nullptr;
    if (name != Py_None && !PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "late_range: the name must be a str or None");
        return nullptr;
    }
    PyObject* const object = type->tp_alloc(type, 0);  // filled with zeros: not open
    if (object == nullptr) return nullptr;
    auto* const self = self_of(object);
    self->send = Py_XNewRef(send);
    if (name == Py_None) {
        self->range.begin(0);
    } else {
        open_if_recording(Scope::User, [&]() noexcept {
            const std::uint32_t site = site_cache.site(name, Scope::User);
            if (site != 0) self->range.begin(site);
        });
    }
    return object;
}

/// The values of a range: the status, the size, and the texts of a dict.
class Values {
  public:
    Values(const LateRangeObject& range, PyObject* texts) noexcept {
        values_[count_++] = {"status", range.status};
        values_[count_++] = {"bytes", range.bytes};
        PyObject *key = nullptr, *text = nullptr;
        for (Py_ssize_t place = 0; texts != nullptr && PyDict_Next(texts, &place, &key, &text) != 0;) {
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

PyObject* end(PyObject* object, PyObject* args) {
    PyObject *name = nullptr, *texts = nullptr;
    if (!PyArg_ParseTuple(args, "U|O!:end", &name, &PyDict_Type, &texts)) return nullptr;
    auto* const self = self_of(object);
    const Values values(*self, texts);
    const auto finish = [&]() noexcept { self->range.end(site_cache.site(name, Scope::User), values.all()); };
    if (detail::should_record(Scope::User) || followed_variable == nullptr) {
        finish();
    } else {
        const FollowedContext context;
        finish();
    }
    Py_RETURN_NONE;
}

// The value of a message, borrowed; null if it has none. Leaves no error.
PyObject* entry(PyObject* message, const char* key) noexcept {
    return PyDict_GetItemString(message, key);
}

void add_size(LateRangeObject* self, PyObject* data) noexcept {
    const Py_ssize_t size = data != nullptr && data != Py_None ? PyObject_Size(data) : 0;
    if (size >= 0) self->bytes += size;
    PyErr_Clear();
}

void set_status(LateRangeObject* self, PyObject* number) noexcept {
    const long long status = number != nullptr && PyLong_Check(number) ? PyLong_AsLongLong(number) : -1;
    if (status >= 0) self->status = status;
    PyErr_Clear();
}

void count(LateRangeObject* self, PyObject* message) noexcept {
    PyObject* const type = PyDict_GetItemWithError(message, type_key);
    if (type == nullptr || !PyUnicode_Check(type)) return PyErr_Clear();
    const auto is = [type](const char* text) { return PyUnicode_CompareWithASCIIString(type, text) == 0; };
    if (is("http.response.body")) {
        add_size(self, entry(message, "body"));
    } else if (is("http.response.start")) {
        set_status(self, entry(message, "status"));
    } else if (is("websocket.send")) {
        PyObject* const bytes = entry(message, "bytes");
        add_size(self, bytes != nullptr && bytes != Py_None ? bytes : entry(message, "text"));
    } else if (is("websocket.close")) {
        self->status = 1000;
        set_status(self, entry(message, "code"));
    }
}

// Passes a message on, and notes the status and the size of the response.
PyObject* send_message(PyObject* object, PyObject* args, PyObject* kwargs) {
    PyObject* message = nullptr;
    if ((kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) ||
        !PyArg_UnpackTuple(args, "send", 1, 1, &message)) {
        if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, "send() takes one message");
        return nullptr;
    }
    auto* const self = self_of(object);
    if (self->send == nullptr) {
        PyErr_SetString(PyExc_TypeError, "this range has no function that takes messages");
        return nullptr;
    }
    if (PyDict_Check(message)) count(self, message);
    return PyObject_CallOneArg(self->send, message);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self_of(object)->send);
    return 0;
}

int clear(PyObject* object) {
    Py_CLEAR(self_of(object)->send);
    return 0;
}

void destroy(PyObject* object) {
    PyTypeObject* const type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    self_of(object)->range.drop();
    clear(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyMethodDef kMethods[] = {
    {"end", end, METH_VARARGS,
     "End the range, named by the first argument; the second is a dict of texts, further values. Does "
     "nothing if it has ended."},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef kMembers[] = {
    {"status", T_LONGLONG, offsetof(LateRangeObject, status), 0, "The status of the response."},
    {"bytes", T_LONGLONG, offsetof(LateRangeObject, bytes), 0, "The size of its body."},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot kSlots[] = {
    {Py_tp_doc, const_cast<char*>("A range that gets its name, a status and a number of bytes at its end.\n\n"
                                  "With a name, it nests with the other ranges of this thread; otherwise it "
                                  "is on an async track. Calling it passes an ASGI message on to `send`.")},
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_tp_call, reinterpret_cast<void*>(send_message)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, kMethods},
    {Py_tp_members, kMembers},
    {0, nullptr},
};
PyType_Spec kSpec = {"marey.late_range", sizeof(LateRangeObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC, kSlots};

}  // namespace

bool add_late_ranges(PyObject* module) noexcept {
    type_key = PyUnicode_InternFromString("type");
    late_range_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    return type_key != nullptr && late_range_type != nullptr &&
           PyModule_AddType(module, late_range_type) == 0;
}

}  // namespace marey::bindings
