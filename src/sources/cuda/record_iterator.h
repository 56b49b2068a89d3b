// record_iterator.h: iterates over the records in a CUPTI buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sources/cuda/cuda_libraries.h"

namespace marey::cuda {

/// CUPTI's own iteration takes a lock that launches take too. All records of a kind have the same size, which
/// this class learns from the first two adjacent ones; from then on it does not call CUPTI.
class RecordIterator {
  public:
    explicit RecordIterator(const Cupti& cupti) noexcept : cupti_(cupti) {}

    /// Moves to the record after `record` (null: the first), or returns false at the end.
    bool next(std::uint8_t* buffer, std::size_t bytes, ActivityRecord*& record) noexcept {
        std::uint8_t* const end = buffer + bytes;
        if (record != nullptr && record->kind < kKinds && sizes_[record->kind] != 0) {
            std::uint8_t* const following = reinterpret_cast<std::uint8_t*>(record) + sizes_[record->kind];
            if (following == end) return false;
            if (following + sizeof(ActivityRecord) <= end) {
                auto* const found = reinterpret_cast<ActivityRecord*>(following);
                if (found->kind != 0 && found->kind < kKinds) {
                    record = found;
                    return true;
                }
            }
        }
        ActivityRecord* const before = record;
        if (bytes == 0 || cupti_.next_record(buffer, bytes, &record) != kCuptiSuccess) return false;
        if (before != nullptr && before->kind < kKinds) {
            sizes_[before->kind] = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(record) -
                                                            reinterpret_cast<std::uint8_t*>(before));
        }
        return true;
    }

  private:
    static constexpr std::uint32_t kKinds = 64;
    const Cupti& cupti_;
    std::size_t sizes_[kKinds] = {};
};

}  // namespace marey::cuda
