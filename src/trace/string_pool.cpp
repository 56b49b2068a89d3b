// string_pool.cpp: a set of ids that looks into the list of strings.
#include "trace/string_pool.h"

namespace kymo {

StringPool::StringPool(std::vector<std::string>& strings)
    : strings_(strings), ids_(strings.size() * 2, Hash{&strings}, Equal{&strings}) {
    for (StringId id = 0; id < strings.size(); ++id) ids_.insert(id);
}

StringId StringPool::intern(std::string_view text) {
    if (const auto found = ids_.find(text); found != ids_.end()) return *found;
    const auto id = static_cast<StringId>(strings_.size());
    strings_.emplace_back(text);
    ids_.insert(id);
    return id;
}

}  // namespace kymo
