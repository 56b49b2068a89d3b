// start_frames.cpp: reads the stacks of all threads.
#include "sources/python/start_frames.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <marey/observe.h>
#include <marey/range.h>

#include "record/source_writer.h"
#include "sources/python/call_filter.h"
#include "sources/python/filtered_calls.h"
#include "sources/python/first_argument.h"
#include "sources/python/interpreter_frames.h"
#include "sources/python/module_calls.h"
#include "sources/python/python_text.h"
#include "sources/python/thread_names.h"

namespace marey::python {

StartFrameTable& start_frames = *new StartFrameTable;

namespace {

auto& own_threads = *new std::unordered_set<std::uint64_t>;  // ids of thread states; guarded by the GIL

// A running call that may be a module call. Its object is read only after all stacks have been read, since
// that may let other threads run.
struct ModuleFrame {
    std::uint64_t thread;
    std::size_t index;  // in StartFrames::sites
    CodeWord word;
    Ref code;
    Ref self;
};

}  // namespace

void become_own_thread() {
    own_threads.insert(PyThreadState_GetID(PyThreadState_Get()));
    set_enabled(false);
}

void StartFrameTable::take(std::uint64_t start) {
    clear();
    const SavedError error;
    std::vector<ModuleFrame> modules;
    PyThreadState* const own = PyThreadState_Get();
    for (PyThreadState* state = PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(own));
         state != nullptr; state = PyThreadState_Next(state)) {
        if (own_threads.count(PyThreadState_GetID(state)) != 0) continue;
        StartFrames found;
        const std::size_t first_module = modules.size();
        const auto note = [&](const void* frame, PyCodeObject* code, PyObject* globals, int line) {
            const CodeWord word = call_filter.is_on ? filtered_word(code, globals) : code_word(code);
            PyObject* const self =
                (word & kCodeModule) != 0 ? marey_first_argument(state, found.frames.size(), code) : nullptr;
            const bool is_import = self != nullptr && PyUnicode_Check(self);
            if ((word & kCodeNamed) != 0 && !is_import) {
                found.thread_name = name_of_thread(self);
            } else if ((word & kCodeModule) != 0) {
                modules.push_back({PyThreadState_GetID(state), found.frames.size(), word,
                                   Ref::borrow(reinterpret_cast<PyObject*>(code)), Ref::borrow(self)});
            }
            found.frames.push_back(frame);
            found.words.push_back(word);
            if (call_filter.has_lines) found.lines.push_back(line);
        };
        visit_frames(state, call_filter.has_lines, note);
        if (found.frames.empty()) continue;
        std::reverse(found.frames.begin(), found.frames.end());
        std::reverse(found.words.begin(), found.words.end());
        std::reverse(found.lines.begin(), found.lines.end());
        bool is_in_library = false;
        for (const CodeWord word : found.words) {
            const bool is_left_out =
                (word & (call_filter.is_on ? kCodeSkipped | kCodeExcluded : kCodeSkipped)) != 0;
            const bool is_library = call_filter.folds && (word & kCodeLibrary) != 0;
            found.sites.push_back(is_left_out || (is_in_library && is_library) ? 0 : site_of(word));
            if (!is_left_out) is_in_library = is_library;
        }
        for (std::size_t i = first_module; i < modules.size(); ++i)
            modules[i].index = found.frames.size() - 1 - modules[i].index;
        found.start = start;
        found.os_tid = static_cast<std::int64_t>(state->native_thread_id);
        threads_.emplace(PyThreadState_GetID(state), std::move(found));
    }
    for (const ModuleFrame& module : modules) {
        const std::uint32_t site =
            module_site(module.word, reinterpret_cast<PyCodeObject*>(module.code.get()), module.self.get());
        const auto place = threads_.find(module.thread);
        if (place != threads_.end() && module.index < place->second.sites.size() &&
            place->second.sites[module.index] != 0)
            place->second.sites[module.index] = site;
    }
    report_absent(PyThreadState_GetID(own));
}

// Records the calls of threads that may never have an event; `own` is the calling thread.
void StartFrameTable::report_absent(std::uint64_t own) {
    std::vector<AbsentStack> absent;
    for (const auto& [id, found] : threads_) {
        if (id == own) continue;
        AbsentStack stack;
        stack.os_tid = found.os_tid;
        for (std::size_t i = 0; i < found.sites.size(); ++i) {
            if (found.sites[i] != 0)
                stack.calls.push_back({found.sites[i], found.start_of(i), found.line_of_caller(i)});
        }
        absent.push_back(std::move(stack));
    }
    if (!absent.empty()) set_absent_threads(std::move(absent));
}

void StartFrameTable::clear() noexcept {
    if (!threads_.empty()) set_absent_threads({});
    threads_.clear();
}

std::vector<AdoptedFrame> StartFrameTable::adopt(PyThreadState* state) {
    std::vector<AdoptedFrame> adopted;
    const auto place = threads_.find(PyThreadState_GetID(state));
    if (place == threads_.end()) return adopted;
    const StartFrames found = std::move(place->second);
    threads_.erase(place);
    forget_absent_thread(static_cast<std::int64_t>(state->native_thread_id));
    if (!found.thread_name.empty()) thread_name(found.thread_name);
    // The memory of a frame may be used by a new call by now, hence the check of its site too.
    struct Running {
        const void* frame;
        std::uint32_t site;
    };
    std::vector<Running> running;
    visit_frames(state, false, [&](const void* frame, PyCodeObject* code, PyObject*, int) {
        running.push_back({frame, site_of(code_word(code))});
    });
    std::reverse(running.begin(), running.end());
    std::size_t still_running = 0;
    while (still_running < found.frames.size() && still_running < running.size() &&
           found.frames[still_running] == running[still_running].frame &&
           site_of(found.words[still_running]) == running[still_running].site)
        ++still_running;
    // Calls that the frame hook saw begin are still open if tracing ended and started again within them. They
    // are among the noted calls.
    end_open_calls(found.start_of(0));
    const auto count =
        std::count_if(found.sites.begin(), found.sites.end(), [](auto site) { return site != 0; });
    begin_adoption(found.start_of(0), static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < found.frames.size(); ++i) {
        detail::Opened opened{0, detail::kNotOpen};
        if (found.sites[i] != 0) {
            const std::uint32_t side = put_line(Scope::PythonFunction, found.line_of_caller(i));
            opened = adopt_range(found.sites[i], found.start_of(i), side);
            if (opened.index == detail::kNotOpen) break;
        }
        adopted.push_back({found.frames[i], opened, found.words[i], found.sites[i]});
    }
    // The thread has continued without being seen: those calls end now.
    for (; adopted.size() > still_running; adopted.pop_back()) {
        if (adopted.back().opened.index != detail::kNotOpen) close_late(adopted.back().opened);
    }
    return adopted;
}

}  // namespace marey::python
