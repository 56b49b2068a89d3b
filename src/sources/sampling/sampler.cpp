// sampler.cpp: the sampler thread.
#include "sources/sampling/sampler.h"

#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/process_stat.h"
#include "native/loaded_modules.h"
#include "native/native_stack.h"
#include "record/clocks/clock.h"
#include "record/journal_writer.h"
#include "record/owned_log.h"
#include "record/stack_numbers.h"
#include "sources/sampling/python_places.h"
#include "sources/sampling/thread_clock.h"
#include "sources/sampling/thread_states.h"

namespace marey::sampling {

using detail::JournalKind;
using detail::RecordKind;
using detail::ThreadState;

namespace {

constexpr double kMaxOwed = 2;
constexpr std::uint32_t kWaiting = 1;  // of SampleFlags
constexpr std::size_t kCopiedStack = std::size_t{64} << 10;
constexpr std::uint64_t kMaxDuration = (std::uint64_t{1} << detail::kDurationBits) - 1;

timespec after_now(std::uint64_t ns) noexcept {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);  // what sem_timedwait() waits for
    ns += static_cast<std::uint64_t>(time.tv_nsec);
    time.tv_sec += static_cast<time_t>(ns / 1'000'000'000);
    time.tv_nsec = static_cast<long>(ns % 1'000'000'000);
    return time;
}

}  // namespace

// ---- from outside ----

bool Sampler::start(std::uint32_t rate, NameThread& names, const char*& problem) noexcept {
    names_ = &names;
    if (log_ == nullptr) {
        sem_init(&wake_, 0, 0);
        log_ = Recorder::get().make_log("samples");
    }
    signal_ = install_handler();
    if (signal_ == 0) problem = "the program uses every signal that samples could";
    if (log_ == nullptr) problem = "there is no space for samples";
    if (signal_ == 0 || log_ == nullptr) return false;
    rate_ = rate;
    ticks_per_ns_ = static_cast<double>(Clock::ticks_per_second()) / 1e9;
    must_end_ = false;
    has_clocks_ = true;
    last_look_ = 0;
    looks_ = 0;
    listed_threads_ = 0;
    facts_written_ = ~std::uint64_t{0};
    last_chunk_ = nullptr;
    set_handling(true);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    runs_ = pthread_create(&thread_, nullptr, enter, this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!runs_) problem = "there is no further thread for the sampler";
    return runs_;
}

void Sampler::stop() noexcept {
    if (!runs_) return;
    must_end_ = true;
    sem_post(&wake_);
    pthread_join(thread_, nullptr);
    runs_ = false;
}

void Sampler::flush(std::uint64_t timeout_ns) noexcept {
    if (!runs_) return;
    const std::uint32_t wanted = flushes_wanted_.fetch_add(1) + 1;
    sem_post(&wake_);
    constexpr std::uint64_t kPoll = 200'000;
    const timespec step{0, kPoll};
    for (std::uint64_t waited = 0; waited < timeout_ns && flushes_done_.load() < wanted; waited += kPoll)
        nanosleep(&step, nullptr);
}

void Sampler::forked() noexcept {
    set_handling(false);
    runs_ = false;
    for (SampledThread* const thread : threads_) {
        withdraw_thread(thread);
        spare_.push_back(thread);
    }
    threads_.clear();
}

// ---- the thread ----

void* Sampler::enter(void* sampler) noexcept {
    static_cast<Sampler*>(sampler)->run();
    return nullptr;
}

void Sampler::run() noexcept {
    pthread_setname_np(pthread_self(), "marey-sample");
    set_current_thread(&idle_thread);
    prctl(PR_SET_TIMERSLACK, 1);
    try {
        stack_copy_.resize(kCopiedStack);
        while (!must_end_) {
            const std::uint32_t wanted = flushes_wanted_.load();
            look();
            if (flushes_done_.exchange(wanted) != wanted) write_facts();
            pause();
        }
        set_handling(false);
        while (!threads_.empty()) remove_thread(threads_.size() - 1);
        write_facts();
    } catch (const std::bad_alloc&) {  // then nothing more is sampled
        set_handling(false);
    }
}

// Looks are a little more frequent than samples, so that threads which run all the time get all of theirs;
// and irregular, so that they do not coincide with what the program does regularly.
bool Sampler::pause() noexcept {
    random_ = random_ * 1664525u + 1013904223u;
    const double jitter = 0.9 + 0.2 * static_cast<double>(random_ >> 16) / 65536;
    const double wanted = (has_clocks_ ? 1e9 : 0.7e9) / rate_;
    const double least = has_clocks_ ? 2e6 : 1e5;
    const timespec time = after_now(static_cast<std::uint64_t>(std::clamp(wanted, least, 1e7) * jitter));
    return sem_timedwait(&wake_, &time) == 0;
}

void Sampler::look() {
    const std::uint64_t ticks = Clock::now();
    const Look now{ticks, last_look_ != 0 ? ticks - last_look_ : 0};
    constexpr std::uint64_t kListAfter = 64;  // looks: a thread may end while another begins
    if (const std::uint64_t count = thread_count(); count != listed_threads_ || looks_ % kListAfter == 0) {
        listed_threads_ = count;
        list_threads();
    }
    if (looks_ % kListAfter == 0) {
        note_modules();
        if (!is_handler_installed(signal_)) signal_ = 0;  // the program has taken it: nothing may be sent
    }
    ++looks_;
    for (std::size_t i = threads_.size(); i-- != 0;) {
        std::uint64_t cpu = 0;
        if (!read_cpu(threads_[i]->tid.load(std::memory_order_relaxed), cpu)) {
            remove_thread(i);
            continue;
        }
        look_at(*threads_[i], cpu, now);
        take_samples(*threads_[i]);
    }
    if (stack_numbers().is_behind()) {
        const ScopedLock lock(recorder_mutex);
        Recorder::get().journal().mirror_stacks();
    }
    if (has_unnamed_places()) names_->wake();
    if (looks_ % 256 == 1) write_facts();
    last_look_ = ticks;
}

void Sampler::look_at(SampledThread& thread, std::uint64_t cpu, const Look& now) noexcept {
    const std::uint64_t used = cpu - std::min(cpu, thread.seen_cpu);
    thread.seen_cpu = cpu;
    if (used == 0) {
        if (now.elapsed_ticks != 0) see_wait(thread, cpu, now);
        return;
    }
    // It ran first and then waited, as far as is known.
    const std::uint64_t used_ticks = std::min(ticks_of(used), now.elapsed_ticks);
    end_wait(thread, now.ticks - used_ticks);
    thread.ran_until = now.ticks - now.elapsed_ticks + used_ticks;
    const int clock = thread.clock_fd.load(std::memory_order_relaxed);
    if (clock >= 0 || signal_ == 0) return;
    thread.owed = std::min(thread.owed + static_cast<double>(used) * rate_ / 1e9, kMaxOwed);
    if (thread.owed < 1 || thread.is_pending.load(std::memory_order_relaxed)) return;
    const pid_t tid = thread.tid.load(std::memory_order_relaxed);
    if (wait_place_of(tid).is_waiting || !is_handler_installed(signal_)) return;
    thread.owed -= 1;
    thread.is_pending.store(true, std::memory_order_relaxed);
    if (syscall(SYS_tgkill, getpid(), tid, signal_) != 0) thread.is_pending.store(false);
}

// ---- waits ----

void Sampler::see_wait(SampledThread& thread, std::uint64_t cpu, const Look& now) noexcept {
    if (thread.wait_from != 0) {
        // Longer and longer parts, so that a capture of a killed program lacks half of a wait at most.
        const std::uint64_t part = now.ticks - thread.part_from;
        const std::uint64_t least = std::max(ticks_of(1'000'000'000), thread.part_from - thread.wait_from);
        if (part < std::min(least, kMaxDuration)) return;
        put(thread.id, now.ticks, thread.wait_stack, part, thread.wait_flags);
        thread.part_from = now.ticks;
        return;
    }
    // A thread that has not been interrupted yet may be one of Python: the thread that has the GIL knows.
    constexpr std::uint32_t kPythonLooks = 50;
    if (python_sampling() != nullptr && thread.python.load(std::memory_order_relaxed) == nullptr &&
        thread.python_looks < kPythonLooks) {
        ++thread.python_looks;
        return names_->wake();
    }
    const pid_t tid = thread.tid.load(std::memory_order_relaxed);
    const WaitPlace place = wait_place_of(tid);
    if (!place.is_waiting) return;           // it wants to run
    static StackRoom& own = *new StackRoom;  // the thread's own is its handler's
    const std::size_t bytes = copy_checked(place.sp, stack_copy_.data(), stack_copy_.size());
    const std::size_t count = walk_copied_stack({place.pc, place.sp, 0, 0}, stack_copy_.data(), bytes,
                                                own.addresses, StackRoom::kNative, own.stack_pointers);
    std::uint32_t flags = 0;
    const std::uint32_t stack =
        own.number(count, thread.python.load(std::memory_order_relaxed), false, flags);
    std::uint64_t cpu_now = 0;
    if (!read_cpu(tid, cpu_now) || cpu_now != cpu || wait_place_of(tid) != place) return;
    thread.wait_from = thread.part_from =
        thread.ran_until != 0 ? thread.ran_until : now.ticks - now.elapsed_ticks;
    thread.wait_stack = stack;
    thread.wait_flags = flags | kWaiting;
}

void Sampler::end_wait(SampledThread& thread, std::uint64_t ticks) noexcept {
    if (std::exchange(thread.wait_from, 0) == 0) return;
    const std::uint64_t part = ticks - std::min(ticks, thread.part_from);
    put(thread.id, ticks, thread.wait_stack, std::min(part, kMaxDuration), thread.wait_flags);
}

// ---- the list of threads ----

void Sampler::list_threads() {
    const auto self = static_cast<pid_t>(syscall(SYS_gettid));
    for (const pid_t tid : list_thread_ids()) {
        if (tid != self && find_thread(tid) == nullptr) add_thread(tid, looks_ != 0);
    }
    // The main thread has ended, and so have all others: the process ends once its last thread does.
    const auto is_alive = [](const SampledThread* thread) { return thread->tid.load() != getpid(); };
    if (looks_ != 0 && std::ranges::none_of(threads_, is_alive) &&
        ProcessStat::of_this().text(ProcessStat::kState) == "Z") {
        must_end_ = true;
        names_->stop();
    }
}

void Sampler::add_thread(pid_t tid, bool is_new) {
    const std::string name = name_of_thread(tid);
    std::uint64_t cpu = 0;
    if (name.starts_with("marey") || !read_cpu(tid, cpu)) return;
    SampledThread* thread = nullptr;
    if (!spare_.empty()) {
        thread = spare_.back();
        spare_.pop_back();
    } else {
        void* const memory = mmap(nullptr, sizeof(SampledThread), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return;
        thread = new (memory) SampledThread;
    }
    const std::uint64_t ticks = Clock::now();
    {
        const ScopedLock lock(recorder_mutex);
        thread->id = Recorder::get().threads().note_thread(tid, name, ticks);
    }
    thread->seen_cpu = cpu;
    thread->sampled_cpu.store(is_new ? 0 : cpu,
                              std::memory_order_relaxed);  // a new one counts from its start
    thread->ran_until = ticks;
    thread->owed = 0;
    thread->wait_from = 0;
    thread->python_looks = 0;
    thread->is_pending.store(false, std::memory_order_relaxed);
    thread->python.store(nullptr, std::memory_order_relaxed);
    thread->begin.store(thread->end.load(std::memory_order_relaxed), std::memory_order_relaxed);
    thread->clock_fd.store(-1, std::memory_order_relaxed);
    if (thread->id == 0 || !publish_thread(thread, tid)) {
        spare_.push_back(thread);
        return;
    }
    threads_.push_back(thread);
    if (!has_clocks_ || signal_ == 0) return;
    const int fd = open_thread_clock(tid, signal_, 1'000'000'000u / rate_, thread->clock_id);
    thread->clock_fd.store(fd, std::memory_order_relaxed);
    if (fd < 0 && threads_.size() == 1) has_clocks_ = false;
}

void Sampler::remove_thread(std::size_t at) noexcept {
    SampledThread* const thread = threads_[at];
    const pid_t tid = thread->tid.load(std::memory_order_relaxed);
    close_thread_clock(thread->clock_fd.exchange(-1), thread->clock_id);
    end_wait(*thread, Clock::now());
    take_samples(*thread);
    std::uint64_t cpu = 0;
    const bool has_ended = !read_cpu(tid, cpu);
    withdraw_thread(thread);
    threads_.erase(threads_.begin() + static_cast<std::ptrdiff_t>(at));
    if (!has_ended) return;  // its handler may still be at work: the memory stays
    spare_.push_back(thread);
    const ScopedLock lock(recorder_mutex);
    Recorder::get().threads().forget_noted(tid);
}

// ---- into the log ----

void Sampler::take_samples(SampledThread& thread) noexcept {
    std::uint32_t at = thread.begin.load(std::memory_order_relaxed);
    const std::uint32_t end = thread.end.load(std::memory_order_acquire);
    for (; at != end; ++at) {
        const RawSample& sample = thread.samples[at % SampledThread::kSamples];
        put(thread.id, sample.ticks, sample.stack, std::min(sample.cpu_ns, kMaxDuration), sample.flags);
    }
    thread.begin.store(at, std::memory_order_release);
}

bool Sampler::put(std::uint32_t thread, std::uint64_t end, std::uint32_t stack, std::uint64_t weight,
                  std::uint32_t flags) noexcept {
    const bool is_put = with_owned_log(*log_, [&](ThreadState& state) {
        // Other threads' samples may be a little older than the first one of a chunk.
        constexpr std::uint64_t kOldest = 2'000'000'000;
        const std::uint64_t base = end - std::min(end, ticks_of(kOldest));
        if (!ensure_room(state, sizeof(detail::LongRecord) + detail::kRecordUnit, base)) return false;
        if (state.chunk_data != last_chunk_ || thread != last_thread_) {
            append_long(state, RecordKind::ThreadSwitch, 0)->word2 = thread;
            last_chunk_ = state.chunk_data;
            last_thread_ = thread;
        }
        const std::uint64_t delta = end - std::min(end, state.base_ticks);
        auto* const record = reinterpret_cast<detail::CompactRecord*>(state.cursor);
        record->word0 = static_cast<std::uint64_t>(RecordKind::Sample) | std::uint64_t{flags} << 8 |
                        delta << (64 - detail::kDeltaBits);
        record->word1 = stack | weight << detail::kSiteBits;
        state.cursor += detail::kRecordUnit;
        commit(state);
        return true;
    });
    if (!is_put) counts().lost.fetch_add(1, std::memory_order_relaxed);
    return is_put;
}

void Sampler::note_modules() {
    const std::shared_ptr<const LoadedModules> all = loaded_modules();
    if (all.get() == modules_) return;
    modules_ = all.get();
    for (const LoadedModule& module : all->modules) {
        if (!known_modules_.emplace(module.begin, module.path).second) continue;
        Recorder::get().journal().add_module(module.path, module.build_id, module.bias, module.begin,
                                             module.end);
    }
}

void Sampler::write_facts() noexcept {
    detail::SamplingRecord record{};
    record.clock = static_cast<std::uint32_t>(has_clocks_ ? detail::SamplingClock::PerfEvent
                                                          : detail::SamplingClock::CpuClock);
    record.rate = rate_;
    record.torn = counts().torn.load(std::memory_order_relaxed);
    record.cut = counts().cut.load(std::memory_order_relaxed);
    record.lost = counts().lost.load(std::memory_order_relaxed);
    const std::uint64_t written = record.torn + record.cut + record.lost;
    if (written == facts_written_) return;
    facts_written_ = written;
    const ScopedLock lock(recorder_mutex);
    Recorder::get().journal().write(JournalKind::Sampling, record);
}

}  // namespace marey::sampling
