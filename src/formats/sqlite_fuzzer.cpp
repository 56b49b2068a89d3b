// sqlite_fuzzer.cpp: reads any bytes as a database of another tool or, if they are not a database, as a
// recipe for one: the tables and columns that the readers use, with any values.
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include <marey/error.h>

#include "formats/sqlite_file.h"

namespace {

void require(bool holds, const char* what, const std::string& detail = "") {
    if (holds) return;
    std::fprintf(stderr, "broken promise: %s %s\n", what, detail.c_str());
    std::abort();
}

void check_value(const marey::Trace& trace, const marey::Argument& value) {
    require(value.key < trace.string_count(), "keys are known");
    if (value.kind == marey::ValueKind::String)
        require(value.string < trace.string_count(), "texts are known");
    if (value.kind != marey::ValueKind::List) return;
    require(std::size_t{value.list.first} + value.list.count <= trace.list_items().size(), "lists are known");
}

void check(const marey::Trace& trace) {
    const marey::RangeColumns ranges = trace.ranges();
    const marey::WindowInfo& window = trace.window();
    marey::Row next = 0;
    for (const marey::TrackInfo& track : trace.tracks()) {
        require(track.first_range == next && track.range_count > 0, "tracks follow one another");
        require(track.thread < trace.threads().size(), "tracks have threads");
        next += track.range_count;
    }
    require(next == ranges.size(), "every range has a track");
    for (marey::Row row = 0; row < ranges.size(); ++row) {
        require(ranges.duration_ns[row] >= 0, "durations are not negative");
        require(ranges.start_ns[row] >= window.start_ns, "ranges start in the window");
        require(ranges.duration_ns[row] <= window.end_ns - ranges.start_ns[row], "ranges end in the window");
        require(ranges.site[row] < trace.sites().size(), "sites are known");
        require(ranges.parent[row] == marey::kNoRow || ranges.parent[row] < row, "parents come first");
        for (const marey::Argument& value : trace.range_arguments(row)) check_value(trace, value);
    }
    for (const marey::LinkInfo& link : trace.links())
        require(link.from < ranges.size() && link.to < ranges.size(), "links lead to ranges");
    for (const marey::ThreadInfo& thread : trace.threads())
        require(thread.process < trace.processes().size(), "threads have processes");
    for (const marey::ProblemInfo& problem : trace.problems())
        require(problem.count > 0 && !problem.text.empty(), "problems are counted");
    for (const marey::MetadataInfo& fact : trace.metadata())
        require(fact.json.starts_with('[') && fact.json.ends_with(']'), "metadata is a list:", fact.json);
}

constexpr const char* kTables[] = {"StringTable",
                                   "CUPTI_ACTIVITY_KIND_MARKER",
                                   "CUPTI_ACTIVITY_KIND_RUNTIME",
                                   "CUPTI_ACTIVITY_KIND_DRIVER",
                                   "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
                                   "CUPTI_ACTIVITY_KIND_KERNEL",
                                   "CUPTI_ACTIVITY_KIND_MEMCPY",
                                   "CUPTI_ACTIVITY_KIND_MEMCPY2",
                                   "CUPTI_ACTIVITY_KIND_MEMSET",
                                   "CUPTI_ACTIVITY_KIND_NAME",
                                   "CUPTI_ACTIVITY_KIND_DEVICE",
                                   "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                   "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                   "StringIds",
                                   "NVTX_EVENTS",
                                   "OSRT_API",
                                   "PROFILER_OVERHEAD",
                                   "ThreadNames",
                                   "PROCESSES",
                                   "CUDA_GPU_MEMORY_USAGE_EVENTS",
                                   "ENUM_CUDA_DEV_MEM_EVENT_OPER",
                                   "TARGET_INFO_GPU",
                                   "TARGET_INFO_SESSION_START_TIME",
                                   "TARGET_INFO_SYSTEM_ENV",
                                   "UNKNOWN_EVENTS"};
constexpr const char* kColumns[] = {"_id_",
                                    "id",
                                    "value",
                                    "name",
                                    "start",
                                    "end",
                                    "timestamp",
                                    "flags",
                                    "objectKind",
                                    "objectId",
                                    "processId",
                                    "threadId",
                                    "domain",
                                    "cbid",
                                    "returnValue",
                                    "correlationId",
                                    "globalTid",
                                    "globalPid",
                                    "deviceId",
                                    "streamId",
                                    "contextId",
                                    "eventType",
                                    "text",
                                    "textId",
                                    "domainId",
                                    "category",
                                    "nameId",
                                    "demangledName",
                                    "shortName",
                                    "mangledName",
                                    "gridX",
                                    "gridY",
                                    "gridZ",
                                    "copyKind",
                                    "srcKind",
                                    "bytes",
                                    "memKind",
                                    "syncType",
                                    "address",
                                    "memoryOperationType",
                                    "int64Value",
                                    "jsonText",
                                    "utcEpochNs",
                                    "runtimeCorrelationId",
                                    "staticSharedMemory",
                                    "dynamicSharedMemory"};

/// Creates a database from a recipe: for each table its columns, then rows.
class Recipe {
  public:
    explicit Recipe(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
        sqlite3_open(":memory:", &database_);
    }
    ~Recipe() { sqlite3_close(database_); }
    Recipe(const Recipe&) = delete;
    Recipe& operator=(const Recipe&) = delete;

