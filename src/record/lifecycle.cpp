// lifecycle.cpp: loading the library, forking and ending the process.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <marey/nvtx.h>

#include "base/environment.h"
#include "record/control.h"
#include "record/devices/devices.h"
#include "record/nvtx_injection.h"
#include "record/process_identity.h"
#include "record/recorder.h"
#include "record/recorder_parts.h"
#include "record/source_writer.h"
#include "record/stack_numbers.h"
#include "record/thread_log.h"

/// Found by name in other copies of the library: the first copy to start becomes active, the others stay off.
struct MareyCopyMark {
    unsigned active;
};
/// This copy's own mark, under a separate name: in every copy the exported name leads to the first copy's
/// mark.
extern "C" __attribute__((visibility("hidden"))) MareyCopyMark marey_own_copy_mark;
MareyCopyMark marey_own_copy_mark = {0};
extern "C" __attribute__((visibility("default"), alias("marey_own_copy_mark"))) MareyCopyMark marey_copy_mark;

namespace marey {

namespace {

bool is_same_library(const void* one, const void* other) noexcept {
    Dl_info of_one{};
    Dl_info of_other{};
    return dladdr(one, &of_one) != 0 && dladdr(other, &of_other) != 0 &&
           of_one.dli_fbase == of_other.dli_fbase;
}

// Looks for an active copy of Marey in every loaded object.
int find_active_copy(dl_phdr_info* info, std::size_t, void* found) {
    void* const handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return 0;
    auto* const mark = static_cast<MareyCopyMark*>(dlsym(handle, "marey_copy_mark"));
    const bool is_active = mark != nullptr && mark != &marey_own_copy_mark && mark->active != 0;
    if (is_active) {
        *static_cast<bool*>(found) = true;
        void* const entry = dlsym(handle, "InitializeInjectionNvtx2");
        if (is_same_library(entry, mark)) entry_of_first_copy = reinterpret_cast<NvtxEntry>(entry);
    }
    dlclose(handle);
    return is_active ? 1 : 0;
}

/// Loaded by NVTX or CUDA, as marey run requests: the program's own copy records.
bool is_loaded_by_tool() {
    return nvtx::is_library(environment_text(kNvtxVariable)) ||
           nvtx::is_library(environment_text("CUDA_INJECTION64_PATH"));
}

bool is_started = false;

__attribute__((constructor)) void on_load() {
    bool other_copy = false;
    dl_iterate_phdr(find_active_copy, &other_copy);
    if (other_copy) {
        is_second_copy = true;
        Recorder::get().disable(
            is_loaded_by_tool()
                ? ""
                : "a second copy of Marey was loaded into this process; only the first one records");
        return;
    }
    marey_own_copy_mark.active = 1;
    is_started = true;
    // The first handler takes the locks that one of the others releases.
    pthread_atfork([]() MAREY_UNCHECKED_LOCKS { Recorder::get().before_fork(); },
                   []() MAREY_UNCHECKED_LOCKS { Recorder::get().after_fork_in_parent(); },
                   []() MAREY_UNCHECKED_LOCKS { Recorder::get().after_fork_in_child(); });
    // Handlers before a fork run in reverse order, those after it in this order: no lock is held.
    pthread_atfork([]() MAREY_UNCHECKED_LOCKS { control_before_fork(); },
                   []() MAREY_UNCHECKED_LOCKS { control_after_fork(false); },
                   []() MAREY_UNCHECKED_LOCKS { control_after_fork(true); });
    at_quick_exit([] { Recorder::get().finish_all(); });
    start_environment_session();
}

// Runs after the destructors of the program and of other libraries. Those of a library that has replaced
// functions such as stat may have run too.
__attribute__((destructor)) void on_exit() {
    if (!is_started) return;
    end_control();
    Recorder::get().finish_in_place();
}

}  // namespace

// The forking thread records nothing until the handlers have finished: in the child its log is still the
// parent's.
void Recorder::before_fork() noexcept {
    check_thread();
    source_mutex_.lock();
    recorder_mutex.lock();  // both until the handlers that come after the fork
    is_forking = true;
    background_.before_fork();
    forking_enabled_ = is_enabled();
    set_enabled(true);
    forking_thread_ = detail::current_thread;
    set_current_thread(&idle_thread);
    threads_.before_fork(forking_thread_);
    forking_entry_ = static_cast<const ThreadEntry*>(forking_thread_->owner);
    forking_observers_ = static_cast<ThreadObservers*>(forking_thread_->observers);
    identity_before_fork(forking_entry_ != nullptr ? forking_entry_->id : 0);
}

void Recorder::after_fork_in_parent() noexcept {
    threads_.after_fork_in_parent();
    background_.after_fork_in_parent();
    set_current_thread(forking_thread_);
    set_enabled(forking_enabled_);
    is_forking = false;
    recorder_mutex.unlock();
    source_mutex_.unlock();
}

void Recorder::after_fork_in_child(bool is_prepared) noexcept {
    background_.forked();
    identity_after_fork();
    restarting_ = false;
    restarted_.forked();
    // A process that has not recorded yet passes its request on to its own children.
    restart_environment_ = environment_session_ != 0 || restart_environment_;
    environment_session_ = 0;

    stack_numbers().forked();
    const std::shared_ptr<Spool> parent_spool = std::exchange(store_.spool, nullptr);
    store_.owner = 0;
    sessions_.forked();
    journal_.forked();
    observers_.keep_only(forking_observers_);
    set_current_thread(forking_entry_ != nullptr ? &idle_thread : forking_thread_);
    std::vector<std::shared_ptr<Spool>> parents = threads_.forked(forking_entry_, is_prepared);
    if (parent_spool) parents.push_back(parent_spool);
    if (is_prepared || ::syscall(SYS_gettid) == ::getpid()) {
        for (const auto& spool : parents) spool->abandon();
    } else {
        // The thread that was forked is another one. It may still look at its old state, which stays mapped.
        static std::vector<std::shared_ptr<Spool>>& mapped = *new std::vector<std::shared_ptr<Spool>>;
        mapped.insert(mapped.end(), parents.begin(), parents.end());
    }
    rearm();
    set_enabled(forking_enabled_);
    detail::store_release(*process_mark, kOwnProcess);
    is_forking = false;
    recorder_mutex.unlock();
    for (const auto& source : sources_) source->forked();
    source_mutex_.unlock();
}

// The parent's other threads do not exist here. One that was inside the recorder left it in an unknown state:
// then this process gets a recorder that records nothing.
void Recorder::leave_parent() noexcept {
    if (!source_mutex_.take_in_child() || !recorder_mutex.take_in_child()) {
        recorder_mutex.free_in_child();
        set_current_thread(&idle_thread);
        if (switched_off != nullptr) switched_off = &idle_thread;
        if (detail::load_relaxed(unregistered_thread.armed) != 0)
            warn(
                "not recording this process: it was made without fork handlers (_Fork, clone) while a thread "
                "of its "
                "parent was inside the recorder");
        set_armed(unregistered_thread, 0);
        auto* const other = new (std::nothrow) Recorder(false);
        if (other != nullptr) instance_.store(other, std::memory_order_release);
        return;
    }
    forking_enabled_ = is_enabled();
    const bool is_idle = calling_thread() == &idle_thread;
    set_current_thread(&idle_thread);
    forking_entry_ = threads_.own_entry();
    forking_thread_ = is_idle ? &idle_thread : &unregistered_thread;  // if it has no entry
    forking_observers_ = forking_entry_ != nullptr ? forking_entry_->observers() : nullptr;
    set_fork(forking_entry_ != nullptr ? forking_entry_->id : 0);
    after_fork_in_child(false);
}

void leave_parent() noexcept {
    if (is_forking) return;
    std::uint32_t found = 0;
    if (!__atomic_compare_exchange_n(process_mark, &found, kLeavesParent, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_ACQUIRE)) {
        while (detail::load_acquire(*process_mark) == kLeavesParent) std::this_thread::yield();
        return;
    }
    is_forking = true;
    seen_left_parents = left_parents + 1;
    detail::store_relaxed(left_parents, seen_left_parents);
    Recorder::get().leave_parent();
    is_forking = false;
    detail::store_release(*process_mark, kOwnProcess);
}

}  // namespace marey

/// CUDA's driver calls this in the library that CUDA_INJECTION64_PATH names, when a program initialises it.
/// The library has been loaded by then, and records if the variable MAREY requests it. Returns 1 for success.
extern "C" MAREY_API int InitializeInjection() {
    marey::attach_thread();  // a forked child starts to record here, if it has not before
    marey::device_begins("cuda");
    return 1;
}
