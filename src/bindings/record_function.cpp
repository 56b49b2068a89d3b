// record_function.cpp: marey.record_function, written with the raw C API so that no Python code runs.
#include "bindings/range_objects.h"

#include <nanobind/nanobind.h>
#include <structmember.h>

#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include <marey/call_stack.h>
#include <marey/operation.h>
#include <marey/range.h>

#include "bindings/inherited_context.h"
#include "bindings/range_state.h"
#include "bindings/stack_option.h"
#include "sources/python/live_calls.h"
#include "sources/python/tracer.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

struct RecordFunction {
    PyObject_HEAD PyObject* name;  ///< str
    PyObject* args;                ///< str, or null
    PyObject* weak_references;
    RangeState range;
    StackChoice stack;
};

// Objects are created and destroyed with every block, so a few are kept. Guarded by the GIL.
constexpr std::size_t kMaxFree = 16;
RecordFunction* free_objects[kMaxFree];
std::size_t free_count = 0;

PyTypeObject* record_function_type = nullptr;

/// Whether a session or an observer records the text.
bool wants_inputs() noexcept {
    return needs_inputs() || detail::observers_need_inputs(Scope::User);
}

void begin_with_args(RecordFunction* self, Operation& operation, const CallStack* stack) noexcept {
    const bool with_args = self->args != nullptr && wants_inputs();
    with_text(self->name, [&](std::string_view name) {
        if (!with_args) {
            operation.begin(name, {.stack = stack});
            return;
        }
        with_text(self->args, [&](std::string_view args) {
            const Value input(args);
            operation.begin(name, {.stack = stack}, std::span(&input, 1));
        });
    });
}

void open_with_values(RecordFunction* self) noexcept {
    std::unique_ptr<Operation> operation(new (std::nothrow) Operation(Scope::User));
    if (operation == nullptr) return;
    python::before_range();
    if (self->stack != kNoStack && operation->needs_keywords()) {
        const CallStack stack(traceback_options(self->stack));
        begin_with_args(self, *operation, &stack);
    } else {
        begin_with_args(self, *operation, nullptr);
    }
    self->range.take(std::move(operation));
}

// The range has a text, its site is not known yet, or it is recorded only in the followed context.
[[gnu::noinline]] void open_slow(RecordFunction* self) noexcept {
    open_if_recording(Scope::User, [self]() noexcept {
        if (self->stack == kNoStack && (self->args == nullptr || !wants_inputs())) {
            python::before_range();
            self->range.open(site_cache.site(self->name, Scope::User), Scope::User);
        } else {
            open_with_values(self);
        }
    });
}

PyObject* enter(PyObject* object, PyObject*) {
    auto* const self = reinterpret_cast<RecordFunction*>(object);
    if (!self->range.enter()) return nullptr;
    if (detail::should_record(Scope::User)) {
        python::before_range();
        const std::uint32_t site = site_cache.known_site(self->name, Scope::User);
        if (site != 0 && self->args == nullptr && self->stack == kNoStack) [[likely]] {
            self->range.open(site, Scope::User);
        } else {
            open_slow(self);
        }
    } else if (followed_variable != nullptr) [[unlikely]] {
        open_slow(self);
    }
    return Py_NewRef(object);
}

PyObject* leave(PyObject* object, PyObject* const*, Py_ssize_t) {
    auto* const self = reinterpret_cast<RecordFunction*>(object);
    if (!self->range.is_entered()) [[unlikely]] {
        PyErr_SetString(error_type, "record_function: __exit__() called without __enter__()");
        return nullptr;
    }
    self->range.leave();
    Py_RETURN_NONE;
}

// For marey.context.suspending: the range is a part of a call, for which `call` stands. begin_part(call,
// range, is_first) follows the entry, end_part(call, range, is_last) is the exit: between the record of the
// part and that of its range there must be no other, such as one of a garbage collection.
template <bool kBegins>
PyObject* note_part(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 3 || !PyObject_TypeCheck(args[1], record_function_type)) {
        PyErr_SetString(PyExc_TypeError,
                        "expected a call, its range, and whether this is its first or last part");
        return nullptr;
    }
    RangeState& range = reinterpret_cast<RecordFunction*>(args[1])->range;
    if (!range.is_entered()) Py_RETURN_NONE;
    const std::uint64_t start = range.start();
    if constexpr (kBegins) {
        if (start != 0) python::begin_part(args[0], args[2] == Py_True, start);
    } else {
        if (start != 0) python::end_part(args[0], start, args[2] == Py_True);
        range.leave();
    }
    Py_RETURN_NONE;
}

