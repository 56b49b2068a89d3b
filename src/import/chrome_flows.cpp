// chrome_flows.cpp: sorts points by key and time, then walks the chains.
#include "import/chrome_flows.h"

#include <algorithm>

namespace kymo {

void ImportedFlows::finish() {
    std::stable_sort(points_.begin(), points_.end(), [](const Entry& a, const Entry& b) {
        if (a.key != b.key) return a.key < b.key;
        if (a.place.time_ns != b.place.time_ns) return a.place.time_ns < b.place.time_ns;
        return a.point < b.point;
    });
    std::uint64_t loose = 0;
    for (std::size_t first = 0; first < points_.size();) {
        std::size_t end = first + 1;
        while (end < points_.size() && points_[end].key == points_[first].key) ++end;
        loose += link_chain(first, end);
        first = end;
    }
    if (loose > 0)
        assembler_.add_problem("loose_flow", "points of arrows have no other point to go to", loose);
    std::vector<Entry>().swap(points_);
    link_launches();
}

std::uint64_t ImportedFlows::link_chain(std::size_t first, std::size_t end) {
    std::vector<std::size_t> early;  // ends before any start
    const Entry* last = nullptr;     // where the next arrow comes from
    bool last_is_used = true;
    std::vector<std::size_t> unused;  // starts without an end
    std::size_t last_start = first;
    std::uint64_t loose = 0;
    for (std::size_t i = first; i < end; ++i) {
        const Entry& entry = points_[i];
        if (entry.point == Point::Start) {
            if (!last_is_used) unused.push_back(last_start);
            last = &entry;
            last_start = i;
            last_is_used = false;
        } else if (last == nullptr) {
            early.push_back(i);
        } else {
            link(*last, entry);
            last_is_used = true;
            if (entry.point == Point::Step) last = &entry;
        }
    }
    if (!last_is_used) unused.push_back(last_start);
    for (std::size_t i = 0; i < std::max(early.size(), unused.size()); ++i) {
        if (i < early.size() && i < unused.size()) {
            link(points_[unused[i]], points_[early[i]]);
        } else {
            ++loose;
        }
    }
    return loose;
}

void ImportedFlows::link_launches() {
    std::sort(known_.begin(), known_.end());
    std::stable_sort(launches_.begin(), launches_.end(), [](const Launch& a, const Launch& b) {
        return a.correlation != b.correlation ? a.correlation < b.correlation : a.is_device < b.is_device;
    });
    for (std::size_t first = 0; first < launches_.size();) {
        std::size_t end = first + 1;
        while (end < launches_.size() && launches_[end].correlation == launches_[first].correlation) ++end;
        const bool is_known = std::binary_search(known_.begin(), known_.end(), launches_[first].correlation);
        if (!launches_[first].is_device && !is_known) {
            for (std::size_t i = first + 1; i < end; ++i) {
                if (launches_[i].is_device)
                    assembler_.add_link(launches_[first].range, launches_[i].range, LinkKind::Launch);
            }
        }
        first = end;
    }
    std::vector<Launch>().swap(launches_);
}

}  // namespace kymo
