// tensor_objects.h: a unique number for each tensor, valid while a session needs it, although addresses are
// reused.
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

/// Holds weak references to the tensors that were seen, so that their addresses are not reused. References to
/// dead tensors are dropped whenever there are twice as many as were alive last time; a later tensor at such
/// an address gets another number. Elements are not kept alive.
class TensorObjects {
  public:
    /// ArrayView::object of a defined tensor; 0: out of memory. Usually without a lock.
    static std::uint64_t find(const at::TensorBase& tensor) noexcept {
        const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
        Table& table = *place().load(std::memory_order_acquire);
        Known* const known = thread_cache();
        if (known == nullptr) return 0;
        const std::uint64_t life = table.life.load(std::memory_order_acquire);
        if (known->life != life) {  // addresses may have been reused since
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
    /// Releases all references.
    static void clear() noexcept {
        Table& table = *place().load(std::memory_order_acquire);
        decltype(table.objects) dropped;
        const std::lock_guard lock(table.mutex);
        table.objects.swap(dropped);  // tensors that are seen again get another number
        table.limit = kMinEntries;
        ++table.life;
    }
    /// For the child of a fork: the lock may be held by a thread that no longer exists.
    static void forked() noexcept {
        const std::uint64_t life = place().load()->life.load() + 1;
        place().store(new Table{life});
    }

  private:
    static constexpr std::size_t kKnown = 256;  // per thread
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

        std::mutex mutex;  ///< guards the other members
        std::unordered_map<const c10::TensorImpl*, Object> objects;
        std::size_t limit = kMinEntries;
        std::atomic<std::uint64_t> life;  ///< incremented whenever some are dropped; read without the lock
    };

    /// The cache of the calling thread; on the heap, since a library that is loaded late has little space for
    /// thread-local variables.
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
