// lock_owners.h: which threads have locks of Python that others wait for.
#pragma once

#include <cstdint>
#include <vector>

#include "outside/python_stacks.h"

namespace marey {

/// Finds the owners of locks. An RLock names its owner. A Lock does not; but a thread within a `with` block
/// of it has what will release it on its value stack. A Lock that was acquired in another way has no known
/// owner.
class LockOwners {
  public:
    LockOwners(PythonReader& reader, const ProcessFiles& process) : reader_(reader), process_(process) {}

    /// Notes the locks in whose `with` blocks a thread is, and the one that it waits for: `lock_word` is the
    /// word in memory that it waits at; 0: it waits for none.
    void add(const PythonThread& thread, const PythonStack& stack, std::uintptr_t lock_word,
             const CopiedMemory& memory);
    /// The thread, by its native id, that has the lock that a thread waits for; 0: not known.
    std::uint64_t owner(std::uint64_t waiter) const;

  private:
    struct Use {
        std::uintptr_t lock;
        std::uint64_t thread;  ///< native id
    };
    /// The lock that a value is, or that it is a method of; 0: neither.
    std::uintptr_t lock_of(std::uintptr_t value) const;

    PythonReader& reader_;
    const ProcessFiles& process_;
    std::vector<Use> blocks_;
    std::vector<Use> waits_;
    std::vector<PythonThread> threads_;
};

}  // namespace marey
