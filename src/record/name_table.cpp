// name_table.cpp: interning, and the table that run-time names are looked up in without a lock.
#include "record/name_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <kymo/detail/log_format.h>

namespace kymo {
namespace {

constexpr std::uint64_t kSeed1 = 0x9e3779b97f4a7c15, kSeed2 = 0xd6e8feb86659fd93;

// Low halves of products only: the high half takes twice as long on many processors.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
    return (a ^ kSeed2) * kSeed1 ^ std::rotl((b ^ kSeed1) * kSeed2, 32);
}

std::uint64_t scramble(std::uint64_t word) noexcept {
    word ^= word >> 32;
    word *= kSeed2;
    return word ^ word >> 29;
}

std::uint64_t word_at(const char* text) noexcept {
    std::uint64_t word;
    std::memcpy(&word, text, sizeof word);
    return word;
}

// The words at the front and the words at the back, which overlap when the text is short: no tail to treat apart, and
// the same words in which copying routines write, so that a text just put together can be read without a stall.
[[gnu::always_inline]] inline std::uint64_t hash_inline(std::string_view text) noexcept {
    const char* const begin = text.data();
    const std::size_t length = text.size();
    const char* const end = begin + length;
    if (length < 8) {
        std::uint64_t word = 0;
        if (length != 0) std::memcpy(&word, begin, length);
        return scramble(mix(word, length));
    }
    if (length < 16) return scramble(mix(word_at(begin), word_at(end - 8)) + length);
    std::uint64_t hash = length;
    for (const char* at = begin + 16; at + 16 < end; at += 16) hash = scramble(hash + mix(word_at(at), word_at(at + 8)));
    return scramble(hash + mix(word_at(begin), word_at(begin + 8)) * kSeed1 + mix(word_at(end - 16), word_at(end - 8)));
}

template <class T>
void append(std::vector<std::byte>& stream, const T& record, std::string_view tail = {}) {
    const std::size_t at = stream.size();
    const std::size_t bytes = (sizeof record + tail.size() + 7) / 8 * 8;
    stream.resize(at + bytes);
    T head = record;
    head.head.bytes = static_cast<std::uint32_t>(bytes);
    std::memcpy(stream.data() + at, &head, sizeof head);
    if (!tail.empty()) std::memcpy(stream.data() + at + sizeof head, tail.data(), tail.size());
}

}  // namespace

std::uint64_t hash_text(std::string_view text) noexcept {
    return hash_inline(text);
}

std::size_t NameTable::SiteKeyHash::operator()(const SiteKey& key) const noexcept {
    return scramble(mix(std::uint64_t{key.name} << 32 | key.file, std::uint64_t{key.line} << 32 | key.scope));
}

NameTable::NameTable() {
    tables_.push_back(std::make_unique<Table>(1024));
    table_.store(tables_.back().get(), std::memory_order_release);
}

std::string_view NameTable::keep_text(std::string_view text) {
    if (text.size() > arena_left_) {
        const std::size_t size = std::max<std::size_t>(64 * 1024, text.size());
        arenas_.push_back(std::make_unique<char[]>(size));
        arena_next_ = arenas_.back().get();
        arena_left_ = size;
    }
    char* const place = arena_next_;
    std::memcpy(place, text.data(), text.size());
    arena_next_ += text.size();
    arena_left_ -= text.size();
    return {place, text.size()};
}

std::uint32_t NameTable::intern(std::string_view text) {
    text = text.substr(0, kMaxTextBytes);
    if (text.empty()) return 0;
    if (const auto found = strings_.find(text); found != strings_.end()) return found->second;
    if (stream_.size() + text.size() > kMaxNameBytes) return 0;
    const auto id = static_cast<std::uint32_t>(strings_.size() + 1);
    strings_.emplace(keep_text(text), id);
    detail::StringRecord record{};
    record.head.kind = static_cast<std::uint16_t>(detail::NameKind::String);
    record.id = id;
    record.length = static_cast<std::uint32_t>(text.size());
    append(stream_, record, text);
    return id;
}

