// finding_facts.cpp: one pass over the ranges of all threads.
#include "analyze/findings/finding_facts.h"

#include <algorithm>
#include <cmath>

#include "analyze/events/event_costs.h"
#include "analyze/track_place.h"
#include "trace/part_flags.h"

namespace marey {
namespace {

/// Calls into C that wait for a disk.
bool is_file_call(std::string_view name) {
    constexpr std::string_view kCalls[] = {
        "posix.fdatasync", "posix.fsync", "posix.read",  "posix.sync",   "posix.write",
        "mmap.mmap.flush", "_io.open",    "posix.pread", "posix.pwrite", "posix.copy_file_range"};
    return std::ranges::find(kCalls, name) != std::end(kCalls) || name.starts_with("_io.FileIO.") ||
           name.starts_with("_io.Buffered") || name.starts_with("_io.TextIOWrapper.");
}

RangePurpose purpose_of(const Trace& trace, const SiteInfo& site) {
    const std::string_view name = trace.string(site.name);
    if (site.scope == Scope::GarbageCollection) return RangePurpose::Collection;
    if (is_import_name(site.scope, name))
        return name.starts_with("import marey") ? RangePurpose::Recorder : RangePurpose::Import;
    const RangePurpose wait = static_cast<RangePurpose>(wait_kind(trace, site));
    if (wait == RangePurpose::None && site.scope == Scope::CFunction && is_file_call(name))
        return RangePurpose::File;
    return wait;
}

class FactsReader {
  public:
    FactsReader(const Trace& trace, FindingFacts& facts)
        : trace_(trace),
          facts_(facts),
          ranges_(trace.ranges()),
          clip_(trace),
          bucket_ns_(static_cast<double>(std::max<std::int64_t>(clip_.end_ns - clip_.start_ns, 1)) /
                     FindingFacts::kBuckets),
          here_(facts.slots.names.size()),
          open_(facts.slots.names.size()) {
        const EventCosts costs(trace);
        for (const SiteInfo& site : trace.sites()) {
            const bool is_call = site.scope == Scope::PythonFunction || site.scope == Scope::CFunction;
            costs_.push_back(is_call ? std::max(costs.python_call_ns, costs.range_ns) : costs.range_ns);
            is_program_.push_back(site.scope != Scope::CFunction &&
                                  (site.scope != Scope::PythonFunction ||
                                   (is_program_file(trace.string(site.file)) &&
                                    !is_import_name(site.scope, trace.string(site.name)))));
        }
    }

    void read(const TrackInfo& track) {
        thread_ = track.thread;
        const Row end = track.first_range + track.range_count;
        for (Row row = track.first_range; row < end; ++row) add(row);
        while (!stack_.empty()) leave();
        for (const std::uint32_t slot : touched_) finish(slot);
        touched_.clear();
        facts_.ranges += track.range_count;
    }

    void finish_purposes() {
        for (auto& [key, facts] : by_caller_) facts_.purposes.push_back(facts);
        std::ranges::stable_sort(facts_.purposes, std::greater<>(), &PurposeFacts::time_ns);
    }

  private:
    struct Open {
        std::uint32_t slot, depth;
        std::int64_t ns;
        double cost_ns;                             ///< of all ranges of the track so far
        RangePurpose purpose = RangePurpose::None;  ///< None: the thread works
        PurposeFacts* facts = nullptr;              ///< of that purpose
        std::uint32_t program = kNoIndex;           ///< slot of the nearest range of the program
    };
    struct Here {
        std::int64_t self_ns = 0, total_ns = 0;
        double self_cost_ns = 0, total_cost_ns = 0;
        bool is_touched = false;
    };

    void add(Row row) {
        const std::uint32_t site = ranges_.site[row], depth = ranges_.depth[row];
        const std::uint32_t slot = facts_.slots.of_site[site];
        while (!stack_.empty() && stack_.back().depth >= depth) leave();
        const std::int64_t ns = clip_.duration(ranges_.start_ns[row], ranges_.duration_ns[row]);
        const std::uint16_t flags = ranges_.flags[row];
        NameFacts& name = facts_.names[slot];
        if (name.longest == kNoRow) name.site = site;
        if ((flags & kFurtherPart) == 0)
            name.calls += (flags & kSampled) == 0 ? 1 : calls_of(trace_, ranges_, row);
        facts_.is_sampled |= (flags & kSampled) != 0;
        if (ns > name.longest_ns) {
            name.longest_ns = ns;
            name.longest = row;
        }
        Here& here = here_[slot];
        if (!here.is_touched) touched_.push_back(slot);
        here.is_touched = true;
        here.self_ns += ranges_.self_ns[row];
        cost_ns_ += costs_[site];
        ++open_[slot];
        Open open{.slot = slot, .depth = depth, .ns = ns, .cost_ns = cost_ns_};
        const RangePurpose own = facts_.purpose_of_site[site];
        if (stack_.empty()) {
            add_busy(row, 1);
        } else {
            const Open& around = stack_.back();
            here_[around.slot].self_cost_ns += costs_[site];
            ++facts_.names[around.slot].made;
            open.program = around.program;
            open.purpose = around.purpose;
            if (is_wait(around.purpose) && own == RangePurpose::None) {  // a function that waits calls back
                add_busy(row, 1);
                around.facts->time_ns -= ns;
                open.purpose = RangePurpose::None;
            }
            open.facts = around.facts;
        }
        const bool is_new = open.purpose == RangePurpose::None ||
                            (open.purpose == RangePurpose::Import && own != RangePurpose::Import);
        if (own == RangePurpose::None) {
            if (is_program_[site]) open.program = slot;
        } else if (is_new) {
            open.purpose = own;
            open.facts = &add_purpose(row, own, slot, open.program, ns);
        }
        stack_.push_back(open);
    }
    static bool is_wait(RangePurpose purpose) {
        return purpose != RangePurpose::None && purpose < RangePurpose::File;
    }

