// range_state.h: the open ranges of a with statement's object.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <marey/operation.h>

#include "bindings/site_cache.h"

namespace marey::bindings {

/// The open range of a with statement's object, and those of outer entries if it was entered again. Plain
/// data, since objects come from a free list: init() and release() act as constructor and destructor. Guarded
/// by the GIL. A range may end on another thread than it began on; it is async then.
class RangeState {
  public:
    void init() noexcept {
        opened_ = {0, detail::kNotOpen};
        operation_ = nullptr;
        outers_ = nullptr;
        entered_ = 0;
        thread_ = 0;
        is_transferred_ = false;
    }
    /// Ends all open ranges; the state is then as after init().
    void release() noexcept {
        if (entered_ != 0 || outers_ != nullptr) [[unlikely]]
            release_all();
    }
    bool is_entered() const noexcept { return entered_ != 0; }

    /// Counts one more entry; false with a Python error set if out of memory. At most one of open() and
    /// take() follows.
    bool enter() noexcept {
        if (entered_ != 0 && !save()) [[unlikely]]
            return false;
        ++entered_;
        opened_.index = detail::kNotOpen;
        return true;
    }
    /// The site was looked up after before_range(), which may move this thread to another capture.
    [[gnu::always_inline]] void open(std::uint32_t site, Scope scope) noexcept {
        opened_ = detail::open_range(site, scope);
        thread_ = detail::thread_number();
    }
    /// Takes a range with values that has begun. Ends it at once if computing the values has left the block.
    void take(std::unique_ptr<Operation> operation) noexcept {
        if (entered_ != 0 && operation_ == nullptr) operation_ = operation.release();
    }

    [[gnu::always_inline]] void leave() noexcept {
        if (opened_.index == detail::kNotOpen) {
            if (entered_ == 1 && operation_ == nullptr) [[likely]] {
                entered_ = 0;
                is_transferred_ = false;
                return;
            }
        } else if (detail::thread_number() == thread_) [[likely]] {
            detail::close_range(opened_);
            if (entered_ == 1) [[likely]] {
                entered_ = 0;
                return;
            }
        } else {
            detail::close_elsewhere(opened_, thread_);
        }
        leave_slow();
    }

    /// When the recorded range of the innermost entry began, in ticks; 0: there is none on this thread. It
    /// must be the thread's innermost range.
    std::uint64_t start() const noexcept {
        if (operation_ == nullptr)
            return opened_.index < detail::kOpenObserved && thread_ == detail::thread_number() ? opened_.start
                                                                                               : 0;
        const detail::ThreadState* const thread = detail::current_thread;
        const std::uint32_t index = thread->depth - 1;
        return index < detail::kOpenSlots ? detail::load_relaxed(thread->slots[index].start) : 0;
    }

    /// Whether the range of the innermost entry has been transferred.
    bool is_transferred() const noexcept { return is_transferred_; }
    /// Transfers the range of the innermost entry to `other`, uninitialized memory. Leaving the block then
    /// ends nothing.
    void move_to_range(RangeState& other) noexcept {
        other.init();
        other.opened_ = opened_;
        other.operation_ = operation_;
        other.thread_ = thread_;
        other.entered_ = 1;
        opened_.index = detail::kNotOpen;
        operation_ = nullptr;
        is_transferred_ = true;
    }

  private:
    struct Outer {
        detail::Opened opened;
        std::unique_ptr<Operation> operation;
        std::uint32_t thread;
        bool is_transferred;
    };

    // The remaining work after the range has been closed.
    [[gnu::noinline]] void leave_slow() noexcept {
        delete operation_;
        operation_ = nullptr;
        is_transferred_ = false;
        if (--entered_ != 0) restore();
    }
    [[gnu::noinline]] void release_all() noexcept {
        while (entered_ != 0) leave();
        delete outers_;
        outers_ = nullptr;
    }
    [[gnu::noinline]] bool save() noexcept {
        try {
            if (outers_ == nullptr) outers_ = new std::vector<Outer>;
            outers_->reserve(outers_->size() + 1);
        } catch (const std::bad_alloc&) {
            PyErr_NoMemory();
            return false;
        }
        outers_->push_back({opened_, std::unique_ptr<Operation>(operation_), thread_, is_transferred_});
        operation_ = nullptr;
        is_transferred_ = false;
        return true;
    }
    void restore() noexcept {
        Outer& outer = outers_->back();
        opened_ = outer.opened;
        operation_ = outer.operation.release();
        thread_ = outer.thread;
        is_transferred_ = outer.is_transferred;
        outers_->pop_back();
    }

    detail::Opened opened_;
    Operation* operation_;        ///< owned; the range if it has values, instead of opened_
    std::vector<Outer>* outers_;  ///< owned; null: never entered recursively
    std::uint32_t entered_;
    std::uint32_t thread_;  ///< the thread that opened it
    bool is_transferred_;
};

}  // namespace marey::bindings
