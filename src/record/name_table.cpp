// name_table.cpp: interning, and the lock-free table of run-time names.
#include "record/name_table.h"

#include <algorithm>

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
    for (DynamicName& known : dynamic_) insert(Table(word), &known);
    table_.store(word, std::memory_order_release);
}

std::string_view NameTable::keep_text(std::string_view text) {
    if (text.empty()) return {};
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
    if (sites_.size() + 1 >= detail::kFirstRunTimeSite || (key.name == 0 && !name.empty())) return 0;
    const auto id = static_cast<std::uint32_t>(sites_.size() + 1);
    sites_.emplace(key, id);
    facts_.push_back({text(key.name), scope});
    site_properties_.set(id, &facts_.back());
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

void NameTable::add_code_place(std::uint32_t place, std::uint32_t site, std::uint32_t line) {
    append(stream_,
           detail::CodePlaceRecord{
               {static_cast<std::uint16_t>(detail::NameKind::CodePlace), 0, 0}, place, site, line, 0});
}

void NameTable::add_module_extent(std::uint32_t module, std::uint64_t begin, std::uint64_t end) {
    append(stream_,
           detail::ModuleExtentRecord{
               {static_cast<std::uint16_t>(detail::NameKind::ModuleExtent), 0, 0}, module, 0, begin, end});
}

void NameTable::insert(const Table& table, DynamicName* name) noexcept {
    std::size_t at = name->hash & table.mask;
    while (table.slots[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & table.mask;
    table.slots[at].store(name, std::memory_order_release);
}

NameTable::DynamicName* NameTable::known_entry(std::string_view name, Scope scope,
                                               std::uint32_t category) const noexcept {
    const TextWords ends = words_of(name);
    return find_entry(name, ends, dynamic_hash(name, ends, scope, category));
}

NameTable::DynamicName& NameTable::add_entry(std::string_view kept_name, Scope scope, std::uint32_t category,
                                             std::uint32_t id) {
    const TextWords ends = words_of(kept_name);
    DynamicName& added = dynamic_.emplace_back();
    added.hash = dynamic_hash(kept_name, ends, scope, category);
    added.ends = ends;
    added.length = static_cast<std::uint32_t>(kept_name.size());
    added.text = kept_name.data();
    added.id = id;
    added.category = category;
    added.scope = scope;
    const std::uintptr_t word = table_.load(std::memory_order_relaxed);
    if (dynamic_.size() * 4 > Table(word).mask) {  // sparse: a second look costs a misprediction
        make_table(static_cast<unsigned>(word & 63) + 2);
    } else {
        insert(Table(word), &added);
    }
    return added;
}

std::uint32_t NameTable::intern_dynamic(std::string_view name, Scope scope, std::uint32_t category) {
    name = name.substr(0, kMaxTextBytes);
    DynamicName* entry = known_entry(name, scope, category);
    if (entry == nullptr) {
        const std::size_t bytes = sizeof *entry + name.size();
        if (next_dynamic_ >= detail::kMaxSites || dynamic_bytes_ + bytes > kMaxNameBytes) return 0;
        dynamic_bytes_ += bytes;
        entry = &add_entry(keep_text(name), scope, category, next_dynamic_);
        dynamic_by_id_.set(next_dynamic_++, entry);
    }
    queue(*entry);
    return entry->id;
}

std::uint32_t NameTable::intern_key(std::string_view text) {
    text = text.substr(0, kMaxTextBytes);
    const std::uint32_t id = intern(text);
    if (id != 0 && known_entry(text, Scope::User, kKey) == nullptr)
        queued_.push_back(&add_entry(this->text(id), Scope::User, kKey, id));
    return id;
}

void NameTable::use(std::uint32_t site) {
    if (site < detail::kFirstRunTimeSite) return;
    if (DynamicName* const name = dynamic_by_id_.find(site)) queue(*name);
}

void NameTable::queue(DynamicName& name) {
    if (name.is_queued || name.shown_id.load(std::memory_order_relaxed) != 0) return;
    name.is_queued = true;
    append_record(queued_stream_, name);
    queued_.push_back(&name);
    shown_.push_back(&name);
}

void NameTable::append_record(std::vector<std::byte>& stream, const DynamicName& name) {
    detail::RunTimeSiteRecord record{};
    record.head.kind = static_cast<std::uint16_t>(detail::NameKind::RunTimeSite);
    record.id = name.id;
    record.scope = static_cast<std::uint32_t>(name.scope);
    record.category = name.category;
    record.length = name.length;
    append(stream, record, {name.text, name.length});
}

void NameTable::append_run_time_site(std::vector<std::byte>& stream, std::uint32_t site) const {
    if (site < detail::kFirstRunTimeSite) return;
    if (const DynamicName* const name = dynamic_by_id_.find(site)) append_record(stream, *name);
}

void NameTable::show() noexcept {
    for (DynamicName* const name : queued_) {
        name->is_queued = false;
        name->shown_id.store(name->id, std::memory_order_release);
    }
    queued_.clear();
    queued_stream_.clear();
}

void NameTable::begin_capture() noexcept {
    for (DynamicName* const name : shown_) name->shown_id.store(0, std::memory_order_relaxed);
    std::vector<DynamicName*>().swap(shown_);
}

}  // namespace marey
