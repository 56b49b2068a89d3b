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
    clear();
    const KeptError error;
    std::vector<AbsentStack> absent;
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
        AbsentStack stack;
        stack.os_tid = static_cast<std::int64_t>(state->native_thread_id);
        for (std::size_t i = 0; i < found.sites.size(); ++i) {
            if (found.sites[i] != 0) stack.calls.push_back({found.sites[i], found.start_of(i)});
        }
        if (state != own) absent.push_back(std::move(stack));
        threads_.emplace(PyThreadState_GetID(state), std::move(found));
    }
    if (!absent.empty()) set_absent_threads(std::move(absent));
}

void StartFramesOfThreads::clear() noexcept {
    if (!threads_.empty()) set_absent_threads({});
    threads_.clear();
}

std::vector<AdoptedFrame> StartFramesOfThreads::adopt(PyThreadState* state) {
    std::vector<AdoptedFrame> adopted;
    const auto place = threads_.find(PyThreadState_GetID(state));
    if (place == threads_.end()) return adopted;
    const StartFrames found = std::move(place->second);
    threads_.erase(place);
    forget_absent_thread(static_cast<std::int64_t>(state->native_thread_id));
    // A frame's memory may have a new call in it by now, hence the look at its site too.
    struct Running {
        const void* frame;
        std::uint32_t site;
    };
    std::vector<Running> running;
    visit_frames(state, [&](const void* frame, PyCodeObject* code, PyObject*) {
        running.push_back({frame, site_of(code_word(code))});
    });
    std::reverse(running.begin(), running.end());
    std::size_t still_running = 0;
    while (still_running < found.frames.size() && still_running < running.size() &&
           found.frames[still_running] == running[still_running].frame &&
           site_of(found.words[still_running]) == running[still_running].site)
        ++still_running;
    for (std::size_t i = 0; i < found.frames.size(); ++i) {
        detail::Opened opened{0, detail::kNotOpen};
        if (found.sites[i] != 0 && open_before({&found.sites[i], 1}, found.start_of(i), &opened) != 1) break;
        adopted.push_back({found.frames[i], opened, found.words[i]});
    }
    // The thread has gone on without being seen: those calls end now.
    for (; adopted.size() > still_running; adopted.pop_back()) {
        if (adopted.back().opened.index != detail::kNotOpen) close_late(adopted.back().opened);
    }
    return adopted;
}

}  // namespace kymo::python
