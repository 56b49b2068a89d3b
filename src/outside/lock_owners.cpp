// lock_owners.cpp: which threads have locks of Python that others wait for.
#include "outside/lock_owners.h"

#include <algorithm>

namespace marey {
namespace {

// The same in all supported versions: the object of a method, and in a lock what a thread waits at
// (until 3.13 a pointer to it), and in an RLock the thread that has it.
constexpr std::uintptr_t kMethodObject = 24, kLockWord = 16, kLockThread = 24;
constexpr std::uint32_t kParkingLot = 0x030e0000;  // since then threads wait on their own stacks

}  // namespace

std::uintptr_t LockOwners::lock_of(std::uintptr_t value) const {
    std::string type = value != 0 ? reader_.type_name(value) : "";
    if (type == "builtin_function_or_method") {
        value = process_.read<std::uintptr_t>(value + kMethodObject).value_or(0);
        type = value != 0 ? reader_.type_name(value) : "";
    }
    return type == "_thread.lock" || type == "_thread.RLock" ? value : 0;
}

void LockOwners::add(const PythonThread& thread, const PythonStack& stack, std::uintptr_t lock_word,
                     const CopiedMemory& memory) {
    threads_.push_back(thread);
    std::uintptr_t wanted = 0;
    if (lock_word != 0 && !stack.calls.empty()) {
        for (const std::uintptr_t value : reader_.stack_values(stack.calls.front(), memory)) {
            const std::uintptr_t lock = lock_of(value);
            const bool is_it = reader_.layout().version >= kParkingLot ||
                               process_.read<std::uintptr_t>(lock + kLockWord) == lock_word;
            if (lock != 0 && is_it) wanted = lock;
        }
    }
    if (wanted != 0) waits_.push_back({wanted, thread.native_id});
    for (const PythonCall& call : stack.calls) {
        for (const std::uintptr_t value : reader_.kept_values(call, memory)) {
            if (const std::uintptr_t lock = lock_of(value); lock != 0)
                blocks_.push_back({lock, thread.native_id});
        }
    }
}

std::uint64_t LockOwners::owner(std::uint64_t waiter) const {
    const auto wait = std::ranges::find(waits_, waiter, &Use::thread);
    if (wait == waits_.end()) return 0;
    if (reader_.type_name(wait->lock) == "_thread.RLock") {
        const auto thread = process_.read<std::uint64_t>(wait->lock + kLockThread);
        const auto found = std::ranges::find(threads_, thread.value_or(0), &PythonThread::thread_id);
        return found != threads_.end() ? found->native_id : 0;
    }
    // A thread in Condition.wait() has released the lock in whose block it is, so there may be several.
    std::uint64_t owner = 0;
    for (const Use& block : blocks_) {
        if (block.lock != wait->lock || block.thread == owner) continue;
        if (owner != 0) return 0;
        owner = block.thread;
    }
    return owner;
}

}  // namespace marey
