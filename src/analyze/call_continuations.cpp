// call_continuations.cpp: one pass over the range details, which only a few ranges have.
#include "analyze/call_continuations.h"

#include <tuple>
#include <utility>

namespace marey {
namespace {

/// The first part of each call, by its process and its id within the process. A hash table of its own:
/// captures of asynchronous programs consist of parts.
class FirstParts {
  public:
    struct Entry {
        const RangeDetail* part = nullptr;
        Row process = 0;
    };

    /// The entry of a call; a new one has no part yet, and must get one.
    Entry& find(Row process, std::uint64_t call) {
        Entry& found = entries_[place_of(process, call)];
        if (found.part != nullptr) return found;
        if (++count_ * 2 > entries_.size()) grow();
        Entry& made = entries_[place_of(process, call)];
        made.process = process;
        return made;
    }

  private:
    std::size_t place_of(Row process, std::uint64_t call) const noexcept {
        const std::size_t mask = entries_.size() - 1;
        std::size_t at = (call + process) * 0x9e3779b97f4a7c15u >> 32 & mask;
        while (entries_[at].part != nullptr &&
               (entries_[at].part->call != call || entries_[at].process != process))
            at = (at + 1) & mask;
        return at;
    }
    void grow() {
        std::vector<Entry> old(entries_.size() * 2);
        old.swap(entries_);
        for (const Entry& entry : old) {
            if (entry.part != nullptr) entries_[place_of(entry.process, entry.part->call)] = entry;
        }
    }

    std::vector<Entry> entries_ = std::vector<Entry>(1024);
    std::size_t count_ = 0;
};

}  // namespace

std::vector<Row> further_parts(const Trace& trace) {
    std::vector<Row> further;
    const std::span<const TrackInfo> tracks = trace.tracks();
    const std::span<const ThreadInfo> threads = trace.threads();
    const std::span<const std::int64_t> starts = trace.ranges().start_ns;
    const auto place = [&](const RangeDetail& part) {
        return std::tuple((part.part & kFirstPart) == 0, starts[part.range], part.range);
    };
    FirstParts firsts;
    std::size_t track = 0;
    for (const RangeDetail& detail : trace.range_details()) {
        if (detail.call == 0 || (detail.part & kWholeCall) != 0) continue;
        while (detail.range >= tracks[track].first_range + tracks[track].range_count) ++track;
        FirstParts::Entry& first = firsts.find(threads[tracks[track].thread].process, detail.call);
        const RangeDetail* later = &detail;
        if (first.part == nullptr || place(*later) < place(*first.part)) std::swap(later, first.part);
        if (later != nullptr) further.push_back(later->range);
    }
    return further;
}

}  // namespace marey
