// with_pybind11.cpp: a user's extension, made with pybind11, that marks ranges and calls back into Python.
#include <marey/marey.h>
#include <pybind11/pybind11.h>

struct Tally {
    int sum = 0;
    void add(int more) { sum += more; }
    void set(int value) { sum = value; }
    void set(int value, int times) { sum = value * times; }
};

PYBIND11_MODULE(with_pybind11, module) {
    pybind11::class_<Tally>(module, "Tally")
        .def(pybind11::init<>())
        .def("add", &Tally::add)
        .def("set", pybind11::overload_cast<int>(&Tally::set))
        .def("set", pybind11::overload_cast<int, int>(&Tally::set));
    module.def("work", [](const pybind11::function& inner) {
        MAREY_RANGE("pybind11 work");
        inner();
        marey::instant("pybind11 done");
    });
}
