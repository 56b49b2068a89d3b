// costs.cpp: the cost of recording on this machine, measured once per process into a private log.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <marey/memory.h>
#include <marey/range.h>

#include "record/clocks/clock.h"
#include "record/journal_writer.h"
#include "record/recorder_parts.h"
#include "record/source_writer.h"
#include "record/thread_log.h"
#include "record/thread_registry.h"

namespace marey {

using detail::ThreadState;

namespace {

constexpr int kBatches = 15;
constexpr int kEvents = kMeasuredEvents;

/// A private thread state and chunk, armed for the calling thread while this object lives. Ranges that are
/// open now stay so.
class PrivateLog {
  public:
    PrivateLog()
        : state_(std::make_unique<ThreadState>()), data_(64 * 1024), previous_(detail::current_thread) {
        std::uint64_t armed = detail::scope_bit(Scope::User) | detail::scope_bit(Scope::PythonFunction) |
                              detail::kArmedRecorder | detail::kArmedValues | detail::kArmedMemory |
                              detail::kArmedMemoryRecorder;
        if (!Clock::is_inline()) armed |= detail::kArmedSlowClock;
        state_->inline_word = &inline_word_;
        set_armed(*state_, armed);
        entry_.state = state_.get();
        state_->owner = &entry_;
        state_->depth = previous_->depth;
        state_->tracer = previous_->tracer;
        state_->committed = &committed_;
        rewind();
        set_current_thread(state_.get());
    }
    ~PrivateLog() { set_current_thread(previous_); }
    void rewind() noexcept {
        state_->cursor = state_->chunk_data = data_.data();
        state_->limit = data_.data() + data_.size();
        state_->base_ticks = Clock::now();
    }

  private:
    std::unique_ptr<ThreadState> state_;
    std::vector<std::byte> data_;
    std::uint64_t committed_ = 0;
    std::uint32_t inline_word_ = 0;
    ThreadEntry entry_;
    ThreadState* previous_;
};

/// The median over batches, each of which makes kEvents events, in picoseconds per event.
template <class Batch>
std::uint64_t measure_batches(PrivateLog* log, Batch make_events) {
    std::uint64_t batches[kBatches];
    for (std::uint64_t& batch : batches) {
        if (log != nullptr) log->rewind();
        const std::uint64_t begin = Clock::now();
        make_events();
        batch = Clock::now() - begin;
    }
    std::uint64_t* const median = batches + kBatches / 2;
    std::nth_element(batches, median, batches + kBatches);
    return static_cast<std::uint64_t>(static_cast<double>(*median) * 1e12 / kEvents /
                                      static_cast<double>(Clock::ticks_per_second()));
}

template <class Event>
std::uint64_t measure(PrivateLog& log, Event event) {
    return measure_batches(&log, [&] {
        for (int i = 0; i < kEvents; ++i) event();
    });
}

}  // namespace

std::span<const detail::CostRecord> measured_costs() noexcept {
    static auto& costs = *new std::vector<detail::CostRecord>;
    if (!costs.empty() || Clock::source() == detail::ClockSource::Injected) return costs;
    static detail::Site plain{"marey.cost", __FILE__, __LINE__, Scope::User};
    static detail::Site valued{"marey.cost.values", __FILE__, __LINE__, Scope::User};
    plain.id = 1;  // any number: this log is never read
    valued.id = 1;
    detail::KeyIds keys;
    std::fill(std::begin(keys.ids), std::end(keys.ids), 1u);
    PrivateLog log;
    const std::uint64_t picoseconds[] = {
        measure(log, [] { detail::ScopedRange range(plain, Scope::User); }),
        measure(
            log,
            [&keys] { detail::ScopedRange range(valued, Scope::User, detail::push_values(keys, "n", 1)); }),
        measure(log, [] { instant("marey.cost"); }),
        measure(log, [] { counter("marey.cost", 1); }),
        measure(log, [] { report_allocation(&plain, 1, 1, 1); }),
    };
    for (std::uint32_t kind = 0; kind < std::size(picoseconds); ++kind) {
        detail::CostRecord record{};
        record.event = kind;
        record.picoseconds = picoseconds[kind];
        costs.push_back(record);
    }
    return costs;
}

std::uint64_t measure_events(void (*make_events)(void*), void* context, bool records) noexcept {
    std::optional<PrivateLog> log;
    if (records) log.emplace();
    return measure_batches(log ? &*log : nullptr, [&] { make_events(context); });
}

void add_cost(detail::CostKind kind, std::uint64_t picoseconds) noexcept {
    if (Clock::source() != detail::ClockSource::Injected) recorder_journal().add_cost(kind, picoseconds);
}

}  // namespace marey
