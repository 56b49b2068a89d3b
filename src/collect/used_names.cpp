// used_names.cpp: marks the names in use, then compacts the tables.
#include "collect/used_names.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace marey {
namespace {

constexpr std::size_t kMany = 1024;
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

template <class Use>
void for_each_site(TraceData& data, Use use) {
    for (std::vector<std::uint32_t>* const column :
         {&data.range_site, &data.instant_site, &data.counter_site}) {
        for (std::uint32_t& site : *column) use(site);
    }
}

template <class Use>
void for_each_string(TraceData& data, Use use) {
    for (SiteInfo& site : data.sites) {
        for (StringId* const id : {&site.name, &site.file, &site.overload, &site.category, &site.raw_name})
            use(*id);
    }
    for (ProcessInfo& process : data.processes) {
        for (StringId* const id : {&process.name, &process.host, &process.command_line}) use(*id);
    }
    for (ThreadInfo& thread : data.threads) use(thread.name);
    for (TrackInfo& track : data.tracks) use(track.name);
    for (LinkInfo& link : data.links) use(link.name);
    for (TaskInfo& task : data.tasks) use(task.name);
    for (std::vector<Argument>* const values : {&data.arguments, &data.list_items}) {
        for (Argument& value : *values) {
            use(value.key);
            if (value.kind == ValueKind::String) use(value.string);
        }
    }
}

}  // namespace

void drop_unused_names(TraceData& data) {
    if (data.sites.size() < kMany) return;
    Renumbering sites(data.sites.size());
    for_each_site(data, [&](std::uint32_t site) { sites.mark(site); });
    if (data.sites.size() < 2 * sites.used() + kMany) return;
    sites.apply(data.sites);
    for_each_site(data, [&](std::uint32_t& site) { sites.renumber(site); });

    Renumbering strings(data.strings.size());
    strings.mark(0);
    for_each_string(data, [&](StringId id) { strings.mark(id); });
    strings.apply(data.strings);
    for_each_string(data, [&](StringId& id) { strings.renumber(id); });
}

}  // namespace marey
