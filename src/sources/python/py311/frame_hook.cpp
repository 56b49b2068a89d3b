// frame_hook.cpp: a range around every evaluation of a frame.
#include "sources/python/py311/frame_hook.h"
#include "sources/python/py311/call_parts.h"

#if PY_VERSION_HEX < 0x030C0000

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include <marey/detail/thread_safety.h>

#include "record/source_writer.h"
#include "sources/python/code_sites.h"
#include "sources/python/filtered_calls.h"
#include "sources/python/first_argument.h"
#include "sources/python/greenlets.h"
#include "sources/python/interpreter_frames.h"
#include "sources/python/live_calls.h"
#include "sources/python/module_calls.h"
#include "sources/python/py311/library_frames.h"

namespace marey::python {

using detail::Opened;
using detail::ThreadState;

namespace {

constexpr std::uintptr_t kUninitialized = ~std::uintptr_t{0};

// Guarded by the GIL.
_PyFrameEvalFunction inner_eval = _PyEval_EvalFrameDefault;  // the function that the hook calls
bool is_on = false;

std::atomic<std::uint64_t> gap_count{0};

// All threads that have one. Threads end without the GIL, hence the lock.
Mutex threads_mutex;
auto& threads MAREY_GUARDED_BY(threads_mutex) =
    *new std::vector<FrameThread*>;  // never destroyed: threads may still exist at exit

struct ThreadHolder {
    std::unique_ptr<FrameThread> trace;
    ~ThreadHolder() {
        if (trace == nullptr) return;
        if (detail::current_thread->tracer == trace.get()) detail::current_thread->tracer = nullptr;
        const ScopedLock lock(threads_mutex);
        std::erase(threads, trace.get());
    }
};
thread_local ThreadHolder thread_holder;

// Below this address the C stack is left to the program: half of it, so that recursion in C has space too.
std::uintptr_t middle_of_stack() noexcept {
    pthread_attr_t attributes;
    void* lowest = nullptr;
    std::size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
    return reinterpret_cast<std::uintptr_t>(lowest) + bytes / 2;
}

// Creates or updates the calling thread's FrameThread. Null: the thread cannot record.
[[gnu::noinline]] FrameThread* ready_frame_thread(PyThreadState* state) noexcept {
    if (!attach_thread()) return nullptr;
    ThreadState& thread = *detail::current_thread;
    try {
        if (thread.tracer == nullptr) {
            if (thread_holder.trace == nullptr) {
                thread_holder.trace = std::make_unique<FrameThread>();
                const ScopedLock lock(threads_mutex);
                threads.push_back(thread_holder.trace.get());
            }
            thread.tracer = thread_holder.trace.get();
        }
        auto& trace = *static_cast<FrameThread*>(thread.tracer);
        if (trace.stack_floor != kUninitialized) return &trace;
        trace.thread = detail::thread_number();
        trace.stack_floor = trace.stack_middle = middle_of_stack();
        if (!watch_greenlets(nullptr)) trace.stack_floor = kUninitialized;
        std::vector<AdoptedFrame> adopted = start_frames.adopt(state);
        if (!adopted.empty()) {
            // Adoption has ended the earlier ones: nothing else will close them.
            for (const AdoptedFrame& old : trace.adopted) {
                if (old.opened.index != detail::kNotOpen) detail::close_range(old.opened);
            }
            trace.adopted = std::move(adopted);
            trace.adopted_top = trace.adopted.back().frame;
        }
        return &trace;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// Ends adopted calls that are not running any more.
[[gnu::noinline]] void end_stale_frames(const _PyInterpreterFrame* current, FrameThread& trace) noexcept {
    while (!trace.adopted.empty()) {
        const AdoptedFrame& top = trace.adopted.back();
        const _PyInterpreterFrame* frame = current;
        while (frame != nullptr && frame != top.frame) frame = frame->previous;
        if (frame != nullptr) break;
        if (top.opened.index != detail::kNotOpen) {
            if (top.is_part()) end_part(top.frame, top.opened.start, false);
            close_late(top.opened);
        }
        trace.adopted.pop_back();
    }
    trace.adopted_top = trace.adopted.empty() ? nullptr : trace.adopted.back().frame;
}

PyObject* run_frame(PyThreadState* state, _PyInterpreterFrame* frame, int is_throw);

// A generator is created by running its function's first instruction: that is not a call.
inline bool is_not_call(CodeWord word, const _PyInterpreterFrame* frame) noexcept {
    if ((word & (kCodeGenerator | kCodeSkipped)) == 0) [[likely]]
        return false;
    return (word & kCodeSkipped) != 0 || frame->owner != FRAME_OWNED_BY_GENERATOR;
}

// Returns to the caller, in which `top` was noted. If tracing ended and started again since, the calls
// adopted then are kept.
inline void leave(FrameThread& trace, const void* top) noexcept {
    if (trace.adopted_top == nullptr) trace.adopted_top = top;
}

// Whether a call that is not excluded by its name passes the filter.
inline bool passes(PyThreadState* state, const FrameThread& trace, CodeWord word) noexcept {
    if (trace.depth >= call_filter.max_depth) return false;
    return !call_filter.folds || (word & kCodeLibrary) == 0 || !is_library_frame(current_frame(state));
}

std::uint32_t site_of_call(_PyInterpreterFrame* frame, CodeWord word) noexcept {
    if ((word & kCodeModule) == 0) return site_of(word);
    return module_site(word, frame->f_code, marey_first_argument_in(frame, frame->f_code));
}

// The range of a call.
class FrameRange {
  public:
    FrameRange(PyThreadState* state, FrameThread& trace, _PyInterpreterFrame* frame, CodeWord word) noexcept
        : trace_(trace), is_filtered_(call_filter.is_on) {
        if (is_filtered_ && ((word & kCodeExcluded) != 0 || !passes(state, trace, word))) return;
        const std::uint32_t site = site_of_call(frame, word);
        if (!is_on) return;  // another thread has ended tracing
        place_ = log_place();
        opened_ = open_filtered(site, Scope::PythonFunction,
                                call_filter.has_lines ? line_of(current_frame(state)) : -1);
        is_counted_ = is_filtered_;
        trace.depth += is_counted_ ? 1 : 0;
        if ((word & kCodeGenerator) == 0 || opened_.index == detail::kNotOpen) return;
        part_ = frame;
        begin_call_part(frame, word, opened_.start);
    }
    ~FrameRange() {
        if (is_counted_ && trace_.depth != 0) --trace_.depth;
        if (opened_.index == detail::kNotOpen) return;
        if (part_ == nullptr)
            is_filtered_ ? close_filtered(opened_, place_) : detail::close_range(opened_);
        else if (is_filtered_)
            close_filtered_part(part_, opened_, place_, !is_suspended(part_));
        else
            close_call_part(part_, opened_, !is_suspended(part_));
    }
    FrameRange(const FrameRange&) = delete;
    FrameRange& operator=(const FrameRange&) = delete;

  private:
    FrameThread& trace_;
    _PyInterpreterFrame* part_ = nullptr;  ///< set for a call that can be suspended
    Opened opened_{0, detail::kNotOpen};
    std::uint32_t place_ = 0;
    const bool is_filtered_;
    bool is_counted_ = false;
};

[[gnu::noinline]] PyObject* run_unusual(PyThreadState* state, _PyInterpreterFrame* frame, int is_throw) {
    auto* trace = static_cast<FrameThread*>(detail::current_thread->tracer);
    if (trace == nullptr || trace->stack_floor == kUninitialized) trace = ready_frame_thread(state);
    const CodeWord word =
        call_filter.is_on ? filtered_word(frame->f_code, frame->f_globals) : code_word(frame->f_code);
    if (trace == nullptr || is_not_call(word, frame)) return inner_eval(state, frame, is_throw);
    const bool is_deep = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) < trace->stack_middle;
    if (call_filter.is_on && (word & kCodeExcluded) != 0 && !is_deep)
        return inner_eval(state, frame, is_throw);
    if (trace->adopted_top != nullptr && trace->adopted_top != current_frame(state))
        end_stale_frames(current_frame(state), *trace);
    const void* const top = std::exchange(trace->adopted_top, nullptr);
    PyObject* result;
    {
        const FrameRange range(state, *trace, frame, word);
        if (!is_deep) {
            result = inner_eval(state, frame, is_throw);
        } else {
            // With a hook, every Python call uses C stack, which it does not do otherwise. Calls from here on
            // run without the hook, to any depth.
            PyInterpreterState* const interpreter = PyThreadState_GetInterpreter(state);
            gap_count.fetch_add(1, std::memory_order_relaxed);
            const bool is_alone = is_on && _PyInterpreterState_GetEvalFrameFunc(interpreter) == run_frame;
            if (is_alone) _PyInterpreterState_SetEvalFrameFunc(interpreter, inner_eval);
            result = inner_eval(state, frame, is_throw);
            // A function that other code has set since is kept.
            if (is_alone && is_on && _PyInterpreterState_GetEvalFrameFunc(interpreter) == inner_eval)
                _PyInterpreterState_SetEvalFrameFunc(interpreter, run_frame);
        }
    }
    leave(*trace, top);
    return result;
}

// Runs a frame inside a range in the usual case: the caller has checked that the range may be opened.
[[gnu::always_inline]] inline PyObject* run_in_range(ThreadState* thread, std::uint32_t site,
                                                     PyThreadState* state, _PyInterpreterFrame* frame,
                                                     int is_throw) {
    const Opened opened = detail::open_slot(thread, site);
    PyObject* const result = inner_eval(state, frame, is_throw);
    detail::close_range(opened);
    return result;
}

// A generator, coroutine or asynchronous generator resumes, in the usual case.
[[gnu::noinline]] PyObject* run_part(ThreadState* thread, CodeWord word, PyThreadState* state,
                                     _PyInterpreterFrame* frame, int is_throw) {
    const Opened opened = detail::open_slot(thread, site_of(word));
    begin_call_part(frame, word, opened.start);
    PyObject* const result = inner_eval(state, frame, is_throw);
    close_call_part(frame, opened, !is_suspended(frame));
    return result;
}

// A call made by a frame that was running before tracing started.
[[gnu::noinline]] PyObject* run_below_adopted(PyThreadState* state, _PyInterpreterFrame* frame,
                                              int is_throw) {
    ThreadState* const thread = detail::current_thread;
    auto* const trace = static_cast<FrameThread*>(thread->tracer);
    if (trace->adopted_top != current_frame(state)) return run_unusual(state, frame, is_throw);
    const void* const top = std::exchange(trace->adopted_top, nullptr);
    PyObject* const result = run_in_range(thread, site_of(known_code(frame->f_code)), state, frame, is_throw);
    leave(*trace, top);
    return result;
}

// The hook. A call, and most resumes, cost two clock reads and a record of 16 bytes; everything else is out
// of line.
PyObject* run_frame(PyThreadState* state, _PyInterpreterFrame* frame, int is_throw) {
    ThreadState* const thread = detail::current_thread;
    if ((detail::load_relaxed(thread->armed) & detail::scope_bit(Scope::PythonFunction)) == 0)
        return inner_eval(state, frame, is_throw);
    auto* const trace = static_cast<FrameThread*>(thread->tracer);
    const CodeWord word = known_code(frame->f_code);
    if (trace == nullptr || call_filter.is_on ||
        reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) < trace->stack_floor ||
        !detail::may_open(thread, site_of(word))) [[unlikely]]
        return run_unusual(state, frame, is_throw);
    if (!is_usual(word)) {
        if (!is_usual(word & ~kCodeGenerator) || trace->adopted_top != nullptr)
            return run_unusual(state, frame, is_throw);
        if (is_not_call(word, frame)) return inner_eval(state, frame, is_throw);
        return run_part(thread, word, state, frame, is_throw);
    }
    if (trace->adopted_top != nullptr) return run_below_adopted(state, frame, is_throw);
    return run_in_range(thread, site_of(word), state, frame, is_throw);
}

}  // namespace

bool start_frame_hook(void (*cannot_follow)(PyObject* origin) noexcept) noexcept {
    PyInterpreterState* const interpreter = PyInterpreterState_Main();
    const _PyFrameEvalFunction present = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    if (present != run_frame) inner_eval = present;
    {
        const ScopedLock lock(threads_mutex);
        for (FrameThread* const thread : threads) {
            thread->stack_floor = kUninitialized;
            thread->has_stale_frames = false;
            thread->depth = 0;
        }
    }
    is_on = true;
    follow_greenlets(
        []() noexcept {
            const ScopedLock lock(threads_mutex);
            for (FrameThread* const thread : threads) thread->stack_floor = kUninitialized;
        },
        cannot_follow);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, run_frame);
    ready_frame_thread(PyThreadState_Get());  // its next call may belong to another greenlet
    return true;
}

