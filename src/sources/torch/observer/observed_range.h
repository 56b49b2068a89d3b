// observed_range.h: the data of a range between PyTorch's two callbacks.
#pragma once

#include <ATen/record_function.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include <marey/context.h>
#include <marey/detail/operator_path.h>
#include <marey/observe.h>
#include <marey/operation.h>

namespace marey::torch {

/// Freed memory of ranges for the next ranges of the same thread, to avoid the heap.
class RangeMemory {
  public:
    static void* take(std::size_t bytes) {
        if (first != nullptr) [[likely]]
            return std::exchange(first, first->next);
        return take_slow(bytes);
    }
    static void give(void* place) noexcept {
        if (is_over) [[unlikely]]
            return ::operator delete(place);
        first = new (place) Link{first};
    }

  private:
    struct Link {
        Link* next;
    };
    struct Cleaner {
        ~Cleaner() {
            is_over = true;
            while (first != nullptr) ::operator delete(std::exchange(first, first->next));
        }
        bool is_here = false;
    };
    [[gnu::noinline]] static void* take_slow(std::size_t bytes) {
        static thread_local Cleaner cleaner;
        cleaner.is_here = true;  // created on first use
        return ::operator new(bytes);
    }

    static inline constinit thread_local Link* first = nullptr;
    static inline constinit thread_local bool is_over = false;  ///< the thread is ending
};

class RangeContext : public at::ObserverContext {
  public:
    static void* operator new(std::size_t) { return RangeMemory::take(kBytes); }
    static void operator delete(void* place) noexcept { RangeMemory::give(place); }
    enum class Kind : std::uint8_t { Plain, Input, Full };
    Kind kind() const noexcept { return kind_; }

  protected:
    explicit RangeContext(Kind kind) noexcept : kind_(kind) {}
    static constexpr std::size_t kBytes = 192;  ///< size of each block

  private:
    Kind kind_;
};

/// A usual range, opened inline: a scope, and the data that links forward and backward ranges.
class PlainRange final : public RangeContext {
  public:
    PlainRange(detail::Opened opened, std::int64_t sequence, std::uint32_t forward_thread) noexcept
        : RangeContext(Kind::Plain),
          thread_(detail::thread_number()),
          opened_(opened),
          facts_{sequence, forward_thread, 0} {
        static_assert(sizeof(PlainRange) <= kBytes);
    }
    [[gnu::always_inline]] void end() const noexcept {
        if (facts_.sequence >= 0) return detail::close_with_facts(opened_, thread_, facts_);
        if (thread_ == detail::thread_number()) [[likely]]
            return detail::close_range(opened_);
        detail::close_elsewhere(opened_, thread_);
    }

  private:
    std::uint32_t thread_;
    detail::Opened opened_;
    detail::RangeProperties facts_;
};

/// A range with inputs and without observers.
class InputRange final : public RangeContext {
  public:
    InputRange(detail::Opened opened, std::uint32_t thread) noexcept
        : RangeContext(Kind::Input), thread_(thread), opened_(opened) {
        static_assert(sizeof(InputRange) <= kBytes);
    }
    [[gnu::always_inline]] void end() const noexcept { detail::close_with_inputs(opened_, thread_); }

  private:
    std::uint32_t thread_;
    detail::Opened opened_;
};

/// The context of work that a PyTorch thread does for another thread, for the duration of the outermost
/// range.
struct FollowedContext {
    explicit FollowedContext(const Context& carried) : context(carried) {}
    Context context;
    ContextAdoption adoption{context};
    std::uint32_t thread = current_thread_id();
};

/// Any other range: observed, with outputs or keywords, or of followed work.
class FullRange final : public RangeContext {
  public:
    FullRange(Scope scope, std::unique_ptr<FollowedContext> followed) noexcept
        : RangeContext(Kind::Full), followed_(std::move(followed)), operation_(scope) {
        static_assert(sizeof(FullRange) <= kBytes);
    }
    ~FullRange() override {
        operation_.end();
        // Only its own thread can leave a context.
        if (followed_ != nullptr && followed_->thread != current_thread_id()) (void)followed_.release();
    }
    Operation& operation() noexcept { return operation_; }

  private:
    std::unique_ptr<FollowedContext> followed_;
    Operation operation_;
};

}  // namespace marey::torch