    void leave() {
        const Open& open = stack_.back();
        if (--open_[open.slot] == 0) {
            Here& here = here_[open.slot];
            here.total_ns += open.ns;
            here.total_cost_ns += cost_ns_ - open.cost_ns;
        }
        stack_.pop_back();
    }

    PurposeFacts& add_purpose(Row row, RangePurpose purpose, std::uint32_t slot, std::uint32_t caller,
                              std::int64_t ns) {
        if (is_wait(purpose)) add_busy(row, -1);
        PurposeFacts& facts = by_caller_[{thread_, purpose, slot, caller}];
        if (facts.count++ == 0) facts = {purpose, thread_, slot, caller, 1};
        facts.time_ns += ns;
        if (ns > facts.longest_ns) std::tie(facts.longest, facts.longest_ns) = std::tie(row, ns);
        return facts;
    }

    void add_busy(Row row, int sign) {
        const std::int64_t start = std::max(ranges_.start_ns[row], clip_.start_ns) - clip_.start_ns;
        const std::int64_t end =
            std::min(ranges_.start_ns[row] + ranges_.duration_ns[row], clip_.end_ns) - clip_.start_ns;
        if (end <= start) return;
        facts_.busy_ns[thread_] += sign * (end - start);
        if (facts_.busy.empty()) return;
        FindingFacts::Busy& busy = facts_.busy[thread_];
        const double last = static_cast<double>(end);
        double from = static_cast<double>(start);
        for (auto i = static_cast<std::size_t>(from / bucket_ns_); i < busy.size() && from < last; ++i) {
            const double to = std::min(last, static_cast<double>(i + 1) * bucket_ns_);
            busy[i] += static_cast<float>(sign * std::max(to - from, 0.0));
            from = std::max(from, to);
        }
    }

    void finish(std::uint32_t slot) {
        Here& here = here_[slot];
        NameFacts& name = facts_.names[slot];
        const std::int64_t self = std::max<std::int64_t>(here.self_ns - std::llround(here.self_cost_ns), 0);
        const std::int64_t total =
            std::max<std::int64_t>(here.total_ns - std::llround(here.total_cost_ns), 0);
        name.total_ns += total;
        if (self > name.self_ns) std::tie(name.self_ns, name.self_thread) = std::tuple(self, thread_);
        if (total > name.thread_total_ns)
            std::tie(name.thread_total_ns, name.total_thread) = std::tuple(total, thread_);
        here = {};
    }

    const Trace& trace_;
    FindingFacts& facts_;
    RangeColumns ranges_;
    WindowClip clip_;
    double bucket_ns_;
    std::vector<double> costs_;  ///< by site
    std::vector<bool> is_program_;
    std::vector<Here> here_;  ///< by slot, on this track
    std::vector<std::uint32_t> open_, touched_;
    std::vector<Open> stack_;
    double cost_ns_ = 0;
    Row thread_ = kNoRow;
    std::map<std::tuple<Row, RangePurpose, std::uint32_t, std::uint32_t>, PurposeFacts> by_caller_;
};

}  // namespace

FindingFacts::FindingFacts(const Trace& trace)
    : slots(trace, true), names(slots.names.size()), busy_ns(trace.threads().size()) {
    if (trace.threads().size() <= kMostThreads) busy.resize(trace.threads().size());
    for (const SiteInfo& site : trace.sites()) {
        purpose_of_site.push_back(purpose_of(trace, site));
        has_c_calls |= site.scope == Scope::CFunction;
    }
    std::vector<Row> first(trace.processes().size(), kNoRow);
    const auto threads = trace.threads();
    for (Row row = 0; row < threads.size(); ++row) {
        Row& known = first[threads[row].process];
        if (threads[row].os_tid != 0 && (known == kNoRow || threads[row].id < threads[known].id)) known = row;
    }
    for (Row row = 0; row < threads.size(); ++row) is_main.push_back(first[threads[row].process] == row);
    FactsReader reader(trace, *this);
    for (const TrackInfo& track : trace.tracks()) {
        if (place_of(track) == Place::Host && track.kind == TrackKind::Thread) reader.read(track);
    }
    reader.finish_purposes();
}

PurposeSum FindingFacts::most(RangePurpose purpose, const std::vector<bool>& threads) const {
    std::map<Row, PurposeSum> sums;
    for (const PurposeFacts& each : purposes) {
        if (each.purpose != purpose || !threads[each.thread]) continue;
        PurposeSum& sum = sums[each.thread];
        sum.thread = each.thread;
        sum.count += each.count;
        sum.time_ns += each.time_ns;
        sum.parts.push_back(each);
        if (each.longest_ns > sum.longest_ns)
            std::tie(sum.longest, sum.longest_ns) = std::tie(each.longest, each.longest_ns);
    }
    const auto largest =
        std::ranges::max_element(sums, {}, [](const auto& entry) { return entry.second.time_ns; });
    return largest == sums.end() ? PurposeSum() : largest->second;
}

}  // namespace marey
