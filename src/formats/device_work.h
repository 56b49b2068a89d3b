// device_work.h: kernels, copies and the like, whose tables have the same form in all CUDA tools.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
    void read_kernels(const std::string& table, const KernelNames& names);
    void read_copies(const std::string& table);
    void read_sets(const std::string& table);
    /// Graphs that were traced as a whole.
    void read_graphs(const std::string& table);
    /// Waits are not work: they are on separate tracks, and their links are not launches.
    void read_synchronizations(const std::string& table);

    /// Counts kernels without a call, and kernels launched by calls other than cudaLaunchKernel.
    void count_problems();

  private:
    static std::vector<std::string> columns_with(std::initializer_list<const char*> own);
    /// Moves to the next row with valid times; other rows are counted.
    bool next(TableRows& rows, const std::string& table);
    LaunchCall* find_call(const TableRows& rows);
    Row process_of(const TableRows& rows, const LaunchCall* call);
    /// Adds the range of a row and its link. The first values are in values_.
    TraceAssembler::RangeId add(const TableRows& rows, std::uint32_t site, const LaunchCall* call);
    std::uint32_t kernel_site(std::int64_t name, std::int64_t symbol);

    const SqliteFile& file_;
    DeviceProfile& profile_;
    ProfileStrings& strings_;
    MemoryKindName memory_kind_;
    RowValues values_;
    const StringId context_key_ = profile_.trace().string("context");
    const StringId correlation_key_ = profile_.trace().string("correlation");
    const StringId bytes_key_ = profile_.trace().string("bytes");
    std::map<std::int64_t, std::uint64_t> other_launches_;  ///< kernels by call number
    std::uint64_t lost_kernels_ = 0;
};

}  // namespace marey
