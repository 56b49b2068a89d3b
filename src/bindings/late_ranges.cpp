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
    vectorcallfunc call;
    PyObject* send;  ///< receives the messages of an ASGI response, or null
    long long status;
    long long bytes;
};

/// The keys of an ASGI message, and its types that are counted.
enum Word : std::size_t {
    kType,
    kBody,
    kStatus,
    kBytes,
    kText,
    kCode,
    kResponseBody,
    kResponseStart,
    kWords
};
constexpr const char* kTexts[kWords] = {
    "type", "body", "status", "bytes", "text", "code", "http.response.body", "http.response.start"};
PyObject* words[kWords];  ///< interned

LateRangeObject* self_of(PyObject* object) noexcept {
    return reinterpret_cast<LateRangeObject*>(object);
}

PyObject* send_message(PyObject* object, PyObject* const* args, std::size_t flagged_count,
                       PyObject* keywords);

PyObject* construct(PyObject* type, PyObject* const* args, std::size_t flagged_count, PyObject* keywords) {
    const Py_ssize_t count = PyVectorcall_NARGS(flagged_count);
    PyObject* const name = count > 0 ? args[0] : Py_None;
    if (count > 2 || (keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0)) {
        PyErr_SetString(PyExc_TypeError, "late_range() takes a name and a function, by position");
        return nullptr;
    }
    if (name != Py_None && !PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "late_range: the name must be a str or None");
        return nullptr;
    }
    auto* const its_type = reinterpret_cast<PyTypeObject*>(type);
    PyObject* const object = its_type->tp_alloc(its_type, 0);  // filled with zeros: not open
    if (object == nullptr) return nullptr;
    auto* const self = self_of(object);
    self->call = send_message;
    self->send = count > 1 ? Py_NewRef(args[1]) : nullptr;
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

PyObject* end(PyObject* object, PyObject* const* args, Py_ssize_t count) {
    PyObject* const name = count > 0 ? args[0] : nullptr;
    PyObject* const texts = count > 1 ? args[1] : nullptr;
    if (name == nullptr || count > 2 || !PyUnicode_Check(name) ||
        (texts != nullptr && !PyDict_Check(texts))) {
        PyErr_SetString(PyExc_TypeError, "end() takes a name and a dict of texts");
        return nullptr;
    }
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
PyObject* entry(PyObject* message, Word key) noexcept {
    PyObject* const value = PyDict_GetItemWithError(message, words[key]);
    if (value == nullptr) PyErr_Clear();
    return value;
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

void count_message(LateRangeObject* self, PyObject* message) noexcept {
    PyObject* const type = entry(message, kType);
    if (type == nullptr || !PyUnicode_Check(type)) return;
    // Literals in a program are interned, mostly.
    const auto is = [type](Word word) {
        return type == words[word] || PyUnicode_CompareWithASCIIString(type, kTexts[word]) == 0;
    };
    if (is(kResponseBody)) {
        add_size(self, entry(message, kBody));
    } else if (is(kResponseStart)) {
        set_status(self, entry(message, kStatus));
    } else if (PyUnicode_CompareWithASCIIString(type, "websocket.send") == 0) {
        PyObject* const bytes = entry(message, kBytes);
        add_size(self, bytes != nullptr && bytes != Py_None ? bytes : entry(message, kText));
    } else if (PyUnicode_CompareWithASCIIString(type, "websocket.close") == 0) {
        self->status = 1000;
        set_status(self, entry(message, kCode));
    }
}

// Passes a message on, and notes the status and the size of the response.
PyObject* send_message(PyObject* object, PyObject* const* args, std::size_t flagged_count,
                       PyObject* keywords) {
    if (PyVectorcall_NARGS(flagged_count) != 1 || (keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0)) {
        PyErr_SetString(PyExc_TypeError, "send() takes one message");
        return nullptr;
    }
    auto* const self = self_of(object);
    if (self->send == nullptr) {
        PyErr_SetString(PyExc_TypeError, "this range has no function that takes messages");
        return nullptr;
    }
    if (PyDict_Check(args[0])) count_message(self, args[0]);
    return PyObject_CallOneArg(self->send, args[0]);
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
    {"end", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(end)), METH_FASTCALL,
     "End the range, named by the first argument; the second is a dict of texts, further values. Does "
     "nothing if it has ended."},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef kMembers[] = {
    {"status", T_LONGLONG, offsetof(LateRangeObject, status), 0, "The status of the response."},
    {"bytes", T_LONGLONG, offsetof(LateRangeObject, bytes), 0, "The size of its body."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(LateRangeObject, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot kSlots[] = {
    {Py_tp_doc, const_cast<char*>("A range that gets its name, a status and a number of bytes at its end.\n\n"
                                  "With a name, it nests with the other ranges of this thread; otherwise it "
                                  "is on an async track. Calling it passes an ASGI message on to `send`.")},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, kMethods},
    {Py_tp_members, kMembers},
    {0, nullptr},
};
PyType_Spec kSpec = {"marey.late_range", sizeof(LateRangeObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC |
                         Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                     kSlots};

}  // namespace

bool add_late_ranges(PyObject* module) noexcept {
    for (std::size_t i = 0; i < kWords; ++i) {
        words[i] = PyUnicode_InternFromString(kTexts[i]);
        if (words[i] == nullptr) return false;
    }
    auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    if (type == nullptr) return false;
    type->tp_vectorcall = construct;
    return PyModule_AddType(module, type) == 0;
}

}  // namespace marey::bindings