void pause_frame_hook() noexcept {
    PyInterpreterState* const interpreter = PyInterpreterState_Main();
    is_on = false;
    follow_greenlets(nullptr);
    const ScopedLock lock(threads_mutex);
    for (FrameThread* const thread : threads) thread->has_stale_frames = true;
    if (_PyInterpreterState_GetEvalFrameFunc(interpreter) == run_frame)
        _PyInterpreterState_SetEvalFrameFunc(interpreter, inner_eval);
}

void end_adopted_frame(_PyInterpreterFrame* frame) noexcept {
    FrameThread* const trace = thread_holder.trace.get();
    if (trace == nullptr) return;
    std::vector<AdoptedFrame>& adopted = trace->adopted;
    std::size_t at = adopted.size();
    while (at != 0 && adopted[at - 1].frame != frame) --at;
    if (at == 0) return;
    for (; adopted.size() > at; adopted.pop_back()) {
        if (adopted.back().opened.index != detail::kNotOpen) close_late(adopted.back().opened);
    }
    const AdoptedFrame ended = adopted.back();
    adopted.pop_back();
    if (ended.opened.index == detail::kNotOpen) return;
    if (ended.is_part()) end_part(frame, ended.opened.start, !is_suspended(frame));
    detail::close_range(ended.opened);
}

