// pool.h: memory for matrices, from one block of fixed size. It reports allocations, releases and failures
// to Marey.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include <marey/marey.h>

/// First fit over one block. Not thread-safe: the example has one thread.
class Pool {
  public:
    explicit Pool(std::size_t bytes) : block_(bytes) { free_[0] = bytes; }

    /// Returns nullptr if no free piece is large enough.
    float* take(std::size_t floats) {
        const std::size_t bytes = (floats * sizeof(float) + 63) / 64 * 64;
        for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
            if (piece->second < bytes) continue;
            const auto [offset, size] = *piece;
            free_.erase(piece);
            if (size > bytes) free_[offset + bytes] = size - bytes;
            taken_[offset] = bytes;
            allocated_ += static_cast<std::int64_t>(bytes);
            marey::report_allocation(&block_[offset], static_cast<std::int64_t>(bytes), allocated_,
                                     reserved());
            return reinterpret_cast<float*>(&block_[offset]);
        }
        marey::report_out_of_memory(static_cast<std::int64_t>(bytes), allocated_, reserved());
        return nullptr;
    }

    void give_back(float* memory) {
        const auto offset = static_cast<std::size_t>(reinterpret_cast<std::byte*>(memory) - block_.data());
        const auto taken = taken_.find(offset);
        const std::size_t bytes = taken->second;
        taken_.erase(taken);
        allocated_ -= static_cast<std::int64_t>(bytes);
        marey::report_allocation(memory, -static_cast<std::int64_t>(bytes), allocated_, reserved());
        auto piece = free_.emplace(offset, bytes).first;
        if (const auto next = std::next(piece); next != free_.end() && next->first == offset + bytes) {
            piece->second += next->second;
            free_.erase(next);
        }
        if (piece == free_.begin()) return;
        if (const auto before = std::prev(piece); before->first + before->second == offset) {
            before->second += piece->second;
            free_.erase(piece);
        }
    }

  private:
    std::int64_t reserved() const { return static_cast<std::int64_t>(block_.size()); }

    std::vector<std::byte> block_;
    std::map<std::size_t, std::size_t> free_;   // offset -> bytes
    std::map<std::size_t, std::size_t> taken_;  // offset -> bytes
    std::int64_t allocated_ = 0;
};
