// string_pool.cpp: a hash table of ids into the list of strings.
#include "trace/string_pool.h"

#include "base/text_hash.h"

namespace marey {
namespace {

constexpr std::size_t kMinEntries = 64;

std::uint32_t short_hash(std::string_view text) {
    const std::uint64_t hash = hash_text(text);
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace

StringPool::StringPool(std::vector<std::string>& strings)
    : strings_(strings), slots_(kMinEntries, Slot{0, kFree}) {
    for (StringId id = 0; id < strings.size(); ++id) {
        const std::uint32_t hash = short_hash(strings[id]);
        if (find(hash, strings[id]) == kFree) insert(hash, id);
    }
}

StringId StringPool::find(std::uint32_t hash, std::string_view text) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = hash & mask; slots_[i].id != kFree; i = (i + 1) & mask) {
        if (slots_[i].hash == hash && strings_[slots_[i].id] == text) return slots_[i].id;
    }
    return kFree;
}

StringId StringPool::intern(std::string_view text) {
    const std::uint32_t hash = short_hash(text);
    if (const StringId known = find(hash, text); known != kFree) return known;
    const auto id = static_cast<StringId>(strings_.size());
    strings_.emplace_back(text);
    insert(hash, id);
    return id;
}

void StringPool::insert(std::uint32_t hash, StringId id) {
    if (2 * (taken_ + 1) > slots_.size()) grow();
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash & mask;
    while (slots_[i].id != kFree) i = (i + 1) & mask;
    slots_[i] = {hash, id};
    ++taken_;
}

void StringPool::grow() {
    std::vector<Slot> old(2 * slots_.size(), Slot{0, kFree});
    old.swap(slots_);
    taken_ = 0;
    for (const Slot& slot : old) {
        if (slot.id != kFree) insert(slot.hash, slot.id);
    }
}

}  // namespace marey