PyMethodDef kPartFunctions[] = {
    {"begin_part", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(note_part<true>)),
     METH_FASTCALL, nullptr},
    {"end_part", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(note_part<false>)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// Transfers the range to marey.context.futures, which ends it when the future is done.
PyObject* end_on_future(PyObject* object, PyObject* future) {
    auto* const self = reinterpret_cast<RecordFunction*>(object);
    constexpr const char* kModule = "marey.context.futures";
    if (!nb::steal(call_module(kModule, "check", {future}))) return nullptr;
    // After the check, which runs Python code that may leave the block.
    if (!self->range.is_entered() || self->range.is_transferred()) {
        PyErr_SetString(error_type, self->range.is_entered() ? "end_on_future can only be called once"
                                                             : "end_on_future: the range is not open");
        return nullptr;
    }
    PyObject* const range = take_over(self->range);
    if (range == nullptr) return nullptr;
    const Ref held(range);
    return call_module(kModule, "end_on_future", {range, future});
}

// Whether a subclass overrides __enter__ or __exit__.
bool is_block_overridden(PyObject* object) noexcept {
    auto* const own = reinterpret_cast<PyObject*>(Py_TYPE(object));
    auto* const base = reinterpret_cast<PyObject*>(record_function_type);
    for (const char* const name : {"__enter__", "__exit__"}) {
        const Ref theirs = python::attribute(own, name);
        if (!theirs || theirs.get() != python::attribute(base, name).get()) return true;
    }
    return false;
}

PyObject* decorate(PyObject* object, PyObject* args, PyObject* kwargs) {
    PyObject* function = nullptr;
    static const char* const kNames[] = {"func", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:record_function", const_cast<char**>(kNames),
                                     &function))
        return nullptr;
    if (Py_TYPE(object) != record_function_type &&
        is_block_overridden(object))  // each call enters the object
        return call_module("marey.context.suspending", "wrap_in_block", {function, object});
    const auto* const self = reinterpret_cast<RecordFunction*>(object);
    return make_ranged_function(function, self->name, self->args, self->stack);
}

[[gnu::noinline]] RecordFunction* new_object(PyTypeObject* type) noexcept {
    auto* const self = reinterpret_cast<RecordFunction*>(type->tp_alloc(type, 0));
    if (self != nullptr) self->range.init();
    return self;
}

// Takes an object from the free list or creates one, without name and args.
[[gnu::always_inline]] inline RecordFunction* take_object(PyTypeObject* type) noexcept {
    if (type != record_function_type || free_count == 0) [[unlikely]]
        return new_object(type);
    RecordFunction* const self = free_objects[--free_count];
#if defined(Py_REF_DEBUG) || defined(Py_TRACE_REFS)
    _Py_NewReference(reinterpret_cast<PyObject*>(self));
#else
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(self), 1);
#endif
    return self;
}

/// Parses the arguments of the constructor; both results are owned, and args is null if not given. Converts
/// to plain str: an object of a derived type could hold any reference, also to us. False with a Python error
/// set.
bool parse(PyObject* arguments, PyObject* keywords, PyObject*& name, PyObject*& args,
           StackChoice& choice) noexcept {
    static const char* const kNames[] = {"name", "args", "stack", nullptr};
    PyObject* stack = nullptr;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O$O:record_function", const_cast<char**>(kNames),
                                     &name, &args, &stack) ||
        !parse_stack_choice(stack, "record_function", choice))
        return false;
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "record_function: the name must be a str, not %.80s",
                     Py_TYPE(name)->tp_name);
        return false;
    }
    if (args == Py_None) args = nullptr;
    if (args != nullptr && !PyUnicode_Check(args)) {
        PyErr_Format(PyExc_TypeError, "record_function: args must be a str or None, not %.80s",
                     Py_TYPE(args)->tp_name);
        return false;
    }
    name = PyUnicode_FromObject(name);
    args = args != nullptr ? PyUnicode_FromObject(args) : nullptr;
    if (name != nullptr && PyErr_Occurred() == nullptr) return true;
    Py_XDECREF(name);
    return false;
}

// A subclass may take other arguments and pass the name to __init__; until then, the range has the name of
// the type.
PyObject* construct_subclass(PyTypeObject* type) noexcept {
    auto name = nb::steal(PyType_GetName(type));
    RecordFunction* const self = name ? take_object(type) : nullptr;
    if (self == nullptr) return nullptr;
    self->name = name.release().ptr();
    self->args = nullptr;
    self->stack = kNoStack;
    return reinterpret_cast<PyObject*>(self);
}

PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    if (type != record_function_type) return construct_subclass(type);
    PyObject *name = nullptr, *args = nullptr;
    StackChoice stack = kNoStack;
    if (!parse(arguments, keywords, name, args, stack)) return nullptr;
    RecordFunction* const self = take_object(type);
    if (self == nullptr) {
        Py_DECREF(name);
        Py_XDECREF(args);
        return nullptr;
    }
    self->name = name;
    self->args = args;
    self->stack = stack;
    return reinterpret_cast<PyObject*>(self);
}

int initialize(PyObject* object, PyObject* arguments, PyObject* keywords) {
    PyObject *name = nullptr, *args = nullptr;
    StackChoice stack = kNoStack;
    if (!parse(arguments, keywords, name, args, stack)) return -1;
    auto* const self = reinterpret_cast<RecordFunction*>(object);
    Py_SETREF(self->name, name);
    Py_XSETREF(self->args, args);
    self->stack = stack;
    return 0;
}

