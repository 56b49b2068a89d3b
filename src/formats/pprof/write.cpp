// write.cpp: writes pprof's profile.proto: one sample per distinct stack of a thread.
#include <marey/error.h>
#include <marey/export.h>
#include <marey/samples.h>

#if MAREY_HAVE_PROTOZERO

#include <algorithm>
#include <optional>
#include <protozero/pbf_builder.hpp>
#include <unordered_map>

#include "analyze/events/innermost_ranges.h"
#include "analyze/gpu/device_time.h"
#include "analyze/tree/step_ranges.h"
#include "base/output_file.h"
#include "base/utf8.h"
#include "formats/merged_functions.h"
#include "formats/pprof/fields.h"

namespace marey {

using namespace pprof;
using protozero::pbf_builder;

namespace {

class PprofProfile {
  public:
    PprofProfile(const Trace& trace, const std::string& path)
        : trace_(trace), merged_(merge_functions(trace, true)), file_(path) {}

    /// Returns the number of entries after which stacks were cut; 0: none were.
    std::uint32_t write() {
        values_.resize(merged_.ranges.tree.nodes.size());
        add_host();
        add_devices();
        add_allocations();
        cut_deep_stacks();
        label_steps();
        write_types();
        write_functions();
        write_samples();
        write_facts();
        for (const std::string& text : texts_) {
            pbf_builder<ProfileField> profile(begin());
            profile.add_string(ProfileField::StringTable, text);
            flush();
        }
        file_.commit();
        return cut_depth_;
    }

  private:
    /// A sample lists its whole stack, so deep recursion would need the square of its depth. Deeper calls
    /// count for the last location.
    static constexpr std::uint32_t kMaxDepth = 1024;
    static constexpr std::uint64_t kFreeEntries = std::uint64_t{4} << 20;
    static constexpr std::uint64_t kEntriesPerStack = 64;  ///< on average, if there are more

    struct Values {
        std::int64_t self_ns = 0;
        std::int64_t calls = 0;
        std::int64_t bytes = 0;
        std::int64_t device_ns = 0;
        std::uint32_t depth = 0;  ///< 0: a thread
        std::optional<std::int64_t> step;

        bool is_empty() const { return self_ns == 0 && calls == 0 && bytes == 0 && device_ns == 0; }
    };

    std::string& begin() {
        message_.clear();
        return message_;
    }
    void flush() { file_.write(message_); }

    std::int64_t text(std::string_view text) {
        std::string valid;
        append_utf8(valid, text);
        const auto [place, is_new] =
            text_ids_.try_emplace(std::move(valid), static_cast<std::int64_t>(texts_.size()));
        if (is_new) texts_.push_back(place->first);
        return place->second;
    }

    std::vector<PathTree::Node>& nodes() { return merged_.ranges.tree.nodes; }
    Values& values(std::uint32_t node) {
        if (node >= values_.size()) values_.resize(nodes().size());
        return values_[node];
    }
    std::uint32_t child(std::uint32_t parent, Row range) {
        return merged_.ranges.tree.child(parent, merged_.of_site[trace_.ranges().site[range]]);
    }

    void add_host() {
        for (std::uint32_t i = 0; i < values_.size(); ++i) {
            const PathTree::Node& node = nodes()[i];
            if (!is_host_call(node)) continue;
            values_[i].self_ns = node.self_ns;
            values_[i].calls = static_cast<std::int64_t>(node.count);
        }
    }

    /// Device work counts under the stack that launched it, as in marey/stacks.h; work without a launching
    /// call is a stack of the device's own thread.
    void add_devices() {
        std::vector<std::uint32_t>& node_of = merged_.ranges.node_of;
        const std::vector<LaunchedTime> all = launched_times(trace_);
        const DeviceTimes times = device_times(trace_, all);
        for (const LaunchedTime& launched : all) {
            const Row owner = launched.owner;
            if (trace_.sites()[trace_.ranges().site[owner]].scope == Scope::DeviceRuntime) continue;
            if (launched.is_timed) {
                values(node_of[owner]).device_ns += std::max<std::int64_t>(times.self[owner], 0);
                has_devices_ = true;
            } else {
                node_of[launched.range] = child(node_of[owner], launched.range);
            }
        }
        EnclosingWork work(trace_);
        for (const TrackInfo& track : trace_.tracks()) {
            if (place_of(track) != Place::Device) continue;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                const Row range = work.at(row);
                if (range == kNoRow) continue;
                has_devices_ = true;
                Values& its = values(node_of[range]);
                its.device_ns += trace_.ranges().self_ns[row];
                its.calls += range == row ? 1 : 0;
            }
        }
    }

