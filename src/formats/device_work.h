// device_work.h: kernels, copies and the like, whose tables have the same form in all CUDA tools.
#pragma once

#include <initializer_list>
#include <map>
#include <utility>

#include "formats/cuda_names.h"
#include "formats/device_profile.h"
#include "formats/sqlite_file.h"

namespace marey {

/// The lowest 24 bits of a "globalTid" are the thread id, the next 24 bits the process id. The bits above
/// distinguish machines, so everything except the thread id identifies the process.
inline constexpr std::int64_t kGlobalThreadMask = 0xffffff;
inline std::int64_t global_process_key(std::int64_t global_id) noexcept {
    return global_id & ~kGlobalThreadMask;
}
inline Row global_process(DeviceProfile& profile, std::int64_t global_id) {
    return profile.process(global_process_key(global_id), (global_id >> 24) & 0xffffff);
}

/// Adds device work to the tracks of its streams, with a link from the call that launched it. The calls must
/// have been added already.
class DeviceWorkReader {
  public:
    using MemoryKindName = std::string_view (*)(std::int64_t kind) noexcept;
    /// All arguments must outlive this.
    DeviceWorkReader(const SqliteFile& file, DeviceProfile& profile, ProfileStrings& strings,
                     MemoryKindName memory_kind)
        : file_(file), profile_(profile), strings_(strings), memory_kind_(memory_kind), values_(profile) {}

