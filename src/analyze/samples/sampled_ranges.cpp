// sampled_ranges.cpp: makes ranges of samples, so that every analysis and picture of ranges has them.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include <marey/samples.h>

#include "analyze/result_keys.h"
#include "analyze/samples/stack_functions.h"
#include "analyze/tree/child_index.h"
#include "analyze/tree/path_tree.h"
#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// Appends tracks and their ranges to a trace.
class SampledTracks {
  public:
    explicit SampledTracks(const Trace& trace)
        : trace_(trace), functions_(trace), data_(changeable_data(trace)) {
        data_->own_ranges();
        for (std::uint32_t i = 0; i < data_->sites.size(); ++i) {
            if (data_->sites[i].scope == Scope::PythonFunction) site_of_.try_emplace(data_->sites[i].name, i);
        }
    }

    const Trace& trace() const { return trace_; }
    const StackFunctions& functions() const { return functions_; }
    TraceData& data() { return *data_; }
    /// Without the samples, so that they do not count twice.
    Trace finish() {
        TraceData& data = *data_;
        for (auto* const column : {&data.sample_time_ns, &data.sample_duration_ns, &data.sample_cpu_ns})
            column->clear();
        for (auto* const column : {&data.sample_thread, &data.sample_stack, &data.sample_range})
            column->clear();
        data.sample_state.clear();
        return Trace(std::move(data_));
    }

    /// The site of a function; `frame` is one of its.
    std::uint32_t site(const FrameInfo& frame) {
        const auto [at, is_new] =
            site_of_.try_emplace(frame.name, static_cast<std::uint32_t>(data_->sites.size()));
        if (is_new) {
            const bool is_python = StackFunctions::is_python(frame);
            data_->sites.push_back({.name = frame.name,
                                    .file = frame.file,
                                    .line = frame.line,
                                    .scope = is_python ? Scope::PythonFunction : Scope::Function});
        }
        return at->second;
    }
    StringId string(std::string_view text) {
        if (!strings_) strings_.emplace(data_->strings);
        return strings_->intern(text);
    }
    /// The name follows that of the thread.
    void begin_track(Row thread, std::string_view what) {
        const std::string name = thread_name(trace_, thread).value_or("") + ": " + std::string(what);
        data_->tracks.push_back({.kind = TrackKind::Overlap,
                                 .thread = thread,
                                 .name = string(name),
                                 .first_range = static_cast<Row>(data_->range_start_ns.size())});
    }
    Row add_range(std::int64_t start_ns, std::int64_t duration_ns, std::uint32_t site, Row parent,
                  std::uint32_t depth) {
        data_->range_start_ns.push_back(start_ns);
        data_->range_duration_ns.push_back(duration_ns);
        data_->range_self_ns.push_back(duration_ns);
        if (parent != kNoRow) data_->range_self_ns[parent] -= duration_ns;
        data_->range_site.push_back(site);
        data_->range_parent.push_back(parent);
        data_->range_depth.push_back(depth);
        data_->range_flags.push_back(kSampled);
        ++data_->tracks.back().range_count;
        return static_cast<Row>(data_->range_start_ns.size() - 1);
    }

  private:
    const Trace trace_;  // shares its tables with the caller's
    const StackFunctions functions_;
    std::shared_ptr<TraceData> data_;
    std::optional<StringPool> strings_;
    std::unordered_map<StringId, std::uint32_t> site_of_;
};

/// Which functions of a sample's stack are shown below its range.
class ShownPaths {
  public:
    explicit ShownPaths(const SampledTracks& tracks)
        : trace_(tracks.trace()), functions_(tracks.functions()) {
        const SampleColumns samples = trace_.samples();
        for (std::size_t i = 0; i < samples.size(); ++i) {
            if (samples.range[i] == kNoRow || samples.stack[i] == kNoRow) continue;
            const std::vector<StringId>& names = names_of(samples.stack[i]);
            const auto [at, is_new] = common_.try_emplace(group_of(i), names);
            if (is_new) continue;
            std::vector<StringId>& common = at->second;
            const auto end = std::ranges::mismatch(common, names).in1;
            common.erase(end, common.end());
        }
    }

    /// How many of the outermost shown functions were around its range.
    std::size_t left_out(std::size_t sample) {
        const SampleColumns samples = trace_.samples();
        if (samples.range[sample] == kNoRow || samples.stack[sample] == kNoRow) return 0;
        // A recorded call is on the stack itself.
        const std::vector<StringId>& names = names_of(samples.stack[sample]);
        const StringId call = trace_.sites()[trace_.ranges().site[samples.range[sample]]].name;
        const auto found = std::ranges::find(names.rbegin(), names.rend(), call);
        if (found != names.rend()) return static_cast<std::size_t>(names.rend() - found);
        const std::size_t common = common_.at(group_of(sample)).size();
        return common > 0 ? common - 1 : 0;
    }

