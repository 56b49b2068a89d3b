// events_object.cpp: the type EventRow: an event that holds only its list and its index.
#include <Python.h>
#include <structmember.h>

#include <cstddef>

#include "bindings/events_rows.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

struct EventRow {
    PyObject_HEAD PyObject* rows;  ///< the Python object of the EventRows
    Py_ssize_t event;
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
    {nullptr, 0, 0, 0, nullptr},
};
/// A field that is read from the columns each time, unless the event has another value for it. `key`: its
/// number.
PyObject* get_field(PyObject* self, void* key) {
    EventRow* const row = as_row(self);
    const auto number = reinterpret_cast<std::size_t>(key);
    EventRows* const rows = rows_of(row);
    if (rows != nullptr && rows->is_changed) {
        const nb::object own = nb::steal(PyObject_GenericGetDict(self, nullptr));
        if (!own.is_valid()) return nullptr;
        PyObject* const set = PyDict_GetItemString(own.ptr(), core_key_name(number));
        if (set != nullptr) return Py_NewRef(set);
    }
    if (rows == nullptr) {
        PyErr_SetString(PyExc_AttributeError, "the event list of this event has been destroyed");
        return nullptr;
    }
    try {
        return rows->core(static_cast<std::size_t>(row->event), number).release().ptr();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::exception&) {
        PyErr_NoMemory();
    }
    return nullptr;
}

PyGetSetDef fields[EventRows::kKeys + 1];  ///< filled by add_event_row()
PyType_Slot kSlots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_row)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_members, kMembers},
    {Py_tp_getset, fields},
    {0, nullptr},
};
PyType_Spec kSpec = {"marey._marey.EventRow", sizeof(EventRow), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, kSlots};

}  // namespace

bool add_event_row(PyObject* module) {
    for (std::size_t key = 0; key < EventRows::kKeys; ++key)
        fields[key] = {core_key_name(key), get_field, nullptr, nullptr, reinterpret_cast<void*>(key)};
    const nb::object type = nb::steal(PyType_FromSpec(&kSpec));
    return type.is_valid() && PyModule_AddObjectRef(module, "EventRow", type.ptr()) == 0;
}

PyObject* make_event_row(PyTypeObject* type, PyObject* rows, std::size_t event) {
    PyObject* const made = type->tp_alloc(type, 0);
    if (made == nullptr) return nullptr;
    as_row(made)->rows = Py_NewRef(rows);
    as_row(made)->event = static_cast<Py_ssize_t>(event);
    return made;
}

}  // namespace marey::bindings
