// call_stack.cpp: captured frames as the numbers that a log uses for them.
#include <marey/call_stack.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include <marey/detail/log_format.h>
#include <marey/detail/python_stacks.h>
#include <marey/detail/thread_safety.h>

#include "native/loaded_modules.h"
#include "record/journal_writer.h"
#include "record/python_stacks.h"
#include "record/recorder_parts.h"
#include "record/stack_numbers.h"
#include "record/thread_log.h"

namespace marey {
namespace {

/// Frame words by address, valid until the loader loads or unloads a library. Its lock is never waited for: a
/// thread that does not get it computes the word itself.
struct FrameWordCache {
    static constexpr std::size_t kMaxEntries = std::size_t{1} << 16;
    Mutex mutex;
    std::shared_ptr<const LoadedModules> modules MAREY_GUARDED_BY(mutex);
    std::unordered_map<std::uintptr_t, std::uint64_t> words MAREY_GUARDED_BY(mutex);
};

FrameWordCache& frame_word_cache() {
    static auto& only = *new FrameWordCache;
    return only;
}

std::uint32_t module_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> detail::kFrameModuleShift) % detail::kMaxModules;
}

std::uint64_t native_word(const LoadedModules& modules, std::uintptr_t address) {
    constexpr std::uint64_t kOffset = (std::uint64_t{1} << detail::kFrameModuleShift) - 1;
    const std::uintptr_t call = address - 1;  // a return address may be the first of another function
    const LoadedModule* const module = modules.find(call);
    std::uint32_t id = 0;
    if (module != nullptr) {
        const SlowPath path(kNoRecord);
        if (path) id = recorder_journal().intern_module(module->path, module->build_id, module->bias);
    }
    const std::uint64_t offset = id != 0 ? call - module->bias : call;
    return detail::kFrameNative | std::uint64_t{id} << detail::kFrameModuleShift | (offset & kOffset);
}

void native_words(Span<const std::uintptr_t> addresses, std::uint64_t* out) {
    const std::shared_ptr<const LoadedModules> modules = loaded_modules();
    FrameWordCache& known = frame_word_cache();
    if (!known.mutex.try_lock()) {
        for (std::size_t i = 0; i < addresses.size(); ++i) out[i] = native_word(*modules, addresses[i]);
        return;
    }
    const ScopedLock lock(known.mutex, std::adopt_lock);
    if (known.modules != modules || known.words.size() > FrameWordCache::kMaxEntries) {
        known.words.clear();
        known.modules = modules;
    }
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        const auto [at, fresh] = known.words.try_emplace(addresses[i], 0);
        if (fresh) at->second = native_word(*modules, addresses[i]);
        out[i] = at->second;
        if (module_of(out[i]) == 0) known.words.erase(at);  // there may be space for its module later
    }
}

}  // namespace

void CallStack::add_word(std::uint64_t word) noexcept {
    if (count_ < kMaxEntries)
        words_[count_++] = word;
    else
        is_cut_ = true;
}

void CallStack::add(const CapturedTraceback& traceback) noexcept {
    const std::size_t python_count = traceback.python_frames();
    const Span<const std::uintptr_t> all = traceback.addresses();
    const Span<const std::uintptr_t> addresses = all.first(std::min(all.size(), kMaxEntries));
    if (all.size() > kMaxEntries) is_cut_ = true;
    std::uint64_t natives[kMaxEntries];
    try {
        native_words(addresses, natives);
    } catch (const std::bad_alloc&) {
        for (std::size_t i = 0; i < addresses.size(); ++i) natives[i] = 0;
    }
    const detail::PythonFrame* const frames = python_count != 0 ? traceback.get()->python() : nullptr;
    const detail::PythonStacks* stacks = frames != nullptr ? python_stacks() : nullptr;
    int state = 0;
    if (stacks != nullptr && !stacks->enter(state)) stacks = nullptr;
    std::size_t next = 0;
    // The order of symbolize(): Python's frames before the native frame of the interpreter that runs them.
    const auto add_python = [&] {
        const bool fits = stacks != nullptr && count_ < kMaxEntries;
        const std::uint64_t word = fits ? stacks->frame_word(frames[next]) : 0;
        if (word != detail::kNoFrame) add_word(word);
        ++next;
    };
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        while (next < python_count && frames[next].place == i) add_python();
        add_word(natives[i]);
    }
    while (next < python_count && !is_cut_) add_python();
    if (stacks != nullptr) stacks->leave(state);
    number_ = stack_numbers().add({words_, count_});
    if (!stack_numbers().is_behind()) return;
    if (const SlowPath path(kNoRecord); path) {
        const ScopedLock lock(recorder_mutex);
        recorder_journal().mirror_stacks();
    }
}

CallStack::CallStack(const TracebackOptions& options) noexcept {
    // A thread that is already recording (in an allocator hook or a signal handler) has no stack to capture.
    if (detail::load_relaxed(detail::current_thread->busy) != 0) return;
    add(CapturedTraceback::adopt(detail::gather(options, 1)));
}

CallStack::CallStack(const CapturedTraceback& traceback) noexcept {
    add(traceback);
}

}  // namespace marey
