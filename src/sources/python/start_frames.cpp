// start_frames.cpp: walking the stacks of all threads.
#include "sources/python/start_frames.h"

#include <algorithm>
#include <utility>

#include "record/source_writer.h"
#include "sources/python/call_filter.h"
#include "sources/python/code_sites.h"
#include "sources/python/interpreter_frames.h"
#include "sources/python/python_text.h"

namespace kymo::python {

StartFramesOfThreads start_frames;

void StartFramesOfThreads::take(std::uint64_t start) {
    threads_.clear();
    const KeptError error;
    PyThreadState* const own = PyThreadState_Get();
    for (PyThreadState* state = PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(own));
         state != nullptr; state = PyThreadState_Next(state)) {
        StartFrames found;
        visit_frames(state, [&](const void* frame, PyCodeObject* code, PyObject* globals) {
            found.frames.push_back(frame);
            found.words.push_back(call_filter.is_on ? filtered_word(code, globals) : code_word(code));
        });
        if (found.frames.empty()) continue;
        std::reverse(found.frames.begin(), found.frames.end());
        std::reverse(found.words.begin(), found.words.end());
        bool is_in_library = false;
        for (const CodeWord word : found.words) {
            const bool is_left_out =
                (word & (call_filter.is_on ? kCodeSkipped | kCodeExcluded : kCodeSkipped)) != 0;
            const bool is_library = call_filter.folds && (word & kCodeLibrary) != 0;
            found.sites.push_back(is_left_out || (is_in_library && is_library) ? 0 : site_of(word));
            if (!is_left_out) is_in_library = is_library;
        }
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
    visit_frames(state, [&](const void* frame, PyCodeObject*, PyObject*) { running.push_back(frame); });
    std::size_t count = 0;
    while (count < found.frames.size() && count < running.size() &&
           found.frames[count] == running[running.size() - 1 - count])
        ++count;
    for (std::size_t i = 0; i < count; ++i) {
        // One tick apart: ranges are told apart by their starts.
        detail::Opened opened{0, detail::kNotOpen};
        if (found.sites[i] == 0) {
            adopted.push_back({found.frames[i], opened, found.words[i]});
            continue;
        }
        if (open_before({&found.sites[i], 1}, found.start - (count - i), &opened) != 1) break;
        adopted.push_back({found.frames[i], opened, found.words[i]});
    }
    return adopted;
}

}  // namespace kymo::python
