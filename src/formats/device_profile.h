// device_profile.h: the common parts of profiles from CUDA tools: processes and streams identified by
// numbers, calls that launch work, and work that refers to its call.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <marey/trace.h>

#include "formats/sqlite_file.h"
#include "trace/trace_assembler.h"

namespace marey {

/// The strings of a profile, to which other tables refer by number.
class ProfileStrings {
  public:
    ProfileStrings(const SqliteFile& file, const std::string& table, const char* id, const char* value);
    /// Null if there is no such string.
    const std::string* find(std::int64_t id) const noexcept;
    /// Returns "" and counts a problem if there is no such string.
    std::string_view text(std::int64_t id) noexcept;
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
std::int64_t add_numbers(std::int64_t a, std::int64_t b) noexcept;

/// Builds the trace of such a profile. Processes are identified by a key that the importer chooses.
class DeviceProfile {
  public:
    explicit DeviceProfile(const SqliteFile& file) : file_(file) {}

    TraceAssembler& trace() noexcept { return trace_; }

    Row process(std::int64_t key, std::int64_t pid);
    std::size_t process_count() const noexcept { return processes_.size(); }
    Row thread(Row process, std::int64_t os_tid);
    /// Like process() and thread(), but return nullopt instead of creating a row.
    std::optional<Row> known_process(std::int64_t key) const;
    std::optional<Row> known_thread(Row process, std::int64_t os_tid) const;
    /// The track of a thread's nested ranges, or of its async ranges.
    std::uint32_t thread_lane(Row thread, TrackKind kind = TrackKind::Thread);
    /// The track of a device stream, as used by `process`.
    std::uint32_t queue_lane(Row process, std::int64_t device, std::int64_t stream,
                             TrackKind kind = TrackKind::Device);
    /// Names the streams with this number, in every process.
    void name_queue(std::int64_t device, std::int64_t stream, std::string_view name);

    /// The site for a name; C++ symbols are demangled.
    std::uint32_t site(std::string_view name, Scope scope, std::string_view category);

    /// Times out of range are clamped and counted.
    TraceAssembler::RangeId add_range(std::uint32_t lane, std::int64_t start, std::int64_t end,
                                      std::uint32_t site);
    /// Adds a range without an end, which ends with the trace.
    void add_unfinished(std::uint32_t lane, std::int64_t start, std::uint32_t site,
                        std::span<const Argument> values);
    void add_instant(Row thread, std::int64_t time, std::uint32_t site, std::span<const Argument> values);
    std::int64_t reachable(std::int64_t time);

    void add_call(const LaunchCall& call);
    /// The call with this correlation id; without `process_key`, of any process. No calls may be added
    /// afterwards.
    LaunchCall* find_call(std::int64_t correlation, std::optional<std::int64_t> process_key);
    const std::vector<LaunchCall>& calls() const noexcept { return calls_; }

    /// Three numbers as a list ("grid" or "block"); equal lists share their items.
    ListItems triple(std::int64_t x, std::int64_t y, std::int64_t z);

    /// Whether these columns of a row of `table` are integers, as times must be. Other rows cannot be
    /// imported and are counted as problem "bad_time".
    bool has_times(const TableRows& row, const std::string& table, std::initializer_list<int> columns);

    /// Adds to the count of a problem.
    void count(const std::string& code, const std::string& text, std::uint64_t times = 1);
    /// Counts the non-empty tables that are not in `read` and whose names do not start with `ignored`.
    void count_unread_tables(const std::vector<std::string>& read, std::string_view ignored);

    Trace finish();

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
    void integer(StringId key, std::int64_t number);
    void text(StringId key, std::string_view words);  ///< left out if empty
    void column(StringId key, const TableRows& row, int column);
    void triple(StringId key, const TableRows& row, int first_column);
    std::span<const Argument> all() const noexcept { return values_; }

  private:
    DeviceProfile& profile_;
    std::vector<Argument> values_;
};

}  // namespace marey