  private:
    /// Equal ranges of a thread have the same functions around them.
    std::pair<Row, std::uint32_t> group_of(std::size_t sample) const {
        const SampleColumns samples = trace_.samples();
        return {samples.thread[sample], trace_.ranges().site[samples.range[sample]]};
    }
    const std::vector<StringId>& names_of(Row stack) {
        const auto [at, is_new] = names_.try_emplace(stack);
        if (is_new) at->second = functions_.names(stack);
        return at->second;
    }

    const Trace& trace_;
    const StackFunctions& functions_;
    std::unordered_map<Row, std::vector<StringId>> names_;
    std::map<std::pair<Row, std::uint32_t>, std::vector<StringId>> common_;
};

/// The ranges of one thread as sums.
class ThreadSums {
  public:
    ThreadSums(SampledTracks& tracks, ShownPaths& paths) : tracks_(tracks), paths_(paths) {}

    void add(std::size_t sample, std::int64_t weight_ns) {
        const SampleColumns samples = tracks_.trace().samples();
        // The first level stands for ranges.
        std::uint32_t node = tree_.child(kNoRow, samples.range[sample]);
        stack_.clear();
        if (samples.stack[sample] != kNoRow) {
            for (Row at = functions().shown(samples.stack[sample]); at != kNoRow; at = functions().outer(at))
                stack_.push_back(at);
        }
        stack_.resize(stack_.size() - paths_.left_out(sample));
        ++tree_.nodes[node].count;
        for (auto at = stack_.rbegin(); at != stack_.rend(); ++at) {
            node = tree_.child(node, tracks_.site(functions().frame(*at)));
            ++tree_.nodes[node].count;
        }
        tree_.nodes[node].self_ns += weight_ns;
    }

    void finish(Row thread) {
        const std::vector<PathTree::Node>& nodes = tree_.nodes;
        std::vector<std::int64_t> total(nodes.size());
        std::vector<std::uint32_t> parents(nodes.size()), order(nodes.size());
        for (auto i = static_cast<std::uint32_t>(nodes.size()); i-- > 0;) {
            total[i] += nodes[i].self_ns;
            parents[i] = nodes[i].parent;
            order[i] = i;
            if (parents[i] != kNoRow) total[parents[i]] += total[i];
        }
        tracks_.begin_track(thread, "samples");
        const ChildIndex children(parents, order);
        struct Next {
            std::uint32_t node;
            Row parent;
            std::uint32_t depth;
            std::int64_t start_ns;
        };
        std::vector<Next> rest;
        const auto push = [&](std::uint32_t node, Row parent, std::uint32_t depth, std::int64_t start_ns) {
            const auto first = static_cast<std::ptrdiff_t>(rest.size());
            for (const std::uint32_t child : children.of(node)) {
                rest.push_back({child, parent, depth, start_ns});
                start_ns += total[child];
            }
            std::reverse(rest.begin() + first, rest.end());
        };
        const std::int64_t start_ns = tracks_.trace().window().start_ns;
        const std::span<const std::uint32_t> roots = children.roots();
        for (std::size_t i = roots.size(); i-- > 0;) push(roots[i], nodes[roots[i]].slot, 0, start_ns);
        while (!rest.empty()) {
            const Next at = rest.back();
            rest.pop_back();
            const Row row =
                tracks_.add_range(at.start_ns, total[at.node], nodes[at.node].slot, at.parent, at.depth);
            RangeDetail detail;
            detail.range = row;
            detail.calls =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(nodes[at.node].count, 0xffffffff));
            tracks_.data().range_details.push_back(detail);
            push(at.node, row, at.depth + 1, at.start_ns);
        }
    }

  private:
    const StackFunctions& functions() const { return tracks_.functions(); }

    SampledTracks& tracks_;
    ShownPaths& paths_;
    PathTree tree_;  ///< slots are ranges, and below them sites
    std::vector<Row> stack_;
};

/// The ranges of one thread where it was seen.
class ThreadTimes {
  public:
    ThreadTimes(SampledTracks& tracks, std::size_t first, std::size_t end)
        : tracks_(tracks), first_(first), end_(end) {}

    void add_stacks() {
        struct Open {
            std::uint32_t site;
            Row row;
        };
        std::vector<Open> open;
        std::vector<std::uint32_t> sites;
        std::int64_t before_ns = 0;
        for_each_time([&](std::size_t i, std::int64_t start_ns, std::int64_t end_ns) {
            sites.clear();
            const Row stack = tracks_.trace().samples().stack[i];
            if (stack != kNoRow) {
                for (Row at = functions().shown(stack); at != kNoRow; at = functions().outer(at))
                    sites.push_back(tracks_.site(functions().frame(at)));
            }
            std::ranges::reverse(sites);
            std::size_t shared = 0;
            while (start_ns == before_ns && shared < std::min(open.size(), sites.size()) &&
                   open[shared].site == sites[shared])
                ++shared;
            open.resize(shared);
            for (const Open& it : open) lengthen(it.row, end_ns);
            for (std::size_t k = shared; k < sites.size(); ++k)
                open.push_back(
                    {sites[k], tracks_.add_range(start_ns, 0, sites[k], k > 0 ? open[k - 1].row : kNoRow,
                                                 static_cast<std::uint32_t>(k))});
            for (std::size_t k = shared; k < open.size(); ++k) lengthen(open[k].row, end_ns);
            if (!open.empty()) only_self(open, end_ns - start_ns);
            before_ns = end_ns;
        });
    }

