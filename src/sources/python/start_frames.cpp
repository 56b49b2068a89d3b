// start_frames.cpp: walking the stacks of all threads.
#include "sources/python/start_frames.h"

#include <algorithm>
#include <utility>

#include "record/source_writer.h"
#include "sources/python/code_sites.h"
#include "sources/python/first_argument.h"
#include "sources/python/interpreter_frames.h"
#include "sources/python/module_calls.h"
#include "sources/python/python_text.h"

namespace kymo::python {

StartFramesOfThreads start_frames;

namespace {

// A running call of what may be a module. Asked only when no stack is being walked any more: that may let
// other threads run.
struct ModuleFrame {
    std::uint64_t thread;
    std::size_t index;  // of StartFrames::sites
    CodeWord word;
    PyCodeObject* code;  // held, as is `self`
    PyObject* self;
};

}  // namespace

void StartFramesOfThreads::take(std::uint64_t start) {
    threads_.clear();
    const KeptError error;
    std::vector<ModuleFrame> modules;
    PyThreadState* const own = PyThreadState_Get();
    for (PyThreadState* state = PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(own));
         state != nullptr; state = PyThreadState_Next(state)) {
        StartFrames found;
        const std::size_t first_module = modules.size();
        visit_frames(state, [&](const void* frame, PyCodeObject* code) {
            const CodeWord word = code_word(code);
            if ((word & (kCodeModule | kCodeSkipped)) == kCodeModule) {
                PyObject* const self = kymo_first_argument(state, found.frames.size(), code);
                Py_INCREF(reinterpret_cast<PyObject*>(code));
                modules.push_back(
                    {PyThreadState_GetID(state), found.frames.size(), word, code, Py_XNewRef(self)});
            }
            found.frames.push_back(frame);
            found.sites.push_back((word & kCodeSkipped) == 0 ? site_of(word) : 0);
        });
        if (found.frames.empty()) continue;
        std::reverse(found.frames.begin(), found.frames.end());
        std::reverse(found.sites.begin(), found.sites.end());
        for (std::size_t i = first_module; i < modules.size(); ++i)
            modules[i].index = found.frames.size() - 1 - modules[i].index;
        found.start = start;
        threads_.emplace(PyThreadState_GetID(state), std::move(found));
    }
    for (const ModuleFrame& module : modules) {
        const std::uint32_t site = module_site(module.word, module.code, module.self);
        const auto place = threads_.find(module.thread);
        if (place != threads_.end() && module.index < place->second.sites.size())
            place->second.sites[module.index] = site;
        Py_XDECREF(module.self);
        Py_DECREF(reinterpret_cast<PyObject*>(module.code));
    }
}

std::vector<AdoptedFrame> StartFramesOfThreads::adopt(PyThreadState* state) {
    std::vector<AdoptedFrame> adopted;
    const auto place = threads_.find(PyThreadState_GetID(state));
    if (place == threads_.end()) return adopted;
    const StartFrames found = std::move(place->second);
    threads_.erase(place);
    // Only those that are still running: the thread may have gone on without being recorded.
    std::vector<const void*> running;
    visit_frames(state, [&](const void* frame, PyCodeObject*) { running.push_back(frame); });
    std::size_t count = 0;
    while (count < found.frames.size() && count < running.size() &&
           found.frames[count] == running[running.size() - 1 - count])
        ++count;
    for (std::size_t i = 0; i < count; ++i) {
        // One tick apart: ranges are told apart by their starts.
        detail::Opened opened{0, detail::kNotOpen};
        if (found.sites[i] == 0) {
            adopted.push_back({found.frames[i], opened});
            continue;
        }
        if (open_before({&found.sites[i], 1}, found.start - (count - i), &opened) != 1) break;
        adopted.push_back({found.frames[i], opened});
    }
    return adopted;
}

}  // namespace kymo::python
