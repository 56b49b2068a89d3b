// clock_probe.h: a kernel that measures the error of CUPTI's GPU times.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sources/cuda/clock_relation.h"
#include "sources/cuda/cuda_contexts.h"
#include "sources/cuda/cuda_libraries.h"
#include "sources/cuda/cupti_clock.h"

namespace marey::cuda {

// box.first = globaltimer
// for i in 1..rounds: wait until box.ask >= i; box.clock = globaltimer; box.answer = i
// box.last = globaltimer: last, so that the end reported by CUPTI comes shortly after it.
// The value ~0 in box.ask ends the kernel.
inline constexpr const char* kClockProbeProgram = R"(
.version 7.0
.target sm_50
.address_size 64
.visible .entry marey_clock_probe(.param .u64 box, .param .u32 rounds)
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

/// Runs a kernel with one GPU thread a few times on a separate stream; it exchanges messages with the host
/// for some 20 us. Single-threaded. Nothing throws; if the kernel cannot run, there is no measurement.
class ClockProbe {
  public:
    explicit ClockProbe(const CuptiClock& clock) : clock_(clock) {}
    /// Runs on every device that the program uses, in one context of each.
    void run() {
        ++round_;
        std::set<int> done;
        for_each_context([&](int device, void* context) {
            if (done.count(device) != 0) return;
            const CurrentContext current(libraries().driver, context);
            const std::uint64_t id = context_id(context);
            if (!current || id == 0) return;
            InContext& in_context = prepare(id);
            for (int i = 0; i < kRuns && in_context.is_usable; ++i) run_on(device, in_context);
            if (in_context.is_usable) done.insert(device);
        });
    }
    /// Computes measurements from CUPTI's records of those runs. Runs that a busy program delays come later.
    std::vector<ClockMeasurement> measure(const std::vector<ProbeRun>& runs) {
        return relation_.measure(runs);
    }

  private:
    static constexpr std::uint32_t kRounds = 8;
    static constexpr int kRuns = 6;
    static constexpr std::uint64_t kTimeoutNs = 2'000'000;

    /// Memory shared by the kernel and the host, mapped into both.
    struct Mailbox {
        alignas(64) std::atomic<std::uint32_t> ask;
        alignas(64) std::atomic<std::uint32_t> answer;
        std::atomic<std::uint64_t> clock;
        alignas(64) std::atomic<std::uint64_t> first;
        std::atomic<std::uint64_t> last;  ///< 0: the kernel has not ended
    };
    struct InContext {
        bool is_usable = false;
        void* stream = nullptr;
        void* function = nullptr;
        Mailbox* box = nullptr;
        std::uint64_t box_on_device = 0;
    };
    InContext& prepare(std::uint64_t context) {
        const auto [place, is_new] = contexts_.try_emplace(context);
        InContext& made = place->second;
        if (!is_new) return made;
        const Driver& driver = libraries().driver;
        void* module = nullptr;
        void* memory = nullptr;
        made.is_usable =
            driver.module_load(&module, kClockProbeProgram) == kCudaSuccess &&
            driver.module_function(&made.function, module, ActivityDecoder::kProbeName) == kCudaSuccess &&
            driver.stream_create(&made.stream, 1 /* non-blocking */, -100) == kCudaSuccess &&
            driver.host_allocate(&memory, sizeof(Mailbox), 3 /* portable, mapped */) == kCudaSuccess &&
            driver.host_pointer(&made.box_on_device, memory, 0) == kCudaSuccess;
        if (made.is_usable) made.box = new (memory) Mailbox{};
        return made;
    }
    void run_on(int device, InContext& in_context) {
        const Driver& driver = libraries().driver;
        Mailbox& box = *in_context.box;
        if (driver.stream_query(in_context.stream) != kCudaSuccess) return;  // the last kernel never ran
        box.ask.store(0);
        box.answer.store(0);
        box.last.store(0);
        std::uint32_t rounds = kRounds;
        void* parameters[] = {&in_context.box_on_device, &rounds};
        if (driver.launch(in_context.function, 1, 1, 1, 1, 1, 1, 0, in_context.stream, parameters, nullptr) !=
            kCudaSuccess)
            return;
        ExchangedRun measured;
        const std::uint64_t give_up = now_ns() + kTimeoutNs;
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
        box.ask.store(~0u, std::memory_order_release);  // a kernel that starts late ends at once
        if (measured.exchanges.size() != kRounds || !waits_until([&] { return box.last.load() != 0; }))
            return;
        measured.first_gpu_ns = box.first.load();
        measured.last_gpu_ns = box.last.load();
        measured.device = device;
        measured.round = round_;
        relation_.add(std::move(measured));
    }
    std::uint64_t now_ns() const noexcept { return clock_.to_ns(device_ticks()); }

    const CuptiClock& clock_;
    std::map<std::uint64_t, InContext> contexts_;  ///< by context id
    std::uint32_t round_ = 0;
    ClockRelation relation_;
};

}  // namespace marey::cuda
