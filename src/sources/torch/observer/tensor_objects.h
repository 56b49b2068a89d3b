// tensor_objects.h: a word for each tensor, which no other tensor has while anybody asks, though addresses
// are used again.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include <marey/value.h>

namespace marey::torch {

/// Weak references to the tensors that were seen: their addresses are not given to others until then. Those
/// of the dead are dropped whenever there are twice as many as lived last time; whoever is at such an address
/// later has another word. Elements are not kept alive.
class TensorObjects {
  public:
    /// ArrayView::object of a tensor that is defined; 0: there was no memory. Usually without a lock.
    static std::uint64_t find(const at::TensorBase& tensor) noexcept {
        const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
        Table& table = *place().load(std::memory_order_acquire);
        Known* const known = thread_cache();
        if (known == nullptr) return 0;
        const std::uint64_t life = table.life.load(std::memory_order_acquire);
        if (known->life != life) {  // addresses may have been used again since
            known->objects = {};
            known->life = life;
        }
        Known::Object& slot = known->objects[reinterpret_cast<std::uintptr_t>(impl) / 64 % kKnown];
        if (slot.impl == impl) [[likely]]
            return slot.word;
        const std::uint64_t word = table.learn(tensor);
        if (word != 0) slot = {impl, word};
        return word;
    }
    /// Lets go of all.
    static void clear() noexcept {
        Table& table = *place().load(std::memory_order_acquire);
        decltype(table.objects) dropped;
        const std::lock_guard lock(table.mutex);
        table.objects.swap(dropped);  // those that are seen again get another word
        table.limit = kMinEntries;
        ++table.life;
    }
    /// In the child of a fork: the lock may be held by a thread that is not there.
    static void forked() noexcept {
        const std::uint64_t life = place().load()->life.load() + 1;
        place().store(new Table{life});
    }

  private:
    static constexpr std::size_t kKnown = 256;  // of each thread
    static constexpr std::size_t kMinEntries = 1 << 14;

    struct Known {
        struct Object {
            const c10::TensorImpl* impl;
            std::uint64_t word;
        };
        std::uint64_t life = 0;
        std::array<Object, kKnown> objects{};
    };
    struct Object {
        c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> reference;
        std::uint64_t word;
    };
    struct Table {
        explicit Table(std::uint64_t first) : life(first) {}

        [[gnu::noinline]] std::uint64_t learn(const at::TensorBase& tensor) noexcept {
            try {
                const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
                const std::lock_guard lock(mutex);
                if (const auto found = objects.find(impl); found != objects.end()) return found->second.word;
                if (objects.size() >= limit) drop_dead();
                const std::uint64_t word =
                    life.load() << 48 | (reinterpret_cast<std::uintptr_t>(impl) & kObjectAddress);
                objects.emplace(impl, Object{decltype(Object::reference)(tensor.getIntrusivePtr()), word});
                return word;
            } catch (const std::exception&) {
                return 0;
            }
        }
        void drop_dead() {
            ++life;
            std::erase_if(objects, [](const auto& entry) { return entry.second.reference.expired(); });
            limit = std::max(kMinEntries, 2 * objects.size());
        }

        std::mutex mutex;  ///< guards the others
        std::unordered_map<const c10::TensorImpl*, Object> objects;
        std::size_t limit = kMinEntries;
        std::atomic<std::uint64_t> life;  ///< counts up whenever some are dropped; read without the lock
    };

    /// What the calling thread knows; on the heap, since a library that is loaded late has little room for
    /// threads' own variables.
    static Known* thread_cache() noexcept {
        static constinit thread_local Known* known = nullptr;
        if (known == nullptr) [[unlikely]] {
            struct Owner {
                ~Owner() { delete std::exchange(known, nullptr); }
            };
            static thread_local Owner owner;
            (void)owner;
            known = new (std::nothrow) Known;
        }
        return known;
    }

    static std::atomic<Table*>& place() noexcept {
        static auto* const made = new std::atomic<Table*>(new Table(1));
        return *made;
    }
};

}  // namespace marey::torch
