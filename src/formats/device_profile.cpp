// device_profile.cpp: creates rows on first use; finds calls by binary search.
#include "formats/device_profile.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

namespace marey {

std::int64_t add_numbers(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

ProfileStrings::ProfileStrings(const SqliteFile& file, const std::string& table, const char* id,
                               const char* value) {
    TableRows rows = file.rows(table, {id, value});
    while (rows.next()) texts_.emplace(rows.integer(0), rows.text(1));
}

const std::string* ProfileStrings::find(std::int64_t id) const noexcept {
    const auto found = texts_.find(id);
    return found != texts_.end() ? &found->second : nullptr;
}

std::string_view ProfileStrings::text(std::int64_t id) noexcept {
    const std::string* found = find(id);
    if (found == nullptr) ++unknown_;
    return found != nullptr ? std::string_view(*found) : std::string_view();
}

Row DeviceProfile::process(std::int64_t key, std::int64_t pid) {
    const auto [place, is_new] = processes_.try_emplace(key, 0);
    if (is_new) {
        ProcessInfo info;
        info.pid = pid;
        place->second = trace_.add_process(info);
        threads_of_.push_back(0);
    }
    return place->second;
}

Row DeviceProfile::thread(Row process, std::int64_t os_tid) {
    const auto [place, is_new] = threads_.try_emplace({process, os_tid}, 0);
    if (is_new) {
        ThreadInfo info;
        info.process = process;
        info.id = ++threads_of_[process];
        info.os_tid = os_tid;
        place->second = trace_.add_thread(info);
    }
    return place->second;
}

std::optional<Row> DeviceProfile::known_process(std::int64_t key) const {
    const auto found = processes_.find(key);
    return found != processes_.end() ? std::optional(found->second) : std::nullopt;
}

std::optional<Row> DeviceProfile::known_thread(Row process, std::int64_t os_tid) const {
    const auto found = threads_.find({process, os_tid});
    return found != threads_.end() ? std::optional(found->second) : std::nullopt;
}

std::uint32_t DeviceProfile::thread_lane(Row thread, TrackKind kind) {
    const auto [place, is_new] = lanes_.try_emplace({thread, kind}, 0);
    if (is_new) {
        Lane lane;
        lane.thread = thread;
        lane.kind = kind;
        place->second = trace_.add_lane(lane);
    }
    return place->second;
}

std::uint32_t DeviceProfile::queue_lane(Row process, std::int64_t device, std::int64_t stream,
                                        TrackKind kind) {
    const auto [place, is_new] = queues_.try_emplace({process, device, stream, kind});
    if (is_new) {
        constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
        ThreadInfo info;
        info.process = process;
        info.id = ++threads_of_[process];
        std::string name = "GPU " + std::to_string(device);
        if (stream >= 0) name += " stream " + std::to_string(stream);
        if (kind == TrackKind::Async) name += " synchronization";
        info.name = trace_.string(name);
        place->second.first = trace_.add_thread(info);
        Lane lane;
        lane.thread = place->second.first;
        lane.kind = kind;
        lane.device = {DeviceType::Cuda,
                       static_cast<std::int32_t>(std::clamp(device, std::int64_t{-1}, kMax))};
        lane.stream = stream;
        lane.name = info.name;
        place->second.second = trace_.add_lane(lane);
    }
    return place->second.second;
}

void DeviceProfile::name_queue(std::int64_t device, std::int64_t stream, std::string_view name) {
    for (const auto& [queue, place] : queues_) {
        if (std::get<1>(queue) != device || std::get<2>(queue) != stream) continue;
        trace_.thread(place.first).name = trace_.lane(place.second).name = trace_.string(name);
    }
}

std::uint32_t DeviceProfile::site(std::string_view name, Scope scope, std::string_view category) {
    SiteInfo info = trace_.named(name);
    info.scope = scope;
    info.category = trace_.string(category);
    return trace_.site(info);
}

std::int64_t DeviceProfile::reachable(std::int64_t time) {
    const std::int64_t within = std::clamp(time, kFirstTime, kLastTime);
    if (within != time) ++unreachable_;
    last_ = std::max(last_, within);
    return within;
}

TraceAssembler::RangeId DeviceProfile::add_range(std::uint32_t lane, std::int64_t start, std::int64_t end,
                                                 std::uint32_t site) {
    start = reachable(start);
    end = reachable(end);
    return trace_.add_range(lane, start, end - start, site);
}

void DeviceProfile::add_unfinished(std::uint32_t lane, std::int64_t start, std::uint32_t site,
                                   std::span<const Argument> values) {
    unfinished_.push_back({lane, reachable(start), site, {values.begin(), values.end()}});
}

void DeviceProfile::add_instant(Row thread, std::int64_t time, std::uint32_t site,
                                std::span<const Argument> values) {
    trace_.add_instant(thread, reachable(time), site, values);
}

void DeviceProfile::add_call(const LaunchCall& call) {
    calls_.push_back(call);
}

LaunchCall* DeviceProfile::find_call(std::int64_t correlation, std::optional<std::int64_t> process_key) {
    const auto is_before = [](const LaunchCall& a, const LaunchCall& b) {
        return a.correlation != b.correlation ? a.correlation < b.correlation : a.process_key < b.process_key;
    };
    if (!calls_are_sorted_ && !std::is_sorted(calls_.begin(), calls_.end(), is_before))
        std::stable_sort(calls_.begin(), calls_.end(), is_before);
    calls_are_sorted_ = true;
    LaunchCall wanted;
    wanted.correlation = correlation;
    wanted.process_key = process_key.value_or(std::numeric_limits<std::int64_t>::min());
    const auto found = std::lower_bound(calls_.begin(), calls_.end(), wanted, is_before);
    if (found == calls_.end() || found->correlation != correlation) return nullptr;
    if (process_key && found->process_key != *process_key) return nullptr;
    return &*found;
}

ListItems DeviceProfile::triple(std::int64_t x, std::int64_t y, std::int64_t z) {
    const auto [place, is_new] = triples_.try_emplace({x, y, z});
    if (is_new) {
        Argument items[3];
        const std::int64_t numbers[3] = {x, y, z};
        for (int i = 0; i < 3; ++i) {
            items[i].kind = ValueKind::Int;
            items[i].integer = numbers[i];
        }
        place->second = trace_.add_list(items);
    }
    return place->second;
}

bool DeviceProfile::has_times(const TableRows& row, const std::string& table,
                              std::initializer_list<int> columns) {
    if (std::all_of(columns.begin(), columns.end(), [&](int column) { return row.is_whole_number(column); }))
        return true;
    count("bad_time", "Rows of the table " + table + " were skipped: their times are not integers.");
    return false;
}

void DeviceProfile::count(const std::string& code, const std::string& text, std::uint64_t times) {
    if (times == 0) return;
    for (ProblemInfo& problem : problems_) {
        if (problem.code != code || problem.text != text) continue;
        problem.count += times;
        return;
    }
    problems_.push_back({code, text, times});
}

void DeviceProfile::count_unread_tables(const std::vector<std::string>& read, std::string_view ignored) {
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

Trace DeviceProfile::finish() {
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

void RowValues::integer(StringId key, std::int64_t number) {
    Argument value;
    value.key = key;
    value.kind = ValueKind::Int;
    value.integer = number;
    values_.push_back(value);
}

void RowValues::text(StringId key, std::string_view words) {
    if (words.empty()) return;
    Argument value;
    value.key = key;
    value.kind = ValueKind::String;
    value.string = profile_.trace().string(words);
    values_.push_back(value);
}

void RowValues::column(StringId key, const TableRows& row, int column) {
    if (row.is_null(column)) return;
    if (row.is_whole_number(column)) {
        integer(key, row.integer(column));
    } else if (row.is_number(column)) {
        Argument value;
        value.key = key;
        value.kind = ValueKind::Double;
        value.real = row.real(column);
        values_.push_back(value);
    } else {
        text(key, row.text(column));
    }
}

void RowValues::triple(StringId key, const TableRows& row, int first_column) {
    for (int i = 0; i < 3; ++i) {
        if (row.is_null(first_column + i)) return;
    }
    Argument value;
    value.key = key;
    value.kind = ValueKind::List;
    value.list = profile_.triple(row.integer(first_column), row.integer(first_column + 1),
                                 row.integer(first_column + 2));
    values_.push_back(value);
}

}  // namespace marey
