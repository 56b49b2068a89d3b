// read.cpp: reads nvprof databases. Times are in nanoseconds; a marker has one row for its start and one
// for its end.
#include "formats/formats.h"
#include "formats/sqlite_file.h"

#if MAREY_HAVE_SQLITE

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include <marey/error.h>

#include "formats/cuda_names.h"
#include "formats/device_profile.h"
#include "formats/device_work.h"
#include "json/json_writer.h"

namespace marey {
namespace {

// CUPTI constants.
constexpr std::int64_t kInstantFlag = 1, kStartFlag = 2, kEndFlag = 4;
enum ObjectKind : std::int64_t { kProcessObject = 1, kThreadObject = 2, kStreamObject = 5 };

const char* const kMarkers = "CUPTI_ACTIVITY_KIND_MARKER";
const char* const kRuntime = "CUPTI_ACTIVITY_KIND_RUNTIME";
const char* const kDriver = "CUPTI_ACTIVITY_KIND_DRIVER";

/// Identifies a CUPTI object: process and thread, or device, context and stream.
struct ObjectId {
    std::uint32_t words[3] = {0, 0, 0};
    explicit ObjectId(std::string_view bytes) {
        for (std::size_t i = 0; i < 3 && bytes.size() >= 4 * (i + 1); ++i) {
            std::memcpy(&words[i], bytes.data() + 4 * i, 4);  // in the writer's byte order: little-endian
        }
    }
};

class NvprofReader {
  public:
    explicit NvprofReader(const SqliteFile& file)
        : file_(file),
          profile_(file),
          strings_(file, "StringTable", "_id_", "value"),
          work_(file, profile_, strings_, cupti_memory_kind) {}

