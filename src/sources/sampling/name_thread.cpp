// name_thread.cpp: names code places, seldom.
#include "sources/sampling/name_thread.h"

#include <signal.h>
#include <time.h>

#include <new>

#include "record/thread_log.h"
#include "sources/sampling/python_places.h"

namespace marey::sampling {
namespace {

constexpr std::uint64_t kStep = 1'000'000;
constexpr std::uint64_t kBetween = 20'000'000;  // so that the program does not lose the GIL all the time
constexpr std::uint64_t kJoin = 20'000'000;

timespec span_of(std::uint64_t ns) noexcept {
    return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

void* NameThread::enter(void* argument) noexcept {
    auto* const state = static_cast<State*>(argument);
    pthread_setname_np(pthread_self(), "marey-names");
    set_current_thread(&idle_thread);
    while (sem_wait(&state->wake) != 0 || !state->must_end) {
        const detail::PythonSampling* const python = python_sampling();
        if (python == nullptr) continue;
        python->name_places();
        const timespec between = span_of(kBetween);
        nanosleep(&between, nullptr);
        while (sem_trywait(&state->wake) == 0 && !state->must_end) {
        }
        if (has_unnamed_places()) sem_post(&state->wake);
    }
    return nullptr;
}

void NameThread::wake() noexcept {
    State* state = state_.load(std::memory_order_relaxed);
    if (state == nullptr) {
        state = new (std::nothrow) State;
        if (state == nullptr) return;
        sem_init(&state->wake, 0, 0);
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        const bool is_made = pthread_create(&thread_, nullptr, enter, state) == 0;
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (!is_made) {
            delete state;
            return;
        }
        state_.store(state, std::memory_order_relaxed);
    }
    int posted = 0;
    if (sem_getvalue(&state->wake, &posted) == 0 && posted == 0) sem_post(&state->wake);
}

void NameThread::stop() noexcept {
    State* const state = state_.exchange(nullptr);
    if (state == nullptr) return;
    state->must_end = true;
    sem_post(&state->wake);
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += static_cast<long>(kJoin);
    if (until.tv_nsec >= 1'000'000'000) {
        until.tv_nsec -= 1'000'000'000;
        ++until.tv_sec;
    }
    if (pthread_timedjoin_np(thread_, nullptr, &until) == 0)
        delete state;
    else
        pthread_detach(thread_);  // it waits for the GIL, and ends once it has had it
}

void NameThread::flush(std::uint64_t timeout_ns) noexcept {
    const timespec step = span_of(kStep);
    for (std::uint64_t waited = 0; waited < timeout_ns && has_unnamed_places(); waited += kStep) {
        if (python_sampling() == nullptr) return;
        wake();
        nanosleep(&step, nullptr);
    }
}

}  // namespace marey::sampling
