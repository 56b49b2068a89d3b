// control.cpp: the thread of a process that takes requests.
#include "record/control.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <utility>

#include <marey/control.h>
#include <marey/error.h>
#include <marey/session_options.h>

#include "base/process_stat.h"
#include "record/control_page.h"
#include "record/recorder.h"
#include "record/recorder_parts.h"
#include "record/thread_log.h"

namespace marey {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

ControlPage own_page() {
    ControlPage page{};
    std::memcpy(page.magic, ControlPage::kMagic, sizeof page.magic);
    page.version = ControlPage::kVersion;
    page.pid = ::getpid();
    page.start = ProcessStat(page.pid).start();
    page.rank = environment_rank();
    return page;
}

/// A request that was read from the page.
struct ControlRequest {
    bool is_start = false;
    std::int64_t at_ns = 0, duration_ns = 0;
    std::string options;
};

ControlRequest parse(const std::string& text) {
    ControlRequest request;
    if (text == "stop") return request;
    long long at = 0, duration = 0;
    int options_at = 0;
    if (std::sscanf(text.c_str(), "start %lld %lld %n", &at, &duration, &options_at) != 2 || options_at == 0)
        throw Error("this program's Marey does not know the request '" + text + "'");
    return {true, at, duration, text.substr(static_cast<std::size_t>(options_at))};
}

class Control {
  public:
    Control() : path_(control_folder(true) + "/" + std::to_string(::getpid())), page_(path_, own_page()) {
        begin();
    }

    const std::string& path() const noexcept { return path_; }
    bool is_of_this_process() const noexcept { return page_->pid == ::getpid(); }

    void begin() noexcept {
        must_end_ = false;
        // This thread must never run the program's signal handlers.
        sigset_t all, before;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        const auto enter = [](void* control) -> void* {
            static_cast<Control*>(control)->run();
            return nullptr;
        };
        runs_ = ::pthread_create(&thread_, nullptr, enter, this) == 0;
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void end() noexcept {
        if (!std::exchange(runs_, false)) return;
        must_end_ = true;
        timespec soon{};
        do {  // it may be about to wait
            wake_all(page_->request);
            constexpr long kMillisecondNs = 1'000'000;
            ::clock_gettime(CLOCK_REALTIME, &soon);
            soon.tv_nsec += kMillisecondNs;
            soon.tv_sec += soon.tv_nsec / kSecondNs;
            soon.tv_nsec %= kSecondNs;
        } while (::pthread_timedjoin_np(thread_, nullptr, &soon) != 0);
    }

  private:
    void run() noexcept {
        ::pthread_setname_np(::pthread_self(), "marey control");
        set_current_thread(&idle_thread);
        while (!must_end_) {
            const std::uint32_t known = page_->answered;
            const std::uint32_t wanted = detail::load_acquire(page_->request);
            if (wanted != known) {
                take(wanted);
            } else if (stop_at_ns_ != 0 && monotonic_ns() >= stop_at_ns_) {
                stop();
            } else {
                const std::int64_t rest = stop_at_ns_ - monotonic_ns();
                wait_for_change(page_->request, known,
                                stop_at_ns_ == 0 ? -1 : std::max<std::int64_t>(rest, 0));
            }
        }
    }

    /// Obeys a request, now or at its time.
    void take(std::uint32_t number) noexcept {
        std::string text;
        bool has_failed = false;
        try {
            const ControlRequest request = parse(text_of(page_->question));
            if (request.is_start && !wait_until(request.at_ns)) return;
            text = request.is_start ? start(request) : stop_requested();
        } catch (const std::exception& error) {
            text = error.what();
            has_failed = true;
        }
        set_text(page_->answer, text);
        page_->has_failed = has_failed ? 1 : 0;
        detail::store_release(page_->answered, number);
        wake_all(page_->answered);
    }

    /// False: the thread ends first, and goes on after a fork.
    bool wait_until(std::int64_t at_ns) {
        if (at_ns > monotonic_ns() + 60 * kSecondNs) throw Error("it would begin in over a minute");
        while (!must_end_ && monotonic_ns() < at_ns)
            wait_for_change(page_->request, detail::load_acquire(page_->request), at_ns - monotonic_ns());
        return !must_end_;
    }

    std::string start(const ControlRequest& request) {
        if (recording_ && Recorder::get().sessions().is_running(recording_->id))
            throw Error("it is being recorded into " + recording_->output_path);
        const SessionOptions options = parse_options(request.options);
        if (options.output.empty()) throw Error("out= is missing");
        recording_ = Recorder::get().start(options);
        stop_at_ns_ = request.duration_ns > 0 ? monotonic_ns() + request.duration_ns : 0;
        detail::store_relaxed(page_->is_recording, 1u);
        return recording_->output_path;
    }

    std::string stop_requested() {
        if (!recording_) throw Error("no recording that was requested runs");
        return stop();
    }

    std::string stop() noexcept {
        Recorder::get().discard(recording_->id);
        std::string path = std::move(recording_->output_path);
        recording_.reset();
        stop_at_ns_ = 0;
        detail::store_relaxed(page_->is_recording, 0u);
        return path;
    }

    const std::string path_;
    const MappedPage page_;
    std::optional<Recorder::Started> recording_;
    std::int64_t stop_at_ns_ = 0;  ///< 0: it goes on
    pthread_t thread_{};
    bool runs_ = false;
    std::atomic<bool> must_end_{false};
};

// Never destroyed by the program's end: its thread may be in it.
Control* current = nullptr;
Mutex control_mutex;

}  // namespace

void allow_control() {
    const ScopedLock lock(control_mutex);
    if (current == nullptr) current = new Control;
}

void control_before_fork() noexcept MAREY_UNCHECKED_LOCKS {
    control_mutex.lock();
    if (current != nullptr) current->end();
}

void control_after_fork(bool is_child) noexcept MAREY_UNCHECKED_LOCKS {
    if (current != nullptr && !is_child) current->begin();
    if (current != nullptr && is_child) {
        delete std::exchange(current, nullptr);  // the file is the parent's
        try {
            current = new Control;
        } catch (const std::exception& error) {
            warn(std::string("this process takes no requests: ") + error.what());
        }
    }
    control_mutex.unlock();
}

void end_control() noexcept {
    if (current != nullptr && current->is_of_this_process()) ::unlink(current->path().c_str());
}

}  // namespace marey