    Trace read() {
        // Threads of markers and calls can be matched only if both tables have them.
        const bool markers_have_threads = !file_.has_table(kMarkers) ||
                                          file_.has_column(kMarkers, "objectId") ||
                                          file_.has_column(kMarkers, "threadId");
        const bool calls_have_threads = !file_.has_table(kRuntime) || file_.has_column(kRuntime, "threadId");
        has_threads_ = markers_have_threads && calls_have_threads;

        profile_.trace().clock().source = "nvprof";
        read_markers();
        read_calls(kRuntime);
        read_calls(kDriver);
        for (const char* table : {"CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "CUPTI_ACTIVITY_KIND_KERNEL"})
            work_.read_kernels(table, {"name", "", ""});
        work_.read_copies("CUPTI_ACTIVITY_KIND_MEMCPY");
        work_.read_copies("CUPTI_ACTIVITY_KIND_MEMCPY2");
        work_.read_sets("CUPTI_ACTIVITY_KIND_MEMSET");
        check_launches();
        read_names();
        read_devices();
        count_problems();
        profile_.count_unread_tables(
            {"STRINGTABLE", "VERSION", "CUPTI_ACTIVITY_KIND_MARKER", "CUPTI_ACTIVITY_KIND_RUNTIME",
             "CUPTI_ACTIVITY_KIND_DRIVER", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
             "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMCPY2",
             "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_NAME", "CUPTI_ACTIVITY_KIND_DEVICE"},
            "SQLITE_");
        return profile_.finish();
    }

  private:
    struct MarkerStart {
        std::int64_t id, time, name, domain;
        Row thread;
        bool is_instant;
    };
    struct MarkerEnd {
        std::int64_t id, time;
    };
    /// A marker on its thread, used to find the marker that contains a call.
    struct MarkerSpan {
        Row thread;
        std::int64_t start, end, id, name;
        std::int64_t latest_end;  ///< of this marker and all earlier ones on the thread
    };

    Row thread(std::int64_t pid, std::int64_t tid) {
        if (!has_threads_) pid = tid = 0;
        pid &= 0xffffffff;
        tid &= 0xffffffff;
        return profile_.thread(profile_.process(pid, pid), tid);
    }

    // ---- markers

    void read_markers() {
        enum { kId, kName, kTime, kFlags, kKind, kObject, kProcess, kThread, kDomain };
        TableRows rows = file_.rows(kMarkers, {"id", "name", "timestamp", "flags", "objectKind", "objectId",
                                               "processId", "threadId", "domain"});
        std::vector<MarkerStart> starts;
        std::vector<MarkerEnd> ends;
        while (rows.next()) {
            if (!profile_.has_times(rows, kMarkers, {kTime})) continue;
            const std::int64_t flags = rows.integer(kFlags) & (kInstantFlag | kStartFlag | kEndFlag);
            const bool is_start = flags != 0 ? (flags & kEndFlag) == 0 : rows.integer(kName) != 0;
            if (!is_start) {
                ends.push_back({rows.integer(kId), rows.integer(kTime)});
                continue;
            }
            std::int64_t pid = rows.integer(kProcess), tid = rows.integer(kThread);
            const std::int64_t kind = rows.integer(kKind);
            if (kind == kThreadObject || kind == kProcessObject) {
                const ObjectId object(rows.text(kObject));
                pid = object.words[0];
                tid = kind == kThreadObject ? object.words[1] : 0;
            }
            starts.push_back({rows.integer(kId), rows.integer(kTime), rows.integer(kName),
                              rows.integer(kDomain), thread(pid, tid), flags == kInstantFlag});
        }
        join_markers(starts, ends);
    }

    void join_markers(std::vector<MarkerStart>& starts, std::vector<MarkerEnd>& ends) {
        const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
        std::ranges::stable_sort(starts, by_id);
        std::ranges::stable_sort(ends, by_id);
        const auto has_same_id = [](const auto& a, const auto& b) { return a.id == b.id; };
        if (const auto twice = std::ranges::adjacent_find(starts, has_same_id); twice != starts.end())
            fail_repeated(twice->id, twice->name, "starts");
        if (const auto twice = std::ranges::adjacent_find(ends, has_same_id); twice != ends.end())
            fail_repeated(twice->id, 0, "ends");

        auto end = ends.begin();
        std::uint64_t unmatched = 0;
        for (const MarkerStart& start : starts) {
            for (; end != ends.end() && end->id < start.id; ++end) ++unmatched;
            const bool has_end = end != ends.end() && end->id == start.id;
            add_marker(start, has_end ? &*end : nullptr);
            if (has_end) ++end;
        }
        unmatched += static_cast<std::uint64_t>(ends.end() - end);
        profile_.count("end_without_start", "Marker ends without a start were skipped.", unmatched);
    }

    void add_marker(const MarkerStart& start, const MarkerEnd* end) {
        const std::uint32_t site =
            profile_.site(strings_.text(start.name), Scope::User,
                          start.domain != 0 ? strings_.text(start.domain) : std::string_view());
        if (start.is_instant) {
            profile_.add_instant(start.thread, start.time, site, {});
            return;
        }
        const std::uint32_t lane = profile_.thread_lane(start.thread);
        if (end == nullptr) {
            profile_.add_unfinished(lane, start.time, site, {});
            profile_.count("unfinished", "Markers without an end were ended at the end of the trace.");
            return;
        }
        profile_.add_range(lane, start.time, end->time, site);
        spans_.push_back({start.thread, start.time, end->time, start.id, start.name, 0});
    }

    [[noreturn]] void fail_repeated(std::int64_t id, std::int64_t name, const char* what) {
        const std::string* text = strings_.find(name);
        throw Error(file_.path() + ": marker " + std::to_string(id) +
                    (text != nullptr ? " ('" + *text + "') " : " ") + what + " more than once");
    }

    // ---- calls

    void read_calls(const char* table) {
        enum { kNumber, kStart, kEnd, kProcess, kThread, kCorrelation, kResult };
        const bool is_runtime = table == kRuntime;
        std::unordered_map<std::int64_t, std::uint32_t> sites;
        RowValues values(profile_);
        TableRows rows = file_.rows(
            table, {"cbid", "start", "end", "processId", "threadId", "correlationId", "returnValue"});
        while (rows.next()) {
            if (!profile_.has_times(rows, table, {kStart, kEnd})) continue;
            const std::int64_t number = rows.integer(kNumber);
            const auto [place, is_new] = sites.try_emplace(number, 0);
            if (is_new) {
                place->second =
                    profile_.site(is_runtime ? runtime_call_name(number) : driver_call_name(number),
                                  Scope::DeviceRuntime, is_runtime ? "cuda_runtime" : "cuda_driver");
            }
            LaunchCall call;
            call.correlation = rows.integer(kCorrelation);
            call.process_key = is_runtime ? 0 : 1;  // the runtime call comes first if both share an id
            call.thread = thread(rows.integer(kProcess), rows.integer(kThread));
            call.range = profile_.add_range(profile_.thread_lane(call.thread), rows.integer(kStart),
                                            rows.integer(kEnd), place->second);
            call.start = rows.integer(kStart);
            call.end = rows.integer(kEnd);
            if (is_runtime) call.call_number = number;
            if (!rows.is_null(kCorrelation)) profile_.add_call(call);
            values.clear();
            values.column("cbid", rows, kNumber);
            values.column("correlation", rows, kCorrelation);
            if (rows.integer(kResult) != 0) values.column("return value", rows, kResult);
            profile_.trace().add_values(call.range, values.all());
        }
    }

    // ---- checks

    /// A cudaLaunchKernel call launches one kernel: a second one would count twice in the enclosing marker.
    void check_launches() {
        std::ranges::sort(spans_, [](const MarkerSpan& a, const MarkerSpan& b) {
            return a.thread != b.thread ? a.thread < b.thread : a.start < b.start;
        });
        for (std::size_t i = 0; i < spans_.size(); ++i) {
            spans_[i].latest_end = spans_[i].end;
            if (i > 0 && spans_[i - 1].thread == spans_[i].thread)
                spans_[i].latest_end = std::max(spans_[i].end, spans_[i - 1].latest_end);
        }
        for (const LaunchCall& call : profile_.calls()) {
            if (call.kernels < 2 || call.call_number != kLaunchKernelCall) continue;
            auto span = std::lower_bound(
                spans_.begin(), spans_.end(), call, [](const MarkerSpan& marker, const LaunchCall& wanted) {
                    return marker.thread != wanted.thread ? marker.thread < wanted.thread
                                                          : marker.start < wanted.start;
                });
            while (span != spans_.begin() && (span - 1)->thread == call.thread &&
                   (span - 1)->latest_end > call.end) {
                --span;
                if (span->end <= call.end) continue;
                const std::string* name = strings_.find(span->name);
                throw Error(file_.path() + ": marker " + std::to_string(span->id) +
                            (name != nullptr ? " ('" + *name + "')" : "") + " contains runtime call " +
                            std::to_string(call.correlation) + ", which launched " +
                            std::to_string(call.kernels) + " kernels instead of one");
            }
        }
    }

    void count_problems() {
        if (!profile_.calls().empty()) work_.count_problems();
        std::uint64_t repeated = 0;
        const std::vector<LaunchCall>& calls = profile_.calls();
        for (std::size_t i = 1; i < calls.size(); ++i) {
            repeated += calls[i].correlation == calls[i - 1].correlation &&
                        calls[i].process_key == calls[i - 1].process_key && calls[i].correlation != 0;
        }
        profile_.count("repeated_correlation",
                       "Calls share a correlation id: their work is attributed to the first call.", repeated);
        profile_.count("unknown_name", "Names are missing from the string table.", strings_.unknown_count());
    }

    // ---- names and devices

    void read_names() {
        enum { kKind, kObject, kName };
        TableRows rows = file_.rows("CUPTI_ACTIVITY_KIND_NAME", {"objectKind", "objectId", "name"});
        while (rows.next()) {
            const ObjectId object(rows.text(kObject));
            const std::string_view name = strings_.text(rows.integer(kName));
            if (rows.integer(kKind) == kProcessObject) {
                const Row process = profile_.process(object.words[0], object.words[0]);
                profile_.trace().process(process).name = profile_.trace().string(name);
            } else if (rows.integer(kKind) == kThreadObject) {
                const Row named =
                    profile_.thread(profile_.process(object.words[0], object.words[0]), object.words[1]);
                profile_.trace().thread(named).name = profile_.trace().string(name);
            } else if (rows.integer(kKind) == kStreamObject) {
                profile_.name_queue(object.words[0], object.words[2], name);
            } else {
                profile_.count("unread_name", "Device and context names are not read.");
            }
        }
    }

    void read_devices() {
        static constexpr std::pair<const char*, const char*> kNumbers[] = {
            {"id", "id"},
            {"totalGlobalMem", "globalMemorySize"},
            {"computeMajor", "computeCapabilityMajor"},
            {"computeMinor", "computeCapabilityMinor"},
            {"maxThreadsPerBlock", "maxThreadsPerBlock"},
            {"regsPerBlock", "maxRegistersPerBlock"},
            {"warpSize", "numThreadsPerWarp"},
            {"sharedMemPerBlock", "maxSharedMemoryPerBlock"},
            {"numSms", "numMultiprocessors"},
            {"regsPerMultiprocessor", "maxRegistersPerMultiprocessor"},
            {"sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiprocessor"}};
        std::vector<std::string> columns = {"name"};
        for (const auto& [key, column] : kNumbers) columns.emplace_back(column);
        TableRows rows = file_.rows("CUPTI_ACTIVITY_KIND_DEVICE", columns);
        std::string text;
        JsonWriter json(text);
        json.begin_array();
        bool has_devices = false;
        while (rows.next()) {
            has_devices = true;
            json.begin_object();
            json.member("name", strings_.text(rows.integer(0)));
            int column = 0;
            for (const auto& [key, source] : kNumbers) {
                if (!rows.is_null(++column)) json.member(key, rows.integer(column));
            }
            json.end_object();
        }
        json.end_array();
        if (has_devices) profile_.trace().add_metadata("deviceProperties", text);
    }

    const SqliteFile& file_;
    DeviceProfile profile_;
    ProfileStrings strings_;
    DeviceWorkReader work_;
    std::vector<MarkerSpan> spans_;
    bool has_threads_ = true;
};

}  // namespace

Trace read_nvprof(const SqliteFile& file) {
    return NvprofReader(file).read();
}

}  // namespace marey

#endif

namespace marey {

FileFormat nvprof_format() {
    return {.name = "nvprof",
            .description = "nvprof SQLite databases",
            .recognizes = is_sqlite_profile,
            .read = read_sqlite_profile};
}

}  // namespace marey
