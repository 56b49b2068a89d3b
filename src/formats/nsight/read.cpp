// read.cpp: reads databases written by `nsys export --type sqlite`. Columns that a version lacks read as
// NULL.
#include "formats/formats.h"

#if MAREY_HAVE_SQLITE

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_map>

#include "formats/device_profile.h"
#include "formats/device_work.h"
#include "formats/sqlite_file.h"
#include "json/json_writer.h"

namespace marey {
namespace {

class NsightMetadata {
  public:
    NsightMetadata(const SqliteFile& file, DeviceProfile& profile, const ProfileStrings& strings)
        : file_(file), profile_(profile), strings_(strings) {}

    std::vector<std::string> read() {
        read_memory();
        name_processes();
        name_threads();
        read_host();
        read_clock();
        read_devices();
        read_descriptions();
        tables_.insert(tables_.end(), {"PROCESSES", "THREADNAMES", "CUDA_GPU_MEMORY_USAGE_EVENTS"});
        return std::move(tables_);
    }

  private:
    void name_processes() {
        TableRows rows = file_.rows("PROCESSES", {"globalPid", "name"});
        while (rows.next()) {
            const auto process = profile_.known_process(global_process_key(rows.integer(0)));
            if (process) profile_.trace().process(*process).name = profile_.trace().string(rows.text(1));
        }
    }

    void name_threads() {
        TableRows rows = file_.rows("ThreadNames", {"globalTid", "nameId"});
        while (rows.next()) {
            const std::int64_t tid = rows.integer(0);
            const auto process = profile_.known_process(global_process_key(tid));
            const auto thread =
                process ? profile_.known_thread(*process, tid & kGlobalThreadMask) : std::nullopt;
            const std::string* name = strings_.find(rows.integer(1));
            // A name set by the program (NVTX) takes precedence.
            if (thread && name != nullptr && profile_.trace().thread(*thread).name == 0)
                profile_.trace().thread(*thread).name = profile_.trace().string(*name);
        }
    }

    void read_host() {
        TableRows rows = file_.rows("TARGET_INFO_SYSTEM_ENV", {"name", "value"});
        while (rows.next()) {
            if (rows.text(0) != "Hostname") continue;
            const StringId host = profile_.trace().string(rows.text(1));
            for (Row row = 0; row < profile_.process_count(); ++row)
                profile_.trace().process(row).host = host;
        }
    }

