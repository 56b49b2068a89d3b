// address_cache.h: a cache from addresses to numbers, in sets of four, so that a few colliding addresses do
// not evict each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace marey {

/// Maps an address to a number and to an object that keeps the address from being reused. Has a fixed size: a
/// new address replaces an old one where four have collided.
template <std::size_t kSets>
class AddressCache {
    static_assert(kSets > 1 && (kSets & (kSets - 1)) == 0);

  public:
    static constexpr std::size_t kWays = 4;
    struct Entry {
        const void* address = nullptr;
        std::uint32_t number = 0;
    };

    /// Null: not found.
    [[gnu::always_inline]] const Entry* find(const void* address) const noexcept {
        const Set& set = sets_[place(address)];
        if (set[0].address == address) [[likely]]
            return &set[0];
        return find_further(set, address);
    }
    /// Returns the object that was held with the evicted entry, or null; the caller drops it.
    [[nodiscard]] void* put(const void* address, std::uint32_t number, void* object) noexcept {
        const std::size_t at = place(address);
        Set& set = sets_[at];
        std::size_t way = 0;
        while (way < kWays && set[way].address != address && set[way].address != nullptr) ++way;
        if (way == kWays) way = next_[at]++ % kWays;
        set[way] = {address, number};
        void* const before = objects_[at][way];
        objects_[at][way] = object;
        return before;
    }
    /// Removes the entries that hold an object; `drop` is called with each object after its entry is gone.
    void drop_held(auto drop) noexcept {
        for (std::size_t at = 0; at < kSets; ++at) {
            for (std::size_t way = kWays; way-- != 0;) {
                void* const object = objects_[at][way];
                if (object == nullptr) continue;
                // Used entries come first.
                std::size_t last = kWays;
                while (sets_[at][last - 1].address == nullptr) --last;
                sets_[at][way] = sets_[at][last - 1];
                objects_[at][way] = objects_[at][last - 1];
                sets_[at][last - 1] = {};
                objects_[at][last - 1] = nullptr;
                drop(object);
            }
        }
    }
    /// Removes everything. No object may be held.
    void clear() noexcept {
        for (Set& set : sets_) set = {};
    }

  private:
    using Set = std::array<Entry, kWays>;
    // Neighbours 16 or 32 bytes apart map to different sets, all of them.
    static std::size_t place(const void* address) noexcept {
        const auto number = reinterpret_cast<std::uintptr_t>(address);
        return (number >> 4 ^ number >> 5) % kSets;
    }
    [[gnu::noinline]] static const Entry* find_further(const Set& set, const void* address) noexcept {
        for (std::size_t way = 1; way < kWays; ++way) {
            if (set[way].address == address) return &set[way];
        }
        return nullptr;
    }

    alignas(64) std::array<Set, kSets> sets_{};
    std::array<std::array<void*, kWays>, kSets> objects_{};
    std::array<std::uint8_t, kSets> next_{};  ///< the way to replace next
};

}  // namespace marey