    void add_allocations() {
        const MemoryColumns memory = trace_.memory();
        InnermostRanges innermost(trace_);
        for (std::size_t i = 0; i < memory.size(); ++i) {
            if (memory.bytes[i] <= 0 || memory.out_of_memory[i] != 0) continue;
            const Row row = innermost.at(memory.thread[i], memory.time_ns[i]);
            if (row == kNoRow) continue;
            values(merged_.ranges.node_of[row]).bytes += memory.bytes[i];
            has_memory_ = true;
        }
    }

    /// Parents have smaller numbers than their children.
    void cut_deep_stacks() {
        values_.resize(nodes().size());
        std::vector<std::uint64_t> stacks(kMaxDepth + 1);  // by depth
        std::uint32_t deepest = 0;
        for (std::uint32_t i = 0; i < values_.size(); ++i) {
            const PathTree::Node& node = nodes()[i];
            const std::uint32_t depth =
                node.is_thread ? 0 : 1 + (node.parent == kNoRow ? 0 : values_[node.parent].depth);
            values_[i].depth = depth;
            if (depth <= kMaxDepth) ++stacks[depth];
            deepest = std::max(deepest, depth);
        }
        const std::uint64_t most = std::max(kFreeEntries, kEntriesPerStack * values_.size());
        std::uint32_t limit = 0;
        for (std::uint64_t entries = 0; limit < kMaxDepth; ++limit) {
            entries += stacks[limit + 1] * (limit + 1);
            if (entries > most) break;
        }
        if (deepest <= limit) return;
        cut_depth_ = limit;
        for (std::uint32_t i = static_cast<std::uint32_t>(values_.size()); i-- > 0;) {
            Values& its = values_[i];
            if (its.depth <= limit) continue;
            Values& above = values_[nodes()[i].parent];
            above.self_ns += its.self_ns;
            above.calls += its.calls;
            above.bytes += its.bytes;
            above.device_ns += its.device_ns;
            its.self_ns = its.calls = its.bytes = its.device_ns = 0;
        }
    }

    /// A stack has the number of its step if all ranges of the step's node have that number.
    void label_steps() {
        std::unordered_map<std::uint32_t, std::optional<std::int64_t>> steps;
        for (const StepRange& step : find_steps(trace_, "")) {
            const auto [place, is_new] = steps.try_emplace(merged_.ranges.node_of[step.row], step.number);
            if (!is_new && place->second != step.number) place->second.reset();
        }
        for (std::uint32_t i = 0; i < values_.size(); ++i) {
            const std::uint32_t parent = nodes()[i].parent;
            if (const auto step = steps.find(i); step != steps.end()) {
                values_[i].step = step->second;
            } else if (parent != kNoRow) {
                values_[i].step = values_[parent].step;
            }
        }
    }

    void write_types() {
        const auto add = [&](std::string_view type, std::string_view unit) {
            pbf_builder<ProfileField> profile(begin());
            {
                pbf_builder<ValueTypeField> value(profile, ProfileField::SampleType);
                value.add_int64(ValueTypeField::Type, text(type));
                value.add_int64(ValueTypeField::Unit, text(unit));
            }
            flush();
        };
        text("");
        add("time", "nanoseconds");
        add("calls", "count");
        if (has_memory_) add("alloc_space", "bytes");
        if (has_devices_) add("gpu_time", "nanoseconds");
        pbf_builder<ProfileField> profile(begin());
        profile.add_int64(ProfileField::DefaultSampleType, text("time"));
        flush();
    }

