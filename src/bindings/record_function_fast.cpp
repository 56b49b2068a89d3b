// record_function_fast.cpp: marey.record_function_fast: a range object for repeated use, with values.
#include <memory>
#include <vector>

#include <marey/call_stack.h>

#include "bindings/inherited_context.h"
#include "bindings/object_values.h"
#include "bindings/range_objects.h"
#include "bindings/range_state.h"
#include "bindings/stack_option.h"
#include "sources/python/tracer.h"

namespace marey::bindings {
namespace {

struct RecordFunctionFast {
    PyObject_HEAD PyObject* name;  ///< str
    PyObject* inputs;              ///< list or tuple, or null
    PyObject* keywords;            ///< dict, or null
    RangeState range;
    Scope scope;
    CachedSite site;
    StackChoice stack;
};

PyTypeObject* fast_type = nullptr;
PyObject* warned_keys = nullptr;  ///< set of keyword names that have been warned about

void warn_of(PyObject* key, PyObject* value) noexcept {
    if (warned_keys == nullptr) warned_keys = PySet_New(nullptr);
    if (warned_keys == nullptr || PySet_Contains(warned_keys, key) != 0) {
        PyErr_Clear();
        return;
    }
    PySet_Add(warned_keys, key);
    PyErr_Clear();
    // Warns through marey._warnings, which never raises in the program.
    const Ref module(PyImport_ImportModule("marey._warnings"));
    const Ref text(PyUnicode_FromFormat(
        "record_function_fast: cannot record the value of keyword %R: unsupported type %.80s (shown as "
        "NULL)",
        key, Py_TYPE(value)->tp_name));
    if (module && text) const Ref done(PyObject_CallMethod(module.get(), "warn", "O", text.get()));
}

/// Whether a keyword value is kept: numbers, booleans, texts and lists of texts are. A stream is a number.
bool is_keyword_value(PyObject* key, PyObject* value) noexcept {
    if (PyUnicode_CompareWithASCIIString(key, "stream") == 0) return PyLong_CheckExact(value);
    if (PyBool_Check(value) || PyLong_Check(value) || PyFloat_Check(value) || PyUnicode_Check(value))
        return true;
    if (!PyList_Check(value) && !PyTuple_Check(value)) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
        if (!PyUnicode_Check(PySequence_Fast_GET_ITEM(value, i))) return false;
    }
    return true;
}

void gather_keywords(PyObject* dict, ObjectValues& values, std::vector<KeyedValue>& keywords) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value) != 0;) {
        if (!PyUnicode_Check(key)) continue;
        const Value name = values.value(key);
        if (is_keyword_value(key, value)) {
            keywords.push_back({name.string(), values.value(value)});
        } else {
            warn_of(key, value);
            keywords.push_back({name.string(), Value("NULL")});
        }
    }
}

[[gnu::always_inline]] inline void open_plain(RecordFunctionFast* self) noexcept {
    python::before_range();
    std::uint32_t site = self->site.get();
    if (site == 0) [[unlikely]] {
        site = site_cache.site(self->name, self->scope);
        self->site.set(site);
    }
    self->range.open(site, self->scope);
}

void open_with_values(RecordFunctionFast* self) noexcept {
    try {
        auto operation = std::make_unique<Operation>(self->scope);
        ObjectValues values;
        std::vector<Value> inputs;
        std::vector<KeyedValue> keywords;
        if (self->inputs != nullptr && operation->needs_inputs()) {
            const Ref list(Py_NewRef(self->inputs));
            for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
                const Ref input(Py_NewRef(PySequence_Fast_GET_ITEM(list.get(), i)));  // reading it may
                inputs.push_back(values.value(input.get()));                          // change the list
            }
        }
        if (self->keywords != nullptr && operation->needs_keywords()) {
            const Ref copy(PyDict_Copy(self->keywords));  // a warning may run code that changes it
            if (copy) gather_keywords(copy.get(), values, keywords);
        }
        python::before_range();
        const auto begin = [&](const CallStack* stack) {
            with_text(self->name, [&](std::string_view name) {
                operation->begin(name, {.stack = stack}, inputs, keywords);
            });
        };
        if (self->stack != kNoStack && operation->needs_keywords()) {
            const CallStack stack(traceback_options(self->stack));
            begin(&stack);
        } else {
            begin(nullptr);
        }
        self->range.take(std::move(operation));
    } catch (const std::exception&) {  // out of memory: a range without values
        open_plain(self);
    }
}