std::uint32_t NameTable::intern_site(std::string_view name, std::string_view file, std::uint32_t line, Scope scope) {
    const SiteKey key{intern(name), intern(file), line, static_cast<std::uint32_t>(scope)};
    if (const auto found = sites_.find(key); found != sites_.end()) return found->second;
    if (sites_.size() + 1 >= detail::kMaxSites || (key.name == 0 && !name.empty())) return 0;
    const auto id = static_cast<std::uint32_t>(sites_.size() + 1);
    sites_.emplace(key, id);
    detail::SiteRecord record{};
    record.head.kind = static_cast<std::uint16_t>(detail::NameKind::Site);
    record.id = id;
    record.name = key.name;
    record.file = key.file;
    record.line = key.line;
    record.scope = key.scope;
    append(stream_, record);
    return id;
}

namespace {

// The scope is in the hash alone: two scopes move one text's hash by different amounts, so they never meet there.
// 0 is kept for empty slots.
std::uint64_t dynamic_hash(std::string_view name, Scope scope) noexcept {
    return (hash_inline(name) + static_cast<std::uint64_t>(scope) * kSeed1) | 1;
}

// By the same words as the hash: a call to memcmp costs more than the comparison.
bool is_equal(const char* a, const char* b, std::size_t length) noexcept {
    if (length < 16 || length > 32) return std::memcmp(a, b, length) == 0;
    const std::size_t last = length - 16;
    return ((word_at(a) ^ word_at(b)) | (word_at(a + 8) ^ word_at(b + 8)) |
            (word_at(a + last) ^ word_at(b + last)) | (word_at(a + last + 8) ^ word_at(b + last + 8))) == 0;
}

}  // namespace

void NameTable::insert(Table& table, std::uint64_t hash, const Slot& name) noexcept {
    std::size_t at = (hash >> 1) & table.mask;
    while (table.slots[at].hash.load(std::memory_order_relaxed) != 0) at = (at + 1) & table.mask;
    Slot& slot = table.slots[at];
    slot.text = name.text;
    slot.length = name.length;
    slot.site = name.site;
    slot.hash.store(hash, std::memory_order_release);
}

std::uint32_t NameTable::intern_dynamic(std::string_view name, Scope scope) {
    name = name.substr(0, kMaxTextBytes);
    if (const std::uint32_t known = find_dynamic(name, scope)) return known;
    const std::uint32_t site = intern_site(name, {}, 0, scope);
    if (site == 0) return 0;
    Table* table = table_.load(std::memory_order_relaxed);
    if ((dynamic_count_ + 1) * 2 > table->mask) {
        auto larger = std::make_unique<Table>((table->mask + 1) * 4);
        for (std::size_t i = 0; i <= table->mask; ++i) {
            const Slot& slot = table->slots[i];
            if (const std::uint64_t hash = slot.hash.load(std::memory_order_relaxed)) insert(*larger, hash, slot);
        }
        table = larger.get();
        tables_.push_back(std::move(larger));
        table_.store(table, std::memory_order_release);
    }
    Slot slot;
    slot.text = name.empty() ? "" : strings_.find(name)->first.data();
    slot.length = static_cast<std::uint32_t>(name.size());
    slot.site = site;
    insert(*table, dynamic_hash(name, scope), slot);
    ++dynamic_count_;
    return site;
}

std::uint32_t NameTable::find_dynamic(std::string_view name, Scope scope) const noexcept {
    if (name.size() > kMaxTextBytes) name = name.substr(0, kMaxTextBytes);
    const std::uint64_t hash = dynamic_hash(name, scope);
    const Table& table = *table_.load(std::memory_order_acquire);
    for (std::size_t at = (hash >> 1) & table.mask;; at = (at + 1) & table.mask) {
        const Slot& slot = table.slots[at];
        const std::uint64_t found = slot.hash.load(std::memory_order_acquire);
        if (found == hash && slot.length == name.size() && is_equal(slot.text, name.data(), name.size())) {
            return slot.site;
        }
        if (found == 0) return 0;
    }
}

}  // namespace kymo
