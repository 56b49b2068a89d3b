// name_table.h: strings and sites, each interned once and known by a number from then on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <kymo/scope.h>

namespace kymo {

/// Mixes up to any number of bytes into 64 bits; made for names of 10 to 40 characters.
std::uint64_t hash_text(std::string_view text) noexcept;

/// All strings and sites of the process, as the names stream that captures carry: what is interned is appended there
/// and never changes. Writing needs the recorder's lock; find_dynamic needs none.
class NameTable {
  public:
    NameTable();

    /// Ids are dense from 1; 0 stands for "" and for "no room left" (kMaxNameBytes).
    std::uint32_t intern(std::string_view text);
    /// Equal places get equal ids, also after a library was unloaded and loaded again. 0: no room left.
    std::uint32_t intern_site(std::string_view name, std::string_view file, std::uint32_t line, Scope scope);
    /// A site without file and line, findable by find_dynamic from then on.
    std::uint32_t intern_dynamic(std::string_view name, Scope scope);
    /// Its id, or 0 when it has not been interned. Lock-free, from any thread.
    std::uint32_t find_dynamic(std::string_view name, Scope scope) const noexcept;

    /// The names stream so far (log_format.h), only ever appended to.
    const std::vector<std::byte>& stream() const noexcept { return stream_; }
    std::uint32_t string_count() const noexcept { return static_cast<std::uint32_t>(strings_.size()); }

    static constexpr std::size_t kMaxTextBytes = 8192;  ///< longer texts are cut: a record must fit a block
    static constexpr std::size_t kMaxNameBytes = std::size_t{256} << 20;

  private:
    struct Slot {  // written once: the hash last, with release
        std::atomic<std::uint64_t> hash{0};  // 0: empty
        const char* text = nullptr;
        std::uint32_t length = 0;
        std::uint32_t site = 0;
    };
    struct Table {  // open addressing; entries are never removed, a full one is replaced by a larger
        explicit Table(std::size_t size) : mask(size - 1), slots(new Slot[size]) {}
        std::size_t mask;
        std::unique_ptr<Slot[]> slots;
    };
    struct SiteKey {
        std::uint32_t name, file, line, scope;
        friend bool operator==(const SiteKey&, const SiteKey&) = default;
    };
    struct SiteKeyHash {
        std::size_t operator()(const SiteKey& key) const noexcept;
    };
    std::string_view keep_text(std::string_view text);
    static void insert(Table& table, std::uint64_t hash, const Slot& name) noexcept;

    std::vector<std::byte> stream_;
    std::vector<std::unique_ptr<char[]>> arenas_;  // texts do not move
    std::size_t arena_left_ = 0;
    char* arena_next_ = nullptr;
    std::unordered_map<std::string_view, std::uint32_t> strings_;
    std::unordered_map<SiteKey, std::uint32_t, SiteKeyHash> sites_;
    std::size_t dynamic_count_ = 0;
    std::vector<std::unique_ptr<Table>> tables_;  // outgrown ones stay: a reader may be in one
    std::atomic<Table*> table_{nullptr};
};

}  // namespace kymo