void end_stale_thread_frames(const _PyInterpreterFrame* innermost) noexcept {
    FrameThread* const trace = thread_holder.trace.get();
    if (trace != nullptr && std::exchange(trace->has_stale_frames, false))
        end_stale_frames(innermost, *trace);
}

void stop_frame_hook(bool will_restart) noexcept {
    // Another hook that was set later calls ours: it stays in place and passes all calls through.
    pause_frame_hook();
    if (will_restart) return;
    const ScopedLock lock(threads_mutex);
    for (FrameThread* const thread : threads) {
        while (!thread->adopted.empty()) {
            const Opened opened = thread->adopted.back().opened;
            if (opened.index != detail::kNotOpen) detail::close_elsewhere(opened, thread->thread);
            thread->adopted.pop_back();
        }
        thread->adopted_top = nullptr;
    }
}

void frame_hook_forked() noexcept {
    // A thread that was ending may have held the lock and been changing the list.
    std::construct_at(&threads_mutex);
    const ScopedLock lock(threads_mutex);
    std::construct_at(&threads);
    try {
        if (thread_holder.trace != nullptr) threads.push_back(thread_holder.trace.get());
    } catch (const std::bad_alloc&) {
    }
}

std::uint64_t frame_hook_gaps() noexcept {
    return gap_count.exchange(0, std::memory_order_relaxed);
}

void prepare_frame_thread() noexcept {
    PyThreadState* const state = PyThreadState_Get();
    auto* trace = static_cast<FrameThread*>(detail::current_thread->tracer);
    if (trace == nullptr || trace->stack_floor == kUninitialized) trace = ready_frame_thread(state);
    if (trace == nullptr || trace->adopted_top == nullptr) return;
    if (trace->adopted_top != current_frame(state)) end_stale_frames(current_frame(state), *trace);
}

}  // namespace marey::python

#endif
