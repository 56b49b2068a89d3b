// run_paths.cpp: one pass over the ranges of threads, then one over those of devices, whose work is placed
// below the range that launched it.
#include "analyze/compare/run_paths.h"

#include <algorithm>
#include <tuple>

#include <marey/analyze.h>
#include <marey/averages.h>

#include "analyze/averages/site_groups.h"
#include "analyze/gpu/device_time.h"
#include "analyze/gpu/gpu_host.h"
#include "analyze/gpu/gpu_work.h"
#include "analyze/name_slots.h"
#include "analyze/ranks/collective_name.h"
#include "analyze/tree/step_ranges.h"
#include "base/text_hash.h"
#include "trace/part_flags.h"

namespace marey {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// "load 17 of 20" becomes "load # of #".
std::string without_numbers(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (!is_digit(text[i])) result += text[i];
        if (is_digit(text[i]) && (i == 0 || !is_digit(text[i - 1]))) result += '#';
    }
    return result;
}

CountKind kind_of(std::string_view name, Scope scope) {
    if (communication_kind(name) == CommunicationKind::Collective) return CountKind::Collectives;
    return scope == Scope::DeviceRuntime && is_wait_call(name) ? CountKind::Synchronisations
                                                               : CountKind::Calls;
}

CountKind kind_of(GpuWorkKind kind) {
    return kind == GpuWorkKind::Kernel ? CountKind::Launches
           : kind == GpuWorkKind::Copy ? CountKind::Copies
           : kind == GpuWorkKind::Set  ? CountKind::Sets
                                       : CountKind::Calls;
}

class RunReader {
  public:
    RunReader(const Trace& trace, CompareSide side, const CompareOptions& options, Comparison::Paths& paths,
              const RunVisitor& visit)
        : trace_(trace),
          ranges_(trace.ranges()),
          options_(options),
          paths_(paths),
          visit_(visit),
          clip_(trace),
          is_step_(step_sites(trace, options.step_name)) {
        record_.side = side;
        is_linked_ = std::ranges::any_of(trace.tracks(), [](const TrackInfo& track) {
            return place_of(track) == Place::Device || track.kind == TrackKind::Overlap;
        });
        if (is_linked_) node_of_.resize(ranges_.size(), kNoRow);
        for (int device = 0; device < 2; ++device) name_of_[device].resize(trace.sites().size(), kNoRow);
    }

    RunRecord read() {
        record_.values.resize(paths_.tree.nodes.size());
        for (const TrackInfo& track : trace_.tracks()) {
            if (place_of(track) != Place::Device) add_host_track(track, place_of(track));
        }
        add_devices();
        if (trace_.memory().size() > 0) add_memory();
        add_steps();
        note_facts();
        record_.values.resize(paths_.tree.nodes.size());
        return std::move(record_);
    }

  private:
    std::uint32_t name_of(std::uint32_t site, bool is_device) {
        const std::uint32_t known = name_of_[is_device][site];
        return known != kNoRow ? known : add_name(site, is_device);
    }
    std::uint32_t add_name(std::uint32_t site, bool is_device) {
        std::uint32_t& known = name_of_[is_device][site];
        const SiteInfo& info = trace_.sites()[site];
        const std::string text = name_text(trace_.string(info.name), is_step_[site]);
        const bool is_grouped = options_.by == CompareBy::Function || options_.by == CompareBy::File ||
                                options_.by == CompareBy::Module;
        const GroupBy by = options_.by == CompareBy::File     ? GroupBy::File
                           : options_.by == CompareBy::Module ? GroupBy::Module
                                                              : GroupBy::Function;
        known = paths_.names.find(text, is_grouped && !is_device ? site_group(trace_, info, by) : text,
                                  info.scope, is_device);
        if (!is_device) paths_.names.names[known].kind = kind_of(text, info.scope);
        return known;
    }

