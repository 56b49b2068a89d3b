// clock_probe.cpp: the kernel, in PTX, and the host's side of the game.
#include "sources/cuda/clock_probe.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "sources/cuda/cuda_contexts.h"

namespace kymo::cuda {
namespace {

constexpr std::uint32_t kRounds = 8;
constexpr int kRuns = 6;
constexpr std::uint64_t kPatienceNs = 2'000'000;

// box.first = globaltimer
// for i in 1..rounds: wait until box.ask >= i; box.clock = globaltimer; box.answer = i
// box.last = globaltimer: the last thing that it does, so that CUPTI's end is not far behind.
// An ask of ~0 ends the game.
constexpr const char* kProgram = R"(
.version 7.0
.target sm_50
.address_size 64
.visible .entry kymo_clock_probe(.param .u64 box, .param .u32 rounds)
{
    .reg .pred %stop, %more, %early;
    .reg .b32 %round, %rounds, %ask;
    .reg .b64 %box, %time;
    ld.param.u64 %box, [box];
    ld.param.u32 %rounds, [rounds];
    cvta.to.global.u64 %box, %box;
    mov.u64 %time, %globaltimer;
    st.volatile.global.u64 [%box+128], %time;
    mov.u32 %round, 1;
ROUND:
    ld.volatile.global.u32 %ask, [%box];
    setp.lt.u32 %early, %ask, %round;
    @%early bra ROUND;
    setp.eq.u32 %stop, %ask, 0xffffffff;
    @%stop bra DONE;
    mov.u64 %time, %globaltimer;
    st.volatile.global.u64 [%box+72], %time;
    membar.sys;
    st.volatile.global.u32 [%box+64], %round;
    add.u32 %round, %round, 1;
    setp.le.u32 %more, %round, %rounds;
    @%more bra ROUND;
DONE:
    mov.u64 %time, %globaltimer;
    st.volatile.global.u64 [%box+136], %time;
    ret;
}
)";

}  // namespace

struct ClockProbe::Mailbox {
    alignas(64) std::atomic<std::uint32_t> ask;
    alignas(64) std::atomic<std::uint32_t> answer;
    std::atomic<std::uint64_t> clock;
    alignas(64) std::atomic<std::uint64_t> first;
    std::atomic<std::uint64_t> last;  ///< 0: it has not ended
};

ClockOffset clock_offset(const std::vector<ClockExchange>& exchanges, std::uint64_t first_gpu_ns,
                         std::uint64_t last_gpu_ns, const ProbeRun& run) {
    // Each exchange bounds what is to be added to the GPU's clock to get the host's; together they do best.
    double least = -HUGE_VAL;
    double most = HUGE_VAL;
    for (const ClockExchange& exchange : exchanges) {
        const auto gpu = static_cast<double>(exchange.gpu_ns);
        least = std::max(least, static_cast<double>(exchange.before_ns) - gpu);
        most = std::min(most, static_cast<double>(exchange.after_ns) - gpu);
    }
    ClockOffset offset{};
    offset.least_ns = static_cast<double>(last_gpu_ns) + least - static_cast<double>(run.end_ns);
    offset.most_ns = static_cast<double>(first_gpu_ns) + most - static_cast<double>(run.start_ns);
    return offset;
}

std::uint64_t ClockProbe::now_ns() const noexcept {
    return clock_.to_ns(device_ticks());
}

ClockProbe::OnDevice& ClockProbe::prepare(int device) {
    const auto [place, is_new] = devices_.try_emplace(device);
    OnDevice& made = place->second;
    if (!is_new) return made;
    const Driver& driver = libraries().driver;
    void* module = nullptr;
    void* memory = nullptr;
    made.is_usable =
        driver.module_load(&module, kProgram) == kCudaSuccess &&
        driver.module_function(&made.function, module, ActivityDecoder::kProbeName) == kCudaSuccess &&
        driver.stream_create(&made.stream, 1 /* beside the default one */, -100) == kCudaSuccess &&
        driver.host_allocate(&memory, sizeof(Mailbox), 3 /* portable, mapped */) == kCudaSuccess &&
        driver.host_pointer(&made.box_on_device, memory, 0) == kCudaSuccess;
    if (made.is_usable) made.box = new (memory) Mailbox{};
    return made;
}