    /// Times are relative to the start of the session.
    void read_clock() {
        TableRows rows = file_.rows("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
        if (!rows.next() || rows.is_null(0)) return;
        constexpr std::int64_t kMaxOffset = std::int64_t{1} << 62;
        const std::int64_t offset = std::clamp(rows.integer(0), -kMaxOffset, kMaxOffset);
        for (Row row = 0; row < profile_.process_count(); ++row)
            profile_.trace().process(row).realtime_offset_ns = offset;
    }

    // ---- memory

    struct Allocation {
        std::int64_t time = 0, process_key = 0, bytes = 0;
        std::uint64_t address = 0;
        Device device{};
        Row thread = 0;
    };

    /// The numbers of the operations that free memory. Their names are in the file.
    std::set<std::int64_t> freeing_operations() const {
        std::set<std::int64_t> numbers;
        TableRows rows = file_.rows("ENUM_CUDA_DEV_MEM_EVENT_OPER", {"id", "name"});
        bool has_rows = false;
        while (rows.next()) {
            has_rows = true;
            if (rows.text(1).find("DEALLOCATION") != std::string_view::npos) numbers.insert(rows.integer(0));
        }
        if (!has_rows) numbers.insert(1);
        return numbers;
    }

    void read_memory() {
        enum { kTime, kPid, kDevice, kAddress, kBytes, kKind, kOperation, kCorrelation };
        const std::string table = "CUDA_GPU_MEMORY_USAGE_EVENTS";
        TableRows rows = file_.rows(table, {"start", "globalPid", "deviceId", "address", "bytes", "memKind",
                                            "memoryOperationType", "correlationId"});
        const std::set<std::int64_t> freeing = freeing_operations();
        constexpr std::int64_t kMax = std::int64_t{1} << 62;
        std::vector<Allocation> reports;
        while (rows.next()) {
            if (!profile_.has_times(rows, table, {kTime})) continue;
            Allocation report{.time = profile_.reachable(rows.integer(kTime)),
                              .process_key = global_process_key(rows.integer(kPid)),
                              .bytes = std::clamp(rows.integer(kBytes), std::int64_t{0}, kMax)};
            if (freeing.contains(rows.integer(kOperation))) report.bytes = -report.bytes;
            report.address = static_cast<std::uint64_t>(rows.integer(kAddress));
            const bool is_of_host = !rows.is_null(kKind) && rows.integer(kKind) <= 1;
            if (!is_of_host) {
                report.device = {DeviceType::Cuda,
                                 static_cast<std::int32_t>(std::clamp(rows.integer(kDevice), std::int64_t{-1},
                                                                      std::int64_t{INT32_MAX}))};
            }
            const LaunchCall* call = rows.is_null(kCorrelation)
                                         ? nullptr
                                         : profile_.find_call(rows.integer(kCorrelation), report.process_key);
            const Row process = global_process(profile_, rows.integer(kPid));
            // The main thread has the same number as its process.
            report.thread = call != nullptr ? call->thread
                                            : profile_.thread(process, profile_.trace().process(process).pid);
            reports.push_back(report);
        }
        add_memory(reports);
    }

    void add_memory(std::vector<Allocation>& reports) {
        std::ranges::stable_sort(reports, {}, &Allocation::time);
        std::map<std::tuple<std::int64_t, DeviceType, std::int32_t>, std::int64_t> totals;
        for (const Allocation& report : reports) {
            std::int64_t& total = totals[{report.process_key, report.device.type, report.device.index}];
            if (__builtin_add_overflow(total, report.bytes, &total)) total = 0;
            profile_.trace().add_memory(report.thread, {.time_ns = report.time,
                                                        .address = report.address,
                                                        .bytes = report.bytes,
                                                        .total_allocated = total,
                                                        .device = report.device});
        }
    }

    // ---- metadata

    void read_devices() {
        static constexpr std::pair<const char*, const char*> kFacts[] = {
            {"id", "id"},
            {"name", "name"},
            {"totalGlobalMem", "totalMemory"},
            {"computeMajor", "computeMajor"},
            {"computeMinor", "computeMinor"},
            {"maxThreadsPerBlock", "maxThreadsPerBlock"},
            {"regsPerBlock", "maxRegistersPerBlock"},
            {"warpSize", "threadsPerWarp"},
            {"sharedMemPerBlock", "maxShmemPerBlock"},
            {"numSms", "smCount"},
            {"regsPerMultiprocessor", "maxRegistersPerSm"},
            {"sharedMemPerBlockOptin", "maxShmemPerBlockOptin"},
            {"sharedMemPerMultiprocessor", "maxShmemPerSm"}};
        std::vector<std::string> keys, columns;
        for (const auto& [key, column] : kFacts) {
            keys.emplace_back(key);
            columns.emplace_back(column);
        }
        add_table("deviceProperties", "TARGET_INFO_GPU", keys, columns);
    }

    void read_descriptions() {
        for (const std::string& table : file_.tables()) {
            if (!table.starts_with("TARGET_INFO_") && !table.starts_with("META_DATA_") &&
                table != "ANALYSIS_DETAILS")
                continue;
            const std::vector<std::string> columns = file_.columns(table);
            if (add_table(table, table, columns, columns)) tables_.push_back(table);
        }
    }

    /// Adds the rows of a table as a list of JSON objects; returns false if there are too many.
    bool add_table(const std::string& name, const std::string& table, const std::vector<std::string>& keys,
                   const std::vector<std::string>& columns) {
        constexpr int kMaxRows = 10'000;
        TableRows rows = file_.rows(table, columns);
        std::string text;
        JsonWriter json(text);
        json.begin_array();
        int count = 0;
        while (rows.next()) {
            if (++count > kMaxRows) return false;
            json.begin_object();
            for (std::size_t i = 0; i < columns.size(); ++i) {
                const int column = static_cast<int>(i);
                if (rows.is_null(column)) continue;
                json.key(keys[i]);
                if (rows.is_whole_number(column)) {
                    json.value(rows.integer(column));
                } else if (rows.is_number(column)) {
                    json.value(rows.real(column));
                } else {
                    json.value(rows.text(column));
                }
            }
            json.end_object();
        }
        json.end_array();
        if (count > 0) profile_.trace().add_metadata(name, text);
        return true;
    }

    const SqliteFile& file_;
    DeviceProfile& profile_;
    const ProfileStrings& strings_;
    std::vector<std::string> tables_;
};

/// Reads the names of processes and threads, the wall clock and device allocations; descriptions of machine,
/// devices and session become metadata. Must be called after all ranges were added. Returns the tables that
/// were read.
std::vector<std::string> read_nsight_facts(const SqliteFile& file, DeviceProfile& profile,
                                           const ProfileStrings& strings) {
    return NsightMetadata(file, profile, strings).read();
}

/// Row types of NVTX_EVENTS.
enum NvtxType : std::int64_t {
    kCategoryName = 33,
    kMark = 34,
    kThreadName = 39,
    kPushPop = 59,
    kStartEnd = 60,
    kDomainMade = 75,
    kDomainGone = 76,
};

/// Removes the CUDA version suffix from names like "cudaMalloc_v3020".
std::string_view without_version(std::string_view name) {
    const std::size_t at = name.rfind("_v");
    if (at == std::string_view::npos || at + 2 == name.size()) return name;
    const bool is_number = std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 2, name.end(),
                                       [](unsigned char c) { return std::isdigit(c) != 0; });
    return is_number ? name.substr(0, at) : name;
}

/// "OSRT_API" -> "osrt", "CUBLAS_EVENTS" -> "cublas".
std::string category_of(std::string table) {
    for (const std::string_view ending : {"_API", "_EVENTS"}) {
        if (table.ends_with(ending)) table.resize(table.size() - ending.size());
    }
    for (char& c : table) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return table;
}

class NsightReader {
  public:
    explicit NsightReader(const SqliteFile& file)
        : file_(file),
          profile_(file),
          strings_(file, "StringIds", "id", "value"),
          work_(file, profile_, strings_, nsight_memory_kind),
          values_(profile_) {}