PyObject* enter(PyObject* object, PyObject*) {
    auto* const self = reinterpret_cast<RecordFunctionFast*>(object);
    if (!self->range.enter()) return nullptr;
    open_if_recording(self->scope, [self]() noexcept {
        const bool has_values =
            self->inputs != nullptr || self->keywords != nullptr || self->stack != kNoStack;
        if (!has_values) [[likely]] {
            open_plain(self);
        } else {
            open_with_values(self);
        }
    });
    return Py_NewRef(object);
}

PyObject* leave(PyObject* object, PyObject* const*, Py_ssize_t) {
    auto* const self = reinterpret_cast<RecordFunctionFast*>(object);
    if (!self->range.is_entered()) [[unlikely]] {
        PyErr_SetString(error_type, "record_function_fast: __exit__() called without __enter__()");
        return nullptr;
    }
    self->range.leave();
    Py_RETURN_NONE;
}

bool check_arguments(PyObject* name, PyObject*& inputs, PyObject*& keywords) noexcept {
    if (inputs == Py_None) inputs = nullptr;
    if (keywords == Py_None) keywords = nullptr;
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "record_function_fast: the name must be a str, not %.80s",
                     Py_TYPE(name)->tp_name);
    } else if (inputs != nullptr && !PyList_Check(inputs) && !PyTuple_Check(inputs)) {
        PyErr_Format(PyExc_TypeError,
                     "record_function_fast: input_values must be a list or a tuple, not %.80s",
                     Py_TYPE(inputs)->tp_name);
    } else if (keywords != nullptr && !PyDict_Check(keywords)) {
        PyErr_Format(PyExc_TypeError, "record_function_fast: keyword_values must be a dict, not %.80s",
                     Py_TYPE(keywords)->tp_name);
    } else {
        return true;
    }
    return false;
}

/// keyword_values={"scope": "user_scope"} makes it a user range; otherwise it is an operator.
Scope scope_of(PyObject* keywords) noexcept {
    if (keywords == nullptr) return Scope::Function;
    PyObject* const scope = PyDict_GetItemString(keywords, "scope");
    const bool is_user = scope != nullptr && PyUnicode_Check(scope) &&
                         PyUnicode_CompareWithASCIIString(scope, "user_scope") == 0;
    return is_user ? Scope::User : Scope::Function;
}

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    PyObject *name = nullptr, *inputs = nullptr, *keywords = nullptr, *stack = nullptr;
    StackChoice choice = kNoStack;
    static const char* const kNames[] = {"name", "input_values", "keyword_values", "stack", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO$O:record_function_fast", const_cast<char**>(kNames),
                                     &name, &inputs, &keywords, &stack) ||
        !check_arguments(name, inputs, keywords) ||
        !parse_stack_choice(stack, "record_function_fast", choice))
        return nullptr;
    const Ref plain(
        PyUnicode_FromObject(name));  // an object of a derived type could hold any reference, also to us
    auto* const self =
        reinterpret_cast<RecordFunctionFast*>(plain ? type->tp_alloc(type, 0) : PyErr_NoMemory());
    if (self == nullptr) return nullptr;
    self->name = Py_NewRef(plain.get());
    self->inputs = Py_XNewRef(inputs);
    self->keywords = Py_XNewRef(keywords);
    self->range.init();
    self->scope = scope_of(keywords);
    self->site = {};
    self->stack = choice;
    return reinterpret_cast<PyObject*>(self);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
    auto* const self = reinterpret_cast<RecordFunctionFast*>(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->inputs);
    Py_VISIT(self->keywords);
    return 0;
}

int clear(PyObject* object) {
    auto* const self = reinterpret_cast<RecordFunctionFast*>(object);
    Py_CLEAR(self->inputs);
    Py_CLEAR(self->keywords);
    return 0;
}

void destroy(PyObject* object) {
    PyObject_GC_UnTrack(object);
    auto* const self = reinterpret_cast<RecordFunctionFast*>(object);
    self->range.release();
    clear(object);
    Py_CLEAR(self->name);
    PyTypeObject* const type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyMethodDef kMethods[] = {
    {"__enter__", enter, METH_NOARGS, "Begin the range."},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)), METH_FASTCALL,
     "End the range."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot kSlots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "record_function_fast(name, input_values=None, keyword_values=None, *, stack=False)\n--\n\n"
         "A range object that is created once and entered any number of times.\n\nIts values and its stack "
         "are read only while they are recorded.")},
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_methods, kMethods},
    {0, nullptr},
};

PyType_Spec kSpec = {"marey.record_function_fast", sizeof(RecordFunctionFast), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, kSlots};

}  // namespace

bool add_record_function_fast(PyObject* module) noexcept {
    fast_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    return fast_type != nullptr && PyModule_AddType(module, fast_type) == 0;
}

}  // namespace marey::bindings
