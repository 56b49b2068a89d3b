// with_nanobind.cpp: a user's extension, made with nanobind, that marks ranges and calls back into Python.
#include <nanobind/nanobind.h>

#include <kymo/kymo.h>

NB_MODULE(with_nanobind, module) {
    module.def("work", [](const nanobind::callable& inner) {
        KYMO_RANGE("nanobind work", "size", 3);
        inner();
    });
}
