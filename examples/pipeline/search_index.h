// search_index.h: the inverted index: which documents contain a term, and which match a query best.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "text_analysis.h"

struct Posting {
    std::uint32_t document;
    std::uint32_t count;
};

struct Hit {
    std::uint32_t document;
    float score;
};

/// A document as a unit vector: its terms hashed into kDimensions numbers. Similar documents have similar
/// directions.
inline constexpr std::size_t kDimensions = 512;
using Signature = std::array<float, kDimensions>;

/// Sharded by term, a lock per shard. add() and search() may be called from any thread, but not both at once.
class SearchIndex {
  public:
    explicit SearchIndex(std::uint32_t documents) : lengths_(documents), signatures_(documents) {}

    void add(std::uint32_t document, const TermCounts& counts);
    /// The best documents for the terms, best first; ties go to the lower number, so results are the same
    /// every time.
    std::vector<Hit> search(std::span<const std::string> terms, std::size_t limit) const;

    /// The term in the index with the spelling nearest to `term`; `term` itself if the index contains it.
    std::string nearest_term(const std::string& term) const;

    std::span<const Signature> signatures() const { return signatures_; }
    std::size_t term_count() const;

  private:
    static constexpr std::size_t kShards = 8;
    struct Shard {
        mutable std::mutex mutex;
        std::unordered_map<std::string, std::vector<Posting>> postings;  // protected by mutex while adding
    };
    const Shard& shard_of(const std::string& term) const {
        return shards_[std::hash<std::string>{}(term) % kShards];
    }

    std::array<Shard, kShards> shards_;
    std::vector<std::uint32_t> lengths_;  // each written by the one thread that adds the document
    std::vector<Signature> signatures_;   // the same
};
