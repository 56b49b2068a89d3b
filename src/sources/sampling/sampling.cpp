// sampling.cpp: the source of samples: starts and stops the sampler with the sessions, and around forks.
#include "record/source.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <memory>

#include "record/journal_writer.h"
#include "record/recorder_parts.h"
#include "record/source_writer.h"
#include "record/thread_log.h"
#include "sources/sampling/name_thread.h"
#include "sources/sampling/sampler.h"

namespace marey::sampling {
namespace {

/// A process that forks must have no thread that the program did not start, and no clock that signals: the
/// sampler stops before a fork and starts again after it.
class SamplingSource final : public Source {
  public:
    static SamplingSource& only() {
        static SamplingSource& source = *new SamplingSource;
        return source;
    }

    const char* name() const noexcept override { return "samples"; }
    void needs_changed(const RecordingNeeds& needs) noexcept override {
        const ScopedLock lock(mutex_);
        if (needs.sample_rate == rate_) return;
        stop();
        rate_ = needs.sample_rate;
        start();
    }
    void flush(std::uint64_t timeout_ns, bool) noexcept override {
        const ScopedLock lock(mutex_);
        if (!sampler_.runs()) return;
        names_.flush(std::min<std::uint64_t>(timeout_ns, kNamesNs));
        sampler_.flush(std::min<std::uint64_t>(timeout_ns, kFlushNs));
    }
    void forked() noexcept override {
        const ScopedLock lock(mutex_);
        if (rate_ != 0 && detail::load_relaxed(unregistered_thread.armed) != 0) begin_in_child();
        rate_ = 0;
        is_forking_ = false;
        sampler_.forked();
    }

    void before_fork() noexcept {
        const ScopedLock lock(mutex_);
        is_forking_ = true;
        stop();
    }
    void after_fork() noexcept {
        const ScopedLock lock(mutex_);
        is_forking_ = false;
        start();
    }

  private:
    static constexpr std::uint64_t kFlushNs = 1'000'000'000;
    static constexpr std::uint64_t kNamesNs = 300'000'000;  // who stops may hold the GIL
    static constexpr timespec kChildAge{0, 20'000'000};

    // A forked child starts its session when it first records, which one that is only sampled never does.
    // Most children execute another program at once: those are left alone.
    static void begin_in_child() noexcept {
        const auto enter = [](void*) -> void* {
            pthread_setname_np(pthread_self(), "marey-fork");
            nanosleep(&kChildAge, nullptr);
            attach_thread();
            return nullptr;
        };
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        pthread_t thread{};
        if (pthread_create(&thread, nullptr, enter, nullptr) == 0) pthread_detach(thread);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void start() noexcept MAREY_REQUIRES(mutex_) {
        if (rate_ == 0 || is_forking_) return;
        const char* problem = nullptr;
        if (!sampler_.start(rate_, names_, problem)) recorder_journal().note("not_sampled", problem);
    }
    void stop() noexcept MAREY_REQUIRES(mutex_) {
        sampler_.stop();
        names_.stop();
    }

    Mutex mutex_;
    NameThread names_ MAREY_GUARDED_BY(mutex_);
    Sampler sampler_ MAREY_GUARDED_BY(mutex_);
    std::uint32_t rate_ MAREY_GUARDED_BY(mutex_) = 0;
    bool is_forking_ MAREY_GUARDED_BY(mutex_) = false;
};

}  // namespace

void register_source() noexcept {
    static const bool once = [] {
        // After those of the recorder, so that this one runs before: no lock of the recorder is held.
        pthread_atfork([] { SamplingSource::only().before_fork(); },
                       [] { SamplingSource::only().after_fork(); }, nullptr);
        add_source({std::shared_ptr<void>(), &SamplingSource::only()});
        return true;
    }();
    static_cast<void>(once);
}

}  // namespace marey::sampling
