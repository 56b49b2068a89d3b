// tensor_objects.h: a unique number for each tensor, valid while a session needs it, although addresses are
// reused.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include <marey/detail/thread_safety.h>
#include <marey/value.h>

namespace marey::torch {

/// Holds weak references to the tensors that were seen, so that their addresses are not reused. References to
/// dead tensors are dropped whenever there are twice as many as were alive last time; a later tensor at such
/// an address gets another number. Elements are not kept alive.
class TensorObjects {
  public:
    /// ArrayView::object of a defined tensor; 0: out of memory. Usually without a lock.
    static std::uint64_t find(const at::TensorBase& tensor) noexcept {
        Table& table = *place().load(std::memory_order_acquire);
        const std::uintptr_t address = address_of(tensor);
        const std::uint64_t word = table.slots.load(std::memory_order_acquire)->at(address);
        return (word & kObjectAddress) == address ? word : table.learn(tensor);
    }
    /// Releases all references.
    static void clear() noexcept {
        Table& table = *place().load(std::memory_order_acquire);
        const ScopedLock lock(table.mutex);
        for (std::atomic<std::uint64_t>& slot : table.slots.load()->words)
            if (const std::uint64_t word = slot.exchange(0)) (void)reference_of(word);
        table.count = 0;
        ++table.life;  // tensors that are seen again get another number
    }
    /// For the child of a fork: the lock may be held by a thread that no longer exists.
    static void forked() noexcept MAREY_UNCHECKED_LOCKS {
        place().store(new Table(place().load()->life + 1));
    }

  private:
    using Reference = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
    static constexpr std::size_t kMinLimit = 1 << 10;

    static std::uintptr_t address_of(const at::TensorBase& tensor) noexcept {
        return reinterpret_cast<std::uintptr_t>(tensor.unsafeGetTensorImpl()) & kObjectAddress;
    }
    /// The reference that a word stands for.
    static Reference reference_of(std::uint64_t word) noexcept {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the word contains the address
        return Reference::reclaim(reinterpret_cast<c10::TensorImpl*>(word & kObjectAddress));
    }

    static bool is_alive(std::uint64_t word) noexcept {
        if (word == 0) return false;
        Reference reference = reference_of(word);
        const bool is_expired = reference.expired();
        (void)reference.release();
        return !is_expired;
    }

    /// Numbers by address; each stands for one reference. Read without a lock: whoever looks for a tensor has
    /// it alive, and a number with its address can only be its own, since that of an earlier tensor was
    /// removed before its reference was released.
    struct Slots {
        explicit Slots(std::size_t size) : words(size), shift(64 - std::countr_zero(size)) {}

        /// Where the number of this address is, or has its place.
        std::atomic<std::uint64_t>& at(std::uintptr_t address) noexcept {
            const std::uint64_t spread = (address >> 4) * 0x9e37'79b9'7f4a'7c15;
            for (std::size_t i = spread >> shift;; ++i) {
                std::atomic<std::uint64_t>& slot = words[i & (words.size() - 1)];
                const std::uint64_t word = slot.load(std::memory_order_relaxed);
                if (word == 0 || (word & kObjectAddress) == address) return slot;
            }
        }

        std::vector<std::atomic<std::uint64_t>> words;  ///< a power of two, at most half of them used
        int shift;
    };

    struct Table {
        explicit Table(std::uint64_t first) : life(first) { slots = &make(2 * kMinLimit); }

        [[gnu::noinline]] std::uint64_t learn(const at::TensorBase& tensor) noexcept {
            const std::uintptr_t address = address_of(tensor);
            if (address != reinterpret_cast<std::uintptr_t>(tensor.unsafeGetTensorImpl())) return 0;
            try {
                const ScopedLock lock(mutex);
                if (const std::uint64_t word = slots.load()->at(address)) return word;
                if (count == limit) drop_dead();
                (void)Reference(tensor.getIntrusivePtr()).release();
                ++count;
                return slots.load()->at(address) = life << 48 | address;
            } catch (const std::exception&) {
                return 0;
            }
        }
        void drop_dead() MAREY_REQUIRES(mutex) {
            Slots& before = *slots.load();
            const auto alive =
                static_cast<std::size_t>(std::count_if(before.words.begin(), before.words.end(), is_alive));
            const std::size_t new_limit = std::max(kMinLimit, 2 * alive);
            Slots& after = spare(2 * std::bit_ceil(new_limit));  // may throw
            limit = new_limit;
            count = alive;
            for (const std::uint64_t word : before.words)
                if (is_alive(word)) after.at(word & kObjectAddress) = word;
            slots = &after;
            ++life;
            for (const std::uint64_t word : before.words)
                if (word != 0 && after.at(word & kObjectAddress) == 0) (void)reference_of(word);
        }
        Slots& make(std::size_t size) MAREY_REQUIRES(mutex) {
            return *all.emplace_back(std::make_unique<Slots>(size));
        }
        /// Unused ones of this size. None are ever freed, since readers may still be in them.
        Slots& spare(std::size_t size) MAREY_REQUIRES(mutex) {
            for (const std::unique_ptr<Slots>& each : all) {
                if (each.get() == slots || each->words.size() != size) continue;
                std::fill(each->words.begin(), each->words.end(), 0);
                return *each;
            }
            return make(size);
        }

        Mutex mutex;
        std::vector<std::unique_ptr<Slots>> all MAREY_GUARDED_BY(mutex);
        std::atomic<Slots*> slots;  ///< written with the mutex
        std::size_t count MAREY_GUARDED_BY(mutex) = 0;
        std::size_t limit MAREY_GUARDED_BY(mutex) = kMinLimit;
        std::uint64_t life MAREY_GUARDED_BY(mutex);  ///< incremented whenever some are dropped
    };

    static std::atomic<Table*>& place() noexcept {
        static auto* const made = new std::atomic<Table*>(new Table(1));
        return *made;
    }
};

}  // namespace marey::torch
