// traces_pybind11.cpp: the same capture goes through pybind11, too.
#include <marey/python/pybind11.h>
#include <marey/traceback.h>
#include <pybind11/pybind11.h>

PYBIND11_MODULE(traces_pybind11, module) {
    module.def("same", [](marey::CapturedTraceback traceback) { return traceback; });
    module.def("call_back", [](const pybind11::function& inner) { return inner(); });
}
