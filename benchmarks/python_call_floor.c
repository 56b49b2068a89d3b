/* python_call_floor.c: the minimum cost of recording Python calls: the same hooks as the tracer, with bodies
 * that read the counter and store 16 bytes. python_calls.py builds it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#if PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#endif

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

/* As large as the tracer's ring in python_calls.py, so that records go to memory outside the nearest caches.
 */
enum { kWords = 1 << 19 };
static uint64_t ring[kWords];
static uint32_t at;

static inline void store(uint64_t what) {
    ring[at & (kWords - 1)] = read_counter();
    ring[(at + 1) & (kWords - 1)] = what;
    at += 2;
}

#if PY_VERSION_HEX < 0x030C0000
static PyObject* run_frame(PyThreadState* state, _PyInterpreterFrame* frame, int is_throw) {
    store((uintptr_t)frame->f_code);
    PyObject* const result = _PyEval_EvalFrameDefault(state, frame, is_throw);
    store(0);
    return result;
}

static PyObject* frames(PyObject* module, PyObject* on) {
    (void)module;
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Main(),
                                         PyObject_IsTrue(on) ? run_frame : _PyEval_EvalFrameDefault);
    Py_RETURN_NONE;
}

static int on_event(PyObject* object, PyFrameObject* frame, int what, PyObject* arg) {
    (void)object;
    (void)arg;
    store((uintptr_t)frame | (unsigned)what);
    return 0;
}

static PyObject* profile(PyObject* module, PyObject* on) {
    PyEval_SetProfile(PyObject_IsTrue(on) ? on_event : NULL, module);
    Py_RETURN_NONE;
}
#endif

#if PY_VERSION_HEX >= 0x030C0000
static PyObject* disable;

static PyObject* on_event(PyObject* module, PyObject* const* args, Py_ssize_t count) {
    (void)module;
    (void)count;
    store((uintptr_t)args[0]);
    Py_RETURN_NONE;
}

static PyObject* on_call(PyObject* module, PyObject* const* args, Py_ssize_t count) {
    (void)module;
    (void)count;
    PyObject* const callee = PyMethod_Check(args[2]) ? PyMethod_GET_FUNCTION(args[2]) : args[2];
    if (PyFunction_Check(callee)) return Py_NewRef(disable);
    store((uintptr_t)args[0]);
    Py_RETURN_NONE;
}

/* take_disable(sys.monitoring.DISABLE): sets the value that on_call returns for calls of Python functions. */
static PyObject* take_disable(PyObject* module, PyObject* value) {
    (void)module;
    disable = Py_NewRef(value);
    Py_RETURN_NONE;
}
#endif

static PyMethodDef methods[] = {
#if PY_VERSION_HEX < 0x030C0000
    {"frames", frames, METH_O, NULL},
    {"profile", profile, METH_O, NULL},
#else
    {"on_event", (PyCFunction)(void*)on_event, METH_FASTCALL, NULL},
    {"on_call", (PyCFunction)(void*)on_call, METH_FASTCALL, NULL},
    {"take_disable", take_disable, METH_O, NULL},
#endif
    {NULL, NULL, 0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "python_call_floor", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_python_call_floor(void) {
    return PyModule_Create(&definition);
}
