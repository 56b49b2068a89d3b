// site_rows.h: the rows of a trace's site table by the ids in its log.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <marey/detail/log_format.h>

namespace marey {

/// Permanent sites come first, in order of their ids, which are dense. Sites of run-time names follow in the
/// order in which they were added; of their ids a log may have any few, so that the rows lie in pages.
class SiteRows {
  public:
    /// Rows in total; the row after them stands for every unknown id.
    std::uint32_t count() const noexcept { return count_; }
    void set_permanent(std::uint32_t count) { count_ = permanent_ = count; }
    /// Gives the next row to the id of a run-time name, which has none yet.
    void add(std::uint32_t id) {
        const std::uint32_t page = (id - detail::kFirstRunTimeSite) / kPage;
        if (page >= pages_.size()) pages_.resize(page + 1);
        if (pages_[page] == nullptr) pages_[page] = std::make_unique<std::uint32_t[]>(kPage);
        pages_[page][id % kPage] = ++count_;
    }
    std::uint32_t row(std::uint32_t id) const noexcept {
        if (id >= detail::kFirstRunTimeSite) return run_time_row(id);
        return id - 1 < permanent_ ? id - 1 : count_;
    }

  private:
    static constexpr std::uint32_t kPage = 1024;
    std::uint32_t run_time_row(std::uint32_t id) const noexcept {
        const std::uint32_t page = (id - detail::kFirstRunTimeSite) / kPage;
        if (page >= pages_.size() || pages_[page] == nullptr || pages_[page][id % kPage] == 0) return count_;
        return pages_[page][id % kPage] - 1;
    }

    std::uint32_t permanent_ = 0;
    std::uint32_t count_ = 0;
    std::vector<std::unique_ptr<std::uint32_t[]>> pages_;  ///< of rows + 1; 0: none
};

}  // namespace marey
