// traces_nanobind.cpp: a user's extension that calls back into Python, and holds tracebacks in C++.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <marey/python/nanobind.h>
#include <marey/traceback.h>

#include <string>
#include <thread>
#include <vector>

namespace nb = nanobind;

namespace {

marey::CapturedTraceback kept;

/// The frame that the tests look for between Python frames.
__attribute__((noinline)) nb::object call_back(const nb::callable& inner) {
    nb::object result = inner();
    asm volatile("" ::: "memory");
    return result;
}

__attribute__((noinline)) marey::CapturedTraceback gather_here(bool native) {
    marey::CapturedTraceback traceback = marey::CapturedTraceback::gather({.native = native});
    asm volatile("" ::: "memory");
    return traceback;
}

std::vector<std::string> names_of(const marey::CapturedTraceback& traceback) {
    const marey::SymbolizedTracebacks named = marey::symbolize({&traceback, 1});
    std::vector<std::string> names;
    for (const std::uint32_t index : named.tracebacks[0]) names.push_back(named.all_frames[index].name);
    return names;
}

nb::list dicts_of(const std::vector<std::vector<marey::TracebackFrame>>& all) {
    nb::list lists;
    for (const auto& frames : all) {
        nb::list list;
        for (const marey::TracebackFrame& frame : frames) {
            nb::dict dict;
            dict["name"] = frame.name;
            dict["filename"] = frame.filename;
            dict["line"] = frame.line;
            dict["inlined"] = frame.inlined;
            list.append(dict);
        }
        lists.append(list);
    }
    return lists;
}

}  // namespace

NB_MODULE(traces_nanobind, module) {
    module.def("call_back", &call_back);
    module.def("same", [](marey::CapturedTraceback traceback) { return traceback; });
    module.def("empty", [] { return marey::CapturedTraceback(); });
    module.def("keep", [](const marey::CapturedTraceback& traceback) { kept = traceback; });
    module.def("kept", [] { return kept; });
    module.def("is_kept", [](const marey::CapturedTraceback& traceback) { return traceback == kept; });
    module.def("gather", &gather_here);
    module.def("names", [](const marey::CapturedTraceback& traceback) { return names_of(traceback); });
    module.def("addresses", [](const marey::CapturedTraceback& traceback) {
        const auto all = traceback.addresses();
        return std::vector<std::uintptr_t>(all.begin(), all.end());
    });
    module.def("locations", [](const marey::CapturedTraceback& traceback) {
        nb::list list;
        for (const marey::NativeLocation& at : traceback.locations())
            list.append(nb::make_tuple(at.path, at.build_id, at.offset));
        return list;
    });
    module.def("symbolize_addresses", [](const std::vector<std::uintptr_t>& addresses) {
        return dicts_of(marey::symbolize_addresses(addresses));
    });
    module.def("symbolize_locations", [](const nb::list& places) {
        std::vector<marey::NativeLocation> locations;
        for (const nb::handle place : places)
            locations.push_back({nb::cast<std::string>(place[0]), nb::cast<std::string>(place[1]),
                                 nb::cast<std::uint64_t>(place[2])});
        return dicts_of(marey::symbolize_locations(locations));
    });
    module.def("unwind_counts", [] {
        const marey::UnwindCounts counts = marey::unwind_counts();
        return nb::make_tuple(counts.known, counts.looked_up);
    });
    // A thread that is unknown to Python drops it.
    module.def("drop_without_gil", [] {
        const nb::gil_scoped_release released;
        std::thread([] { kept = {}; }).join();
    });
    // With the GIL released, on a Python thread.
    module.def("gather_released", [](bool native) {
        const nb::gil_scoped_release released;
        return gather_here(native);
    });
    // While another thread, unknown to Python, has no GIL at all: the number of Python and of native frames.
    module.def("gather_elsewhere", [] {
        std::vector<std::size_t> sizes;
        std::thread([&] {
            const marey::CapturedTraceback traceback = gather_here(true);
            sizes = {traceback.python_frames(), traceback.addresses().size()};
        }).join();
        return sizes;
    });
}
