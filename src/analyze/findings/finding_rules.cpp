// finding_rules.cpp: every rule of explain(), with what to do about its findings.
#include <marey/findings.h>

namespace marey {
namespace {
using enum FindingCertainty;

constexpr const char kTree[] = "marey tree FILE --bottom-up", kSteps[] = "marey steps FILE",
                     kInside[] = "marey tree FILE --inside NAME", kMemory[] = "marey memory FILE",
                     kGpu[] = "marey gpu FILE", kRanks[] = "marey ranks FILE";

constexpr FindingRule kFindingRules[] = {
    {"recording.lost", Certain, "marey info FILE",
     "Record again with more space (marey run --max-bytes), or fewer calls (--exclude)."},
    {"recording.overhead", Likely, "marey report FILE --subtract-overhead",
     "Leave out short functions (marey run --exclude), or subtract the estimate from the times."},
    {"function.self", Likely, kTree,
     "Make its own work faster, or do less of it; its callers decide how often it runs."},
    {"calls.tiny", Likely, kTree,
     "Call it less often: handle many items per call, keep results that repeat, or move the loop into it."},
    {"calls.repeated", Possible, kTree,
     "If equal values mean equal results, keep the first result (functools.lru_cache, a dict)."},
    {"threads.serial", Possible, "marey tree FILE --by thread",
     "Split the part that runs alone, or let the other threads start earlier. Python threads do not run "
     "Python code in parallel: processes do."},
    {"step.first", Certain, kSteps,
     "Warm up before the loop (compile, allocate, open files), and leave these steps out of averages."},
    {"step.outlier", Likely, kSteps,
     "Compare a slow step with the median step; move rare work out of the loop, or to another thread."},
    {"step.between", Certain, kSteps, "Move this work to another thread, or do it less often."},
    {"step.input", Certain, kInside,
     "Load data beside the steps: DataLoader(num_workers=...), with prefetching and pinned memory."},
    {"gc.time", Certain, kInside,
     "Create fewer objects that refer to each other, call gc.freeze() after start-up, or raise the first "
     "number of gc.set_threshold()."},
    {"imports.time", Certain, kInside,
     "Import large modules in the functions that need them, and leave out those that nothing uses."},
    {"waits.lock", Likely, kTree,
     "Hold the lock for less work, give each thread its own data, or use a queue."},
    {"waits.queue", Likely, kTree,
     "See what the threads at the other end of the queue do: with more of them, this one waits less."},
    {"waits.network", Likely, kTree,
     "Send requests at the same time instead of one after another, keep connections open, or keep answers."},
    {"waits.process", Likely, kTree,
     "Start the processes at the same time, or do the work without starting a process."},
    {"waits.sleep", Likely, kTree,
     "Wait for the event itself (threading.Event, a queue) instead of sleeping and looking again."},
    {"waits.file", Likely, kTree,
     "Read and write larger pieces, keep files open, and call fsync less often."},
    {"asyncio.blocked", Likely, kInside,
     "Await instead (asyncio.sleep, an asynchronous client), or run the call in a thread: await "
     "asyncio.to_thread(...)."},
    {"memory.growth", Likely, kMemory,
     "Look for lists, caches and graphs that keep results of old steps (loss.item() instead of loss)."},
    {"memory.peak", Certain, kMemory,
     "Free it before the peak, work on smaller pieces, or use a smaller element type."},
    {"memory.refused", Certain, kMemory,
     "Use smaller batches, or free the memory of the largest holders earlier."},
    {"gpu.starved", Likely, kGpu,
     "Prepare the next work while the device is busy: load data in other threads, and do not wait for "
     "results in each step."},
    {"gpu.launch_bound", Likely, kGpu,
     "Launch less: larger batches, fused kernels (torch.compile), or CUDA graphs."},
    {"gpu.small_kernels", Possible, kGpu,
     "Fuse small kernels (torch.compile), use larger batches, or CUDA graphs."},
    {"gpu.copies", Certain, kGpu,
     "Copy on another stream while kernels run (pinned memory, non_blocking=True), or copy less."},
    {"gpu.pageable", Certain, kGpu,
     "Pin the host memory: tensor.pin_memory(), DataLoader(pin_memory=True), cudaMallocHost."},
    {"gpu.small_grids", Possible, kGpu,
     "Give kernels more blocks: larger batches, or independent kernels on different streams."},
    {"gpu.occupancy", Possible, kGpu,
     "Use fewer registers or less shared memory per block, or another block size."},
    {"gpu.sync", Likely, kGpu,
     "Wait less often: keep results on the device, and read them (.item(), .cpu(), print) every few steps."},
    {"rank.hang", Certain, kRanks,
     "See what the missing rank does: its input, its branch, or its last error."},
    {"rank.died", Certain, kRanks, "See the error of the rank that died first."},
    {"rank.disagreement", Certain, kRanks, "Make all ranks call the same collectives in the same order."},
    {"rank.absent", Certain, kRanks, "Record all ranks, and give the captures of all of them."},
    {"rank.restarted", Certain, kRanks, "See why the first attempt failed; only the last one is compared."},
    {"rank.unequal_steps", Certain, kRanks, "Give all ranks the same number of batches."},
    {"rank.straggler", Likely, kRanks,
     "Compare this rank's code and machine with the others: extra work, other processes, a slower CPU."},
    {"rank.late_input", Likely, kRanks,
     "Give this rank an input as fast as that of the others: more workers, a local disk."},
    {"rank.slow_kernels", Likely, kRanks,
     "Check this rank's share of the work, and its device (clock, temperature)."},
    {"rank.slow_link", Likely, kRanks, "Check the network of this rank's host."},
    {"rank.imbalance", Likely, kRanks, "Divide the work of each step more evenly."},
};

}  // namespace

std::span<const FindingRule> finding_rules() noexcept {
    return kFindingRules;
}

const char* certainty_name(FindingCertainty certainty) noexcept {
    return certainty == Certain ? "certain" : certainty == Likely ? "likely" : "possible";
}

}  // namespace marey
