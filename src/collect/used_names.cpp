// used_names.cpp: marks the names in use, then compacts the tables.
#include "collect/used_names.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "trace/columns.h"

namespace marey {
namespace {

constexpr std::uint32_t kUnused = ~std::uint32_t{0};

/// The new number of each old one that was marked.
class Renumbering {
  public:
    explicit Renumbering(std::size_t count) : numbers_(count, kUnused) {}

    void mark(std::uint32_t old) {
        if (old < numbers_.size() && std::exchange(numbers_[old], 0) == kUnused) ++used_;
    }
    std::size_t used() const noexcept { return used_; }
    /// Assigns numbers to the marked ones and moves the rows of `table` there.
    template <class Row>
    void apply(std::vector<Row>& table) {
        std::uint32_t next = 0;
        for (std::size_t old = 0; old < numbers_.size(); ++old) {
            if (numbers_[old] == kUnused) continue;
            numbers_[old] = next;
            if (next != old) table[next] = std::move(table[old]);
            ++next;
        }
        table.resize(next);
    }
    void renumber(std::uint32_t& number) const {
        if (number < numbers_.size()) number = numbers_[number];
    }

  private:
    std::vector<std::uint32_t> numbers_;
    std::size_t used_ = 0;
};

}  // namespace

void drop_unused_names(TraceData& data, std::size_t few) {
    if (data.sites.size() < few) return;
    Renumbering sites(data.sites.size());
    for_each_reference(data, Cells::Site, [&](std::uint32_t site) { sites.mark(site); });
    if (few != 0 && data.sites.size() < 2 * sites.used() + few) return;
    sites.apply(data.sites);
    for_each_reference(data, Cells::Site, [&](std::uint32_t& site) { sites.renumber(site); });

    Renumbering strings(data.strings.size());
    strings.mark(0);
    for_each_reference(data, Cells::String, [&](StringId id) { strings.mark(id); });
    strings.apply(data.strings);
    for_each_reference(data, Cells::String, [&](StringId& id) { strings.renumber(id); });
}

}  // namespace marey
