// string_pool.h: the strings of a trace under construction, each once.
#pragma once

#include <marey/trace.h>

namespace marey {

/// Adds strings to a list without duplicates. The list must outlive this and must not be changed by others.
class StringPool {
  public:
    explicit StringPool(std::vector<std::string>& strings);
    StringId intern(std::string_view text);

  private:
    /// A slot of the table: open addressing, linear probing.
    struct Slot {
        std::uint32_t hash;
        StringId id;  ///< kFree: empty
    };
    static constexpr StringId kFree = ~StringId{0};

    StringId find(std::uint32_t hash, std::string_view text) const;
    void insert(std::uint32_t hash, StringId id);
    void grow();

    std::vector<std::string>& strings_;
    std::vector<Slot> slots_;  ///< a power of two, at most half of them used
    std::size_t taken_ = 0;
};

}  // namespace marey
