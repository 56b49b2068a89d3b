// merged_load.cpp: reads captures of several processes, with one clock fit for each machine, and merges them.
#include <marey/detail/thread_safety.h>
#include <marey/error.h>
#include <marey/merge.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/mapped_file.h"
#include "base/parallel.h"
#include "base/process_text.h"
#include "base/work_meter.h"
#include "collect/capture_reader.h"
#include "collect/clocks/clock_fit.h"
#include "collect/log_records.h"
#include "collect/packed_capture.h"
#include "collect/run_file.h"
#include "collect/trace_builder.h"
#include "trace/saved_trace.h"
#include "trace/trace_join.h"

namespace marey {
namespace {

using detail::ClockPair;
using detail::FileHeader;

/// A member before its events are read.
struct Outline {
    RunMember member;
    bool is_saved = false;
    std::string error;  ///< why it cannot be read; empty: it can
    std::string tree;
    std::string process;  ///< identifies it; empty: unknown
    std::uint64_t session = 0;
    std::int64_t node = -1;
    std::string boot;
    std::uint64_t time_namespace = 0;
    detail::ClockSource source{};
    std::uint64_t ticks_per_second = 0;
    std::vector<ClockPair> pairs;
    std::uint64_t start_ticks = 0;
    std::uint64_t stop_ticks = ~std::uint64_t{0};  ///< if it is known
    Trace saved;
};

/// `session`: the wanted one; 0: the first.
void read_outline(Outline& outline, std::uint64_t session) {
    if (is_saved_trace(outline.member.bytes)) {
        outline.is_saved = true;
        outline.saved = Trace(unpack_trace(outline.member.bytes, outline.member.name));
        if (outline.saved.processes().empty()) return;
        const ProcessInfo& process = outline.saved.processes().front();
        outline.tree = outline.saved.string(process.tree);
        outline.node = process.node;
        outline.session = outline.saved.window().session_id;
        return;
    }
    const RawLog log = read_member(outline.member, false);
    const Journal journal = read_journal(log.journal, session);
    outline.node = log.node;
    outline.source = log.clock_source;
    outline.ticks_per_second = log.ticks_per_second;
    outline.pairs = clock_pairs(log, journal);
    const JournalSession* const shown = session != 0               ? journal.find_session(session)
                                        : journal.sessions.empty() ? nullptr
                                                                   : &journal.sessions.front();
    if (shown != nullptr) {
        outline.session = shown->marks.id;
        outline.start_ticks = shown->marks.start_ticks;
        if (shown->marks.stopped) outline.stop_ticks = shown->marks.stop_ticks;
    } else if (!outline.pairs.empty()) {
        outline.start_ticks = outline.pairs.front().ticks;
    }
    if (!journal.identity) return;
    const detail::ProcessIdentityRecord& identity = *journal.identity;
    outline.tree = tree_text(identity.tree);
    outline.boot.assign(identity.boot_id, strnlen(identity.boot_id, sizeof identity.boot_id));
    outline.time_namespace = identity.time_namespace;
    if (identity.start != 0 && shown != nullptr)
        outline.process = outline.boot + " " + ancestor_text(log.pid, identity.start, identity.pid_namespace);
}

/// The clocks of machines: one fit over all pairs of their captures. Ticks of the counter are the same in
/// every time namespace; their nanoseconds are those of the first namespace of the machine, or of the one
/// with most captures. Each process measures the counter's rate, so that the rates differ a little.
class MachineClocks {
  public:
    explicit MachineClocks(const std::vector<Outline>& outlines) {
        std::map<Key, std::map<std::uint64_t, std::vector<const Outline*>>> machines;  // by time namespace
        for (const Outline& outline : outlines) {
            if (!outline.boot.empty()) machines[key_of(outline)][outline.time_namespace].push_back(&outline);
        }
        for (const auto& [key, namespaces] : machines) {
            auto most = std::max_element(
                namespaces.begin(), namespaces.end(),
                [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
            if (const auto first = namespaces.find(kFirstTimeNamespace); first != namespaces.end())
                most = first;
            std::vector<ClockPair> pairs;
            for (const Outline* outline : most->second)
                pairs.insert(pairs.end(), outline->pairs.begin(), outline->pairs.end());
            const Outline& first = *most->second.front();
            clocks_[key] = {
                std::make_shared<const ClockFit>(first.source, first.ticks_per_second, std::move(pairs)),
                clock_text(first.boot, most->first)};
        }
    }

    void put(const Outline& outline, ViewRequest& request) const {
        if (outline.boot.empty()) return;
        const auto& [fit, name] = clocks_.at(key_of(outline));
        request.fit = fit;
        request.clock = name;
    }

    std::size_t count() const { return clocks_.size(); }

  private:
    /// The inode of the time namespace that a machine boots with. Those of others are used again.
    static constexpr std::uint64_t kFirstTimeNamespace = 0xEFFFFFFA;
    using Key = std::tuple<std::string, detail::ClockSource, std::uint64_t>;

    // Where ticks are nanoseconds of the system's clock, a time namespace moves them.
    static Key key_of(const Outline& outline) {
        const bool is_moved = outline.source == detail::ClockSource::MonotonicRaw;
        return {outline.boot, outline.source, is_moved ? outline.time_namespace : 0};
    }

    std::map<Key, std::pair<std::shared_ptr<const ClockFit>, std::string>> clocks_;
};

/// The traces of members. Those on one clock are merged as they are built, in the order of their starts, so
/// that most of their memory is used again for the next ones.
class BuiltMembers {
  public:
    /// `outlines`: errors are written to them before put().
    BuiltMembers(const std::vector<Outline>& outlines, bool is_one_clock)
        : outlines_(outlines), is_one_clock_(is_one_clock), members_(outlines.size()) {
        for (const Outline& outline : outlines) total_bytes_ += outline.member.bytes.size();
    }

    /// From any thread. Waits while another one merges and is far behind, as the traces would fill the
    /// memory.
    void put(std::size_t index, Trace trace) {
        const ScopedLock lock(mutex_);
        members_[index] = std::move(trace);
        if (!is_one_clock_) return;
        while (is_merging_ && index >= next_ + usable_cores()) merged_.wait(mutex_);
        if (is_merging_) return;
        is_merging_ = true;
        try {
            merge_built();
        } catch (...) {
            next_ = members_.size();
            finish_merging();
            throw;
        }
        finish_merging();
    }

    /// For ViewRequest: the memory of a trace that is merged, if there is one.
    TraceData spare() {
        const ScopedLock lock(mutex_);
        if (spares_.empty()) return {};
        TraceData spare = std::move(spares_.back());
        spares_.pop_back();
        return spare;
    }

    /// Once all are there, and at least one has no error.
    Trace merge() {
        const ScopedLock lock(mutex_);
        spares_.clear();
        if (is_one_clock_) return merger_.finish();
        std::vector<Trace> traces;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            if (outlines_[i].error.empty()) traces.push_back(std::exchange(*members_[i], Trace()));
        }
        return merge_traces(std::move(traces));
    }

  private:
    /// Unlocks while it merges, and may throw then.
    void merge_built() MAREY_REQUIRES(mutex_) {
        for (; next_ < members_.size() && members_[next_]; ++next_) {
            bytes_ += outlines_[next_].member.bytes.size();
            if (!outlines_[next_].error.empty()) continue;
            Trace next = std::exchange(*members_[next_], Trace());
            const double share = static_cast<double>(bytes_) / static_cast<double>(total_bytes_);
            TraceData spare;
            {
                const ScopedUnlock unlocked(mutex_);
                spare = merger_.add(std::move(next), share);
            }
            spares_.push_back(std::move(spare));
            merged_.notify_all();
        }
    }

    void finish_merging() MAREY_REQUIRES(mutex_) {
        is_merging_ = false;
        merged_.notify_all();
    }

    const std::vector<Outline>& outlines_;
    bool is_one_clock_;
    std::uint64_t total_bytes_ = 0;
    Mutex mutex_;
    Condition merged_;
    std::vector<std::optional<Trace>> members_ MAREY_GUARDED_BY(mutex_);  ///< those that are built
    bool is_merging_ MAREY_GUARDED_BY(mutex_) = false;                    ///< by some thread
    std::size_t next_ MAREY_GUARDED_BY(mutex_) = 0;                       ///< those before it are merged
    std::uint64_t bytes_ MAREY_GUARDED_BY(mutex_) = 0;                    ///< of these
    std::vector<TraceData> spares_ MAREY_GUARDED_BY(mutex_);
    TraceMerger merger_;  ///< used by the thread that merges
};

class MergedLoad {
  public:
    explicit MergedLoad(const MergeOptions& options) : options_(options) {}