    Trace read() {
        profile_.trace().clock().source = "nsight";
        read_nvtx_names();
        read_nvtx();
        read_runtime();
        read_host_tables();
        work_.read_kernels("CUPTI_ACTIVITY_KIND_KERNEL", {"demangledName", "shortName", "mangledName"});
        work_.read_copies("CUPTI_ACTIVITY_KIND_MEMCPY");
        work_.read_sets("CUPTI_ACTIVITY_KIND_MEMSET");
        work_.read_graphs("CUPTI_ACTIVITY_KIND_GRAPH_TRACE");
        work_.read_synchronizations("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION");
        read_tables_.insert(
            read_tables_.end(),
            {"STRINGIDS", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL",
             "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
             "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"});
        for (std::string& table : read_nsight_facts(file_, profile_, strings_))
            read_tables_.push_back(std::move(table));
        work_.count_problems();
        profile_.count("unknown_name", "Names are missing from the string table.", strings_.unknown_count());
        profile_.count_unread_tables(read_tables_, "ENUM_");
        return profile_.finish();
    }

  private:
    Row thread(std::int64_t global_tid) {
        return profile_.thread(global_process(profile_, global_tid), global_tid & kGlobalThreadMask);
    }

    // ---- NVTX

    using DomainKey = std::pair<std::int64_t, std::int64_t>;                   // process, domain
    using CategoryKey = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // process, domain, category

    std::string_view nvtx_text(const TableRows& rows, int text, int text_id) {
        if (!rows.is_null(text)) return rows.text(text);
        return rows.is_null(text_id) ? std::string_view() : strings_.text(rows.integer(text_id));
    }

