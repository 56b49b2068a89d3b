// links.cpp: joins forward and backward ranges by thread and sequence number.
#include "collect/links.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "trace/torch_names.h"

namespace marey {
namespace {

struct Key {
    std::uint64_t thread;
    std::uint64_t sequence;
    friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
        std::uint64_t mixed = (key.thread * 0x9e3779b97f4a7c15u) ^ key.sequence;
        mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93u;
        return static_cast<std::size_t>(mixed ^ (mixed >> 32));
    }
};

/// A range that may be an end of a link.
struct Candidate {
    std::int64_t end_ns;
    Row range;
    std::uint32_t thread;          ///< its own
    std::uint32_t forward_thread;  ///< 0: a forward range
    std::uint64_t sequence;
};

bool is_evaluation(const TraceData& data, Row range) {
    const std::uint32_t site = data.range_site[range];
    if (site >= data.sites.size() || data.sites[site].scope != Scope::Function) return false;
    return is_engine_range(data.strings[data.sites[site].name]);
}

/// The rows, ascending, that take their first child's number. Their details are created or changed.
std::vector<Row> inherit_sequences(TraceData& data) {
    std::vector<RangeDetail> inherited;
    for (const RangeDetail& detail : data.range_details) {
        const Row row = detail.range;
        if (detail.forward_thread == 0 || row == 0 || data.range_parent[row] != row - 1) continue;
        if (!is_evaluation(data, row - 1)) continue;
        inherited.push_back({row - 1, detail.sequence, detail.forward_thread, 0});
    }
    std::vector<Row> rows;
    if (inherited.empty()) return rows;
    std::vector<RangeDetail> merged;
    merged.reserve(data.range_details.size() + inherited.size());
    auto next = inherited.begin();
    for (const RangeDetail& detail : data.range_details) {
        while (next != inherited.end() && next->range < detail.range) merged.push_back(*next++);
        merged.push_back(detail);
        if (next != inherited.end() && next->range == detail.range) {
            merged.back().sequence = next->sequence;
            merged.back().forward_thread = next->forward_thread;
            ++next;
        }
    }
    data.range_details = std::move(merged);  // a child comes after its parent: none is left over
    rows.reserve(inherited.size());
    for (const RangeDetail& detail : inherited) rows.push_back(detail.range);
    return rows;
}

using KeySet = std::unordered_set<Key, KeyHash>;

/// The numbers that backward ranges refer to.
KeySet find_backward_keys(const TraceData& data) {
    KeySet backward_keys;
    for (const RangeDetail& detail : data.range_details) {
        if (detail.forward_thread != 0 && detail.sequence >= 0)
            backward_keys.insert({detail.forward_thread, static_cast<std::uint64_t>(detail.sequence)});
    }
    return backward_keys;
}

/// The backward ranges and the forward ranges that one of them refers to, except those that only inherited
/// their number.
std::vector<Candidate> find_candidates(const TraceData& data, const std::vector<Row>& inherited,
                                       const KeySet& backward_keys) {
    std::vector<Candidate> candidates;
    auto next_inherited = inherited.begin();
    auto track = data.tracks.begin();
    for (const RangeDetail& detail : data.range_details) {
        const Row row = detail.range;
        while (next_inherited != inherited.end() && *next_inherited < row) ++next_inherited;
        if (next_inherited != inherited.end() && *next_inherited == row) continue;
        if (detail.sequence < 0) continue;
        while (track != data.tracks.end() && row - track->first_range >= track->range_count) ++track;
        if (track == data.tracks.end()) break;
        const std::uint32_t thread = data.threads[track->thread].id;
        const auto sequence = static_cast<std::uint64_t>(detail.sequence);
        if (detail.forward_thread == 0 && !backward_keys.contains({thread, sequence})) continue;
        candidates.push_back({data.range_start_ns[row] + data.range_duration_ns[row], row, thread,
                              detail.forward_thread, sequence});
    }
    return candidates;
}

}  // namespace

void link_forward_backward(TraceData& data) {
    const KeySet backward_keys = find_backward_keys(data);
    if (backward_keys.empty()) return;
    std::vector<Candidate> candidates = find_candidates(data, inherit_sequences(data), backward_keys);
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        if (a.end_ns != b.end_ns) return a.end_ns < b.end_ns;
        if ((a.forward_thread == 0) != (b.forward_thread == 0)) return a.forward_thread == 0;
        return a.range < b.range;
    });
    std::unordered_map<Key, Row, KeyHash> offers;
    for (const Candidate& candidate : candidates) {
        if (candidate.forward_thread == 0) {
            const auto [offer, is_new] =
                offers.try_emplace({candidate.thread, candidate.sequence}, candidate.range);
            const std::int64_t start = data.range_start_ns[candidate.range];
            const std::int64_t known = data.range_start_ns[offer->second];
            // At the same time: the inner one.
            if (!is_new && (start > known || (start == known && candidate.range > offer->second)))
                offer->second = candidate.range;
            continue;
        }
        const auto offer = offers.find({candidate.forward_thread, candidate.sequence});
        if (offer == offers.end()) continue;
        data.links.push_back({offer->second, candidate.range, LinkKind::ForwardBackward});
        offers.erase(offer);
    }
    std::sort(data.links.begin(), data.links.end(), [](const LinkInfo& a, const LinkInfo& b) {
        return a.from != b.from ? a.from < b.from : a.to < b.to;
    });
}

}  // namespace marey