    MergedCaptures load(const std::vector<std::string>& paths) {
        for (const std::string& path : paths) open(path);
        parallel_for(outlines_.size(), [&](std::size_t i) {
            guarded(outlines_[i], [&] { read_outline(outlines_[i], options_.session); });
        });
        leave_out_unreadable();
        if (options_.session != 0) choose_session(paths);
        drop_copies();
        leave_out_concurrent();
        if (!options_.any_tree) check_trees();
        const MachineClocks clocks(outlines_);
        const bool is_one_clock = outlines_.size() > 1 && clocks.count() == 1 &&
                                  std::none_of(outlines_.begin(), outlines_.end(),
                                               [](const Outline& outline) { return outline.boot.empty(); });
        if (is_one_clock)
            std::stable_sort(outlines_.begin(), outlines_.end(), [](const Outline& a, const Outline& b) {
                return a.start_ticks < b.start_ticks;
            });
        BuiltMembers members(outlines_, is_one_clock);
        WorkMeter meter(outlines_.size());
        const bool is_one_each = outlines_.size() >= usable_cores();
        parallel_for(
            outlines_.size(),
            [&](std::size_t i) {
                Outline& outline = outlines_[i];
                Trace trace;
                guarded(outline, [&] {
                    if (outline.is_saved) {
                        trace = std::exchange(outline.saved, Trace());
                        return;
                    }
                    ViewRequest request{.session = options_.session,
                                        .threads = is_one_each ? 1u : 0u,
                                        .part_details = !options_.for_averages};
                    TraceData spare = members.spare();
                    request.spare = &spare;
                    clocks.put(outline, request);
                    trace = build_trace(read_member(outline.member), request);
                    outline.member.file.reset();  // all else that is needed is its name
                });
                members.put(i, std::move(trace));
                meter.add(1);
            },
            is_one_each ? 0 : 1);
        const bool has_any = std::any_of(outlines_.begin(), outlines_.end(),
                                         [](const Outline& outline) { return outline.error.empty(); });
        if (has_any) result_.trace = members.merge();
        leave_out_unreadable();
        if (!has_any) throw Error(nothing_left(paths));
        name_left_out();
        return std::move(result_);
    }

