// sequence.h: the state that packets of one Perfetto sequence depend on.
#pragma once

#include <optional>
#include <unordered_map>

#include <marey/trace.h>

namespace marey {

/// Values by interning id; most ids are small.
template <class T>
class InternTable {
  public:
    void set(std::uint64_t iid, const T& value) {
        if (iid >= kDense) {
            sparse_[iid] = value;
            return;
        }
        if (iid >= dense_.size()) dense_.resize(iid + 1);
        dense_[iid] = value;
    }
    /// Null if the id was never defined.
    const T* find(std::uint64_t iid) const {
        if (iid < dense_.size()) return dense_[iid] ? &*dense_[iid] : nullptr;
        const auto found = sparse_.find(iid);
        return found == sparse_.end() ? nullptr : &found->second;
    }
    void clear() {
        dense_.clear();
        sparse_.clear();
    }

  private:
    static constexpr std::uint64_t kDense = 4096;
    std::vector<std::optional<T>> dense_;
    std::unordered_map<std::uint64_t, T> sparse_;
};

struct PerfettoSequence {
    struct Place {
        StringId file = 0;
        std::uint32_t line = 0;
        StringId function = 0;
    };

    InternTable<StringId> event_names;
    InternTable<StringId> categories;
    InternTable<StringId> annotation_names;
    InternTable<StringId> annotation_strings;
    InternTable<Place> places;

    bool is_cleared = false;             ///< its state was reset in this file
    bool has_lost = false;               ///< packets were lost since then
    std::uint32_t clock = 0;             ///< default clock of timestamps; 0: the trace clock
    std::optional<std::uint64_t> track;  ///< default track of events
    std::vector<std::uint64_t> extra_counters, extra_double_counters;

    // Legacy files: the thread of its events, and the time to which deltas are added.
    bool has_thread = false;
    std::int64_t pid = 0, tid = 0;
    std::uint64_t time_us = 0;

    void clear() {
        event_names.clear();
        categories.clear();
        annotation_names.clear();
        annotation_strings.clear();
        places.clear();
        clock = 0;
        track.reset();
        extra_counters.clear();
        extra_double_counters.clear();
        is_cleared = true;
        has_lost = false;
    }
};

}  // namespace marey