void ClockProbe::run_on(int device, OnDevice& on_device) {
    const Driver& driver = libraries().driver;
    Mailbox& box = *on_device.box;
    if (driver.stream_query(on_device.stream) != kCudaSuccess) return;  // the last one never got its turn
    box.ask.store(0);
    box.answer.store(0);
    box.last.store(0);
    std::uint32_t rounds = kRounds;
    void* parameters[] = {&on_device.box_on_device, &rounds};
    if (driver.launch(on_device.function, 1, 1, 1, 1, 1, 1, 0, on_device.stream, parameters, nullptr) !=
        kCudaSuccess)
        return;
    Measured measured;
    const std::uint64_t give_up = now_ns() + kPatienceNs;
    const auto waits_until = [&](auto is_so) {
        while (!is_so()) {
            if (now_ns() > give_up) return false;
        }
        return true;
    };
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
        const std::uint64_t before = now_ns();
        box.ask.store(round, std::memory_order_release);
        if (!waits_until([&] { return box.answer.load(std::memory_order_acquire) == round; })) break;
        const std::uint64_t after = now_ns();
        measured.exchanges.push_back({before, box.clock.load(std::memory_order_relaxed), after});
    }
    box.ask.store(~0u, std::memory_order_release);  // whoever comes late leaves at once
    if (measured.exchanges.size() != kRounds || !waits_until([&] { return box.last.load() != 0; })) return;
    measured.first_gpu_ns = box.first.load();
    measured.last_gpu_ns = box.last.load();
    measured.device = device;
    measured.round = round_;
    waiting_.push_back(std::move(measured));
}

void ClockProbe::run() {
    ++round_;
    for_each_context([&](int device, void* context) {
        const CurrentContext current(libraries().driver, context);
        if (!current) return;
        OnDevice& on_device = prepare(device);
        for (int i = 0; i < kRuns && on_device.is_usable; ++i) run_on(device, on_device);
    });
}

std::vector<ClockMeasurement> ClockProbe::measure(const std::vector<ProbeRun>& runs) {
    constexpr std::uint64_t kFarNs =
        5'000'000;  // no run is that long, and no clock that far off: another one
    constexpr std::size_t kMostWaiting = 1024;
    std::map<std::pair<std::uint32_t, int>, ClockMeasurement> measurements;  // by round and device
    for (const ProbeRun& run : runs) {
        const std::uint64_t middle = run.start_ns + (run.end_ns - run.start_ns) / 2;
        const auto distance = [&](const Measured& measured) {
            const std::uint64_t time = measured.exchanges[kRounds / 2].before_ns;
            return time > middle ? time - middle : middle - time;
        };
        const auto nearest =
            std::min_element(waiting_.begin(), waiting_.end(),
                             [&](const Measured& a, const Measured& b) { return distance(a) < distance(b); });
        if (nearest == waiting_.end() || distance(*nearest) > kFarNs) continue;
        const ClockOffset offset =
            clock_offset(nearest->exchanges, nearest->first_gpu_ns, nearest->last_gpu_ns, run);
        // Those of a round follow one another within a millisecond: what holds for one holds for all.
        const auto [place, is_new] = measurements.try_emplace(
            std::pair(nearest->round, nearest->device), ClockMeasurement{nearest->device, middle, offset});
        ClockOffset& known = place->second.offset;
        known.least_ns = std::max(known.least_ns, offset.least_ns);
        known.most_ns = std::min(known.most_ns, offset.most_ns);
        waiting_.erase(nearest);
    }
    if (waiting_.size() > kMostWaiting)  // what CUPTI has not told by now it lost
        waiting_.erase(waiting_.begin(), waiting_.end() - kMostWaiting);
    std::vector<ClockMeasurement> all;
    all.reserve(measurements.size());
    for (const auto& [round, measurement] : measurements) all.push_back(measurement);
    return all;
}

}  // namespace kymo::cuda