  private:
    static void guarded(Outline& outline, auto work) {
        try {
            work();
        } catch (const Error& error) {
            outline.error = error.what();
        }
    }

    void open(const std::string& path) {
        struct stat info {};
        if (::stat(path.c_str(), &info) == 0 && !seen_.emplace(info.st_dev, info.st_ino).second) {
            result_.left_out.push_back({path, "given twice"});
            return;
        }
        try {
            const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
            if (!is_run_file(file->bytes())) {
                outlines_.emplace_back().member = {path, file, file->bytes()};
                return;
            }
            RunContents contents = read_run_file(file, path);
            for (RunMember& member : contents.members) outlines_.emplace_back().member = std::move(member);
            for (const std::string& damage : contents.damage) leave_out(path, damage);
        } catch (const Error& error) {
            leave_out(path, error.what());
        }
    }

    /// `reason` begins with the path, as errors do.
    void leave_out(const std::string& path, std::string reason) {
        if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
        result_.left_out.push_back({path, std::move(reason)});
    }

    void leave_out_unreadable() {
        for (const Outline& outline : outlines_) {
            if (!outline.error.empty()) leave_out(outline.member.name, outline.error);
        }
        std::erase_if(outlines_, [](const Outline& outline) { return !outline.error.empty(); });
    }

    /// A capture may also be in a run file if the program that packed it was killed.
    void drop_copies() {
        std::set<std::pair<std::string, std::uint64_t>> known;
        std::erase_if(outlines_, [&](const Outline& outline) {
            return !outline.process.empty() && !known.emplace(outline.process, outline.start_ticks).second;
        });
    }

    void choose_session(const std::vector<std::string>& paths) {
        std::erase_if(outlines_,
                      [this](const Outline& outline) { return outline.session != options_.session; });
        if (outlines_.empty())
            throw Error(paths.front() + ": has no session " + std::to_string(options_.session));
    }

