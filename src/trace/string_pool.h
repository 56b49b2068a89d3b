// string_pool.h: the strings of a trace under construction, each once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// Adds strings to a list without repeating any. The list must outlive this and be changed by nobody else.
class StringPool {
  public:
    explicit StringPool(std::vector<std::string>& strings);
    StringId intern(std::string_view text);

  private:
    /// A place of the table: open addressing, linear.
    struct Slot {
        std::uint32_t hash;
        StringId id;  ///< kFree: nothing here
    };
    static constexpr StringId kFree = ~StringId{0};

    StringId find(std::uint32_t hash, std::string_view text) const;
    void insert(std::uint32_t hash, StringId id);
    void grow();

    std::vector<std::string>& strings_;
    std::vector<Slot> slots_;  ///< a power of two of them, at most half of them taken
    std::size_t taken_ = 0;
};

}  // namespace marey