    std::string cook() {
        run("BEGIN");
        while (at_ < bytes_.size()) add_table();
        run("COMMIT");
        sqlite3_int64 size = 0;
        unsigned char* image = sqlite3_serialize(database_, "main", &size, 0);
        std::string text(reinterpret_cast<const char*>(image),
                         image != nullptr ? static_cast<std::size_t>(size) : 0);
        sqlite3_free(image);
        return text;
    }

  private:
    std::uint8_t byte() { return at_ < bytes_.size() ? bytes_[at_++] : 0; }
    void run(const std::string& sql) { sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr); }

    void add_table() {
        const std::string table = kTables[byte() % std::size(kTables)];
        const unsigned columns = 1 + byte() % 12;
        std::string names, places;
        for (unsigned i = 0; i < columns; ++i) {
            names += (i > 0 ? ",\"" : "\"") + std::string(kColumns[byte() % std::size(kColumns)]) + "\"";
            places += i > 0 ? ",?" : "?";
        }
        run("CREATE TABLE " + table + "(" + names + ")");
        sqlite3_stmt* statement = nullptr;
        const std::string sql = "INSERT INTO " + table + " VALUES (" + places + ")";
        sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr);
        for (unsigned rows = byte() % 16; rows > 0 && statement != nullptr; --rows) {
            for (unsigned i = 1; i <= columns; ++i) bind(statement, static_cast<int>(i));
            sqlite3_step(statement);
            sqlite3_reset(statement);
        }
        sqlite3_finalize(statement);
    }

    void bind(sqlite3_stmt* statement, int place) {
        const std::uint8_t what = byte();
        if (what < 180) {
            sqlite3_bind_int64(statement, place, what % 64);
        } else if (what < 200) {
            std::uint64_t number = 0;
            for (int i = 0; i < 8; ++i) number = number << 8 | byte();
            sqlite3_bind_int64(statement, place, static_cast<std::int64_t>(number));
        } else if (what < 210) {
            sqlite3_bind_null(statement, place);
        } else if (what < 215) {
            sqlite3_bind_double(statement, place, (byte() - 100) * 1e17);
        } else {
            const std::size_t size = std::min<std::size_t>(what % 24, bytes_.size() - at_);
            const auto* text = reinterpret_cast<const char*>(bytes_.data() + at_);
            at_ += size;
            if (what % 2 == 0) {
                sqlite3_bind_text(statement, place, text, static_cast<int>(size), SQLITE_TRANSIENT);
            } else {
                sqlite3_bind_blob(statement, place, text, static_cast<int>(size), SQLITE_TRANSIENT);
            }
        }
    }

    std::span<const std::uint8_t> bytes_;
    std::size_t at_ = 0;
    sqlite3* database_ = nullptr;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::string path = "/dev/shm/marey-sqlite-fuzzer-" + std::to_string(getpid());
    std::string image(reinterpret_cast<const char*>(data), size);
    if (!marey::is_sqlite_profile(std::as_bytes(std::span(image)))) image = Recipe({data, size}).cook();
    std::ofstream(path, std::ios::binary | std::ios::trunc) << image;
    try {
        check(marey::read_sqlite_profile(path));
    } catch (const marey::Error& error) {
        require(std::string(error.what()).starts_with(path + ": "), "failures name the file:", error.what());
    }
    unlink(path.c_str());
    return 0;
}