    /// Names of domains, categories and threads are in rows among the ranges, before or after their use.
    void read_nvtx_names() {
        enum { kType, kText, kTextId, kTid, kDomain, kCategory };
        TableRows rows =
            file_.rows("NVTX_EVENTS", {"eventType", "text", "textId", "globalTid", "domainId", "category"});
        while (rows.next()) {
            const std::int64_t type = rows.integer(kType);
            if (type != kDomainMade && type != kCategoryName && type != kThreadName) continue;
            const std::int64_t process = global_process_key(rows.integer(kTid));
            const std::string text(nvtx_text(rows, kText, kTextId));
            if (type == kDomainMade) {
                domains_[{process, rows.integer(kDomain)}] = text;
            } else if (type == kCategoryName) {
                categories_[{process, rows.integer(kDomain), rows.integer(kCategory)}] = text;
            } else {
                profile_.trace().thread(thread(rows.integer(kTid))).name = profile_.trace().string(text);
            }
        }
    }

    void read_nvtx() {
        enum { kType, kStart, kEnd, kText, kTextId, kTid, kDomain, kCategory, kPayload };
        TableRows rows =
            file_.rows("NVTX_EVENTS", {"eventType", "start", "end", "text", "textId", "globalTid", "domainId",
                                       "category", "uint64Value", "int64Value", "doubleValue", "uint32Value",
                                       "int32Value", "floatValue", "jsonText"});
        constexpr int kPayloads = 7;
        while (rows.next()) {
            const std::int64_t type = rows.integer(kType);
            if (type == kDomainMade || type == kCategoryName || type == kThreadName || type == kDomainGone)
                continue;
            if (type != kPushPop && type != kStartEnd && type != kMark) {
                profile_.count("unread_nvtx",
                               "NVTX events of type " + std::to_string(type) + " are not read.");
                continue;
            }
            const bool has_end = type != kMark && !rows.is_null(kEnd);
            if (!profile_.has_times(rows, "NVTX_EVENTS", {kStart, has_end ? kEnd : kStart})) continue;
            const std::int64_t tid = rows.integer(kTid);
            const auto domain = domains_.find({global_process_key(tid), rows.integer(kDomain)});
            const std::uint32_t site =
                profile_.site(nvtx_text(rows, kText, kTextId), Scope::User,
                              domain != domains_.end() ? std::string_view(domain->second) : "");
            values_.clear();
            if (const std::int64_t number = rows.integer(kCategory); number != 0) {
                const auto category =
                    categories_.find({global_process_key(tid), rows.integer(kDomain), number});
                if (category != categories_.end()) {
                    values_.text("category", category->second);
                } else {
                    values_.integer("category", number);
                }
            }
            for (int i = 0; i < kPayloads; ++i) {
                if (rows.is_null(kPayload + i)) continue;
                values_.column("payload", rows, kPayload + i);
                break;
            }
            add_nvtx(type, thread(tid), rows.integer(kStart), !has_end, rows.integer(kEnd), site);
        }
    }

    void add_nvtx(std::int64_t type, Row thread, std::int64_t start, bool is_open, std::int64_t end,
                  std::uint32_t site) {
        if (type == kMark) {
            profile_.add_instant(thread, start, site, values_.all());
            return;
        }
        // A range started by nvtxRangeStart may end on any thread and in any order.
        const std::uint32_t lane =
            profile_.thread_lane(thread, type == kStartEnd ? TrackKind::Async : TrackKind::Thread);
        if (is_open) {
            profile_.add_unfinished(lane, start, site, values_.all());
            profile_.count("unfinished", "NVTX ranges have no end: they end with the trace.");
        } else {
            profile_.trace().add_values(profile_.add_range(lane, start, end, site), values_.all());
        }
    }

    // ---- host calls

