// gpu_busy.cpp: visits starts and ends in time order and counts the running pieces.
#include "analyze/gpu/gpu_busy.h"

#include <algorithm>

namespace marey {
namespace {

struct Edge {
    std::int64_t time_ns;
    std::uint32_t piece;
    GpuWorkKind kind;
};

class Sweep {
  public:
    explicit Sweep(std::int64_t from_ns) : now_ns_(from_ns) {}

    void begin(const Edge& edge) {
        advance(edge.time_ns, edge.piece);
        ++running_;
        if (edge.kind == GpuWorkKind::Kernel)
            times.most_concurrent = std::max<std::uint64_t>(times.most_concurrent, ++kernels_);
        if (edge.kind == GpuWorkKind::Copy) ++copies_;
    }
    void end(const Edge& edge) {
        advance(edge.time_ns, kNoIndex);
        last_ = edge.piece;
        --running_;
        if (edge.kind == GpuWorkKind::Kernel) --kernels_;
        if (edge.kind == GpuWorkKind::Copy) --copies_;
    }
    void advance(std::int64_t time_ns, std::uint32_t next) {
        const std::int64_t passed = time_ns - now_ns_;
        if (passed <= 0) return;
        if (running_ == 0) {
            times.gaps.push_back({now_ns_, time_ns, last_, next});
        } else {
            times.busy_ns += passed;
            if (kernels_ > 0) times.kernel_ns += passed;
            if (copies_ > 0) times.copy_ns += passed;
            if (kernels_ > 0 && copies_ > 0) times.overlap_ns += passed;
            if (kernels_ > 1) times.concurrent_ns += passed;
        }
        now_ns_ = time_ns;
    }

    BusyTimes times;

  private:
    std::int64_t now_ns_;
    std::uint64_t running_ = 0, kernels_ = 0, copies_ = 0;
    std::uint32_t last_ = kNoIndex;
};

}  // namespace

BusyTimes busy_times(const std::vector<GpuPiece>& pieces, std::span<const std::uint32_t> chosen,
                     std::int64_t from_ns, std::int64_t to_ns) {
    std::vector<Edge> begins, ends;
    begins.reserve(chosen.size());
    ends.reserve(chosen.size());
    for (const std::uint32_t i : chosen) {
        const GpuPiece& piece = pieces[i];
        if (piece.end_ns <= piece.start_ns) continue;
        begins.push_back({piece.start_ns, i, piece.kind});
        ends.push_back({piece.end_ns, i, piece.kind});
    }
    const auto is_before = [](const Edge& a, const Edge& b) { return a.time_ns < b.time_ns; };
    if (!std::is_sorted(ends.begin(), ends.end(), is_before)) std::sort(ends.begin(), ends.end(), is_before);
    Sweep sweep(from_ns);
    auto end = ends.begin();
    for (const Edge& begin : begins) {
        for (; end->time_ns <= begin.time_ns; ++end) sweep.end(*end);  // one ends after this begin
        sweep.begin(begin);
    }
    for (; end != ends.end(); ++end) sweep.end(*end);
    sweep.advance(to_ns, kNoIndex);
    return std::move(sweep.times);
}

}  // namespace marey