    /// One function and one location for each; both have the number of the function, from 1.
    void write_functions() {
        for (std::size_t i = 0; i < merged_.functions.size(); ++i) {
            const ProfileFunction& its = merged_.functions[i];
            pbf_builder<ProfileField> profile(begin());
            {
                pbf_builder<FunctionField> function(profile, ProfileField::Function);
                function.add_uint64(FunctionField::Id, i + 1);
                function.add_int64(FunctionField::Name, text(its.name));
                function.add_int64(FunctionField::SystemName, text(its.name));
                if (!its.file.empty()) function.add_int64(FunctionField::FileName, text(its.file));
                if (its.line != 0) function.add_int64(FunctionField::StartLine, its.line);
            }
            {
                pbf_builder<LocationField> location(profile, ProfileField::Location);
                location.add_uint64(LocationField::Id, i + 1);
                pbf_builder<LineField> line(location, LocationField::Line);
                line.add_uint64(LineField::FunctionId, i + 1);
                if (its.line != 0) line.add_int64(LineField::Line, its.line);
            }
            flush();
        }
    }

    std::string thread_text(Row thread) const {
        const ThreadInfo& info = trace_.threads()[thread];
        const std::string_view name = trace_.string(info.name);
        return name.empty() ? "thread " + std::to_string(info.id) : std::string(name);
    }

    void write_samples() {
        const std::int64_t thread_key = text("thread"), step_key = text("step"), rank_key = text("rank");
        std::vector<std::int64_t> thread_texts;
        for (Row thread = 0; thread < trace_.threads().size(); ++thread)
            thread_texts.push_back(text(thread_text(thread)));
        std::vector<std::uint64_t> stack;
        std::vector<std::int64_t> numbers;
        for (std::uint32_t i = 0; i < values_.size(); ++i) {
            const Values& its = values_[i];
            if (its.is_empty()) continue;
            stack.clear();
            for (std::uint32_t at = i; at != kNoRow && !nodes()[at].is_thread; at = nodes()[at].parent)
                stack.push_back(nodes()[at].slot + 1);
            numbers = {its.self_ns, its.calls};
            if (has_memory_) numbers.push_back(its.bytes);
            if (has_devices_) numbers.push_back(its.device_ns);
            pbf_builder<ProfileField> profile(begin());
            {
                pbf_builder<SampleField> sample(profile, ProfileField::Sample);
                sample.add_packed_uint64(SampleField::LocationId, stack.begin(), stack.end());
                sample.add_packed_int64(SampleField::Value, numbers.begin(), numbers.end());
                const Row thread = nodes()[i].thread;
                label(sample, thread_key, LabelField::Str, thread_texts[thread]);
                if (its.step) label(sample, step_key, LabelField::Num, *its.step);
                const std::int32_t rank = trace_.processes()[trace_.threads()[thread].process].node;
                if (rank >= 0) label(sample, rank_key, LabelField::Num, rank);
            }
            flush();
        }
    }
    static void label(pbf_builder<SampleField>& sample, std::int64_t key, LabelField kind,
                      std::int64_t value) {
        pbf_builder<LabelField> label(sample, SampleField::Label);
        label.add_int64(LabelField::Key, key);
        label.add_int64(kind, value);
    }

    void write_facts() {
        const WindowInfo& window = trace_.window();
        pbf_builder<ProfileField> profile(begin());
        if (!trace_.processes().empty())
            profile.add_int64(ProfileField::TimeNanos,
                              window.start_ns + trace_.processes().front().realtime_offset_ns);
        profile.add_int64(ProfileField::DurationNanos,
                          std::max<std::int64_t>(window.end_ns - window.start_ns, 0));
        profile.add_int64(ProfileField::Comment, text("marey " MAREY_VERSION));
        for (const ProblemInfo& problem : trace_.problems())
            profile.add_int64(ProfileField::Comment, text("problem: " + problem.text));
        if (cut_depth_ != 0)
            profile.add_int64(ProfileField::Comment,
                              text("stacks are cut after " + std::to_string(cut_depth_) + " entries"));
        flush();
    }

    const Trace& trace_;
    MergedFunctions merged_;
    OutputFile file_;
    std::string message_;
    std::vector<Values> values_;  ///< per node
    bool has_memory_ = false;
    bool has_devices_ = false;
    std::uint32_t cut_depth_ = 0;
    std::vector<std::string> texts_;
    std::unordered_map<std::string, std::int64_t> text_ids_;
};

}  // namespace

std::uint32_t write_pprof(const Trace& trace, const std::string& path) {
    return PprofProfile(with_sampled_functions(trace), path).write();
}

}  // namespace marey

#else

namespace marey {

std::uint32_t write_pprof(const Trace&, const std::string& path) {
    throw Error(path + ": this Marey was built without protozero and cannot write pprof profiles");
}

}  // namespace marey

#endif
