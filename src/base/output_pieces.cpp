// output_pieces.cpp: pieces are handed out in order; finished ones wait for their turn in a ring.
#include "base/output_pieces.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <marey/detail/thread_safety.h>

#include "base/parallel.h"
#include "base/work_meter.h"

namespace marey {
namespace {

/// For each thread: a piece in progress, and some that wait, because pieces take different times.
constexpr std::size_t kPiecesOfThread = 4;

class Pieces {
  public:
    Pieces(OutputFile& file, std::size_t count, unsigned threads, WorkMeter& meter)
        : file_(file), count_(count), meter_(meter), ring_(kPiecesOfThread * threads) {}

    /// The work of each thread. The caller's ends when everything is written, the others' when everything is
    /// begun.
    void work(const std::function<PieceWriter(OutputBuffer&)>& make_writer, bool is_caller) {
        try {
            MemoryOutput out;
            const PieceWriter write = make_writer(out);
            const ScopedLock lock(mutex_);
            while (!has_failed_ && (is_caller ? written_ : begun_) < count_) {
                if (is_caller && ring_[written_ % ring_.size()].is_made) {
                    put_piece();
                } else if (begun_ < count_ && begun_ - written_ < ring_.size()) {
                    make_piece(out, write);
                } else {
                    (is_caller ? made_ : room_).wait(mutex_);
                }
            }
        } catch (...) {
            const ScopedLock lock(mutex_);
            has_failed_ = true;
            made_.notify_all();
            room_.notify_all();
            throw;
        }
    }

  private:
    struct Slot {
        MemoryOutput::Block block;
        bool is_made = false;
    };

    /// Both release the lock while they work.
    void make_piece(MemoryOutput& out, const PieceWriter& write) MAREY_REQUIRES(mutex_) {
        const std::size_t piece = begun_++;
        if (begun_ == count_) room_.notify_all();  // nothing is left to wait for
        {
            const ScopedUnlock unlocked(mutex_);
            write(piece);
        }
        // The block that was freed last is the likeliest to be in a cache.
        MemoryOutput::Block next;
        if (!free_.empty()) {
            next = std::move(free_.back());
            free_.pop_back();
        }
        ring_[piece % ring_.size()] = {out.exchange(std::move(next)), true};
        if (piece == written_) made_.notify_one();
    }
    void put_piece() MAREY_REQUIRES(mutex_) {
        MemoryOutput::Block block = std::move(ring_[written_ % ring_.size()].block);
        {
            const ScopedUnlock unlocked(mutex_);
            file_.write(block.bytes());
        }
        ring_[written_ % ring_.size()].is_made = false;
        free_.push_back(std::move(block));
        ++written_;
        meter_.add(1);
        room_.notify_one();
    }

    OutputFile& file_;
    const std::size_t count_;
    WorkMeter& meter_;
    Mutex mutex_;
    Condition made_;                                   ///< the caller waits for the next piece
    Condition room_;                                   ///< the others wait for room in the ring
    std::vector<Slot> ring_ MAREY_GUARDED_BY(mutex_);  ///< of the pieces from written_ on
    std::vector<MemoryOutput::Block> free_ MAREY_GUARDED_BY(mutex_);
    std::size_t begun_ MAREY_GUARDED_BY(mutex_) = 0;
    std::size_t written_ MAREY_GUARDED_BY(mutex_) = 0;
    bool has_failed_ MAREY_GUARDED_BY(mutex_) = false;
};

}  // namespace

void write_pieces(OutputFile& file, std::size_t count,
                  const std::function<PieceWriter(OutputBuffer&)>& make_writer, unsigned threads) {
    threads = static_cast<unsigned>(std::min<std::size_t>(threads, count));
    WorkMeter meter(count);
    if (threads <= 1) {
        const PieceWriter write = make_writer(file);
        for (std::size_t piece = 0; piece < count; ++piece) {
            write(piece);
            meter.add(1);
        }
        return;
    }
    Pieces pieces(file, count, threads, meter);
    on_threads(threads, [&](unsigned number) { pieces.work(make_writer, number == 0); });
}

}  // namespace marey
