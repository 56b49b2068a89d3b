// shadow_stack.h: the calls of one thread whose ranges are open, so that every return ends its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <kymo/detail/hot_path.h>

#include "record/source_writer.h"
#include "sources/python/start_frames.h"

namespace kymo::python {

/// Calls are known by their frame; those into C by the frame that makes them, marked. Belongs to its thread.
class ShadowStack {
  public:
    ShadowStack() noexcept = default;
    ~ShadowStack() { std::free(base_); }
    ShadowStack(const ShadowStack&) = delete;
    ShadowStack& operator=(const ShadowStack&) = delete;

    static std::uintptr_t python_key(const void* frame) noexcept {
        return reinterpret_cast<std::uintptr_t>(frame);
    }
    static std::uintptr_t c_key(const void* frame) noexcept {
        return reinterpret_cast<std::uintptr_t>(frame) | 1;
    }

    /// `place` tells calls into C that one frame's code makes apart: the number of the instruction.
    [[gnu::always_inline]] void open(std::uintptr_t key, std::uint32_t site, Scope scope,
                                     std::uint32_t place = 0) noexcept {
        if (used_ == capacity_ && !grow()) [[unlikely]]
            return;
        const detail::Opened opened = detail::open_range(site, scope);
        base_[used_++] = {opened.start, key, opened.index, place};
    }
    /// A call that is not recorded.
    void skip(std::uintptr_t key, std::uint32_t place = 0) noexcept {
        if (used_ == capacity_ && !grow()) return;
        base_[used_++] = {0, key, detail::kNotOpen, place};
    }
    /// Whether such a call runs.
    bool holds(std::uintptr_t key, std::uint32_t place) const noexcept {
        for (std::size_t i = used_; i-- != 0;) {
            if (base_[i].key == key && base_[i].place == place) return true;
        }
        return false;
    }
    [[gnu::always_inline]] void close(std::uintptr_t key) noexcept {
        if (used_ == 0 || base_[used_ - 1].key != key) [[unlikely]]
            return close_elsewhere_in(key);
        const Entry& entry = base_[--used_];
        if (entry.index != detail::kNotOpen) detail::close_range({entry.start, entry.index});
    }
    /// Takes over calls whose ranges are open already. The stack is empty.
    void adopt(const std::vector<AdoptedFrame>& frames) noexcept {
        for (const AdoptedFrame& frame : frames) {
            if (used_ == capacity_ && !grow()) return;
            base_[used_++] = {frame.opened.start, python_key(frame.frame), frame.opened.index, 0};
        }
    }
    /// Ends what is open, on behalf of thread `thread`.
    void close_all(std::uint32_t thread) noexcept {
        while (used_ != 0) {
            const Entry& entry = base_[--used_];
            if (entry.index != detail::kNotOpen) detail::close_elsewhere({entry.start, entry.index}, thread);
        }
    }

    /// The same for the calling thread: their ends will not be seen.
    void close_all_late() noexcept {
        while (used_ != 0) {
            const Entry& entry = base_[--used_];
            if (entry.index != detail::kNotOpen) close_late({entry.start, entry.index});
        }
    }
    bool is_empty() const noexcept { return used_ == 0; }

  private:
    struct Entry {
        std::uint64_t start;
        std::uintptr_t key;
        std::uint32_t index;
        std::uint32_t place;
    };

    // A return that is not the innermost call's. Of a call that began before tracing: nothing is to be done.
    // Of one further down (a greenlet's, which was switched away from): it goes from the middle.
    [[gnu::noinline]] void close_elsewhere_in(std::uintptr_t key) noexcept {
        std::size_t at = used_;
        while (at != 0 && base_[at - 1].key != key) --at;
        if (at-- == 0) return;
        const Entry entry = base_[at];
        for (std::size_t i = at + 1; i < used_; ++i) base_[i - 1] = base_[i];
        --used_;
        if (entry.index != detail::kNotOpen) detail::close_range({entry.start, entry.index});
    }
    [[gnu::noinline]] bool grow() noexcept {
        const std::size_t more = capacity_ == 0 ? 256 : capacity_ * 2;
        void* const grown = std::realloc(base_, more * sizeof(Entry));
        if (grown == nullptr) return false;
        base_ = static_cast<Entry*>(grown);
        capacity_ = more;
        return true;
    }

    Entry* base_ = nullptr;
    std::size_t used_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace kymo::python
