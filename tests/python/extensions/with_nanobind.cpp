// with_nanobind.cpp: a user's extension, made with nanobind, that marks ranges and calls back into Python.
#include <nanobind/nanobind.h>

#include <marey/marey.h>

struct Tally {
    int sum = 0;
    void add(int more) { sum += more; }
};

NB_MODULE(with_nanobind, module) {
    nanobind::class_<Tally>(module, "Tally").def(nanobind::init<>()).def("add", &Tally::add);
    module.def("work", [](const nanobind::callable& inner) {
        MAREY_RANGE("nanobind work", "size", 3);
        inner();
    });
}
