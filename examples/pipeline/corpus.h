// corpus.h: the text that the example works on: made up, but the same on every run and machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// A small random number generator. Unlike <random>'s distributions, it gives the same sequence everywhere.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
    std::uint32_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<std::uint32_t>(state_ >> 32);
    }
    std::uint32_t below(std::uint32_t bound) {
        return static_cast<std::uint32_t>(std::uint64_t{next()} * bound >> 32);
    }

  private:
    std::uint64_t state_;
};

/// Words, the common ones first; text and queries draw from it so that few words are frequent and most are
/// rare.
class Vocabulary {
  public:
    explicit Vocabulary(std::size_t words);
    const std::string& draw(Random& random) const;
    std::size_t size() const { return words_.size(); }

  private:
    std::vector<std::string> words_;
};

/// The raw text of documents first .. first + count - 1, each a header, a title and paragraphs.
std::string make_block(const Vocabulary& vocabulary, std::uint32_t first, std::uint32_t count);
