// device_profile.h: the common parts of profiles from CUDA tools: processes and streams identified by
// numbers, calls that launch work, and work that refers to its call.
#pragma once

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <marey/trace.h>

#include "formats/sqlite_file.h"
#include "trace/trace_assembler.h"

namespace marey {

/// The strings of a profile, to which other tables refer by number.
class ProfileStrings {
  public:
    ProfileStrings(const SqliteFile& file, const std::string& table, const char* id, const char* value) {
        TableRows rows = file.rows(table, {id, value});
        while (rows.next()) texts_.emplace(rows.integer(0), rows.text(1));
    }
    /// Null if there is no such string.
    const std::string* find(std::int64_t id) const noexcept {
        const auto found = texts_.find(id);
        return found != texts_.end() ? &found->second : nullptr;
    }
    /// Returns "" and counts a problem if there is no such string.
    std::string_view text(std::int64_t id) noexcept {
        const std::string* found = find(id);
        if (found == nullptr) ++unknown_;
        return found != nullptr ? std::string_view(*found) : std::string_view();
    }
    std::uint64_t unknown_count() const noexcept { return unknown_; }

  private:
    std::unordered_map<std::int64_t, std::string> texts_;
    std::uint64_t unknown_ = 0;
};

/// A host call that may have launched work.
struct LaunchCall {
    std::int64_t correlation = 0;
    std::int64_t process_key = 0;
    TraceAssembler::RangeId range = 0;
    Row thread = 0;
    std::int64_t start = 0, end = 0;
    std::int64_t call_number = -1;  ///< number of the runtime call; -1: unknown, or a driver call
    std::uint32_t kernels = 0;      ///< kernels that it launched
};

/// The sum, or the largest integer if it overflows.
inline std::int64_t add_numbers(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

/// Builds the trace of such a profile. Processes are identified by a key that the importer chooses.
class DeviceProfile {
  public:
    explicit DeviceProfile(const SqliteFile& file) : file_(file) {}

    TraceAssembler& trace() noexcept { return trace_; }

    Row process(std::int64_t key, std::int64_t pid) {
        const auto [place, is_new] = processes_.try_emplace(key, 0);
        if (is_new) {
            ProcessInfo info;
            info.pid = pid;
            place->second = trace_.add_process(info);
            threads_of_.push_back(0);
        }
        return place->second;
    }
    std::size_t process_count() const noexcept { return processes_.size(); }
    Row thread(Row process, std::int64_t os_tid) {
        const auto [place, is_new] = threads_.try_emplace({process, os_tid}, 0);
        if (is_new) {
            place->second =
                trace_.add_thread({.process = process, .id = ++threads_of_[process], .os_tid = os_tid});
        }
        return place->second;
    }
    /// Like process() and thread(), but return nullopt instead of creating a row.
    std::optional<Row> known_process(std::int64_t key) const {
        const auto found = processes_.find(key);
        return found != processes_.end() ? std::optional(found->second) : std::nullopt;
    }
    std::optional<Row> known_thread(Row process, std::int64_t os_tid) const {
        const auto found = threads_.find({process, os_tid});
        return found != threads_.end() ? std::optional(found->second) : std::nullopt;
    }
    /// The track of a thread's nested ranges, or of its async ranges.
    std::uint32_t thread_lane(Row thread, TrackKind kind = TrackKind::Thread) {
        const auto [place, is_new] = lanes_.try_emplace({thread, kind}, 0);
        if (is_new) {
            place->second = trace_.add_lane({.thread = thread, .kind = kind});
        }
        return place->second;
    }
    /// The track of a device stream, as used by `process`.
    std::uint32_t queue_lane(Row process, std::int64_t device, std::int64_t stream,
                             TrackKind kind = TrackKind::Device) {
        const auto [place, is_new] = queues_.try_emplace({process, device, stream, kind});
        if (is_new) {
            constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
            ThreadInfo info{.process = process, .id = ++threads_of_[process]};
            std::string name = "GPU " + std::to_string(device);
            if (stream >= 0) name += " stream " + std::to_string(stream);
            if (kind == TrackKind::Async) name += " synchronization";
            info.name = trace_.string(name);
            place->second.first = trace_.add_thread(info);
            place->second.second = trace_.add_lane(
                {.thread = place->second.first,
                 .kind = kind,
                 .device = {DeviceType::Cuda,
                            static_cast<std::int32_t>(std::clamp(device, std::int64_t{-1}, kMax))},
                 .stream = stream,
                 .name = info.name});
        }
        return place->second.second;
    }
    /// Names the streams with this number, in every process.
    void name_queue(std::int64_t device, std::int64_t stream, std::string_view name) {
        for (const auto& [queue, place] : queues_) {
            if (std::get<1>(queue) != device || std::get<2>(queue) != stream) continue;
            trace_.thread(place.first).name = trace_.lane(place.second).name = trace_.string(name);
        }
    }

    /// The site for a name; C++ symbols are demangled.
    std::uint32_t site(std::string_view name, Scope scope, std::string_view category) {
        SiteInfo info = trace_.named(name);
        info.scope = scope;
        info.category = trace_.string(category);
        return trace_.site(info);
    }

    /// Times out of range are clamped and counted.
    TraceAssembler::RangeId add_range(std::uint32_t lane, std::int64_t start, std::int64_t end,
                                      std::uint32_t site) {
        start = reachable(start);
        end = reachable(end);
        return trace_.add_range(lane, start, end - start, site);
    }
    /// Adds a range without an end, which ends with the trace.
    void add_unfinished(std::uint32_t lane, std::int64_t start, std::uint32_t site,
                        std::span<const Argument> values) {
        unfinished_.push_back({lane, reachable(start), site, {values.begin(), values.end()}});
    }
    void add_instant(Row thread, std::int64_t time, std::uint32_t site, std::span<const Argument> values) {
        trace_.add_instant(thread, reachable(time), site, values);
    }
    std::int64_t reachable(std::int64_t time) {
        const std::int64_t within = std::clamp(time, kFirstTime, kLastTime);
        if (within != time) ++unreachable_;
        last_ = std::max(last_, within);
        return within;
    }

    void add_call(const LaunchCall& call) { calls_.push_back(call); }
    /// The call with this correlation id; without `process_key`, of any process. No calls may be added
    /// afterwards.
    LaunchCall* find_call(std::int64_t correlation, std::optional<std::int64_t> process_key) {
        const auto is_before = [](const LaunchCall& a, const LaunchCall& b) {
            return a.correlation != b.correlation ? a.correlation < b.correlation
                                                  : a.process_key < b.process_key;
        };
        if (!calls_are_sorted_ && !std::ranges::is_sorted(calls_, is_before))
            std::ranges::stable_sort(calls_, is_before);
        calls_are_sorted_ = true;
        LaunchCall wanted{.correlation = correlation,
                          .process_key = process_key.value_or(std::numeric_limits<std::int64_t>::min())};
        const auto found = std::lower_bound(calls_.begin(), calls_.end(), wanted, is_before);
        if (found == calls_.end() || found->correlation != correlation) return nullptr;
        if (process_key && found->process_key != *process_key) return nullptr;
        return &*found;
    }
    const std::vector<LaunchCall>& calls() const noexcept { return calls_; }

    /// Three numbers as a list ("grid" or "block"); equal lists share their items.
    ListItems triple(std::int64_t x, std::int64_t y, std::int64_t z) {
        const auto [place, is_new] = triples_.try_emplace({x, y, z});
        if (is_new) {
            Argument items[3];
            const std::int64_t numbers[3] = {x, y, z};
            for (int i = 0; i < 3; ++i) items[i].set_integer(numbers[i]);
            place->second = trace_.add_list(items);
        }
        return place->second;
    }

    /// Whether these columns of a row of `table` are integers, as times must be. Other rows cannot be
    /// imported and are counted as problem "bad_time".
    bool has_times(const TableRows& row, const std::string& table, std::initializer_list<int> columns) {
        if (std::ranges::all_of(columns, [&](int column) { return row.is_whole_number(column); }))
            return true;
        count("bad_time", "Rows of the table " + table + " were skipped: their times are not integers.");
        return false;
    }

    /// Adds to the count of a problem.
    void count(const std::string& code, const std::string& text, std::uint64_t times = 1) {
        for (ProblemInfo& problem : problems_) {
            if (problem.code != code || problem.text != text) continue;
            problem.count += times;
            return;
        }
        problems_.push_back({code, text, times});
    }
    /// Counts the non-empty tables that are not in `read` and whose names do not start with `ignored`.
    void count_unread_tables(const std::vector<std::string>& read, std::string_view ignored) {
        const auto in_capitals = [](std::string name) {
            for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
            return name;
        };
        std::set<std::string> known;
        for (const std::string& table : read) known.insert(in_capitals(table));
        for (const std::string& table : file_.tables()) {
            const std::string name = in_capitals(table);
            if (name.starts_with(ignored) || known.contains(name)) continue;
            const std::uint64_t rows = file_.row_count(table);
            count("unread_table", "The table " + table + " is not read: " + std::to_string(rows) + " rows.",
                  rows);
        }
    }

    Trace finish() {
        for (const Unfinished& range : unfinished_) {
            const TraceAssembler::RangeId id = trace_.add_range(
                range.lane, range.start, std::max(last_, range.start) - range.start, range.site, kUnfinished);
            trace_.add_values(id, range.values);
        }
        count("unreachable_times", "Times more than 146 years away were clamped.", unreachable_);
        if (!file_.is_settled())
            count("unsettled",
                  "A transaction was not committed when this file was written: rows may be missing.");
        for (ProblemInfo& problem : problems_)
            trace_.add_problem(std::move(problem.code), std::move(problem.text), problem.count);
        return trace_.finish();
    }

  private:
    static constexpr std::int64_t kFirstTime = -(std::int64_t{1} << 62), kLastTime = -(kFirstTime + 1);
    struct Unfinished {
        std::uint32_t lane;
        std::int64_t start;
        std::uint32_t site;
        std::vector<Argument> values;
    };
    using Queue = std::tuple<Row, std::int64_t, std::int64_t, TrackKind>;

    const SqliteFile& file_;
    TraceAssembler trace_;
    std::map<std::int64_t, Row> processes_;
    std::map<std::pair<Row, std::int64_t>, Row> threads_;
    std::map<std::pair<Row, TrackKind>, std::uint32_t> lanes_;
    std::map<Queue, std::pair<Row, std::uint32_t>> queues_;  ///< thread row and lane
    std::vector<std::uint32_t> threads_of_;                  ///< per process
    std::vector<LaunchCall> calls_;
    bool calls_are_sorted_ = false;
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, ListItems> triples_;
    std::vector<ProblemInfo> problems_;
    std::vector<Unfinished> unfinished_;
    std::uint64_t unreachable_ = 0;
    std::int64_t last_ = kFirstTime;  ///< the latest time seen
};

/// The values of one row, taken from its columns. NULL values are left out.
class RowValues {
  public:
    explicit RowValues(DeviceProfile& profile) noexcept : profile_(profile) {}

    void clear() noexcept { values_.clear(); }
    void integer(std::string_view key, std::int64_t number) { add(key).set_integer(number); }
    /// Left out if empty.
    void text(std::string_view key, std::string_view words) {
        if (!words.empty()) add(key).set_string(profile_.trace().string(words));
    }
    void column(std::string_view key, const TableRows& row, int column) {
        if (row.is_null(column)) return;
        if (row.is_whole_number(column)) {
            integer(key, row.integer(column));
        } else if (row.is_number(column)) {
            add(key).set_real(row.real(column));
        } else {
            text(key, row.text(column));
        }
    }
    void triple(std::string_view key, const TableRows& row, int first_column) {
        for (int i = 0; i < 3; ++i) {
            if (row.is_null(first_column + i)) return;
        }
        add(key).set_list(profile_.triple(row.integer(first_column), row.integer(first_column + 1),
                                          row.integer(first_column + 2)));
    }
    std::span<const Argument> all() const noexcept { return values_; }

  private:
    Argument& add(std::string_view key) {
        Argument& value = values_.emplace_back();
        value.key = profile_.trace().string(key);
        return value;
    }

    DeviceProfile& profile_;
    std::vector<Argument> values_;
};

}  // namespace marey