    void read_runtime() {
        enum { kStart, kEnd, kTid, kCorrelation, kName, kResult };
        const std::string table = "CUPTI_ACTIVITY_KIND_RUNTIME";
        TableRows rows =
            file_.rows(table, {"start", "end", "globalTid", "correlationId", "nameId", "returnValue"});
        std::unordered_map<std::int64_t, std::uint32_t> sites;
        while (rows.next()) {
            if (!profile_.has_times(rows, table, {kStart, kEnd})) continue;
            const auto [place, is_new] = sites.try_emplace(rows.integer(kName), 0);
            if (is_new) place->second = call_site(strings_.text(rows.integer(kName)));
            LaunchCall call{.correlation = rows.integer(kCorrelation),
                            .process_key = global_process_key(rows.integer(kTid)),
                            .thread = thread(rows.integer(kTid))};
            call.range = profile_.add_range(profile_.thread_lane(call.thread), rows.integer(kStart),
                                            rows.integer(kEnd), place->second);
            if (!rows.is_null(kCorrelation)) profile_.add_call(call);
            values_.clear();
            values_.column("correlation", rows, kCorrelation);
            if (rows.integer(kResult) != 0) values_.column("return value", rows, kResult);
            profile_.trace().add_values(call.range, values_.all());
        }
    }

    std::uint32_t call_site(std::string_view name) {
        SiteInfo info = profile_.trace().named(without_version(name));
        if (without_version(name) != name) info.raw_name = profile_.trace().string(name);
        info.scope = Scope::DeviceRuntime;
        const bool is_runtime = name.starts_with("cuda");
        info.category = profile_.trace().string(is_runtime ? "cuda_runtime" : "cuda_driver");
        return profile_.trace().site(info);
    }

    /// Library tables have the same form: OSRT_API, CUBLAS_EVENTS, MPI_P2P_EVENTS, ...
    void read_host_tables() {
        for (const std::string& table : file_.tables()) {
            if (table == "NVTX_EVENTS" || table.starts_with("CUPTI_ACTIVITY_KIND_")) continue;
            if (!file_.has_column(table, "start") || !file_.has_column(table, "end") ||
                !file_.has_column(table, "globalTid"))
                continue;
            const bool has_name = file_.has_column(table, "nameId");
            if (!has_name && !file_.has_column(table, "textId")) continue;
            read_host_table(table, has_name ? "nameId" : "textId");
            read_tables_.push_back(table);
        }
    }

    void read_host_table(const std::string& table, const char* name_column) {
        enum { kStart, kEnd, kTid, kName };
        TableRows rows = file_.rows(table, {"start", "end", "globalTid", name_column});
        // The profiler's own overhead overlaps the program's ranges.
        const bool is_overhead = table == "PROFILER_OVERHEAD";
        const std::string category = is_overhead ? "overhead" : category_of(table);
        std::unordered_map<std::int64_t, std::uint32_t> sites;
        while (rows.next()) {
            const bool has_end = !rows.is_null(kEnd);
            if (!profile_.has_times(rows, table, {kStart, has_end ? kEnd : kStart})) continue;
            const auto [place, is_new] = sites.try_emplace(rows.integer(kName), 0);
            if (is_new)
                place->second = profile_.site(strings_.text(rows.integer(kName)), Scope::Function, category);
            const std::uint32_t lane = profile_.thread_lane(
                thread(rows.integer(kTid)), is_overhead ? TrackKind::Async : TrackKind::Thread);
            if (!has_end) {
                profile_.add_unfinished(lane, rows.integer(kStart), place->second, {});
            } else {
                profile_.add_range(lane, rows.integer(kStart), rows.integer(kEnd), place->second);
            }
        }
    }

    const SqliteFile& file_;
    DeviceProfile profile_;
    ProfileStrings strings_;
    DeviceWorkReader work_;
    RowValues values_;
    std::map<DomainKey, std::string> domains_;
    std::map<CategoryKey, std::string> categories_;
    std::vector<std::string> read_tables_;
};

}  // namespace

Trace read_nsight(const SqliteFile& file) {
    return NsightReader(file).read();
}

}  // namespace marey

#endif

namespace marey {

FileFormat nsight_format() {
    return {.name = "nsight",
            .description = "Nsight Systems SQLite exports",
            .recognizes = is_sqlite_profile,
            .read = read_sqlite_profile};
}

}  // namespace marey
