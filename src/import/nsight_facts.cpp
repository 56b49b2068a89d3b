// nsight_facts.cpp: reads the small tables.
#include "import/nsight_facts.h"

#include <algorithm>
#include <map>
#include <set>

#include "import/device_work.h"
#include "json/json_writer.h"

namespace marey {
namespace {

class NsightFacts {
  public:
    NsightFacts(const SqliteFile& file, DeviceProfile& profile, const ProfileStrings& strings)
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
        std::int64_t time, process_key, bytes;
        std::uint64_t address;
        Device device;
        Row thread;
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
            Allocation report{};
            report.process_key = global_process_key(rows.integer(kPid));
            report.time = profile_.reachable(rows.integer(kTime));
            report.bytes = std::clamp(rows.integer(kBytes), std::int64_t{0}, kMax);
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
        std::stable_sort(reports.begin(), reports.end(),
                         [](const Allocation& a, const Allocation& b) { return a.time < b.time; });
        std::map<std::tuple<std::int64_t, DeviceType, std::int32_t>, std::int64_t> totals;
        for (const Allocation& report : reports) {
            std::int64_t& total = totals[{report.process_key, report.device.type, report.device.index}];
            if (__builtin_add_overflow(total, report.bytes, &total)) total = 0;
            AllocationReport entry;
            entry.time_ns = report.time;
            entry.address = report.address;
            entry.bytes = report.bytes;
            entry.total_allocated = total;
            entry.device = report.device;
            profile_.trace().add_memory(report.thread, entry);
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

}  // namespace

std::vector<std::string> read_nsight_facts(const SqliteFile& file, DeviceProfile& profile,
                                           const ProfileStrings& strings) {
    return NsightFacts(file, profile, strings).read();
}

}  // namespace marey
