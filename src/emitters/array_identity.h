// array_identity.h: identifies arrays by their memory until it is freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>

#include <marey/value.h>

namespace marey {

/// Identifies an array's memory: by the number that its library assigned, or else by the address.
struct StorageKey {
    std::uint64_t number = 0;
    bool is_address = false;

    static StorageKey of(const ArrayView& array) noexcept {
        if (array.storage_id != 0) return {array.storage_id, false};
        return {reinterpret_cast<std::uintptr_t>(array.storage), true};
    }
    /// False: the storage is unknown.
    bool is_known() const noexcept { return number != 0; }
    friend bool operator==(const StorageKey&, const StorageKey&) = default;
};

struct StorageKeyHash {
    std::size_t operator()(const StorageKey& key) const noexcept {
        return std::hash<std::uint64_t>()(key.number * 2 + (key.is_address ? 1 : 0));
    }
};

/// Maps recently used storages to a value. Not thread-safe.
template <class T>
class StorageMap {
  public:
    explicit StorageMap(std::size_t most) : most_(most) {}

    /// Null: unknown or forgotten.
    T* find(const StorageKey& key) {
        const auto at = map_.find(key);
        return at == map_.end() ? nullptr : &at->second.value;
    }
    /// Removes the oldest entry if there are too many. The result is valid until the next set().
    T* set(const StorageKey& key, const T& value) {
        const auto [at, is_new] = map_.try_emplace(key, DatedValue{value, next_turn_});
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
    /// The memory was freed: the next array at this address is a different one. The entry's place in the
    /// order stays, which makes this cheap.
    void forget(const StorageKey& key) { map_.erase(key); }
    void clear() {
        map_.clear();
        order_.clear();
    }
    std::size_t size() const noexcept { return map_.size(); }

  private:
    struct DatedValue {
        T value;
        std::uint64_t turn;  ///< when it was added
    };
    struct Place {
        StorageKey key;
        std::uint64_t turn;
    };
    std::size_t most_;
    std::uint64_t next_turn_ = 0;
    std::unordered_map<StorageKey, DatedValue, StorageKeyHash> map_;
    std::deque<Place> order_;  ///< oldest first; includes forgotten entries
};

}  // namespace marey