    void add_states() {
        const SampleColumns samples = tracks_.trace().samples();
        Row last = kNoRow;
        std::string last_name;
        std::int64_t before_ns = 0;
        for_each_time([&](std::size_t i, std::int64_t start_ns, std::int64_t end_ns) {
            std::string name = sample_state_name(samples.state[i]);
            if (samples.state[i] == SampleState::Waiting)
                name += std::string(": ") + sampled_wait_kind(tracks_.trace(), samples.stack[i]);
            if (last == kNoRow || name != last_name || start_ns != before_ns)
                last = tracks_.add_range(start_ns, 0, state_site(name), kNoRow, 0);
            lengthen(last, end_ns);
            tracks_.data().range_self_ns[last] = tracks_.data().range_duration_ns[last];
            last_name = name;
            before_ns = end_ns;
        });
    }

  private:
    const StackFunctions& functions() const { return tracks_.functions(); }

    /// The time that each sample stands for: a running one for the CPU time before it. Short gaps, in which
    /// other threads had the CPU, are closed.
    void for_each_time(auto use) {
        const SampleColumns samples = tracks_.trace().samples();
        std::int64_t free_ns = tracks_.trace().window().start_ns;
        for (std::size_t i = first_; i < end_; ++i) {
            const bool is_wait = samples.state[i] == SampleState::Waiting;
            std::int64_t start_ns = samples.time_ns[i] - (is_wait ? 0 : samples.cpu_ns[i]);
            const std::int64_t end_ns = samples.time_ns[i] + samples.duration_ns[i];
            if (start_ns < free_ns || (!is_wait && start_ns - free_ns < samples.cpu_ns[i] / 2))
                start_ns = free_ns;
            if (end_ns <= start_ns) continue;
            use(i, start_ns, end_ns);
            free_ns = end_ns;
        }
    }
    void lengthen(Row row, std::int64_t end_ns) {
        tracks_.data().range_duration_ns[row] = end_ns - tracks_.data().range_start_ns[row];
    }
    void only_self(const auto& open, std::int64_t duration_ns) {
        tracks_.data().range_self_ns[open.back().row] += duration_ns;
    }
    std::uint32_t state_site(const std::string& name) {
        const auto [at, is_new] =
            state_sites_.try_emplace(name, static_cast<std::uint32_t>(tracks_.data().sites.size()));
        if (is_new) tracks_.data().sites.push_back({.name = tracks_.string(name), .scope = Scope::Function});
        return at->second;
    }

    SampledTracks& tracks_;
    std::size_t first_, end_;
    std::map<std::string, std::uint32_t> state_sites_;
};

/// Calls use(thread, first, end) for the samples of each thread.
void for_each_thread(const SampleColumns& samples, auto use) {
    for (std::size_t first = 0, end = 0; first < samples.size(); first = end) {
        while (end < samples.size() && samples.thread[end] == samples.thread[first]) ++end;
        use(samples.thread[first], first, end);
    }
}

}  // namespace

Trace with_sampled_functions(const Trace& trace, bool with_waits) {
    const SampleColumns samples = trace.samples();
    if (samples.size() == 0) return trace;
    SampledTracks tracks(trace);
    ShownPaths paths(tracks);
    for_each_thread(samples, [&](Row thread, std::size_t first, std::size_t end) {
        ThreadSums sums(tracks, paths);
        for (std::size_t i = first; i < end; ++i) {
            const bool is_counted = with_waits || samples.range[i] != kNoRow;
            const std::int64_t weight_ns = samples.cpu_ns[i] + (is_counted ? samples.duration_ns[i] : 0);
            if (weight_ns > 0) sums.add(i, weight_ns);
        }
        sums.finish(thread);
    });
    return tracks.finish();
}

Trace with_sample_tracks(const Trace& trace) {
    const SampleColumns samples = trace.samples();
    if (samples.size() == 0) return trace;
    SampledTracks tracks(trace);
    for_each_thread(samples, [&](Row thread, std::size_t first, std::size_t end) {
        ThreadTimes times(tracks, first, end);
        tracks.begin_track(thread, "running and waiting");
        times.add_states();
        tracks.begin_track(thread, "samples");
        times.add_stacks();
    });
    return tracks.finish();
}

}  // namespace marey
