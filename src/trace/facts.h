// facts.h: the metadata of a trace under construction.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// Adds a fact; replaces one with the same key.
inline void put_fact(std::vector<MetadataInfo>& facts, std::string key, std::string json) {
    const auto same =
        std::find_if(facts.begin(), facts.end(), [&](const MetadataInfo& fact) { return fact.key == key; });
    if (same != facts.end()) {
        same->json = std::move(json);
    } else {
        facts.push_back({std::move(key), std::move(json)});
    }
}

}  // namespace marey
