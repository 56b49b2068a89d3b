// observer_snapshot.cpp: sorts a thread's observers by scope, and draws which ranges the sampled ones see.
#include "record/observer_snapshot.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "record/observer_calls.h"
#include "record/thread_log.h"

namespace marey {

std::uint64_t mixed_random(std::uint64_t value) noexcept {
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

std::uint64_t draw_countdown(ThreadObservers& thread, double probability) noexcept {
    if (probability >= 1) return 0;
    if (probability <= 0) return kNever;
    thread.random += 0x9e3779b97f4a7c15u;
    const double uniform =
        (static_cast<double>(mixed_random(thread.random) >> 11) + 1) / 9007199254740993.0;  // (0, 1)
    const double misses = std::floor(std::log(uniform) / std::log1p(-probability));
    return misses < 1e18 ? static_cast<std::uint64_t>(misses) : kNever / 2;
}

ObserverSnapshot::ObserverSnapshot(ObserverList observers, ThreadObservers& thread)
    : keep(std::move(observers)) {
    std::erase_if(keep, [](const auto& entry) { return !entry->takes_part(); });
    for (const auto& entry : keep) {
        const Observer& observer = entry->observer;
        if (observer.memory != nullptr) memory.push_back(entry.get());
        if (observer.instant != nullptr) instants.push_back(entry.get());
        if (observer.start == nullptr && observer.end == nullptr) continue;
        for (int scope = 0; scope < kScopeCount; ++scope) {
            if (!entry->scopes.contains(static_cast<Scope>(scope))) continue;
            scopes[scope].entries.push_back(entry.get());
            scopes[scope].needs.add(observer);
        }
    }
    for (ObserverSnapshot::PerScope& scope : scopes) {
        scope.first = scope.entries.data();
        scope.count = static_cast<std::uint32_t>(scope.entries.size());
        const auto is_sampled = [](const ObserverEntry* entry) { return entry->is_sampled(); };
        if (std::none_of(scope.entries.begin(), scope.entries.end(), is_sampled)) {
            scope.is_plain = scope.count != 0 && scope.count <= ObserverFrame::kFew && !scope.needs.ids;
            continue;
        }
        for (ObserverEntry* entry : scope.entries)
            scope.items.push_back({entry, draw_countdown(thread, entry->observer.sampling)});
        scope.all_sampled = std::all_of(scope.entries.begin(), scope.entries.end(), is_sampled);
        if (!scope.all_sampled) continue;
        scope.skip = kNever;
        for (const auto& item : scope.items) scope.skip = std::min(scope.skip, item.countdown);
        scope.drawn = scope.skip;
    }
}

ThreadObservers::~ThreadObservers() {
    while (pool != nullptr) delete std::exchange(pool, pool->next);
}

void ThreadObservers::set_current(std::unique_ptr<ObserverSnapshot> fresh) {
    std::erase_if(old, [](const auto& each) { return each->is_done(); });
    if (current && !current->is_done()) old.push_back(std::move(current));
    current = std::move(fresh);
    snapshot = current.get();
    std::fill(std::begin(calling_thread()->skip), std::end(calling_thread()->skip), 0u);
}

}  // namespace marey
