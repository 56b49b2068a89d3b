// array_identity.h: telling arrays apart by their memory, as long as that is theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>

#include <marey/value.h>

namespace marey {

/// What names an array's memory: the number that its library gave it, or else the address.
struct StorageKey {
    std::uint64_t number = 0;
    bool is_address = false;

    static StorageKey of(const ArrayView& array) noexcept {
        if (array.storage_id != 0) return {array.storage_id, false};
        return {reinterpret_cast<std::uintptr_t>(array.storage), true};
    }
    /// False: nothing is known of where it lies.
    bool is_known() const noexcept { return number != 0; }
    friend bool operator==(const StorageKey&, const StorageKey&) = default;
};

struct StorageKeyHash {
    std::size_t operator()(const StorageKey& key) const noexcept {
        return std::hash<std::uint64_t>()(key.number * 2 + (key.is_address ? 1 : 0));
    }
};

/// Something known of each of the storages seen last. Not thread-safe.
template <class T>
class StorageMap {
  public:
    explicit StorageMap(std::size_t most) : most_(most) {}

    /// Null: not known, or forgotten.
    T* find(const StorageKey& key) {
        const auto at = map_.find(key);
        return at == map_.end() ? nullptr : &at->second.value;
    }
    /// The oldest goes where there are too many. Valid until the next set().
    T* set(const StorageKey& key, const T& value) {
        const auto [at, is_new] = map_.try_emplace(key, Known{value, next_turn_});
        if (!is_new) {
            at->second.value = value;
            return &at->second.value;
        }
        order_.push_back({key, next_turn_++});
        while (order_.size() > most_) {
            const auto oldest = map_.find(order_.front().key);
            if (oldest != map_.end() && oldest->second.turn == order_.front().turn) map_.erase(oldest);
            order_.pop_front();
        }
        return &at->second.value;
    }
    /// The memory was given back: what comes to lie there is another array. Its place in the order stays, so
    /// that this costs little.
    void forget(const StorageKey& key) { map_.erase(key); }
    void clear() {
        map_.clear();
        order_.clear();
    }
    std::size_t size() const noexcept { return map_.size(); }

  private:
    struct Known {
        T value;
        std::uint64_t turn;  ///< when it came
    };
    struct Place {
        StorageKey key;
        std::uint64_t turn;
    };
    std::size_t most_;
    std::uint64_t next_turn_ = 0;
    std::unordered_map<StorageKey, Known, StorageKeyHash> map_;
    std::deque<Place> order_;  ///< oldest first; those that were forgotten too
};

}  // namespace marey
