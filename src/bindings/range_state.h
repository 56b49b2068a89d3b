// range_state.h: what a with-object has open.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <kymo/operation.h>

#include "bindings/site_cache.h"

namespace kymo::bindings {

/// The range that a with-object has open, and those that it had open when it was entered again. Plain data
/// (objects come from a free list): init() and release() stand for constructor and destructor.
class RangeState {
  public:
    void init() noexcept {
        opened_ = {0, detail::kNotOpen};
        operation_ = nullptr;
        outers_ = nullptr;
        entered_ = 0;
    }
    /// Ends what is still open.
    void release() noexcept {
        while (entered_ != 0) leave();
        delete outers_;
        outers_ = nullptr;
    }
    bool is_entered() const noexcept { return entered_ != 0; }

    /// Counts one more entry; false with a Python error set when there is no memory. open() or take() follow,
    /// or neither.
    bool enter() noexcept {
        if (entered_ != 0 && !put_aside()) return false;
        ++entered_;
        opened_.index = detail::kNotOpen;
        return true;
    }
    void open(PyObject* name, Scope scope) noexcept {
        opened_ = detail::open_range(site_cache.site(name, scope), scope);
    }
    /// A range with values, which has begun.
    void take(std::unique_ptr<Operation> operation) noexcept { operation_ = operation.release(); }

    void leave() noexcept {
        if (opened_.index != detail::kNotOpen) detail::close_range(opened_);
        if (operation_ != nullptr) [[unlikely]] {
            delete operation_;
            operation_ = nullptr;
        }
        if (--entered_ != 0) [[unlikely]]
            take_back();
    }

  private:
    struct Outer {
        detail::Opened opened;
        std::unique_ptr<Operation> operation;
    };

    bool put_aside() noexcept {
        try {
            if (outers_ == nullptr) outers_ = new std::vector<Outer>;
            outers_->push_back({opened_, std::unique_ptr<Operation>(operation_)});
        } catch (const std::bad_alloc&) {
            PyErr_NoMemory();
            return false;
        }
        operation_ = nullptr;
        return true;
    }
    void take_back() noexcept {
        opened_ = outers_->back().opened;
        operation_ = outers_->back().operation.release();
        outers_->pop_back();
    }

    detail::Opened opened_;
    Operation* operation_;        ///< owned; the range, instead of opened_, when it has values
    std::vector<Outer>* outers_;  ///< owned; null: never entered twice at once
    std::uint32_t entered_;
};

}  // namespace kymo::bindings