[[gnu::noinline]] PyObject* construct_generally(PyObject* type, PyObject* const* args, Py_ssize_t count,
                                                PyObject* names) noexcept {
    const bool is_plain = names == nullptr || PyTuple_GET_SIZE(names) == 0;
    const auto tuple = nb::steal(PyTuple_New(count)), dict = nb::steal(PyDict_New());
    if (!tuple || !dict) return nullptr;
    for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; !is_plain && i < PyTuple_GET_SIZE(names); ++i) {
        if (PyDict_SetItem(dict.ptr(), PyTuple_GET_ITEM(names, i), args[count + i]) != 0) return nullptr;
    }
    return construct(reinterpret_cast<PyTypeObject*>(type), tuple.ptr(), dict.ptr());
}

// The vectorcall of record_function("x").
PyObject* construct_fast(PyObject* type, PyObject* const* args, std::size_t flags, PyObject* names) {
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (count != 1 || names != nullptr || !PyUnicode_CheckExact(args[0])) [[unlikely]]
        return construct_generally(type, args, count, names);
    RecordFunction* const self = take_object(reinterpret_cast<PyTypeObject*>(type));
    if (self == nullptr) return nullptr;
    self->name = Py_NewRef(args[0]);
    self->args = nullptr;
    self->stack = kNoStack;
    return reinterpret_cast<PyObject*>(self);
}

void destroy(PyObject* object) {
    auto* const self = reinterpret_cast<RecordFunction*>(object);
    if (self->weak_references != nullptr) [[unlikely]]
        PyObject_ClearWeakRefs(object);
    self->range.release();  // ends a range that is still open
    Py_DECREF(self->name);
    Py_XDECREF(self->args);
    PyTypeObject* const type = Py_TYPE(object);
    if (type == record_function_type && free_count < kMaxFree) [[likely]] {
        free_objects[free_count++] = self;  // keeps its reference to the type
        return;
    }
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject* get_name(PyObject* object, void*) {
    return Py_NewRef(reinterpret_cast<RecordFunction*>(object)->name);
}

PyObject* get_args(PyObject* object, void*) {
    PyObject* const args = reinterpret_cast<RecordFunction*>(object)->args;
    return Py_NewRef(args != nullptr ? args : Py_None);
}

PyObject* get_stack(PyObject* object, void*) {
    return stack_choice_object(reinterpret_cast<RecordFunction*>(object)->stack);
}

PyObject* get_runs_on_exit(PyObject* object, void*) {
    return PyBool_FromLong(reinterpret_cast<RecordFunction*>(object)->range.is_transferred() ? 0 : 1);
}

PyObject* represent(PyObject* object) {
    return PyUnicode_FromFormat("record_function(%R)", reinterpret_cast<RecordFunction*>(object)->name);
}

PyMethodDef kMethods[] = {
    {"__enter__", enter, METH_NOARGS, "Begin the range."},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)), METH_FASTCALL,
     "End the range."},
    {"end_on_future", end_on_future, METH_O,
     "end_on_future($self, future, /)\n--\n\n"
     "End the range when the future is done instead of at the end of the block.\n\nReturn a future with "
     "the same outcome that completes after the range has ended. Call it once for each entry."},
    {"_call_end_callbacks_on_future", end_on_future, METH_O,
     "_call_end_callbacks_on_future($self, future, /)\n--\n\nDo the same as end_on_future."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef kProperties[] = {
    {"name", get_name, nullptr, "The name of the range.", nullptr},
    {"args", get_args, nullptr, "The text recorded with the range, or None.", nullptr},
    {"stack", get_stack, nullptr,
     "The frames recorded with the range: False, \"python\", \"cpp\" or \"both\".", nullptr},
    {"run_callbacks_on_exit", get_runs_on_exit, nullptr, "False after end_on_future.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef kMembers[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(RecordFunction, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot kSlots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "record_function(name, args=None, *, stack=False)\n--\n\n"
         "Mark a range: the block of a with statement, or every call of a decorated function.\n\n"
         "Args:\n"
         "    name: The name of the range.\n"
         "    args: A text recorded with the range.\n"
         "    stack: The frames to record where it begins: True or \"python\", \"cpp\", or \"both\".")},
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_tp_init, reinterpret_cast<void*>(initialize)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_call, reinterpret_cast<void*>(decorate)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {Py_tp_members, kMembers},
    {0, nullptr},
};

PyType_Spec kSpec = {"marey.record_function", sizeof(RecordFunction), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE, kSlots};

}  // namespace

bool add_record_function(PyObject* module) noexcept {
    record_function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    if (record_function_type == nullptr) return false;
    record_function_type->tp_vectorcall = construct_fast;
    return PyModule_AddType(module, record_function_type) == 0 &&
           PyModule_AddFunctions(module, kPartFunctions) == 0 && add_ranged_function(module);
}

}  // namespace marey::bindings
