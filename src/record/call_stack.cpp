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
    if (count_ < kMaxEntries) words_[count_++] = word;
}

void CallStack::add(const CapturedTraceback& traceback) noexcept {
    const std::size_t python_count = traceback.python_frames();
    const Span<const std::uintptr_t> addresses = traceback.addresses();
    const std::size_t total = python_count + addresses.size();
    is_cut_ = total > kMaxEntries;
    constexpr std::size_t kOutermost = kMaxEntries / 2;
    const std::size_t left_out_from = is_cut_ ? kMaxEntries - kOutermost - 1 : total;
    const std::size_t left_out_to = is_cut_ ? total - kOutermost : total;

    const detail::PythonFrame* const frames = python_count != 0 ? traceback.get()->python() : nullptr;
    const detail::PythonStacks* stacks = frames != nullptr ? python_stacks() : nullptr;
    int state = 0;
    if (stacks != nullptr && !stacks->enter(state)) stacks = nullptr;
    std::size_t place = 0;  // among all frames
    const auto add_next = [&](auto word_of) {
        if (place < left_out_from || place >= left_out_to)
            word_of();
        else if (place == left_out_from)
            add_word(detail::kFramesLeftOut);
        ++place;
    };
    std::size_t next = 0;
    // The order of symbolize(): Python's frames before the native frame of the interpreter that runs them.
    const auto add_python = [&] {
        add_next([&] {
            const std::uint64_t word = stacks != nullptr ? stacks->frame_word(frames[next]) : 0;
            if (word != detail::kNoFrame) add_word(word);
        });
        ++next;
    };
    std::uint64_t words[64];
    std::size_t words_end = 0;
    const auto native_word_of = [&](std::size_t i) {
        const std::size_t first = i - i % std::size(words);
        if (words_end <= i) {
            const std::size_t count = std::min(addresses.size() - first, std::size(words));
            try {
                native_words(Span<const std::uintptr_t>(addresses.data() + first, count), words);
            } catch (const std::bad_alloc&) {
                std::fill_n(words, count, 0);
            }
            words_end = first + count;
        }
        return words[i - first];
    };
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        while (next < python_count && frames[next].place == i) add_python();
        add_next([&] { add_word(native_word_of(i)); });
    }
    while (next < python_count) add_python();
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