    /// A name as the comparison has it.
    std::string name_text(std::string_view name, bool is_step) const {
        std::string text(group_name(name));
        if (is_step && !text.ends_with('*')) {
            const std::size_t end = text.find_last_not_of("0123456789") + 1;
            if (end < text.size()) text.replace(end, text.npos, "*");
        }
        const std::size_t place = parse_python_name(text).path.size();  // its line stays
        const std::size_t fixed = place == 0 ? 0 : text.find("): ", place) + 3;
        if (options_.fold_numbers)
            text = text.substr(0, fixed) + without_numbers(std::string_view(text).substr(fixed));
        if (record_.side == CompareSide::New) return text;
        for (const auto& [before, after] : options_.renames) {
            const PythonName python = parse_python_name(text);
            if (text == before) return after;
            if (!python.path.empty() && python.path == before) return after + text.substr(before.size());
            if (!python.path.empty() && python.function == before)
                return text.substr(0, text.size() - before.size()) + after;
        }
        return text;
    }

    /// The outermost node of a name on threads.
    std::uint32_t root(std::uint32_t name, Place place) {
        std::vector<std::uint32_t>& roots = roots_[place == Place::Host];
        if (name >= roots.size()) roots.resize(paths_.names.names.size() * 2, kNoRow);
        if (roots[name] == kNoRow) roots[name] = paths_.tree.root(kNoRow, name, place);
        return roots[name];
    }
    /// The node below another one; mostly the same as the last time.
    std::uint32_t child(std::uint32_t above, std::uint32_t name) {
        if (above >= last_child_.size()) last_child_.resize(paths_.tree.nodes.size() * 2, {kNoRow, kNoRow});
        auto& [slot, node] = last_child_[above];
        if (slot != name) std::tie(slot, node) = std::tuple(name, paths_.tree.child(above, name));
        return node;
    }

    NodeValues& values(std::uint32_t node) {
        if (node >= record_.values.size()) record_.values.resize(paths_.tree.nodes.size() * 2);
        return record_.values[node];
    }

    /// Adds the range to its node, except its self time.
    NodeValues& add(Row row, std::uint32_t node) {
        if (is_linked_) node_of_[row] = node;
        NodeValues& to = values(node);
        if ((ranges_.flags[row] & kFurtherPart) == 0) to.calls += calls_of(trace_, ranges_, row);
        if (options_.metric == CompareMetric::Total)
            to.total_ns += clip_.duration(ranges_.start_ns[row], ranges_.duration_ns[row]);
        return to;
    }

    void add_host_track(const TrackInfo& track, Place place) {
        const Row end = track.first_range + track.range_count;
        std::vector<std::uint32_t> open;  // by depth: the nodes of the ranges around
        for (Row row = track.first_range; row < end; ++row) {
            const std::uint32_t name = name_of(ranges_.site[row], false);
            const std::uint32_t depth = ranges_.depth[row];
            std::uint32_t above = depth > 0 && depth <= open.size() ? open[depth - 1] : kNoRow;
            if (is_linked_ && ranges_.parent[row] != kNoRow) above = node_of_[ranges_.parent[row]];
            const std::uint32_t node = above != kNoRow ? child(above, name) : root(name, place);
            add(row, node).self_ns += ranges_.self_ns[row];
            if (visit_) visit_(row, node, row);
            if (depth >= open.size()) open.resize(depth + 1);
            open[depth] = node;
        }
    }

