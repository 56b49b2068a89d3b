// name_table.h: strings and sites, each interned once and then identified by a number.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <marey/detail/log_format.h>
#include <marey/scope.h>

#include "record/recorder_mutex.h"

namespace marey {

/// A text as four words: the first and the last sixteen bytes, which overlap when it is short (zeros fill up
/// texts below sixteen bytes). Together with the length they distinguish all texts of up to 32 bytes. They
/// are also the words that copying routines write, so that a text just composed can be read without a stall.
struct TextWords {
    std::uint64_t words[4];
};
TextWords words_of_short(std::string_view text) noexcept;
[[gnu::always_inline]] inline TextWords words_of(std::string_view text) noexcept {
    if (text.size() < 16)
        return words_of_short(text);  // separate, because a copy of unknown size would go through memory
    const auto word_at = [&text](std::size_t at) {
        std::uint64_t word;
        std::memcpy(&word, text.data() + at, sizeof word);
        return word;
    };
    return {{word_at(0), word_at(8), word_at(text.size() - 16), word_at(text.size() - 8)}};
}

/// Mixes a text into 64 bits; made for names of 10 to 40 characters, few instructions rather than perfect
/// spread.
[[gnu::always_inline]] inline std::uint64_t hash_text(std::string_view text, const TextWords& ends) noexcept {
    std::uint64_t hash = ends.words[0] * 0x9e3779b1u + ends.words[1] * 0x85ebca77u +
                         ends.words[2] * 0xc2b2ae3du + ends.words[3] * 0x27d4eb2fu + text.size();
    for (std::size_t at = 16; at + 16 < text.size(); at += 8) {  // the part between the ends
        std::uint64_t word;
        std::memcpy(&word, text.data() + at, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 40;
}

/// The text or site of an id. Written under a lock, read without one.
template <class T>
class Directory {
  public:
    ~Directory() {
        for (const auto& part : parts_) delete[] part.load(std::memory_order_relaxed);
    }
    /// `item` must not move.
    void set(std::uint32_t id, T* item) {
        if (id / kPart >= kParts) return;
        std::atomic<Slot*>& part = parts_[id / kPart];
        if (part.load(std::memory_order_relaxed) == nullptr)
            part.store(new Slot[kPart](), std::memory_order_release);
        part.load(std::memory_order_relaxed)[id % kPart].store(item, std::memory_order_release);
    }
    /// Null: unknown.
    T* find(std::uint32_t id) const noexcept {
        if (id / kPart >= kParts) return nullptr;
        const Slot* const slots = parts_[id / kPart].load(std::memory_order_acquire);
        return slots != nullptr ? slots[id % kPart].load(std::memory_order_acquire) : nullptr;
    }

  private:
    using Slot = std::atomic<T*>;
    static constexpr std::size_t kPart = 1024;
    static constexpr std::size_t kParts = 16 * 1024;
    std::atomic<Slot*> parts_[kParts] = {};
};

/// All strings and sites of the process, and the names stream that captures carry. Lookups need no lock.
///
/// Strings, sites of source places and modules are permanent: there are as many as the program's source has,
/// and every capture has them all. Of names made at run time there may be any number (one per request), so a
/// capture has only those that were used since it began. Lookups do not find the others; interning one again
/// writes it into the capture, with the same id.
class NameTable {
  public:
    NameTable();

    /// Ids are dense from 1; 0 stands for "" and for "no space left" (kMaxNameBytes).
    std::uint32_t intern(std::string_view text) MAREY_REQUIRES(recorder_mutex);
    /// Equal places get equal ids, also after a library was unloaded and loaded again. 0: no space left.
    /// `flags`: detail::SiteFlags; `category`: a string id, 0 for the scope's own.
    std::uint32_t intern_site(std::string_view name, std::string_view file, std::uint32_t line, Scope scope,
                              std::uint32_t flags = 0, std::uint32_t category = 0)
        MAREY_REQUIRES(recorder_mutex);
    /// A program or library. The same path, build id and place get the same id. 0: no space left.
    /// Names for samples (log_format.h).
    void add_code_place(std::uint32_t place, std::uint32_t site, std::uint32_t line)
        MAREY_REQUIRES(recorder_mutex);
    void add_module_extent(std::uint32_t module, std::uint64_t begin, std::uint64_t end)
        MAREY_REQUIRES(recorder_mutex);
    std::uint32_t intern_module(std::string_view path, std::string_view build_id, std::uint64_t bias)
        MAREY_REQUIRES(recorder_mutex);
    /// A site without file and line, which find_dynamic finds from the next show() to the next
    /// begin_capture().
    std::uint32_t intern_dynamic(std::string_view name, Scope scope, std::uint32_t category = 0)
        MAREY_REQUIRES(recorder_mutex);
    /// intern() for a text that find_key finds after the next show().
    std::uint32_t intern_key(std::string_view text) MAREY_REQUIRES(recorder_mutex);
    /// Lets lookups find all that was interned: whoever finds an id may use it at once, so that it must be in
    /// the captures by then.
    void show() noexcept MAREY_REQUIRES(recorder_mutex);

    /// The id of a site, or 0 when it is not shown. Lock-free, from any thread.
    [[gnu::always_inline]] std::uint32_t find_dynamic(std::string_view name, Scope scope,
                                                      std::uint32_t category = 0) const noexcept {
        if (name.size() > kMaxTextBytes) name = name.substr(0, kMaxTextBytes);
        const TextWords ends = words_of(name);
        const DynamicName* const entry = find_entry(name, ends, dynamic_hash(name, ends, scope, category));
        return entry != nullptr ? entry->shown_id.load(std::memory_order_relaxed) : 0;
    }
    /// The id of a string that intern_key has returned, or 0. Lock-free, from any thread.
    std::uint32_t find_key(std::string_view text) const noexcept {
        return find_dynamic(text, Scope::User, kKey);
    }

    /// For a new capture: no run-time name is shown any more. Takes time for those that were.
    void begin_capture() noexcept MAREY_REQUIRES(recorder_mutex);
    /// Whether lookups find a site that was interned at some time.
    bool is_shown(std::uint32_t site) const noexcept {
        if (site < detail::kFirstRunTimeSite) return true;
        const DynamicName* const name = dynamic_by_id_.find(site);
        return name == nullptr || name->shown_id.load(std::memory_order_relaxed) != 0;
    }
    /// As if it were interned again.
    void use(std::uint32_t site) MAREY_REQUIRES(recorder_mutex);

    /// The text of an id that intern() or intern_site() has returned. Any thread, without the lock.
    std::string_view text(std::uint32_t id) const noexcept {
        const std::string_view* const found = texts_.find(id);
        return found != nullptr ? *found : std::string_view();
    }
    struct SiteProperties {
        std::string_view name;
        Scope scope = Scope::User;
    };
    /// Of any site that was ever interned. Any thread, without the lock.
    SiteProperties site(std::uint32_t id) const noexcept {
        if (id < detail::kFirstRunTimeSite) {
            const SiteProperties* const facts = site_properties_.find(id);
            return facts != nullptr ? *facts : SiteProperties();
        }
        const DynamicName* const name = dynamic_by_id_.find(id);
        return name != nullptr ? SiteProperties{{name->text, name->length}, name->scope} : SiteProperties();
    }

    /// The part of the names stream (log_format.h) that all captures have, only ever appended to.
    const std::vector<std::byte>& stream() const noexcept MAREY_REQUIRES(recorder_mutex) { return stream_; }
    /// The records of the run-time names that the next show() shows. They refer to strings of the stream.
    const std::vector<std::byte>& queued_stream() const noexcept MAREY_REQUIRES(recorder_mutex) {
        return queued_stream_;
    }
    /// Appends the record of a run-time name; does nothing for another id. Any thread, without the lock.
    void append_run_time_site(std::vector<std::byte>& stream, std::uint32_t site) const;
    std::uint32_t string_count() const noexcept MAREY_REQUIRES(recorder_mutex) {
        return static_cast<std::uint32_t>(strings_.size());
    }

    static constexpr std::size_t kMaxTextBytes = 8192;  ///< longer texts are cut: a record must fit a block
    static constexpr std::size_t kMaxNameBytes = std::size_t{256} << 20;

  private:
    struct DynamicName {
        std::uint64_t hash;
        TextWords ends;
        std::uint32_t length;
        std::atomic<std::uint32_t> shown_id;  ///< what lookups find: the id, or 0 as if it were unknown
        const char* text;
        std::uint32_t id;  ///< of the site or string
        std::uint32_t category;
        Scope scope;
        bool is_queued;  ///< until show(); needs the lock
    };
    // Open addressing. Entries are never removed; a full table is replaced by a larger one. The address and
    // the size of the table are one word, so that one load reads both: the low bits of the address hold the
    // logarithm of the size.
    using Slot = std::atomic<DynamicName*>;
    struct alignas(64) Line {
        Slot slots[8];
    };
    struct Table {
        explicit Table(std::uintptr_t word) noexcept
            : mask((std::size_t{1} << (word & 63)) - 1),
              slots(reinterpret_cast<Slot*>(word & ~std::uintptr_t{63})) {}
        std::size_t mask;
        Slot* slots;
    };
    struct SiteKey {
        std::uint32_t name, file, line, scope;  // scope: with the flags above bit 8
        std::uint32_t category;
        friend bool operator==(const SiteKey&, const SiteKey&) = default;
    };
    struct SiteKeyHash {
        std::size_t operator()(const SiteKey& key) const noexcept;
    };
    // find_dynamic reads everything through the pointers that were published, and such dependent reads are
    // never made early: no acquire is needed on any known processor. On aarch64 it would be expensive: an
    // acquiring load waits until the releasing stores of the range before it have left the store buffer (10
    // ns each, measured).
#if defined(__SANITIZE_THREAD__)
    static constexpr std::memory_order kThroughPointer = std::memory_order_acquire;
#else
    static constexpr std::memory_order kThroughPointer = std::memory_order_relaxed;
#endif
    // Scope and category are only in the hash: any two pairs of them move a text's hash by different amounts,
    // so their entries never collide.
    static std::uint64_t dynamic_hash(std::string_view name, const TextWords& ends, Scope scope,
                                      std::uint32_t category) noexcept {
        const std::uint64_t kind = static_cast<std::uint64_t>(scope) | std::uint64_t{category} << 8;
        return hash_text(name, ends) + kind * 0x9e3779b97f4a7c15u;
    }
    static bool is_same_long(const char* text, std::string_view name) noexcept;
    static bool is_same(const DynamicName& entry, std::string_view name, const TextWords& ends) noexcept {
        const std::uint64_t* const a = entry.ends.words;
        const std::uint64_t* const b = ends.words;
        if (((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) != 0) return false;
        return name.size() <= 32 || is_same_long(entry.text, name);
    }
    static constexpr std::uint32_t kKey = ~std::uint32_t{0};  ///< the category of entries that are strings
    [[gnu::always_inline]] DynamicName* find_entry(std::string_view name, const TextWords& ends,
                                                   std::uint64_t hash) const noexcept {
        const Table table(table_.load(kThroughPointer));
        for (std::size_t at = hash & table.mask;; at = (at + 1) & table.mask) {
            DynamicName* const entry = table.slots[at].load(kThroughPointer);
            if (entry == nullptr) return nullptr;
            if (entry->hash == hash && entry->length == name.size() && is_same(*entry, name, ends))
                return entry;
        }
    }
    DynamicName* known_entry(std::string_view name, Scope scope, std::uint32_t category) const noexcept;
    DynamicName& add_entry(std::string_view kept_name, Scope scope, std::uint32_t category, std::uint32_t id)
        MAREY_REQUIRES(recorder_mutex);
    static void append_record(std::vector<std::byte>& stream, const DynamicName& name);
    void queue(DynamicName& name) MAREY_REQUIRES(recorder_mutex);
    std::string_view keep_text(std::string_view text) MAREY_REQUIRES(recorder_mutex);
    void make_table(unsigned log2_size) MAREY_REQUIRES(recorder_mutex);
    static void insert(const Table& table, DynamicName* name) noexcept;

    std::atomic<std::uintptr_t> table_{0};  // first: the rest is large
    std::vector<std::byte> stream_ MAREY_GUARDED_BY(recorder_mutex);
    std::vector<DynamicName*> shown_
        MAREY_GUARDED_BY(recorder_mutex);  // run-time names; others are always shown
    std::vector<DynamicName*> queued_ MAREY_GUARDED_BY(recorder_mutex);  // until show()
    std::vector<std::byte> queued_stream_ MAREY_GUARDED_BY(recorder_mutex);
    std::vector<std::unique_ptr<char[]>> arenas_ MAREY_GUARDED_BY(recorder_mutex);  // texts do not move
    std::size_t arena_left_ MAREY_GUARDED_BY(recorder_mutex) = 0;
    char* arena_next_ MAREY_GUARDED_BY(recorder_mutex) = nullptr;
    Directory<const std::string_view> texts_;
    Directory<const SiteProperties> site_properties_;
    std::deque<SiteProperties> facts_ MAREY_GUARDED_BY(recorder_mutex);  // do not move
    std::unordered_map<std::string_view, std::uint32_t> strings_ MAREY_GUARDED_BY(recorder_mutex);
    std::unordered_map<SiteKey, std::uint32_t, SiteKeyHash> sites_ MAREY_GUARDED_BY(recorder_mutex);
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::uint32_t> modules_
        MAREY_GUARDED_BY(recorder_mutex);
    std::deque<DynamicName> dynamic_ MAREY_GUARDED_BY(recorder_mutex);  // do not move
    Directory<DynamicName> dynamic_by_id_;
    std::uint32_t next_dynamic_ MAREY_GUARDED_BY(recorder_mutex) = detail::kFirstRunTimeSite;
    std::size_t dynamic_bytes_ MAREY_GUARDED_BY(recorder_mutex) = 0;  // memory of run-time names
    std::vector<std::unique_ptr<Line[]>> tables_
        MAREY_GUARDED_BY(recorder_mutex);  // outgrown ones stay: a reader may be in one
};

}  // namespace marey
