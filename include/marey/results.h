// results.h: what the analyses found, as tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/analyze.h>
#include <marey/detail/cxx20.h>
#include <marey/detail/export.h>
#include <marey/findings.h>
#include <marey/outside.h>
#include <marey/result_table.h>

namespace marey {

// The tables of what an analysis returned; docs/reference/results.md describes them.
MAREY_API Result average_result(const Trace& trace, const Averages& averages);
MAREY_API Result tree_result(const Trace& trace, const CallTree& tree);
/// The result of hot_path(), and of heaviest_nodes() with `count`.
MAREY_API Result hot_path_result(const Trace& trace, const CallTree& tree, std::size_t count);
MAREY_API Result step_result(const Trace& trace, const StepReport& report);
MAREY_API Result gpu_result(const Trace& trace, const GpuUse& use);
MAREY_API Result memory_result(const Trace& trace, const MemoryUse& use);
MAREY_API Result rank_result(const RankReport& report);
/// Everything but the events: processes, threads, window, clock, costs, problems.
MAREY_API Result info_result(const Trace& trace);
/// The results of suspended_calls() and tasks().
MAREY_API Result call_result(const Trace& trace);
MAREY_API Result task_result(const Trace& trace);
MAREY_API Result stack_result(std::span<const FoldedStack> stacks);
/// The result of sample_report().
MAREY_API Result sample_result(const Trace& trace, const SampleReport& report);
/// The result of explain().
MAREY_API Result findings_result(const Trace& trace, std::span<const Finding> findings);
/// The processes and the open ranges of a trace in `file`.
MAREY_API Result now_result(const Trace& trace, const std::string& file);
/// The same tables for a process that is not recorded.
MAREY_API Result now_result(const OutsideProcess& process);
/// Ranges of a trace in `file`.
MAREY_API Result found_result(const Trace& trace, std::span<const Row> rows, const std::string& file);

/// Options of make_result(); by default, a result has all rows.
struct ResultOptions {
    std::string step_name = {};               ///< as in StepOptions and RankOptions
    std::optional<std::int32_t> device = {};  ///< as in GpuUseOptions
    bool by_name = false;                     ///< as in MemoryUseOptions
    /// Of gaps, slow steps and heaviest paths.
    std::size_t rows = std::numeric_limits<std::size_t>::max();
};
/// Returns the names of all results.
MAREY_API std::vector<std::string_view> result_names();
/// Returns a result by name. That of an empty trace has all tables and columns, and no rows. Throws
/// marey::Error for an unknown name, and as the analysis does.
MAREY_API Result make_result(const Trace& trace, std::string_view name, const ResultOptions& options = {});

}  // namespace marey
