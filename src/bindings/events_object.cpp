// events_object.cpp: the type EventRow: an event that holds only its list and its index.
#include <Python.h>
#include <structmember.h>

#include <cstddef>

#include "bindings/events_rows.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

PyTypeObject* event_row_type = nullptr;

struct EventRow {
    PyObject_HEAD PyObject* rows;  ///< the Python object of the EventRows
    Py_ssize_t event;
    char is_changed;  ///< differs from the trace
};

EventRow* as_row(PyObject* object) {
    return reinterpret_cast<EventRow*>(object);
}

/// Null after the list has been destroyed.
EventRows* rows_of(const EventRow* row) {
    return row->rows == nullptr ? nullptr : nb::inst_ptr<EventRows>(row->rows);
}

PyObject* new_row(PyTypeObject* type, PyObject*, PyObject*) {
    PyErr_Format(PyExc_TypeError, "cannot create '%s' objects: they belong to the event list of a trace",
                 type->tp_name);
    return nullptr;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_row(self)->rows);
    return 0;
}

int clear(PyObject* self) {
    EventRow* const row = as_row(self);
    if (EventRows* const rows = rows_of(row)) rows->forget(static_cast<std::size_t>(row->event), self);
    Py_CLEAR(row->rows);
    return 0;
}

/// For subclasses, which are Python classes, Python's own dealloc runs first and frees dict and weak
/// references.
void dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    clear(self);
    PyTypeObject* const type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef kMembers[] = {
    {"_rows", T_OBJECT_EX, offsetof(EventRow, rows), READONLY, "The list that the event belongs to."},
    {"_index", T_PYSSIZET, offsetof(EventRow, event), READONLY, "The index of the event in its list."},
    {"_is_changed", T_BOOL, offsetof(EventRow, is_changed), 0, "Whether the event differs from the trace."},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot kSlots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_row)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_members, kMembers},
    {0, nullptr},
};
PyType_Spec kSpec = {"marey._marey.EventRow", sizeof(EventRow), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, kSlots};

/// A field that is read from the columns each time. An entry with its name in the event's dict takes
/// precedence.
struct CoreField {
    PyObject_HEAD std::size_t key;
};

PyObject* get_field(PyObject* self, PyObject* object, PyObject*) {
    if (object == nullptr) return Py_NewRef(self);
    if (!PyObject_TypeCheck(object, event_row_type)) {
        PyErr_Format(PyExc_TypeError, "expected an EventRow, got %.80s", Py_TYPE(object)->tp_name);
        return nullptr;
    }
    EventRow* const row = as_row(object);
    EventRows* const rows = rows_of(row);
    if (rows == nullptr) {
        PyErr_SetString(PyExc_AttributeError, "the event list of this event has been destroyed");
        return nullptr;
    }
    try {
        return rows->core(static_cast<std::size_t>(row->event), reinterpret_cast<CoreField*>(self)->key)
            .release()
            .ptr();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::exception&) {
        PyErr_NoMemory();
    }
    return nullptr;
}

void free_field(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyType_Slot kFieldSlots[] = {
    {Py_tp_descr_get, reinterpret_cast<void*>(get_field)},
    {Py_tp_dealloc, reinterpret_cast<void*>(free_field)},
    {0, nullptr},
};
PyType_Spec kFieldSpec = {"marey._marey.EventField", sizeof(CoreField), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kFieldSlots};

/// Adds the fields to the type.
bool add_fields(PyObject* type) {
    const nb::object field_type = nb::steal(PyType_FromSpec(&kFieldSpec));
    if (!field_type.is_valid()) return false;
    auto* const made = reinterpret_cast<PyTypeObject*>(field_type.ptr());
    for (std::size_t key = 0; key < EventRows::kKeys; ++key) {
        const nb::object field = nb::steal(made->tp_alloc(made, 0));
        if (!field.is_valid()) return false;
        reinterpret_cast<CoreField*>(field.ptr())->key = key;
        if (PyObject_SetAttrString(type, core_key_name(key), field.ptr()) != 0) return false;
    }
    return true;
}

}  // namespace

bool add_event_row(PyObject* module) {
    const nb::object type = nb::steal(PyType_FromSpec(&kSpec));
    if (!type.is_valid() || !add_fields(type.ptr()) ||
        PyModule_AddObjectRef(module, "EventRow", type.ptr()) != 0)
        return false;
    event_row_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.ptr()));
    return true;
}

PyObject* make_event_row(PyTypeObject* type, PyObject* rows, std::size_t event) {
    PyObject* const made = type->tp_alloc(type, 0);
    if (made == nullptr) return nullptr;
    as_row(made)->rows = Py_NewRef(rows);
    as_row(made)->event = static_cast<Py_ssize_t>(event);
    return made;
}

}  // namespace marey::bindings
