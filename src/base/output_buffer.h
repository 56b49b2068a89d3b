// output_buffer.h: bytes being written, for hand-written formatting.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace marey {

/// Memory that bytes are written into; a derived class defines what happens when it is full. Used by one
/// thread at a time.
class OutputBuffer {
  public:
    OutputBuffer() = default;
    virtual ~OutputBuffer() = default;

    virtual void write(std::string_view bytes) = 0;

    /// For hand-written formatting: space for at least `bytes` bytes, valid until the next call of any
    /// member. Pass the end of the written bytes to advance().
    char* reserve(std::size_t bytes) {
        if (static_cast<std::size_t>(limit_ - cursor_) < bytes) make_room(bytes);
        return cursor_;
    }
    void advance(char* end) noexcept { cursor_ = end; }
    /// How many bytes were written so far.
    std::uint64_t position() const noexcept { return flushed_ + size(); }
    /// The bytes from a position on; empty if some of them have left the buffer.
    std::string_view written_since(std::uint64_t position) const noexcept {
        if (position < flushed_) return {};
        const char* const from = buffer_.get() + (position - flushed_);
        return {from, static_cast<std::size_t>(cursor_ - from)};
    }

  protected:
    /// Makes space for that many bytes after cursor_.
    virtual void make_room(std::size_t bytes) = 0;
    /// Continues in that memory, from its start.
    void use(std::unique_ptr<char[]> memory, std::size_t capacity) noexcept {
        buffer_ = std::move(memory);
        cursor_ = buffer_.get();
        limit_ = cursor_ + capacity;
    }
    std::size_t size() const noexcept { return static_cast<std::size_t>(cursor_ - buffer_.get()); }

    std::unique_ptr<char[]> buffer_;
    char* cursor_ = nullptr;
    char* limit_ = nullptr;
    std::uint64_t flushed_ = 0;  ///< bytes that came before those in the buffer
};

/// Keeps everything in memory and grows as needed.
class MemoryOutput final : public OutputBuffer {
  public:
    /// Memory, and how much of it is filled.
    struct Block {
        std::unique_ptr<char[]> memory;
        std::size_t capacity = 0;
        std::size_t size = 0;

        std::string_view bytes() const noexcept { return {memory.get(), size}; }
    };

    void write(std::string_view bytes) override {
        if (bytes.empty()) return;
        char* const out = reserve(bytes.size());
        std::memcpy(out, bytes.data(), bytes.size());
        advance(out + bytes.size());
    }
    /// Gives away the written bytes, and continues in the memory of another block.
    Block exchange(Block next) noexcept {
        const std::size_t size = this->size();
        flushed_ += size;
        Block full{std::move(buffer_), capacity_, size};
        capacity_ = next.capacity;
        use(std::move(next.memory), capacity_);
        return full;
    }

  private:
    void make_room(std::size_t bytes) override {
        const std::size_t kept = size();
        const std::size_t capacity = std::max({std::size_t{1} << 16, 2 * capacity_, kept + bytes});
        std::unique_ptr<char[]> larger(new char[capacity]);
        if (kept != 0) std::memcpy(larger.get(), buffer_.get(), kept);
        use(std::move(larger), capacity);
        cursor_ += kept;
        capacity_ = capacity;
    }

    std::size_t capacity_ = 0;
};

}  // namespace marey
