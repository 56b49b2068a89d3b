// address_cache.h: what is known of addresses: a number each, in sets of four, so that a few that fall
// together do not drive each other out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace marey {

/// From an address to a number and to an object that keeps the address from being reused. Never larger: a new
/// address takes the place of an old one where four have fallen together.
template <std::size_t kSets>
class AddressCache {
    static_assert(kSets > 1 && (kSets & (kSets - 1)) == 0);

  public:
    static constexpr std::size_t kWays = 4;
    struct Entry {
        const void* address = nullptr;
        std::uint32_t number = 0;
    };

    /// Null: it is not here.
    [[gnu::always_inline]] const Entry* find(const void* address) const noexcept {
        const Set& set = sets_[place(address)];
        if (set[0].address == address) [[likely]]
            return &set[0];
        return find_further(set, address);
    }
    /// Gives the object that was held with what had to make way, or null; it is the caller's to drop.
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
    /// Forgets what has an object held for it; `drop` is called with each, when its entry has gone.
    template <class Drop>
    void drop_held(Drop drop) noexcept {
        for (std::size_t at = 0; at < kSets; ++at) {
            for (std::size_t way = kWays; way-- != 0;) {
                void* const object = objects_[at][way];
                if (object == nullptr) continue;
                // Those that are there stand in front.
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
    /// All of it. No object may be held.
    void clear() noexcept {
        for (Set& set : sets_) set = {};
    }

  private:
    using Set = std::array<Entry, kWays>;
    // Neighbours 16 or 32 bytes apart fall into different sets, all of them.
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
    std::array<std::uint8_t, kSets> next_{};  ///< the way that makes way next
};

}  // namespace marey
