// sampled_profile.h: makes ranges of the samples in other tools' profiles. Their times are estimates: every
// range has the flag kSampled, and the trace has the problem "sampled" unless it has sums of calls.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/tree/path_tree.h"
#include "trace/trace_assembler.h"

namespace marey {

/// Collects samples: stacks with a weight, with or without a time.
class SampledProfile {
  public:
    /// `name` starts error messages; `bytes` is the size of the file, which limits how far shared stacks may
    /// expand.
    SampledProfile(std::string name, std::size_t bytes);

    TraceAssembler& assembler() { return assembler_; }
    /// The site of a frame.
    std::uint32_t frame(std::string_view name, std::string_view file = {}, std::uint32_t line = 0);
    /// A thread; the same one for the same process and thread name. `pid` and `tid` may be 0.
    std::uint32_t lane(std::int64_t pid, std::string_view process, std::int64_t tid, std::string_view thread,
                       std::int32_t rank = -1);

    /// Throws marey::Error if a stack of that size would expand the file too far.
    void check_size(std::size_t entries) const;

    /// Adds a sample without a time. `stack` holds sites, outermost first. Samples of a lane are merged by
    /// their stacks and laid one after another. Weights of 0 or less are counted and left out. Throws
    /// marey::Error if the weights do not fit.
    ///
    /// Returns a number for add_more(); kNoRow if it was left out.
    std::uint32_t add(std::uint32_t lane, std::span<const std::uint32_t> stack, std::int64_t weight);
    /// The same number for a stack, without adding a sample. It becomes a range if it, or a stack that begins
    /// with it, gets a weight.
    std::uint32_t path(std::uint32_t lane, std::span<const std::uint32_t> stack);
    /// Adds weight to the stack of a sample.
    void add_more(std::uint32_t lane, std::uint32_t sample, std::int64_t weight);
    /// For profiles that have sums of calls instead of samples: makes the stack of a sample stand for more
    /// calls. Every range is then a sum, and those without calls count as none.
    void add_calls(std::uint32_t lane, std::uint32_t sample, std::uint64_t calls);
    /// Adds a sample that stands for the time from `start_ns` on; the samples of a lane come in order of
    /// time. Ranges continue as long as consecutive samples share them.
    void add(std::uint32_t lane, std::span<const std::uint32_t> stack, std::int64_t start_ns,
             std::int64_t duration_ns);

    /// `unit`: what one nanosecond stands for if the weights are not times ("byte", "sample"); else empty.
    Trace finish(std::string_view unit);
    /// For a file whose samples were merged by its tool, so that their number is unknown.
    Trace finish_merged();

    /// Times beyond this are clamped, so that sums of two do not overflow.
    static constexpr std::int64_t kMaxTimeNs = std::int64_t{1} << 61;
    std::uint64_t samples() const noexcept { return samples_; }

  private:
    struct Timed {
        std::int64_t start_ns, end_ns;
        std::uint32_t site;
    };
    struct LaneSamples {
        PathTree tree;  ///< of samples without times; slots are sites
        std::int64_t weight = 0;
        std::vector<Timed> timed;       ///< a parent before its children
        std::vector<std::size_t> open;  ///< in `timed`, outermost first
        std::int64_t end_ns = 0;        ///< of the last sample with a time
    };

    void count_entries(std::size_t entries);
    void place_tree(std::uint32_t lane, const LaneSamples& samples);
    void place_ranges();

    std::string name_;
    std::size_t bytes_;
    TraceAssembler assembler_;
    std::map<std::pair<std::int64_t, std::string>, Row> processes_;
    std::map<std::tuple<Row, std::int64_t, std::string>, std::uint32_t> lane_of_;
    std::vector<LaneSamples> lanes_;
    std::uint64_t samples_ = 0, entries_ = 0, weightless_ = 0, disordered_ = 0;
    bool has_calls_ = false;
};

/// For samples at these ascending times: the time until the next one, but the median of these times if that
/// is a tenth of it or less, because the thread was not running then.
std::vector<std::int64_t> sample_durations(std::span<const std::int64_t> times_ns);

/// For traces with ranges made of samples, as their number is unknown.
void add_sampled_problem(TraceAssembler& assembler);

/// Reads a whole file, decompressed if it is gzip, and passes it to `read`. If the compressed data is
/// damaged, the part before is read and the trace has the problem "cut_short". Throws marey::Error.
Trace read_profile_file(const std::string& path,
                        Trace (*read)(std::string_view text, const std::string& name));

}  // namespace marey
