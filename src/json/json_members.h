// json_members.h: reads the members of objects with the same layout, faster than one by one.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "json/json_cursor.h"

namespace marey {

/// Reads keys. Programs write the objects of a list in one way: the value of a key is usually followed, with
/// the same commas, spaces and quotes, by the key that followed it last time. So that text is compared first,
/// as a whole.
///
/// A key has an index, from 1, which the caller gives it; kStart is the opening brace, kEnd the closing one.
class JsonMembers {
  public:
    static constexpr std::uint32_t kStart = 0;
    static constexpr std::uint32_t kFailed = ~std::uint32_t{0};
    static constexpr std::uint32_t kEnd = kFailed - 1;
    static constexpr std::size_t kKinds = 8;  ///< of objects, whose key orders are remembered separately

    /// The key after the value of the key `before`, with the cursor at its value; kEnd; kFailed: invalid
    /// JSON, or the text ends too early. `index_of(text)` gives the index of a key.
    template <typename IndexOf>
    std::uint32_t next(JsonCursor& cursor, std::uint32_t before, std::size_t kind, IndexOf index_of) {
        if (before < count_) {
            const Guess& guess = guesses_[before * kKinds + kind];
            if (guess.length != 0 && matches(cursor, guess)) {
                cursor.move_to(cursor.at() + guess.length);
                return guess.index;
            }
        }
        return read_next(cursor, before, kind, index_of);
    }

  private:
    static constexpr std::size_t kMaxLength = 48;  ///< less than the number of bytes readable after the text
    struct Guess {
        std::uint32_t index = 0;
        std::uint32_t length = 0;  ///< 0: none
        char text[kMaxLength] = {};
    };

    static bool matches(const JsonCursor& cursor, const Guess& guess) noexcept {
        const char* const at = cursor.at();
        if (static_cast<std::size_t>(cursor.end() - at) < guess.length) return false;
        if (guess.length < 8) return std::memcmp(at, guess.text, guess.length) == 0;
        const std::size_t last = guess.length - 8;
        for (std::size_t i = 0; i < last; i += 8) {
            if (word(at + i) != word(guess.text + i)) return false;
        }
        return word(at + last) == word(guess.text + last);
    }
    static std::uint64_t word(const char* from) noexcept {
        std::uint64_t bytes = 0;
        std::memcpy(&bytes, from, sizeof bytes);
        return bytes;
    }

    template <typename IndexOf>
    std::uint32_t read_next(JsonCursor& cursor, std::uint32_t before, std::size_t kind, IndexOf index_of) {
        const char* const start = cursor.at();
        bool is_over = false;
        if (before != kStart) {
            is_over = !cursor.take(',');
            if (cursor.ran_out()) return kFailed;
        }
        if (is_over || cursor.peek() != '"') {  // the end, also after a trailing comma
            if (!cursor.take('}')) return kFailed;
            learn(before, kind, kEnd, start, cursor.at());
            return kEnd;
        }
        std::string_view key;
        if (!cursor.read_string(key)) return kFailed;
        const std::uint32_t index = index_of(key);
        if (!cursor.take(':')) return kFailed;
        cursor.peek();
        if (cursor.ran_out()) return kFailed;
        learn(before, kind, index, start, cursor.at());
        return index;
    }
    void learn(std::uint32_t before, std::size_t kind, std::uint32_t index, const char* start,
               const char* end) {
        const auto length = static_cast<std::size_t>(end - start);
        if (length == 0 || length > kMaxLength || before >= kMaxKeys) return;
        if (before >= count_) {
            count_ = before + 1;
            guesses_.resize(count_ * kKinds);
        }
        Guess& guess = guesses_[before * kKinds + kind];
        guess.index = index;
        guess.length = static_cast<std::uint32_t>(length);
        std::memcpy(guess.text, start, length);
    }

    static constexpr std::size_t kMaxKeys = 4096;
    std::size_t count_ = 0;       ///< of keys
    std::vector<Guess> guesses_;  ///< by the key before, then by kind
};

}  // namespace marey
