// string_pool.h: the strings of a trace under construction, each once.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <kymo/trace.h>

namespace kymo {

/// Adds strings to a list without repeating any. The list must outlive this and be changed by nobody else.
class StringPool {
  public:
    explicit StringPool(std::vector<std::string>& strings);
    StringId intern(std::string_view text);

  private:
    struct Hash {
        using is_transparent = void;
        const std::vector<std::string>* strings;
        std::size_t operator()(StringId id) const { return std::hash<std::string_view>()((*strings)[id]); }
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };
    struct Equal {
        using is_transparent = void;
        const std::vector<std::string>* strings;
        bool operator()(StringId a, StringId b) const { return (*strings)[a] == (*strings)[b]; }
        bool operator()(std::string_view a, StringId b) const { return a == (*strings)[b]; }
        bool operator()(StringId a, std::string_view b) const { return (*strings)[a] == b; }
    };
    std::vector<std::string>& strings_;
    std::unordered_set<StringId, Hash, Equal> ids_;
};

}  // namespace kymo
