// costs.cpp: the cost of recording on this machine, measured once per process into a private log.
#include <algorithm>
#include <memory>
#include <vector>

#include <marey/memory.h>
#include <marey/range.h>

#include "record/clock.h"
#include "record/journal.h"
#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey {

using detail::ThreadState;

namespace {

constexpr int kBatches = 15;
constexpr int kEvents = 64;

/// A private thread state and chunk, armed for the calling thread while this object lives.
class PrivateLog {
  public:
    PrivateLog()
        : state_(std::make_unique<ThreadState>()), data_(64 * 1024), previous_(detail::current_thread) {
        std::uint64_t armed = detail::scope_bit(Scope::User) | detail::kArmedRecorder | detail::kArmedValues |
                              detail::kArmedMemory | detail::kArmedMemoryRecorder;
        if (!Clock::is_inline()) armed |= detail::kArmedSlowClock;
        set_armed(*state_, armed);
        entry_.state = state_.get();
        state_->owner = &entry_;
        state_->committed = &committed_;
        rewind();
        detail::current_thread = state_.get();
    }
    ~PrivateLog() { detail::current_thread = previous_; }
    void rewind() noexcept {
        state_->cursor = state_->chunk_data = data_.data();
        state_->limit = data_.data() + data_.size();
        state_->base_ticks = Clock::now();
    }

  private:
    std::unique_ptr<ThreadState> state_;
    std::vector<std::byte> data_;
    std::uint64_t committed_ = 0;
    ThreadEntry entry_;
    ThreadState* previous_;
};

// The median over batches of the mean over a batch, in ticks per event times 1000.
template <class Event>
std::uint64_t measure(PrivateLog& log, Event event) {
    std::uint64_t batches[kBatches];
    for (std::uint64_t& batch : batches) {
        log.rewind();
        const std::uint64_t begin = Clock::now();
        for (int i = 0; i < kEvents; ++i) event();
        batch = (Clock::now() - begin) * 1000 / kEvents;
    }
    std::nth_element(batches, batches + kBatches / 2, batches + kBatches);
    return batches[kBatches / 2];
}

}  // namespace

// Needs source_mutex_ (so that it happens once), not mutex_.
void Recorder::measure_costs() noexcept {
    if (!costs_.empty() || Clock::source() == detail::ClockSource::Injected) return;
    static detail::Site plain{"marey.cost", __FILE__, __LINE__, Scope::User};
    static detail::Site valued{"marey.cost.values", __FILE__, __LINE__, Scope::User};
    plain.id = 1;  // any number: this log is never read
    valued.id = 1;
    detail::KeyIds keys;
    std::fill(std::begin(keys.ids), std::end(keys.ids), 1u);
    PrivateLog log;
    const std::uint64_t ticks[] = {
        measure(log, [] { detail::ScopedRange range(plain, Scope::User); }),
        measure(
            log,
            [&keys] { detail::ScopedRange range(valued, Scope::User, detail::push_values(keys, "n", 1)); }),
        measure(log, [] { instant("marey.cost"); }),
        measure(log, [] { counter("marey.cost", 1); }),
        measure(log, [] { report_allocation(&plain, 1, 1, 1); }),
    };
    for (std::uint32_t kind = 0; kind < std::size(ticks); ++kind) {
        detail::CostRecord record{};
        record.event = kind;
        record.picoseconds = static_cast<std::uint64_t>(static_cast<double>(ticks[kind]) * 1e9 /
                                                        static_cast<double>(Clock::ticks_per_second()));
        costs_.push_back(record);
    }
}

void Recorder::journal_costs() noexcept {
    for (const detail::CostRecord& cost : costs_) journal(detail::JournalKind::Cost, cost);
}

}  // namespace marey
