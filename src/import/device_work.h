// device_work.h: kernels, copies and the like, whose tables CUDA's tools shape alike.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/device_profile.h"
#include "import/sqlite_file.h"

namespace marey {

/// The lowest 24 bits of a "globalTid" are the thread's number, the next 24 the process's; what is above them
/// tells machines apart, so that all but the thread's is a key of the process.
inline constexpr std::int64_t kGlobalThreadMask = 0xffffff;
inline std::int64_t global_process_key(std::int64_t global_id) noexcept {
    return global_id & ~kGlobalThreadMask;
}
inline Row global_process(DeviceProfile& profile, std::int64_t global_id) {
    return profile.process(global_process_key(global_id), (global_id >> 24) & 0xffffff);
}

/// Puts the work of devices on the tracks of their queues, with an arrow from the call that launched it. The
/// calls must be in the profile already.
class DeviceWork {
  public:
    using MemoryKindName = std::string_view (*)(std::int64_t kind) noexcept;
    /// All must outlive this.
    DeviceWork(const SqliteFile& file, DeviceProfile& profile, ProfileStrings& strings,
               MemoryKindName memory_kind)
        : file_(file), profile_(profile), strings_(strings), memory_kind_(memory_kind), values_(profile) {}

    /// Columns with the numbers of a kernel's readable name, of a shorter one for want of it, and of its
    /// symbol.
    struct KernelNames {
        const char* name;
        const char* short_name;
        const char* symbol;
    };
    void read_kernels(const std::string& table, const KernelNames& names);
    void read_copies(const std::string& table);
    void read_sets(const std::string& table);
    /// Graphs that were traced as wholes.
    void read_graphs(const std::string& table);
    /// Waiting is no work: it goes beside the queues, and its arrows are no launches.
    void read_synchronizations(const std::string& table);

    /// Counts kernels without a call, and kernels of other calls than cudaLaunchKernel.
    void count_problems();

  private:
    static std::vector<std::string> columns_with(std::initializer_list<const char*> own);
    /// Goes to the next row that has times; those without are counted.
    bool next(TableRows& rows, const std::string& table);
    LaunchCall* find_call(const TableRows& rows);
    Row process_of(const TableRows& rows, const LaunchCall* call);
    /// Adds the range of a row and its arrow. Its first values are in values_.
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
    std::map<std::int64_t, std::uint64_t> other_launches_;  ///< kernels by the number of the call
    std::uint64_t lost_kernels_ = 0;
};

}  // namespace marey
