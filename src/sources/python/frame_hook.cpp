// frame_hook.cpp: a range around every evaluation of a frame.
#include "sources/python/frame_hook.h"

#if PY_VERSION_HEX < 0x030C0000

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "record/source_writer.h"
#include "sources/python/code_sites.h"
#include "sources/python/first_argument.h"
#include "sources/python/interpreter_frames.h"
#include "sources/python/module_calls.h"

namespace kymo::python {

using detail::Opened;
using detail::ThreadState;

namespace {

constexpr std::uintptr_t kToDo = ~std::uintptr_t{0};

// Guarded by the GIL.
_PyFrameEvalFunction inner_eval = _PyEval_EvalFrameDefault;  // what the hook stands in front of
bool is_on = false;

std::atomic<std::uint64_t> gaps{0};

// Every thread that has one. Threads leave without the GIL, hence the lock.
std::mutex threads_mutex;
std::vector<FrameThread*> threads;

struct OwnThread {
    std::unique_ptr<FrameThread> trace;
    ~OwnThread() {
        if (trace == nullptr) return;
        if (detail::current_thread->tracer == trace.get()) detail::current_thread->tracer = nullptr;
        std::lock_guard lock(threads_mutex);
        std::erase(threads, trace.get());
    }
};
thread_local OwnThread own_thread;

// From where on a thread's C stack is left to the program: half of it, so that what recurses in C has room
// too.
std::uintptr_t middle_of_stack() noexcept {
    pthread_attr_t attributes;
    void* lowest = nullptr;
    std::size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
    return reinterpret_cast<std::uintptr_t>(lowest) + bytes / 2;
}

// Makes the calling thread's FrameThread, or brings it up to date. Null: the thread cannot record.
[[gnu::noinline]] FrameThread* attend(PyThreadState* state) noexcept {
    if (!attach_thread()) return nullptr;
    ThreadState& thread = *detail::current_thread;
    try {
        if (thread.tracer == nullptr) {
            if (own_thread.trace == nullptr) {
                own_thread.trace = std::make_unique<FrameThread>();
                std::lock_guard lock(threads_mutex);
                threads.push_back(own_thread.trace.get());
            }
            thread.tracer = own_thread.trace.get();
        }
        auto& trace = *static_cast<FrameThread*>(thread.tracer);
        if (trace.stack_floor != kToDo) return &trace;
        trace.thread = detail::thread_number();
        trace.stack_floor = middle_of_stack();
        std::vector<AdoptedFrame> adopted = start_frames.adopt(state);
        if (!adopted.empty()) {
            trace.adopted = std::move(adopted);
            trace.adopted_top = trace.adopted.back().frame;
        }
        return &trace;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// Ends adopted calls that are not running any more.
[[gnu::noinline]] void settle(PyThreadState* state, FrameThread& trace) noexcept {
    const _PyInterpreterFrame* const current = current_frame(state);
    while (!trace.adopted.empty()) {
        const AdoptedFrame& top = trace.adopted.back();
        const _PyInterpreterFrame* frame = current;
        while (frame != nullptr && frame != top.frame) frame = frame->previous;
        if (frame != nullptr) break;
        if (top.opened.index != detail::kNotOpen) close_late(top.opened);
        trace.adopted.pop_back();
    }
    trace.adopted_top = trace.adopted.empty() ? nullptr : trace.adopted.back().frame;
}

PyObject* run_frame(PyThreadState* state, _PyInterpreterFrame* frame, int is_throw);

// Generators are made by running their function's first instruction: that is no call.
inline bool is_no_call(CodeWord word, const _PyInterpreterFrame* frame) noexcept {
    if ((word & (kCodeGenerator | kCodeSkipped)) == 0) [[likely]]
        return false;
    return (word & kCodeSkipped) != 0 || frame->owner != FRAME_OWNED_BY_GENERATOR;
}

[[gnu::noinline]] PyObject* run_unusual(PyThreadState* state, _PyInterpreterFrame* frame, int is_throw) {
    FrameThread* const trace = attend(state);
    const CodeWord word = code_word(frame->f_code);
    if (trace == nullptr || is_no_call(word, frame)) return inner_eval(state, frame, is_throw);
    if (trace->adopted_top != nullptr && trace->adopted_top != current_frame(state)) settle(state, *trace);
    const void* const top = std::exchange(trace->adopted_top, nullptr);
    std::uint32_t site = site_of(word);
    if ((word & kCodeModule) != 0)
        site = module_site(word, frame->f_code, kymo_first_argument_in(frame, frame->f_code));
    const Opened opened = detail::open_range(site, Scope::PythonFunction);
    PyObject* result;
    if (reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) >= trace->stack_floor) {
        result = inner_eval(state, frame, is_throw);
    } else {
        // With a hook in place every Python call takes C stack, which it does not without. What is called
        // from here on runs without it, to whatever depth.
        PyInterpreterState* const interpreter = PyThreadState_GetInterpreter(state);
        gaps.fetch_add(1, std::memory_order_relaxed);
        if (is_on) _PyInterpreterState_SetEvalFrameFunc(interpreter, inner_eval);
        result = inner_eval(state, frame, is_throw);
        if (is_on) _PyInterpreterState_SetEvalFrameFunc(interpreter, run_frame);
    }
    if (opened.index != detail::kNotOpen) detail::close_range(opened);
    trace->adopted_top = top;
    return result;
}

// The hook. Around it lie two readings of the counter and a record of 16 bytes; all else is out of line.
PyObject* run_frame(PyThreadState* state, _PyInterpreterFrame* frame, int is_throw) {
    ThreadState* const thread = detail::current_thread;
    if ((detail::load_relaxed(thread->armed) & detail::scope_bit(Scope::PythonFunction)) == 0)
        return inner_eval(state, frame, is_throw);
    auto* const trace = static_cast<FrameThread*>(thread->tracer);
    const CodeWord word = known_code(frame->f_code);
    if (trace == nullptr || word == 0 ||
        reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) < trace->stack_floor) [[unlikely]]
        return run_unusual(state, frame, is_throw);
    const void* const top = trace->adopted_top;
    if (top != nullptr && top != current_frame(state)) [[unlikely]]
        return run_unusual(state, frame, is_throw);
    if ((word & (kCodeGenerator | kCodeSkipped | kCodeModule)) != 0) [[unlikely]] {
        if (is_no_call(word, frame)) return inner_eval(state, frame, is_throw);
        if ((word & kCodeModule) != 0) return run_unusual(state, frame, is_throw);
    }
    trace->adopted_top = nullptr;
    const std::uint32_t site = site_of(word);
    const Opened opened = detail::may_open(thread, site) ? detail::open_slot(thread, site)
                                                         : detail::open_range(site, Scope::PythonFunction);
    PyObject* const result = inner_eval(state, frame, is_throw);
    if (opened.index != detail::kNotOpen) detail::close_range(opened);
    trace->adopted_top = top;
    return result;
}

}  // namespace

bool start_frame_hook() noexcept {
    PyInterpreterState* const interpreter = PyInterpreterState_Main();
    const _PyFrameEvalFunction present = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    if (present != run_frame) inner_eval = present;
    {
        std::lock_guard lock(threads_mutex);
        for (FrameThread* const thread : threads) thread->stack_floor = kToDo;
    }
    is_on = true;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, run_frame);
    return true;
}

void stop_frame_hook() noexcept {
    PyInterpreterState* const interpreter = PyInterpreterState_Main();
    is_on = false;
    // Somebody who came later has us behind his own hook: we stay, and pass everything on.
    if (_PyInterpreterState_GetEvalFrameFunc(interpreter) == run_frame)
        _PyInterpreterState_SetEvalFrameFunc(interpreter, inner_eval);
    std::lock_guard lock(threads_mutex);
    for (FrameThread* const thread : threads) {
        while (!thread->adopted.empty()) {
            const Opened opened = thread->adopted.back().opened;
            if (opened.index != detail::kNotOpen) detail::close_elsewhere(opened, thread->thread);
            thread->adopted.pop_back();
        }
        thread->adopted_top = nullptr;
    }
}

std::uint64_t frame_hook_gaps() noexcept {
    return gaps.exchange(0, std::memory_order_relaxed);
}

void settle_frames(ThreadState& thread) noexcept {
    auto& trace = *static_cast<FrameThread*>(thread.tracer);
    if (trace.adopted_top == nullptr) return;
    PyThreadState* const state = PyThreadState_Get();
    if (trace.adopted_top != current_frame(state)) settle(state, trace);
}

}  // namespace kymo::python

#endif
