// part_flags.cpp: finds the first part of each suspended call.
#include "trace/part_flags.h"

#include <unordered_map>

namespace marey {
namespace {

/// Identifies a call among all processes of a trace. Never 0.
std::uint64_t key_of(const CallPart& part) noexcept {
    const std::uint64_t key = part.call ^ part.process * 0xd6e8feb86659fd93u;
    return key == 0 ? 1 : key;
}

/// A set of calls. A hash table of its own: captures of asynchronous programs consist of parts.
class CallSet {
  public:
    bool contains(std::uint64_t key) const noexcept { return keys_[place_of(key)] == key; }
    void insert(std::uint64_t key) {
        std::uint64_t& place = keys_[place_of(key)];
        if (place == key) return;
        place = key;
        if (++count_ * 2 > keys_.size()) grow();
    }

  private:
    std::size_t place_of(std::uint64_t key) const noexcept {
        const std::size_t mask = keys_.size() - 1;
        // Calls with neighbouring numbers, which often run at the same time, share a cache line.
        std::size_t at = ((key >> 3) * 0x9e3779b97f4a7c15u >> 32 << 3 | (key & 7)) & mask;
        while (keys_[at] != 0 && keys_[at] != key) at = (at + 1) & mask;
        return at;
    }
    void grow() {
        std::vector<std::uint64_t> old(keys_.size() * 4);
        old.swap(keys_);
        for (const std::uint64_t key : old) {
            if (key != 0) keys_[place_of(key)] = key;
        }
    }

    std::vector<std::uint64_t> keys_ = std::vector<std::uint64_t>(1024);  ///< 0: free
    std::size_t count_ = 0;
};

bool is_first(const CallPart& part) noexcept {
    return (part.flags & kFirstPart) != 0;
}

}  // namespace

void mark_parts(TraceData& data, std::span<const CallPart> parts) {
    CallSet begun;
    std::vector<CallPart> orphans;  // parts without a first part so far: it is on a later thread, or missing
    for (const CallPart& part : parts) {
        if (is_first(part)) {
            data.range_flags[part.row] |= kPart;
            begun.insert(key_of(part));
        } else {
            data.range_flags[part.row] |= static_cast<std::uint16_t>(kPart | kFurtherPart);
            if (!begun.contains(key_of(part))) orphans.push_back(part);
        }
    }
    std::unordered_map<std::uint64_t, Row> earliest;  // of the calls that began before the trace
    for (const CallPart& part : orphans) {
        const std::uint64_t key = key_of(part);
        if (begun.contains(key)) continue;
        Row& first = earliest.try_emplace(key, part.row).first->second;
        if (data.range_start_ns[part.row] < data.range_start_ns[first]) first = part.row;
    }
    for (const auto& [key, row] : earliest)
        data.range_flags[row] = static_cast<std::uint16_t>(data.range_flags[row] & ~kFurtherPart);
}

void mark_parts(TraceData& data) {
    std::vector<CallPart> parts;
    auto track = data.tracks.begin();
    for (const RangeDetail& detail : data.range_details) {
        if (detail.call == 0 || (detail.part & kWholeCall) != 0) continue;
        while (detail.range >= track->first_range + track->range_count) ++track;
        parts.push_back(
            {detail.call, detail.range, detail.part & 0xff, data.threads[track->thread].process & 0xffffff});
    }
    mark_parts(data, parts);
}

}  // namespace marey
