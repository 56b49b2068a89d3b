// late_range.h: a range that gets its name and its values at its end, such as a request that is routed later.
#pragma once

#include <cstdint>
#include <span>

#include <marey/detail/hot_path.h>
#include <marey/scope.h>
#include <marey/value.h>

#include "record/source_writer.h"
#include "sources/python/tracer.h"

namespace marey::python {

/// Plain data. Requires the GIL.
class LateRange {
  public:
    /// Begins it if something records. `site`: its name until it ends, for a range that nests with the others
    /// of this thread; 0: it is async.
    void begin(std::uint32_t site) noexcept {
        before_range();
        opened_ = site != 0 ? detail::open_range(site, Scope::User)
                            : detail::Opened{source_ticks(), detail::kNotOpen};
        thread_ = detail::thread_number();  // known once the thread has recorded
        is_open_ = site == 0 || opened_.index != detail::kNotOpen;
    }
    bool is_open() const noexcept { return is_open_; }
    /// When one that nests began, in ticks; 0: it is not recorded.
    std::uint64_t start() const noexcept {
        return is_open_ && opened_.index < detail::kOpenObserved ? opened_.start : 0;
    }
    /// Ends it under another name. One that nests and ends on another thread keeps its first name.
    void end(std::uint32_t site, std::span<const KeyedValue> values) noexcept {
        if (!is_open_) return;
        is_open_ = false;
        if (opened_.index == detail::kNotOpen) {
            if (detail::should_record(Scope::User)) write_ended_range(site, opened_.start, values);
        } else if (thread_ != detail::thread_number()) {
            detail::close_elsewhere(opened_, thread_);
        } else {
            close_with_values(opened_, values, site);
        }
    }
    /// Ends it under its first name, if it has one.
    void drop() noexcept {
        if (is_open_ && opened_.index != detail::kNotOpen) detail::close_elsewhere(opened_, thread_);
        is_open_ = false;
    }

  private:
    detail::Opened opened_;
    std::uint32_t thread_;
    bool is_open_;
};

}  // namespace marey::python
