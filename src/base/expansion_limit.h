// expansion_limit.h: a bound on how much compressed input may expand.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <marey/error.h>

namespace marey {

/// Rejects compressed files that take memory and time out of proportion to their size ("gzip bombs"). Traces
/// shrink to a tenth; to a seventieth if every event repeats a long stack. gzip reaches 1032:1, but only for
/// content that is not a trace.
class ExpansionLimit {
  public:
    static constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20;
    static constexpr std::uint64_t kMaxExpansion = 100;

    /// `name` starts the error message, if it is not empty.
    explicit ExpansionLimit(std::string name) : name_(std::move(name)) {}

    const std::string& name() const noexcept { return name_; }
    /// Adds compressed input.
    void add_packed(std::uint64_t bytes) noexcept { packed_ += bytes; }
    /// Adds decompressed data. Throws marey::Error if the sum is too large for the input.
    void add_unpacked(std::uint64_t bytes) {
        unpacked_ += bytes;
        if (unpacked_ <= kFreeBytes || unpacked_ / kMaxExpansion <= packed_) return;
        throw Error(
            (name_.empty() ? "" : name_ + ": ") +
            "the compressed data expands to more than 64 MiB and more than 100 times its size; if you "
            "trust the file, decompress it first (gunzip)");
    }

  private:
    std::string name_;
    std::uint64_t packed_ = 0;
    std::uint64_t unpacked_ = 0;
};

}  // namespace marey