    /// Sessions of one program that ran at the same time have the same ranges: the longest is shown. A
    /// program that replaces itself (exec) keeps its process, but counts its sessions from 1 again.
    void leave_out_concurrent() {
        std::map<std::string, std::vector<Outline*>> processes;
        for (Outline& outline : outlines_) {
            if (!outline.process.empty()) processes[outline.process].push_back(&outline);
        }
        for (auto& [name, sessions] : processes) {
            std::sort(sessions.begin(), sessions.end(), [](const Outline* a, const Outline* b) {
                return std::pair(a->start_ticks, a->session) < std::pair(b->start_ticks, b->session);
            });
            for (auto first = sessions.begin(); first != sessions.end();) {
                const auto end = std::adjacent_find(
                    first, sessions.end(),
                    [](const Outline* a, const Outline* b) { return b->session <= a->session; });
                const auto next = end == sessions.end() ? end : end + 1;
                leave_out_shorter({first, next});
                first = next;
            }
        }
        leave_out_unreadable();
    }

    /// The same for the sessions of one program.
    static void leave_out_shorter(std::vector<Outline*> sessions) {
        std::stable_sort(sessions.begin(), sessions.end(), [](const Outline* a, const Outline* b) {
            return a->stop_ticks - a->start_ticks > b->stop_ticks - b->start_ticks;
        });
        for (Outline* const each : sessions) {
            const auto longer = std::find_if(sessions.begin(), sessions.end(), [&](const Outline* other) {
                return other == each || (other->error.empty() && other->start_ticks < each->stop_ticks &&
                                         each->start_ticks < other->stop_ticks);
            });
            if (*longer != each)
                each->error = "its session " + std::to_string(each->session) + " ran during session " +
                              std::to_string((*longer)->session) +
                              " of the same process, which is shown (--session " +
                              std::to_string(each->session) + " shows this one)";
        }
    }

    void check_trees() const {
        const Outline* first = nullptr;
        const bool are_ranks = std::all_of(outlines_.begin(), outlines_.end(),
                                           [](const Outline& outline) { return outline.node >= 0; });
        for (const Outline& outline : outlines_) {
            if (are_ranks || outline.tree.empty()) continue;
            if (first == nullptr) first = &outline;
            if (outline.tree != first->tree)
                throw Error(
                    first->member.name + " and " + outline.member.name +
                    " are from different runs (to see them together, merge them first: marey merge -o "
                    "all.marey FILES)");
        }
    }

    std::string nothing_left(const std::vector<std::string>& paths) const {
        if (result_.left_out.empty()) return paths.empty() ? "no captures given" : paths.front() + ": empty";
        const LeftOutFile& first = result_.left_out.front();
        return first.path + ": " + first.reason;
    }

    void name_left_out() {
        if (result_.left_out.empty()) return;
        const std::shared_ptr<TraceData> data = changeable_data(std::exchange(result_.trace, Trace()));
        for (const LeftOutFile& file : result_.left_out)
            data->problems.push_back({"left_out", "Left out " + file.path + ": " + file.reason + ".", 1});
        result_.trace = Trace(data);
    }

    const MergeOptions& options_;
    std::set<std::pair<dev_t, ino_t>> seen_;
    std::vector<Outline> outlines_;
    MergedCaptures result_;
};

}  // namespace

MergedCaptures load_merged(const std::vector<std::string>& paths, const MergeOptions& options) {
    return MergedLoad(options).load(paths);
}

CaptureOrigin capture_origin(const std::string& path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    const std::span<const std::byte> bytes = file->bytes();
    if (is_saved_trace(bytes)) return {};
    if (is_run_file(bytes)) return {read_run_file(file, path).tree, 0, -1};
    FileHeader header{};
    if (bytes.size() < sizeof header ||
        std::memcmp(bytes.data(), detail::kFileMagic, sizeof detail::kFileMagic) != 0)
        throw Error(path + ": not a Marey capture");
    header = read_as<FileHeader>(bytes.data());
    if (header.block_bytes != kPackedBlockBytes) return {tree_text(header.tree), header.pid, header.node};
    Outline outline;
    outline.member = {path, file, bytes};
    read_outline(outline, 0);
    return {outline.tree, 0, outline.node};
}

}  // namespace marey
