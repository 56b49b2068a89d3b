// lifecycle.cpp: loading the library, forking and ending the process.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include <marey/nvtx.h>

#include "base/environment.h"
#include "record/devices.h"
#include "record/nvtx_injection.h"
#include "record/recorder.h"
#include "record/source_writer.h"
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

using detail::ThreadState;

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
    pthread_atfork([] { Recorder::get().before_fork(); }, [] { Recorder::get().after_fork_in_parent(); },
                   [] { Recorder::get().after_fork_in_child(); });
    at_quick_exit([] { Recorder::get().finish_all(); });
    start_environment_session();
}

// Runs after the destructors of the program and of other libraries. Those of a library that has replaced
// functions such as stat may have run too.
__attribute__((destructor)) void on_exit() {
    if (is_started) Recorder::get().finish_in_place();
}

}  // namespace

// The forking thread records nothing until the handlers have finished: in the child its log is still the
// parent's.
void Recorder::before_fork() noexcept {
    source_mutex_.lock();
    std::unique_lock lock(mutex_);
    stop_background(lock);
    lock.release();  // until the handlers that come after the fork
    forking_enabled_ = is_enabled();
    set_enabled(true);
    forking_thread_ = detail::current_thread;
    detail::current_thread = &idle_thread;
    for (const auto& each : threads_) {
        const ThreadEntry& entry = *each;
        if (!entry.spool) continue;
        if (entry.is_thread) {
            if (entry.state == forking_thread_) copy_for_child(entry);
        } else if (const std::unique_lock log(each->log_lock, std::try_to_lock); log.owns_lock()) {
            copy_for_child(entry);
        }
    }
}

// Where there is no memory for a copy, the child uses the parent's state as it is by then.
void Recorder::copy_for_child(const ThreadEntry& entry) noexcept {
    const auto copy = [this](const void* place, std::size_t bytes) {
        fork_copies_.push_back({place, std::make_unique_for_overwrite<std::byte[]>(bytes)});
        std::memcpy(fork_copies_.back().bytes.get(), place, bytes);
    };
    try {
        const auto copy_block = [&copy](const Block* block) {
            copy(block->header, sizeof(detail::BlockHeader) + block->capacity());
        };
        copy_block(entry.state_block);
        for (const Block* segment : entry.open_segments) copy_block(segment);
        if (entry.side_segment != nullptr) copy_block(entry.side_segment);
    } catch (const std::bad_alloc&) {
    }
}

const void* Recorder::as_forked(const void* place) const noexcept {
    for (const ForkCopy& copy : fork_copies_) {
        if (copy.place == place) return copy.bytes.get();
    }
    return place;
}

void Recorder::after_fork_in_parent() noexcept {
    fork_copies_.clear();
    detail::current_thread = forking_thread_;
    set_enabled(forking_enabled_);
    mutex_.unlock();
    source_mutex_.unlock();
}

void Recorder::after_fork_in_child() noexcept {
    const auto& parent_state = *static_cast<const ThreadState*>(as_forked(forking_thread_));
    auto* const own = static_cast<ThreadEntry*>(parent_state.owner);
    ++fork_generation_;
    background_runs_ = false;
    background_idles_ = false;
    extending_ = false;
    restarting_ = false;
    wakes_.emplace_front();
    // A process that has not recorded yet passes its request on to its own children.
    const bool had_environment_session = environment_session_ != 0 || restart_environment_;
    environment_session_ = 0;

    // The parent's chunks in plain memory are ours now (copies); those in its file are not.
    const std::shared_ptr<Spool> parent_spool = std::move(spool_);
    spool_.reset();
    spool_owner_ = 0;
    names_in_spool_ = 0;
    std::vector<Block*> chunks;
    for (const auto& session : sessions_) {
        if (session->tasks != nullptr) session->tasks->is_closed.store(true, std::memory_order_relaxed);
        for (Block* chunk : session->chunks) {
            if (chunk->store != &memory_) continue;
            chunk->is_open = false;
            chunk->claims = 1;
            chunks.push_back(chunk);
        }
    }
    sessions_.clear();
    leftover_chunks_.clear();
    overwritten_.clear();
    journal_.clear();
    noted_.clear();
    absent_.clear();
    std::sort(chunks.begin(), chunks.end());
    chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());

    // Only the forking thread continues, with the ranges that it had open; every session of the child shows
    // them as begun before it (a flag in the slots would prevent closing them inline). Logs that are not
    // threads continue too. They all get new states.
    std::vector<std::unique_ptr<ThreadEntry>> kept;
    std::vector<std::shared_ptr<Spool>> parent_spools{parent_spool};
    for (auto& entry : threads_) {
        if (entry->spool) parent_spools.push_back(entry->spool);
        if (entry->chunk_spool) parent_spools.push_back(std::move(entry->chunk_spool));
        entry->chunk = nullptr;
        entry->last_full = nullptr;
        if (entry.get() == own || !entry->is_thread) {
            kept.push_back(std::move(entry));
        } else if (entry->state_block->store == &memory_) {
            memory_.free_block(entry->state_block);
            for (Block* segment : entry->open_segments) memory_.free_block(segment);
            if (entry->side_segment != nullptr) memory_.free_block(entry->side_segment);
        }
    }
    threads_.clear();
    observers_.keep_only(static_cast<ThreadObservers*>(parent_state.observers));
    for (Block* chunk : chunks) release_chunk(chunk);
    detail::current_thread = own != nullptr ? &idle_thread : forking_thread_;
    for (auto& each : kept) {
        ThreadEntry& entry = *each;
        std::vector<Block*> left;  // the parent's blocks: neither returned nor written to
        if (entry.spool && !copy_to_current_store(entry, left)) continue;
        entry.in_journal = false;
        entry.chunks_taken = 0;
        entry.state->cursor = entry.state->limit = nullptr;
        entry.state->context = 0;
        entry.sessions = nullptr;  // its slots stay
        entry.has_marks = false;
        if (entry.is_thread) {
            entry.os_tid = gettid();
            detail::current_thread = entry.state;
        } else {
            std::construct_at(&entry.log_lock);  // a thread that the child does not have may have held it
        }
        threads_.push_back(std::move(each));
    }
    for (const auto& spool : parent_spools) {
        if (spool) spool->abandon();
    }
    fork_copies_.clear();
    restart_environment_ = had_environment_session;
    rearm();
    set_enabled(forking_enabled_);
    mutex_.unlock();
    for (const auto& source : sources_) source->forked();
    source_mutex_.unlock();
}

}  // namespace marey

/// CUDA's driver calls this in the library that CUDA_INJECTION64_PATH names, when a program initialises it.
/// The library has been loaded by then, and records if the variable MAREY requests it. Returns 1 for success.
extern "C" MAREY_API int InitializeInjection() {
    marey::attach_thread();  // a forked child starts to record here, if it has not before
    marey::device_begins("cuda");
    return 1;
}
