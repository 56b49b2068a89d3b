// search_index.cpp: merging documents into the index, and BM25 scoring.
#include "search_index.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace {

Signature make_signature(const TermCounts& counts) {
    MAREY_RANGE("signature");
    Signature signature{};
    for (const auto& [term, count] : counts) {
        std::uint32_t hash = 2166136261u;
        for (const char c : term) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
        const float sign = (hash & 0x10000u) != 0 ? 1.0f : -1.0f;
        // Integers until the end: float sums would depend on the map's order.
        signature[hash % kDimensions] += sign * static_cast<float>(count);
    }
    float square = 0;
    for (const float x : signature) square += x * x;
    const float scale = square > 0 ? 1.0f / std::sqrt(square) : 0.0f;
    for (float& x : signature) x *= scale;
    return signature;
}

/// Adds one term's share to the score of each document that contains it.
void add_scores(std::span<const Posting> postings, std::span<const std::uint32_t> lengths,
                std::vector<float>& scores) {
    MAREY_RANGE("score term", "postings", postings.size());
    const auto documents = static_cast<float>(lengths.size());
    const auto holders = static_cast<float>(postings.size());
    const float rarity = std::log(1.0f + (documents - holders + 0.5f) / (holders + 0.5f));
    for (const Posting& posting : postings) {
        const auto count = static_cast<float>(posting.count);
        const float length = static_cast<float>(lengths[posting.document]) / 200.0f;
        scores[posting.document] += rarity * count * 2.2f / (count + 1.2f * (0.25f + 0.75f * length));
    }
}

std::vector<Hit> best_of(std::span<const float> scores, std::size_t limit) {
    MAREY_RANGE("select best");
    std::vector<Hit> hits;
    for (std::uint32_t document = 0; document < scores.size(); ++document) {
        if (scores[document] > 0) hits.push_back({document, scores[document]});
    }
    const std::size_t kept = std::min(limit, hits.size());
    std::partial_sort(hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(kept), hits.end(),
                      [](const Hit& a, const Hit& b) {
                          return a.score != b.score ? a.score > b.score : a.document < b.document;
                      });
    hits.resize(kept);
    return hits;
}

/// The Levenshtein distance, or any number above `limit` if it is larger than that.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
    std::array<std::size_t, 40> row;  // the longest word in the corpus has 17 letters
    if (b.size() >= row.size()) return limit + 1;
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        std::size_t smallest = row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
            smallest = std::min(smallest, row[j]);
        }
        if (smallest > limit) return limit + 1;
    }
    return row[b.size()];
}

}  // namespace

void SearchIndex::add(std::uint32_t document, const TermCounts& counts) {
    MAREY_RANGE("merge into index", "document", document, "terms", counts.size());
    std::array<std::vector<const TermCounts::value_type*>, kShards> by_shard;
    {
        MAREY_RANGE("group by shard");
        std::uint32_t length = 0;
        for (const auto& entry : counts) {
            by_shard[std::hash<std::string>{}(entry.first) % kShards].push_back(&entry);
            length += entry.second;
        }
        lengths_[document] = length;
    }
    signatures_[document] = make_signature(counts);
    for (std::size_t i = 0; i < kShards; ++i) {
        std::unique_lock lock(shards_[i].mutex, std::try_to_lock);
        if (!lock.owns_lock()) {
            MAREY_RANGE("wait for shard", "shard", i);
            lock.lock();
        }
        MAREY_RANGE("merge shard");
        for (const auto* entry : by_shard[i])
            shards_[i].postings[entry->first].push_back({document, entry->second});
    }
}

std::vector<Hit> SearchIndex::search(std::span<const std::string> terms, std::size_t limit) const {
    MAREY_FUNCTION("terms", terms.size());
    std::vector<float> scores(lengths_.size());
    for (const std::string& term : terms) {
        const auto& postings = shard_of(term).postings;
        const auto found = postings.find(term);
        if (found == postings.end()) {
            marey::instant("unknown term", "term", term);
            continue;
        }
        add_scores(found->second, lengths_, scores);
    }
    return best_of(scores, limit);
}

std::string SearchIndex::nearest_term(const std::string& term) const {
    MAREY_FUNCTION("term", term);
    if (shard_of(term).postings.contains(term)) return term;
    std::string best = term;
    std::size_t best_distance = 4;
    for (const Shard& shard : shards_) {
        MAREY_RANGE("compare spelling", "terms", shard.postings.size());
        for (const auto& [candidate, postings] : shard.postings) {
            const auto [shorter, longer] = std::minmax({candidate.size(), term.size()});
            if (longer - shorter > best_distance) continue;
            const std::size_t distance = edit_distance(term, candidate, best_distance);
            if (distance < best_distance || (distance == best_distance && candidate < best)) {
                best_distance = distance;
                best = candidate;
            }
        }
    }
    return best;
}

std::size_t SearchIndex::term_count() const {
    std::size_t count = 0;
    for (const Shard& shard : shards_) count += shard.postings.size();
    return count;
}
