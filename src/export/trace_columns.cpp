// trace_columns.cpp: every table and column. docs/reference/tables.md documents them.
#include "export/trace_columns.h"

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <utility>

#include <marey/error.h>
#include <marey/export.h>

#include "trace/saved_format.h"

namespace marey {

// ---- reading ----

TableSource::TableSource(const Trace& trace) : trace_(trace) {
    std::size_t end = 0;
    for (const auto* index : {&data().range_arguments, &data().instant_arguments}) {
        for (const ArgumentSlice& slice : *index) ends_.push_back(end += slice.count);
    }
}

TableSource::PlacedValue TableSource::value(std::size_t row) const {
    const auto found =
        static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
    const std::size_t of_ranges = data().range_arguments.size();
    const bool of_instant = found >= of_ranges;
    const ArgumentSlice& slice =
        of_instant ? data().instant_arguments[found - of_ranges] : data().range_arguments[found];
    const auto position = static_cast<std::uint32_t>(slice.count - (ends_[found] - row));
    return {&slice, position, of_instant, data().arguments[slice.first + position]};
}

const TrackInfo& TableSource::track_of(std::size_t range) const {
    static const TrackInfo none;
    const Row track = trace_.track_of(static_cast<Row>(range));
    return track == kNoRow ? none : data().tracks[track];
}

const ThreadInfo* TableSource::thread(Row row) const {
    return row < data().threads.size() ? &data().threads[row] : nullptr;
}

const ProcessInfo* TableSource::process_of_thread(Row row) const {
    const ThreadInfo* const found = thread(row);
    return found != nullptr && found->process < data().processes.size() ? &data().processes[found->process]
                                                                        : nullptr;
}

std::string_view cell_text(const TableSource& source, const TraceColumn& column, std::size_t row) {
    if (column.type == CellType::Text) return column.text(source, row);
    const std::uint64_t number = column.number(source, row);
    if (column.type == CellType::Name) return column.name_of(number);
    return source.trace().string(static_cast<StringId>(number));
}

namespace {

using S = const TableSource&;
using saved::to_number;

template <class T>
constexpr CellType type_of() {
    if constexpr (std::is_same_v<T, bool>) return CellType::Bool;
    if constexpr (std::is_same_v<T, std::uint8_t>) return CellType::UInt8;
    if constexpr (std::is_same_v<T, std::uint16_t>) return CellType::UInt16;
    if constexpr (std::is_same_v<T, std::uint32_t>) return CellType::UInt32;
    if constexpr (std::is_same_v<T, std::uint64_t>) return CellType::UInt64;
    if constexpr (std::is_same_v<T, std::int32_t>) return CellType::Int32;
    if constexpr (std::is_same_v<T, std::int64_t>) return CellType::Int64;
    return CellType::Double;
}

/// A column that is stored in exactly this form.
template <auto Column>
constexpr TraceColumn whole(std::string_view name) {
    using T = typename std::remove_cvref_t<decltype(std::declval<TraceData>().*Column)>::value_type;
    TraceColumn column{name, type_of<T>()};
    column.number = [](S source, std::size_t row) { return to_number((source.data().*Column)[row]); };
    column.in_place = [](const TraceData& data) -> const void* { return (data.*Column).data(); };
    return column;
}

/// A field of the rows of a table.
template <auto Rows, auto Member>
constexpr TraceColumn field(std::string_view name) {
    using Info = typename std::remove_cvref_t<decltype(std::declval<TraceData>().*Rows)>::value_type;
    using T = std::remove_cvref_t<decltype(std::declval<Info>().*Member)>;
    if constexpr (std::is_same_v<T, std::string>) {
        TraceColumn column{name, CellType::Text};
        column.text = [](S source, std::size_t row) {
            return std::string_view((source.data().*Rows)[row].*Member);
        };
        return column;
    } else {
        TraceColumn column{name, type_of<T>()};
        column.number = [](S source, std::size_t row) {
            return to_number((source.data().*Rows)[row].*Member);
        };
        return column;
    }
}

using Numbers = std::uint64_t (*)(S, std::size_t);
using Test = bool (*)(S, std::size_t);

constexpr TraceColumn computed(std::string_view name, CellType type, Numbers number, Test is_null = nullptr) {
    TraceColumn column{name, type};
    column.number = number;
    column.is_null = is_null;
    return column;
}

constexpr TraceColumn as_string(TraceColumn column, Test is_null = nullptr) {
    column.type = CellType::String;
    column.is_null = is_null;
    return column;
}

template <auto Rows, auto Member>
constexpr TraceColumn string(std::string_view name) {
    return as_string(field<Rows, Member>(name));
}
/// A string that most rows lack.
template <auto Rows, auto Member>
constexpr TraceColumn rare_string(std::string_view name) {
    return as_string(field<Rows, Member>(name),
                     [](S source, std::size_t row) { return (source.data().*Rows)[row].*Member == 0; });
}

constexpr TraceColumn as_name(TraceColumn column, const char* (*name_of)(std::uint64_t),
                              Test is_null = nullptr) {
    column.type = CellType::Name;
    column.name_of = name_of;
    column.is_null = is_null;
    return column;
}

template <auto Rows, auto Member>
constexpr TraceColumn field_name(std::string_view name, const char* (*name_of)(std::uint64_t)) {
    return as_name(field<Rows, Member>(name), name_of);
}

// ---- names of numbers ----

template <std::size_t N>
const char* name_in(const char* const (&names)[N], std::uint64_t number) {
    return number < N ? names[number] : "unknown";
}
const char* scope_text(std::uint64_t number) {
    return scope_name(static_cast<Scope>(number));
}
const char* device_text(std::uint64_t number) {
    return device_type_name(static_cast<DeviceType>(number));
}
const char* dtype_text(std::uint64_t number) {
    return dtype_name(static_cast<DType>(number));
}
const char* layout_text(std::uint64_t number) {
    static constexpr const char* kNames[] = {"strided", "sparse", "sparse_csr", "blocked", "jagged", "other"};
    return name_in(kNames, number);
}
const char* access_text(std::uint64_t number) {
    static constexpr const char* kNames[] = {"unknown", "read", "write"};
    return name_in(kNames, number);
}
const char* track_kind_text(std::uint64_t number) {
    static constexpr const char* kNames[] = {"thread", "async", "device", "overlap"};
    return name_in(kNames, number);
}
const char* value_kind_text(std::uint64_t number) {
    static constexpr const char* kNames[] = {"none", "bool", "int", "double", "string", "list", "array"};
    return name_in(kNames, number);
}
const char* role_text(std::uint64_t number) {
    static constexpr const char* kNames[] = {"keyword", "input", "output"};
    return name_in(kNames, number);
}
const char* link_kind_text(std::uint64_t number) {
    static constexpr const char* kNames[] = {"unknown", "forward_backward", "launch", "remote", "flow"};
    return name_in(kNames, number);
}

// ---- columns of referenced rows ----

const SiteInfo& site(S source, std::uint32_t row) {
    static const SiteInfo none;
    return row < source.data().sites.size() ? source.data().sites[row] : none;
}

/// Site columns of an event table whose site column is `Sites`.
template <auto Sites>
constexpr TraceColumn event_name() {
    return computed("name", CellType::String, [](S source, std::size_t row) {
        return to_number(site(source, (source.data().*Sites)[row]).name);
    });
}
template <auto Sites>
constexpr TraceColumn event_scope() {
    TraceColumn column = computed("scope", CellType::Name, [](S source, std::size_t row) {
        return to_number(site(source, (source.data().*Sites)[row]).scope);
    });
    column.name_of = scope_text;
    return column;
}
template <auto Sites>
constexpr TraceColumn event_category() {
    return computed(
        "category", CellType::String,
        [](S source, std::size_t row) {
            return to_number(site(source, (source.data().*Sites)[row]).category);
        },
        [](S source, std::size_t row) { return site(source, (source.data().*Sites)[row]).category == 0; });
}

/// Thread columns of an event table, given a function that finds the thread row.
template <auto Thread>
constexpr std::array<TraceColumn, 4> event_places() {
    return {computed("thread", CellType::UInt32,
                     [](S source, std::size_t row) -> std::uint64_t { return Thread(source, row); }),
            computed("thread_name", CellType::String,
                     [](S source, std::size_t row) -> std::uint64_t {
                         const ThreadInfo* const thread = source.thread(Thread(source, row));
                         return thread == nullptr ? 0 : thread->name;
                     }),
            computed("process", CellType::UInt32,
                     [](S source, std::size_t row) -> std::uint64_t {
                         const ThreadInfo* const thread = source.thread(Thread(source, row));
                         return thread == nullptr ? 0 : thread->process;
                     }),
            computed("pid", CellType::Int64, [](S source, std::size_t row) {
                const ProcessInfo* const process = source.process_of_thread(Thread(source, row));
                return process == nullptr ? std::uint64_t{0} : to_number(process->pid);
            })};
}

template <std::uint16_t Flag>
constexpr TraceColumn flag(std::string_view name) {
    return computed(name, CellType::Bool, [](S source, std::size_t row) {
        return std::uint64_t{(source.data().range_flags[row] & Flag) != 0};
    });
}

/// Device columns, given a function that finds the device of a row.
template <auto Find>
constexpr TraceColumn device_type_column() {
    TraceColumn column = computed("device", CellType::Name, [](S source, std::size_t row) {
        return to_number(Find(source, row).type);
    });
    column.name_of = device_text;
    return column;
}
template <auto Find>
constexpr TraceColumn device_index_column() {
    return computed(
        "device_index", CellType::Int32,
        [](S source, std::size_t row) { return to_number(Find(source, row).index); },
        [](S source, std::size_t row) { return Find(source, row).index < 0; });
}

template <std::size_t... N>
constexpr auto join(const std::array<TraceColumn, N>&... parts) {
    std::array<TraceColumn, (N + ...)> all{};
    std::size_t at = 0;
    const auto put = [&](const auto& part) {
        for (const TraceColumn& column : part) all[at++] = column;
    };
    (put(parts), ...);
    return all;
}
template <class... Columns>
constexpr std::array<TraceColumn, sizeof...(Columns)> list(const Columns&... columns) {
    return {columns...};
}

// ---- the tables ----

using D = TraceData;

constexpr auto kRangeThread = [](S source, std::size_t row) { return source.track_of(row).thread; };
constexpr auto kRangeDevice = [](S source, std::size_t row) { return source.track_of(row).device; };

constexpr TraceColumn parent_column() {
    TraceColumn column = whole<&D::range_parent>("parent");
    column.is_null = [](S source, std::size_t row) { return source.data().range_parent[row] == kNoRow; };
    return column;
}

constexpr auto kRanges =
    join(list(event_name<&D::range_site>(), event_category<&D::range_site>(), event_scope<&D::range_site>(),
              whole<&D::range_start_ns>("start_ns"), whole<&D::range_duration_ns>("duration_ns"),
              whole<&D::range_self_ns>("self_ns"), whole<&D::range_depth>("depth"), parent_column(),
              computed("track", CellType::UInt32,
                       [](S source, std::size_t row) {
                           return std::uint64_t{source.trace().track_of(static_cast<Row>(row))};
                       }),
              computed("track_name", CellType::String,
                       [](S source, std::size_t row) { return to_number(source.track_of(row).name); })),
         event_places<kRangeThread>(),
         list(device_type_column<kRangeDevice>(), device_index_column<kRangeDevice>(),
              computed(
                  "stream", CellType::Int64,
                  [](S source, std::size_t row) { return to_number(source.track_of(row).stream); },
                  [](S source, std::size_t row) { return source.track_of(row).stream < 0; }),
              flag<kBeganBefore>("began_before"), flag<kUnfinished>("unfinished"), flag<kAsync>("async"),
              flag<kRemote>("remote"), flag<kEndInferred>("end_inferred"), whole<&D::range_site>("site"),
              computed("flags", CellType::UInt16, [](S source, std::size_t row) {
                  // Parts of calls are in the details.
                  return std::uint64_t{source.data().range_flags[row]} & ~std::uint64_t{kPart | kFurtherPart};
              })));

template <auto Threads>
constexpr auto kThreadOf = [](S source, std::size_t row) { return (source.data().*Threads)[row]; };

constexpr auto kInstants =
    join(list(event_name<&D::instant_site>(), event_category<&D::instant_site>(),
              event_scope<&D::instant_site>(), whole<&D::instant_time_ns>("time_ns")),
         event_places<kThreadOf<&D::instant_thread>>(), list(whole<&D::instant_site>("site")));

constexpr auto kCounters =
    join(list(event_name<&D::counter_site>(), event_category<&D::counter_site>(),
              whole<&D::counter_time_ns>("time_ns"), whole<&D::counter_value>("value")),
         event_places<kThreadOf<&D::counter_thread>>(), list(whole<&D::counter_site>("site")));

constexpr auto kMemoryDevice = [](S source, std::size_t row) { return source.data().memory_device[row]; };
constexpr auto kMemory =
    join(list(whole<&D::memory_time_ns>("time_ns"), whole<&D::memory_address>("address"),
              whole<&D::memory_bytes>("bytes"), whole<&D::memory_total_allocated>("total_allocated"),
              whole<&D::memory_total_reserved>("total_reserved"), device_type_column<kMemoryDevice>(),
              device_index_column<kMemoryDevice>(),
              computed("out_of_memory", CellType::Bool,
                       [](S source, std::size_t row) {
                           return std::uint64_t{source.data().memory_out_of_memory[row] != 0};
                       })),
         event_places<kThreadOf<&D::memory_thread>>());

constexpr auto kLinks = list(field<&D::links, &LinkInfo::from>("from"), field<&D::links, &LinkInfo::to>("to"),
                             field_name<&D::links, &LinkInfo::kind>("kind", link_kind_text),
                             rare_string<&D::links, &LinkInfo::name>("name"));

constexpr auto kSites = list(
    string<&D::sites, &SiteInfo::name>("name"), rare_string<&D::sites, &SiteInfo::file>("file"),
    field<&D::sites, &SiteInfo::line>("line"), field_name<&D::sites, &SiteInfo::scope>("scope", scope_text),
    rare_string<&D::sites, &SiteInfo::overload>("overload"),
    rare_string<&D::sites, &SiteInfo::category>("category"),
    rare_string<&D::sites, &SiteInfo::raw_name>("raw_name"));

constexpr TraceColumn death_column() {
    TraceColumn column = field<&D::threads, &ThreadInfo::death_ns>("death_ns");
    column.is_null = [](S source, std::size_t row) { return source.data().threads[row].death_ns == 0; };
    return column;
}
constexpr auto kThreads = list(
    field<&D::threads, &ThreadInfo::process>("process"), field<&D::threads, &ThreadInfo::id>("id"),
    field<&D::threads, &ThreadInfo::os_tid>("os_tid"), string<&D::threads, &ThreadInfo::name>("name"),
    field<&D::threads, &ThreadInfo::birth_ns>("birth_ns"), death_column(),
    field<&D::threads, &ThreadInfo::dropped>("dropped"),
    field<&D::threads, &ThreadInfo::overwritten_chunks>("overwritten_chunks"),
    field<&D::threads, &ThreadInfo::resyncs>("resyncs"), field<&D::threads, &ThreadInfo::clamped>("clamped"));

constexpr TraceColumn node_column() {
    TraceColumn column = field<&D::processes, &ProcessInfo::node>("node");
    column.is_null = [](S source, std::size_t row) { return source.data().processes[row].node < 0; };
    return column;
}
constexpr auto kProcesses =
    list(field<&D::processes, &ProcessInfo::pid>("pid"), node_column(),
         string<&D::processes, &ProcessInfo::name>("name"), string<&D::processes, &ProcessInfo::host>("host"),
         string<&D::processes, &ProcessInfo::command_line>("command_line"),
         field<&D::processes, &ProcessInfo::realtime_offset_ns>("realtime_offset_ns"));

constexpr auto kTrackDevice = [](S source, std::size_t row) { return source.data().tracks[row].device; };
constexpr auto kTracks =
    list(field_name<&D::tracks, &TrackInfo::kind>("kind", track_kind_text),
         field<&D::tracks, &TrackInfo::thread>("thread"), string<&D::tracks, &TrackInfo::name>("name"),
         field<&D::tracks, &TrackInfo::first_range>("first_range"),
         field<&D::tracks, &TrackInfo::range_count>("range_count"), device_type_column<kTrackDevice>(),
         device_index_column<kTrackDevice>(),
         computed(
             "stream", CellType::Int64,
             [](S source, std::size_t row) { return to_number(source.data().tracks[row].stream); },
             [](S source, std::size_t row) { return source.data().tracks[row].stream < 0; }));

/// Value columns, given a function that finds the value of a row.
template <auto Find>
constexpr auto value_columns() {
    const auto of = [](std::string_view name, CellType type, Numbers number, Test is_null) {
        return computed(name, type, number, is_null);
    };
    return list(
        of(
            "key", CellType::String,
            [](S source, std::size_t row) { return to_number(Find(source, row).key); },
            [](S source, std::size_t row) { return Find(source, row).key == 0; }),
        as_name(of(
                    "role", CellType::Name,
                    [](S source, std::size_t row) { return to_number(Find(source, row).role); }, nullptr),
                role_text),
        as_name(of(
                    "kind", CellType::Name,
                    [](S source, std::size_t row) { return to_number(Find(source, row).kind); }, nullptr),
                value_kind_text),
        of(
            "bool_value", CellType::Bool,
            [](S source, std::size_t row) { return to_number(Find(source, row).boolean); },
            [](S source, std::size_t row) { return Find(source, row).kind != ValueKind::Bool; }),
        of(
            "int_value", CellType::Int64,
            [](S source, std::size_t row) { return to_number(Find(source, row).integer); },
            [](S source, std::size_t row) { return Find(source, row).kind != ValueKind::Int; }),
        of(
            "double_value", CellType::Double,
            [](S source, std::size_t row) { return to_number(Find(source, row).real); },
            [](S source, std::size_t row) { return Find(source, row).kind != ValueKind::Double; }),
        of(
            "string_value", CellType::String,
            [](S source, std::size_t row) { return to_number(Find(source, row).string); },
            [](S source, std::size_t row) { return Find(source, row).kind != ValueKind::String; }),
        of(
            "first_item", CellType::UInt32,
            [](S source, std::size_t row) { return to_number(Find(source, row).list.first); },
            [](S source, std::size_t row) { return Find(source, row).kind != ValueKind::List; }),
        of(
            "item_count", CellType::UInt32,
            [](S source, std::size_t row) { return to_number(Find(source, row).list.count); },
            [](S source, std::size_t row) { return Find(source, row).kind != ValueKind::List; }),
        of(
            "array", CellType::UInt32,
            [](S source, std::size_t row) { return to_number(Find(source, row).array); },
            [](S source, std::size_t row) { return Find(source, row).kind != ValueKind::Array; }),
        of(
            "truncated", CellType::Bool,
            [](S source, std::size_t row) { return to_number(Find(source, row).truncated); }, nullptr),
        as_name(of(
                    "left_out", CellType::Name,
                    [](S source, std::size_t row) { return to_number(Find(source, row).left_out); }, nullptr),
                value_kind_text,
                [](S source, std::size_t row) { return Find(source, row).left_out == ValueKind::None; }));
}

constexpr auto kValueOf = [](S source, std::size_t row) -> const Argument& {
    return source.value(row).value;
};
constexpr auto kArguments =
    join(list(computed(
                  "range", CellType::UInt32,
                  [](S source, std::size_t row) { return to_number(source.value(row).slice->row); },
                  [](S source, std::size_t row) { return source.value(row).of_instant; }),
              computed(
                  "instant", CellType::UInt32,
                  [](S source, std::size_t row) { return to_number(source.value(row).slice->row); },
                  [](S source, std::size_t row) { return !source.value(row).of_instant; }),
              computed("position", CellType::UInt32,
                       [](S source, std::size_t row) { return to_number(source.value(row).position); })),
         value_columns<kValueOf>());

constexpr auto kItemOf = [](S source, std::size_t row) -> const Argument& {
    return source.data().list_items[row];
};
constexpr auto kListItems = value_columns<kItemOf>();

constexpr auto kArrayDevice = [](S source, std::size_t row) { return source.data().arrays[row].device; };
constexpr auto kArrays = list(
    field_name<&D::arrays, &ArrayInfo::dtype>("dtype", dtype_text),
    field_name<&D::arrays, &ArrayInfo::layout>("layout", layout_text),
    field<&D::arrays, &ArrayInfo::is_defined>("is_defined"),
    field<&D::arrays, &ArrayInfo::dimensions>("dimensions"),
    field<&D::arrays, &ArrayInfo::first_extent>("first_extent"),
    field<&D::arrays, &ArrayInfo::has_strides>("has_strides"), device_type_column<kArrayDevice>(),
    device_index_column<kArrayDevice>(), field<&D::arrays, &ArrayInfo::storage>("storage"),
    field<&D::arrays, &ArrayInfo::storage_id>("storage_id"), field<&D::arrays, &ArrayInfo::object>("object"),
    field_name<&D::arrays, &ArrayInfo::access>("access", access_text));
constexpr auto kArrayExtents = list(whole<&D::array_extents>("extent"));

template <auto Member, auto None>
constexpr TraceColumn detail_column(std::string_view name) {
    TraceColumn column = field<&D::range_details, Member>(name);
    column.is_null = [](S source, std::size_t row) {
        return source.data().range_details[row].*Member == None;
    };
    return column;
}
constexpr auto kRangeDetails =
    list(field<&D::range_details, &RangeDetail::range>("range"),
         detail_column<&RangeDetail::sequence, -1>("sequence"),
         detail_column<&RangeDetail::forward_thread, 0u>("forward_thread"),
         detail_column<&RangeDetail::id, 0u>("id"), detail_column<&RangeDetail::call, 0u>("call"),
         detail_column<&RangeDetail::part, 0u>("part"));

constexpr auto kProblems =
    list(field<&D::problems, &ProblemInfo::code>("code"), field<&D::problems, &ProblemInfo::text>("text"),
         field<&D::problems, &ProblemInfo::count>("count"));
constexpr auto kMetadata =
    list(field<&D::metadata, &MetadataInfo::key>("key"), field<&D::metadata, &MetadataInfo::json>("json"));
constexpr auto kCosts =
    list(field<&D::costs, &CostInfo::kind>("kind"), field<&D::costs, &CostInfo::ns>("ns"));

constexpr TraceColumn string_text() {
    TraceColumn column{"text", CellType::Text};
    column.text = [](S source, std::size_t row) { return std::string_view(source.data().strings[row]); };
    return column;
}
constexpr auto kStrings = list(string_text());

template <auto Rows>
std::size_t count_of(S source) {
    return (source.data().*Rows).size();
}

constexpr TraceTable kTables[] = {
    {"ranges", count_of<&D::range_start_ns>, kRanges},
    {"instants", count_of<&D::instant_time_ns>, kInstants},
    {"counters", count_of<&D::counter_time_ns>, kCounters},
    {"memory", count_of<&D::memory_time_ns>, kMemory},
    {"links", count_of<&D::links>, kLinks},
    {"arguments", [](S source) { return source.value_count(); }, kArguments},
    {"list_items", count_of<&D::list_items>, kListItems},
    {"arrays", count_of<&D::arrays>, kArrays},
    {"array_extents", count_of<&D::array_extents>, kArrayExtents},
    {"range_details", count_of<&D::range_details>, kRangeDetails},
    {"tracks", count_of<&D::tracks>, kTracks},
    {"threads", count_of<&D::threads>, kThreads},
    {"processes", count_of<&D::processes>, kProcesses},
    {"sites", count_of<&D::sites>, kSites},
    {"strings", count_of<&D::strings>, kStrings},
    {"metadata", count_of<&D::metadata>, kMetadata},
    {"problems", count_of<&D::problems>, kProblems},
    {"costs", count_of<&D::costs>, kCosts},
};

constexpr auto kTableNames = [] {
    std::array<std::string_view, std::size(kTables)> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kTables[i].name;
    return names;
}();

}  // namespace

std::span<const TraceTable> trace_tables() noexcept {
    return kTables;
}

std::span<const std::string_view> table_names() noexcept {
    return kTableNames;
}

const TraceTable& trace_table(std::string_view name) {
    std::string known;
    for (const TraceTable& table : kTables) {
        if (table.name == name) return table;
        known += (known.empty() ? "" : ", ") + std::string(table.name);
    }
    throw Error("unknown trace table '" + std::string(name) + "'; known: " + known);
}

}  // namespace marey
