/* python_floor.c: the minimum cost of marking ranges from Python: objects and functions in plain C that read
 * the counter and store 16 bytes, twice, through the fastest call paths of CPython. python_ranges.py builds
 * it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

#if defined(__aarch64__)
static inline uint64_t read_counter(void) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#else
#include <x86intrin.h>
static inline uint64_t read_counter(void) {
    return __rdtsc();
}
#endif

enum { kWords = 1 << 16, kMaxFree = 16 };
static uint64_t ring[kWords];
static uint32_t at;

static inline void store(uint64_t ticks, uint64_t what) {
    ring[at & (kWords - 1)] = ticks;
    ring[(at + 1) & (kWords - 1)] = what;
    at += 2;
}

/* ---- a with-object ---- */

typedef struct {
    PyObject_HEAD PyObject* name;
    uint64_t start;
} Block;

static PyTypeObject* block_type;
static Block* free_blocks[kMaxFree];
static int free_count;

static PyObject* make_block(PyObject* type, PyObject* const* args, size_t flags, PyObject* names) {
    Block* block;
    if (PyVectorcall_NARGS(flags) != 1 || names != NULL || !PyUnicode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "a name is wanted");
        return NULL;
    }
    if (free_count != 0) {
        block = free_blocks[--free_count];
        Py_SET_REFCNT((PyObject*)block, 1);
    } else {
        block = (Block*)block_type->tp_alloc(block_type, 0);
        if (block == NULL) return NULL;
    }
    block->name = Py_NewRef(args[0]);
    (void)type;
    return (PyObject*)block;
}

static void destroy_block(PyObject* object) {
    Block* const block = (Block*)object;
    PyTypeObject* const type = Py_TYPE(object);
    Py_DECREF(block->name);
    if (free_count < kMaxFree) {
        free_blocks[free_count++] = block;
        return;
    }
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject* enter_block(PyObject* object, PyObject* unused) {
    Block* const block = (Block*)object;
    block->start = read_counter();
    store(block->start, 1);
    (void)unused;
    return Py_NewRef(object);
}

static PyObject* leave_block(PyObject* object, PyObject* const* args, Py_ssize_t count) {
    store(read_counter(), ((Block*)object)->start);
    (void)args;
    (void)count;
    Py_RETURN_NONE;
}

static PyMethodDef block_methods[] = {
    {"__enter__", enter_block, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))leave_block, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot block_slots[] = {
    {Py_tp_dealloc, (void*)destroy_block},
    {Py_tp_methods, block_methods},
    {0, NULL},
};
static PyType_Spec block_spec = {"python_floor.Block", sizeof(Block), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, block_slots};

/* ---- functions ---- */

static PyObject* begin(PyObject* module, PyObject* name) {
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "a name is wanted");
        return NULL;
    }
    store(read_counter(), 1);
    (void)module;
    Py_RETURN_NONE;
}

static PyObject* end(PyObject* module, PyObject* const* args, Py_ssize_t count) {
    store(read_counter(), 2);
    (void)module;
    (void)args;
    (void)count;
    Py_RETURN_NONE;
}

/* ---- a decorated function ---- */

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* function;
    vectorcallfunc call; /* the vectorcall of the wrapped function */
} Marked;

static PyTypeObject* marked_type;

static PyObject* call_marked(PyObject* object, PyObject* const* args, size_t flags, PyObject* names) {
    const uint64_t start = read_counter();
    store(start, 1);
    PyObject* const result = ((Marked*)object)->call(((Marked*)object)->function, args, flags, names);
    store(read_counter(), start);
    return result;
}

static void destroy_marked(PyObject* object) {
    PyTypeObject* const type = Py_TYPE(object);
    Py_DECREF(((Marked*)object)->function);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef marked_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Marked, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot marked_slots[] = {
    {Py_tp_call, (void*)PyVectorcall_Call},
    {Py_tp_dealloc, (void*)destroy_marked},
    {Py_tp_members, marked_members},
    {0, NULL},
};
static PyType_Spec marked_spec = {"python_floor.Marked", sizeof(Marked), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
                                  marked_slots};

static PyObject* decorate(PyObject* module, PyObject* function) {
    Marked* const marked = (Marked*)marked_type->tp_alloc(marked_type, 0);
    if (marked == NULL) return NULL;
    marked->vectorcall = call_marked;
    marked->function = Py_NewRef(function);
    marked->call = PyVectorcall_Function(function);
    if (marked->call == NULL) marked->call = PyObject_Vectorcall;
    (void)module;
    return (PyObject*)marked;
}

static PyMethodDef functions[] = {
    {"begin", begin, METH_O, NULL},
    {"end", (PyCFunction)(void (*)(void))end, METH_FASTCALL, NULL},
    {"decorate", decorate, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "python_floor", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_python_floor(void) {
    PyObject* const module = PyModule_Create(&definition);
    block_type = (PyTypeObject*)PyType_FromSpec(&block_spec);
    marked_type = (PyTypeObject*)PyType_FromSpec(&marked_spec);
    if (module == NULL || block_type == NULL || marked_type == NULL) return NULL;
    block_type->tp_vectorcall = make_block;
    return PyModule_AddType(module, block_type) == 0 ? module : NULL;
}