    /// The columns with the numbers of a kernel's readable name, of a shorter name (fallback) and of its
    /// symbol.
    struct KernelNames {
        const char* name;
        const char* short_name;
        const char* symbol;
    };
    void read_kernels(const std::string& table, const KernelNames& names) {
        enum {
            kName = kFirstOwnColumn,
            kShortName,
            kSymbol,
            kRegisters,
            kStatic,
            kDynamic,
            kLocal,
            kGraphNode,
            kGrid,
            kBlock = kGrid + 3
        };
        TableRows rows = file_.rows(
            table, columns_with({names.name, names.short_name, names.symbol, "registersPerThread",
                                 "staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread",
                                 "graphNodeId", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"}));
        std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> sites;
        while (next(rows, table)) {
            const std::int64_t name = rows.integer(rows.is_null(kName) ? kShortName : kName);
            const std::int64_t symbol = rows.is_null(kSymbol) ? -1 : rows.integer(kSymbol);
            const auto [place, is_new] = sites.try_emplace({name, symbol}, 0);
            if (is_new) place->second = kernel_site(name, symbol);
            LaunchCall* call = find_call(rows);
            const TraceAssembler::RangeId range = add(rows, place->second, call);
            values_.column("registers per thread", rows, kRegisters);
            if (!rows.is_null(kStatic) || !rows.is_null(kDynamic))
                values_.integer("shared memory", add_numbers(rows.integer(kStatic), rows.integer(kDynamic)));
            if (rows.integer(kLocal) != 0) values_.column("local memory per thread", rows, kLocal);
            values_.column("graph node", rows, kGraphNode);
            values_.triple("grid", rows, kGrid);
            values_.triple("block", rows, kBlock);
            profile_.trace().add_values(range, values_.all());
            if (call == nullptr) {
                ++lost_kernels_;
                continue;
            }
            ++call->kernels;
            if (call->call_number >= 0 && call->call_number != kLaunchKernelCall)
                ++other_launches_[call->call_number];
        }
    }
    void read_copies(const std::string& table) {
        enum { kKind = kFirstOwnColumn, kBytes, kSource, kTarget, kSourceDevice, kTargetDevice };
        TableRows rows = file_.rows(
            table, columns_with({"copyKind", "bytes", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId"}));
        while (next(rows, table)) {
            const std::uint32_t site =
                profile_.site(copy_name(rows.integer(kKind)), Scope::Device, "gpu_memcpy");
            const TraceAssembler::RangeId range = add(rows, site, find_call(rows));
            values_.column("bytes", rows, kBytes);
            if (!rows.is_null(kSource)) values_.text("source", memory_kind_(rows.integer(kSource)));
            if (!rows.is_null(kTarget)) values_.text("destination", memory_kind_(rows.integer(kTarget)));
            values_.column("fromDevice", rows, kSourceDevice);
            values_.column("toDevice", rows, kTargetDevice);
            profile_.trace().add_values(range, values_.all());
        }
    }
    void read_sets(const std::string& table) {
        enum { kValue = kFirstOwnColumn, kBytes };
        TableRows rows = file_.rows(table, columns_with({"value", "bytes"}));
        while (next(rows, table)) {
            const std::uint32_t site = profile_.site("Memset", Scope::Device, "gpu_memset");
            const TraceAssembler::RangeId range = add(rows, site, find_call(rows));
            values_.column("bytes", rows, kBytes);
            values_.column("value", rows, kValue);
            profile_.trace().add_values(range, values_.all());
        }
    }
    /// Graphs that were traced as a whole.
    void read_graphs(const std::string& table) {
        enum { kGraph = kFirstOwnColumn };
        TableRows rows = file_.rows(table, columns_with({"graphId"}));
        while (next(rows, table)) {
            const std::uint32_t site = profile_.site("CUDA graph", Scope::Device, "cuda_graph");
            const TraceAssembler::RangeId range = add(rows, site, find_call(rows));
            values_.column("graph", rows, kGraph);
            profile_.trace().add_values(range, values_.all());
        }
    }
    /// Waits are not work: they are on separate tracks, and their links are not launches.
    void read_synchronizations(const std::string& table) {
        enum { kKind = kFirstOwnColumn, kEvent };
        TableRows rows = file_.rows(table, columns_with({"syncType", "eventId"}));
        const StringId link_name = profile_.trace().string("cuda_sync");
        while (next(rows, table)) {
            const LaunchCall* call = find_call(rows);
            const std::uint32_t lane =
                profile_.queue_lane(process_of(rows, call), rows.integer(kDevice), -1, TrackKind::Async);
            const std::uint32_t site =
                profile_.site(synchronization_name(rows.integer(kKind)), Scope::DeviceRuntime, "cuda_sync");
            const TraceAssembler::RangeId range =
                profile_.add_range(lane, rows.integer(kStart), rows.integer(kEnd), site);
            if (call != nullptr) profile_.trace().add_link(call->range, range, LinkKind::Flow, link_name);
            values_.clear();
            values_.column("context", rows, kContext);
            values_.column("stream", rows, kStream);
            values_.column("correlation", rows, kCorrelation);
            if (rows.integer(kEvent) != 0) values_.column("event", rows, kEvent);
            profile_.trace().add_values(range, values_.all());
        }
    }

    /// Counts kernels without a call, and kernels launched by calls other than cudaLaunchKernel.
    void count_problems() {
        for (const auto& [number, count] : other_launches_) {
            profile_.count("other_launch",
                           "Kernels were launched by " + runtime_call_name(number) + " (cbid " +
                               std::to_string(number) + "), not by cudaLaunchKernel.",
                           count);
        }
        profile_.count("kernel_without_call", "Kernels have no launch call in the file.", lost_kernels_);
    }

  private:
    /// The first columns requested from every table.
    enum {
        kStart,
        kEnd,
        kDevice,
        kStream,
        kContext,
        kCorrelation,
        kRuntimeCorrelation,
        kProcess,
        kFirstOwnColumn
    };

    static std::vector<std::string> columns_with(std::initializer_list<const char*> own) {
        std::vector<std::string> columns = {
            "start",    "end", "deviceId", "streamId", "contextId", "correlationId", "runtimeCorrelationId",
            "globalPid"};
        columns.insert(columns.end(), own.begin(), own.end());
        return columns;
    }
    /// Moves to the next row with valid times; other rows are counted.
    bool next(TableRows& rows, const std::string& table) {
        while (rows.next()) {
            if (profile_.has_times(rows, table, {kStart, kEnd})) return true;
        }
        return false;
    }
    LaunchCall* find_call(const TableRows& rows) {
        std::optional<std::int64_t> process;
        if (!rows.is_null(kProcess)) process = global_process_key(rows.integer(kProcess));
        LaunchCall* call = nullptr;
        if (!rows.is_null(kCorrelation)) call = profile_.find_call(rows.integer(kCorrelation), process);
        if (call == nullptr && rows.integer(kRuntimeCorrelation) != 0)
            call = profile_.find_call(rows.integer(kRuntimeCorrelation), process);
        return call;
    }
    Row process_of(const TableRows& rows, const LaunchCall* call) {
        if (!rows.is_null(kProcess)) return global_process(profile_, rows.integer(kProcess));
        if (call != nullptr) return profile_.trace().thread(call->thread).process;
        return profile_.process_count() > 0 ? 0 : profile_.process(0, 0);
    }
    /// Adds the range of a row and its link. The first values are in values_.
    TraceAssembler::RangeId add(const TableRows& rows, std::uint32_t site, const LaunchCall* call) {
        const std::uint32_t lane =
            profile_.queue_lane(process_of(rows, call), rows.integer(kDevice), rows.integer(kStream));
        const TraceAssembler::RangeId range =
            profile_.add_range(lane, rows.integer(kStart), rows.integer(kEnd), site);
        if (call != nullptr) profile_.trace().add_link(call->range, range, LinkKind::Launch);
        values_.clear();
        values_.column("context", rows, kContext);
        values_.column("correlation", rows, kCorrelation);
        return range;
    }
    std::uint32_t kernel_site(std::int64_t name, std::int64_t symbol) {
        const std::string* mangled = symbol >= 0 ? strings_.find(symbol) : nullptr;
        const bool is_named = mangled == nullptr || strings_.find(name) != nullptr;
        SiteInfo info = profile_.trace().named(is_named ? strings_.text(name) : std::string_view(*mangled));
        if (mangled != nullptr && info.raw_name == 0) {
            const StringId raw = profile_.trace().string(*mangled);
            if (raw != info.name) info.raw_name = raw;
        }
        info.scope = Scope::Device;
        info.category = profile_.trace().string("kernel");
        return profile_.trace().site(info);
    }

    const SqliteFile& file_;
    DeviceProfile& profile_;
    ProfileStrings& strings_;
    MemoryKindName memory_kind_;
    RowValues values_;
    std::map<std::int64_t, std::uint64_t> other_launches_;  ///< kernels by call number
    std::uint64_t lost_kernels_ = 0;
};

}  // namespace marey