    void add_devices() {
        if (!is_linked_) return;
        std::unordered_map<Row, const GpuPiece*> pieces;
        const GpuWork work = collect_gpu_work(trace_, {});
        for (const GpuDeviceWork& device : work.devices) {
            for (const GpuPiece& piece : device.pieces) pieces.emplace(piece.range, &piece);
        }
        EnclosingWork enclosing(trace_);
        for (const TrackInfo& track : trace_.tracks()) {
            if (place_of(track) != Place::Device) continue;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                const auto found = pieces.find(row);
                add_device_range(row, found == pieces.end() ? nullptr : found->second);
                const Row counted = enclosing.at(row);
                if (counted != kNoRow && node_of_[counted] != kNoRow && pieces.contains(counted))
                    values(node_of_[counted]).self_ns += ranges_.self_ns[row];
            }
        }
    }

    void add_device_range(Row row, const GpuPiece* piece) {
        const std::uint32_t name = name_of(ranges_.site[row], true);
        const Row parent = ranges_.parent[row];
        std::uint32_t above = parent == kNoRow ? kNoRow : node_of_[parent];
        if (above == kNoRow && piece != nullptr && piece->call != kNoRow) {
            const Row owner = range_around_call(ranges_, trace_.sites(), piece->call);
            above = owner == kNoRow ? kNoRow : node_of_[owner];
            if (above != kNoRow && paths_.tree.nodes[above].place != Place::Host) above = kNoRow;
        }
        const std::uint32_t node =
            above == kNoRow ? paths_.tree.root(kNoRow, name, Place::Device) : paths_.tree.child(above, name);
        paths_.tree.nodes[node].place = Place::Device;
        add(row, node);
        const bool has_call = piece != nullptr && piece->call != kNoRow;
        if (piece != nullptr) note_piece(*piece, node);
        if (visit_) visit_(row, node, has_call ? piece->call : row);
    }
    void note_piece(const GpuPiece& piece, std::uint32_t node) {
        if (piece.kind != GpuWorkKind::None)
            paths_.names.names[paths_.tree.nodes[node].slot].kind = kind_of(piece.kind);
        if (piece.bytes > 0 && piece.kind == GpuWorkKind::Copy)
            record_.bytes.push_back({.node = node, .copied = piece.bytes});
    }

    void add_memory() {
        std::unordered_map<std::string_view, std::uint32_t> name_of_text;
        for (std::uint32_t site = 0; site < trace_.sites().size(); ++site) {
            if (name_of_[0][site] != kNoRow)
                name_of_text.emplace(trace_.string(trace_.sites()[site].name), name_of_[0][site]);
        }
        constexpr const char* kNoRange = "(in no range)";
        for (const DeviceMemory& device : memory_use(trace_).devices) {
            record_.peaks.emplace_back(device.device, device.peak_bytes);
            for (const MemoryHolder& holder : device.holders) {
                std::uint32_t node = kNoRow;
                for (const std::string& text : holder.path) {
                    const auto found = name_of_text.find(text);
                    if (found == name_of_text.end()) break;
                    node = node == kNoRow ? paths_.tree.root(kNoRow, found->second, Place::Host)
                                          : paths_.tree.child(node, found->second);
                }
                if (node == kNoRow)
                    node = paths_.tree.root(kNoRow, paths_.names.find(kNoRange, kNoRange, Scope::User, false),
                                            Place::Host);
                record_.bytes.push_back(
                    {node, holder.allocations, holder.allocated_bytes, holder.peak_bytes, 0});
            }
        }
    }

    void add_steps() {
        for (const StepRange& step : find_steps(trace_, options_.step_name)) {
            if ((ranges_.flags[step.row] & (kBeganBefore | kUnfinished)) == 0)
                record_.steps.push_back({step.number, ranges_.duration_ns[step.row]});
        }
    }

    void note_facts() {
        const WindowInfo& window = trace_.window();
        record_.window_ns = window.end_ns - window.start_ns;
        record_.names = paths_.names.names.size();
        record_.identity = mix_hash(static_cast<std::uint64_t>(window.start_ns), 0);
        for (std::uint32_t node = 0; node < record_.values.size(); ++node) {
            const NodeValues& values = record_.values[node];
            if (values.calls > 0)
                record_.identity = mix_hash(record_.identity + values.calls,
                                            mix_hash(static_cast<std::uint64_t>(values.self_ns), node));
        }
        record_.is_unfinished = !window.finished;
        record_.is_lossy = window.size_limit_reached || trace_.has_problem("truncated") ||
                           trace_.has_problem("damaged_chunk");
        for (const ThreadInfo& thread : trace_.threads())
            record_.is_lossy |= thread.dropped > 0 || thread.overwritten_chunks > 0;
        record_.overhead = estimate_overhead(trace_).busiest_share;
        std::map<std::string, std::string>& facts = record_.facts;
        if (!trace_.processes().empty()) {
            const ProcessInfo& process = trace_.processes().front();
            facts["host"] = trace_.string(process.host);
            const std::string_view program = trace_.string(process.name);
            const std::string_view base = program.substr(program.find_last_of('/') + 1);
            if (base.starts_with("python")) facts["version"] = base;
        }
        facts["clock"] = trace_.clock().source;
        bool has_c_calls = false, has_python = false;
        for (const SiteInfo& site : trace_.sites()) {
            has_c_calls |= site.scope == Scope::CFunction;
            has_python |= site.scope == Scope::PythonFunction;
        }
        const bool is_sampled =
            std::ranges::any_of(ranges_.flags, [](std::uint16_t flags) { return (flags & kSampled) != 0; });
        facts["format"] = is_sampled ? "samples" : "every call";
        facts["options"] = std::string(has_python ? "Python calls" : "no Python calls") +
                           (has_c_calls ? ", C calls" : "") +
                           (trace_.memory().size() > 0 ? ", allocations" : "");
        for (const MetadataInfo& each : trace_.metadata()) {
            if (each.json.size() > 80) continue;
            if (each.key.find("version") != std::string::npos) facts["version " + each.key] = each.json;
            if (each.key.starts_with("record_") || each.key.starts_with("with_") ||
                each.key.starts_with("profile_"))
                facts["options " + each.key] = each.json;
        }
    }

    const Trace& trace_;
    const RangeColumns ranges_;
    const CompareOptions& options_;
    Comparison::Paths& paths_;
    const RunVisitor& visit_;
    const WindowClip clip_;
    const std::vector<bool> is_step_;
    bool is_linked_ = false;               ///< ranges may be below those of other tracks
    std::vector<std::uint32_t> node_of_;   ///< if so, by range
    std::vector<std::uint32_t> roots_[2];  ///< by name: of async tracks, of others
    std::vector<std::pair<std::uint32_t, std::uint32_t>> last_child_;  ///< by node: slot and node
    std::vector<std::uint32_t> name_of_[2];  ///< by site: of threads, of devices; kNoRow: not seen yet
    RunRecord record_;
};

}  // namespace

std::uint32_t PathNames::text(std::string_view text) {
    if (const auto known = number_of_.find(text); known != number_of_.end()) return known->second;
    const std::string& kept = texts_.emplace_back(text);
    return number_of_.emplace(kept, text_count() - 1).first->second;
}

std::uint32_t PathNames::find(std::string_view name, const std::string& group, Scope scope, bool is_device) {
    const std::uint32_t number = text(name), group_number = text(group);
    const auto [place, is_new] = name_of_[is_device].try_emplace(std::pair(number, group_number),
                                                                 static_cast<std::uint32_t>(names.size()));
    if (!is_new) return place->second;
    const PythonName python = parse_python_name(name);
    Name& made = names.emplace_back();
    made.without_line =
        python.path.empty() ? number : text(std::string(python.path) + ": " + std::string(python.function));
    made.text = text(number);
    made.group = group_number;
    made.scope = scope;
    made.is_device = is_device;
    return place->second;
}

RunRecord read_run(const Trace& trace, CompareSide side, const CompareOptions& options,
                   Comparison::Paths& paths, const RunVisitor& visit) {
    return RunReader(trace, side, options, paths, visit).read();
}

}  // namespace marey
