// record_iterator.h: from record to record in a buffer of CUPTI.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sources/cuda/cuda_libraries.h"

namespace marey::cuda {

/// CUPTI's own walk takes a lock that launches take too. Records of a kind are all of a size, which is learnt
/// from the first two of them that stand together; from then on the walk needs nobody.
class RecordIterator {
  public:
    explicit RecordIterator(const Cupti& cupti) noexcept : cupti_(cupti) {}

    /// The record behind `record` (null: the first), or false at the end.
    bool next(std::uint8_t* buffer, std::size_t bytes, ActivityRecord*& record) noexcept {
        std::uint8_t* const end = buffer + bytes;
        if (record != nullptr && record->kind < kKinds && sizes_[record->kind] != 0) {
            std::uint8_t* const behind = reinterpret_cast<std::uint8_t*>(record) + sizes_[record->kind];
            if (behind == end) return false;
            if (behind + sizeof(ActivityRecord) <= end) {
                auto* const found = reinterpret_cast<ActivityRecord*>(behind);
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
