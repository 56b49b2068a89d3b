// name_table.cpp: interning, and the lock-free table of run-time names.
#include "record/name_table.h"

#include <algorithm>
#include <cstring>

#include <marey/detail/log_format.h>

namespace marey {
namespace {

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

TextWords words_of_short(std::string_view text) noexcept {
    TextWords result{};
    if (!text.empty()) std::memcpy(result.words, text.data(), text.size());
    return result;
}

bool NameTable::is_same_long(const char* text, std::string_view name) noexcept {
    return std::memcmp(text, name.data(), name.size()) == 0;
}

std::size_t NameTable::SiteKeyHash::operator()(const SiteKey& key) const noexcept {
    const TextWords words{{key.name | std::uint64_t{key.category} << 32, key.file, key.line, key.scope}};
    return hash_text({}, words);
}

NameTable::NameTable() {
    make_table(12);
}

// Contains everything interned so far.
void NameTable::make_table(unsigned log2_size) {
    tables_.push_back(std::make_unique<Line[]>((std::size_t{1} << log2_size) / std::size(Line{}.slots)));
    const std::uintptr_t word = reinterpret_cast<std::uintptr_t>(tables_.back().get()) | log2_size;
    for (const DynamicName& known : dynamic_) insert(Table(word), &known);
    table_.store(word, std::memory_order_release);
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
    texts_.set(id, &strings_.emplace(keep_text(text), id).first->first);
    detail::StringRecord record{};
    record.head.kind = static_cast<std::uint16_t>(detail::NameKind::String);
    record.id = id;
    record.length = static_cast<std::uint32_t>(text.size());
    append(stream_, record, text);
    return id;
}

std::uint32_t NameTable::intern_site(std::string_view name, std::string_view file, std::uint32_t line,
                                     Scope scope, std::uint32_t flags, std::uint32_t category) {
    const SiteKey key{intern(name), intern(file), line, static_cast<std::uint32_t>(scope) | flags << 8,
                      category};
    if (const auto found = sites_.find(key); found != sites_.end()) return found->second;
    if (sites_.size() + 1 >= detail::kMaxSites || (key.name == 0 && !name.empty())) return 0;
    const auto id = static_cast<std::uint32_t>(sites_.size() + 1);
    sites_.emplace(key, id);
    facts_.push_back({texts_.get(key.name), scope, key.name});
    site_facts_.set(id, &facts_.back());
    detail::SiteRecord record{};
    record.head.kind = static_cast<std::uint16_t>(detail::NameKind::Site);
    record.id = id;
    record.name = key.name;
    record.file = key.file;
    record.line = key.line;
    record.scope = static_cast<std::uint32_t>(scope);
    record.flags = flags;
    const detail::SiteCategory tail{category, 0};
    append(stream_, record,
           {reinterpret_cast<const char*>(&tail), category != 0 ? sizeof tail : std::size_t{0}});
    return id;
}

std::uint32_t NameTable::intern_module(std::string_view path, std::string_view build_id, std::uint64_t bias) {
    const std::uint32_t path_id = intern(path);
    const std::uint32_t build = intern(build_id);
    if (const auto found = modules_.find({path_id, build, bias}); found != modules_.end())
        return found->second;
    if (modules_.size() + 1 >= detail::kMaxModules || (path_id == 0 && !path.empty())) return 0;
    detail::ModuleRecord record{};
    record.head.kind = static_cast<std::uint16_t>(detail::NameKind::Module);
    record.id = static_cast<std::uint32_t>(modules_.size() + 1);
    record.path = path_id;
    record.build_id = build;
    record.bias = bias;
    modules_.emplace(std::tuple(path_id, build, bias), record.id);
    append(stream_, record);
    return record.id;
}

void NameTable::insert(const Table& table, const DynamicName* name) noexcept {
    std::size_t at = name->hash & table.mask;
    while (table.slots[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & table.mask;
    table.slots[at].store(name, std::memory_order_release);
}

std::uint32_t NameTable::intern_dynamic(std::string_view name, Scope scope, std::uint32_t category) {
    name = name.substr(0, kMaxTextBytes);
    if (const std::uint32_t known = find_dynamic(name, scope, category)) return known;
    const std::uint32_t site = intern_site(name, {}, 0, scope, 0, category);
    if (site == 0) return 0;
    const TextWords ends = words_of(name);
    dynamic_.push_back({dynamic_hash(name, ends, scope, category), ends,
                        static_cast<std::uint32_t>(name.size()), site,
                        name.empty() ? "" : strings_.find(name)->first.data()});
    const std::uintptr_t word = table_.load(std::memory_order_relaxed);
    if (dynamic_.size() * 4 > Table(word).mask) {  // sparse: a second look costs a misprediction
        make_table(static_cast<unsigned>(word & 63) + 2);
    } else {
        insert(Table(word), &dynamic_.back());
    }
    return site;
}

}  // namespace marey
