// start_frames.cpp: walking the stacks of all threads.
#include "sources/python/start_frames.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "record/source_writer.h"
#include "sources/python/code_sites.h"
#include "sources/python/interpreter_frames.h"
#include "sources/python/python_text.h"

namespace kymo::python {

StartFramesOfThreads start_frames;

namespace {

// Of the package itself: what starts a session is no part of the program.
bool is_own(PyCodeObject* code) {
    bool is_own = false;
    with_text(code->co_filename, [&](std::string_view file) {
        const std::size_t end = file.rfind('/');
        if (end == std::string_view::npos) return;
        file = file.substr(0, end);
        is_own = file.size() >= 5 && file.substr(file.size() - 5) == "/kymo";
    });
    return is_own;
}

}  // namespace

void StartFramesOfThreads::take(std::uint64_t start) {
    threads_.clear();
    const KeptError error;
    PyThreadState* const own = PyThreadState_Get();
    for (PyThreadState* state = PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(own));
         state != nullptr; state = PyThreadState_Next(state)) {
        StartFrames found;
        bool is_outside = false;
        visit_frames(state, [&](const void* frame, PyCodeObject* code) {
            is_outside = is_outside || state != own || !is_own(code);
            if (!is_outside) return;
            found.frames.push_back(frame);
            found.sites.push_back(site_of(code_word(code)));
        });
        if (found.frames.empty()) continue;
        std::reverse(found.frames.begin(), found.frames.end());
        std::reverse(found.sites.begin(), found.sites.end());
        found.start = start;
        threads_.emplace(PyThreadState_GetID(state), std::move(found));
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
        detail::Opened opened{};
        if (open_before({&found.sites[i], 1}, found.start - (count - i), &opened) != 1) break;
        adopted.push_back({found.frames[i], opened});
    }
    return adopted;
}

}  // namespace kymo::python
