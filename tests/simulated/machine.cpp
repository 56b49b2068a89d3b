// machine.cpp: the virtual schedule.
#include "simulated/machine.h"

#include <algorithm>

#include "simulated/device_clock.h"

namespace marey::simulated {
namespace {

std::uint64_t later(std::uint64_t ticks, double ns) noexcept {
    if (ticks == kNever || ns > 1e17) return kNever;
    return ticks + static_cast<std::uint64_t>(ns_to_ticks(ns));
}

}  // namespace

void Machine::give(std::vector<Job> jobs, std::uint64_t now, const Settings& settings) {
    if (jobs.empty()) return;
    Queue& queue = queues_[{jobs.front().device, jobs.front().stream}];
    const std::uint64_t earliest = later(now, settings.latency_ns);
    const std::uint64_t first = std::max(queue.end, earliest);
    for (Job& job : jobs) {
        job.start = settings.concurrent_graphs != 0 ? first : std::max(queue.end, earliest);
        job.end = later(job.start, static_cast<double>(job.duration_ns));
        queue.end = std::max(queue.end, job.end);
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.end < b.end; });
    for (Job& job : jobs) queue.jobs.push_back(std::move(job));
}

void Machine::add_wait(Job wait, std::uint32_t other, std::uint64_t now) {
    Queue& queue = queues_[{wait.device, wait.stream}];
    wait.start = std::max(queue.end, now);
    wait.end = std::max(wait.start, end_of_queue(wait.device, other, now));
    queue.end = wait.end;
    queue.jobs.push_back(std::move(wait));
}

std::vector<Job> Machine::take_finished(std::uint64_t now) {
    std::vector<Job> done;
    for (auto& [place, queue] : queues_) {
        for (; !queue.jobs.empty() && queue.jobs.front().end <= now; queue.jobs.pop_front())
            done.push_back(std::move(queue.jobs.front()));
    }
    std::stable_sort(done.begin(), done.end(), [](const Job& a, const Job& b) { return a.end < b.end; });
    return done;
}

std::uint64_t Machine::end_of_queue(std::int32_t device, std::uint32_t stream, std::uint64_t now) const {
    const auto found = queues_.find({device, stream});
    return found == queues_.end() ? now : std::max(now, found->second.end);
}

std::uint64_t Machine::end_of_device(std::int32_t device, std::uint64_t now) const {
    for (const auto& [place, queue] : queues_) {
        if (device < 0 || place.first == device) now = std::max(now, queue.end);
    }
    return now;
}

std::uint64_t Machine::end_of_recorded(std::uint64_t now) const {
    for (const auto& [place, queue] : queues_) {
        for (const Job& job : queue.jobs) {
            if (job.is_recorded) now = std::max(now, job.end);
        }
    }
    return now;
}

std::uint64_t Machine::allocate(std::int32_t device, std::uint64_t bytes, const Settings& settings) {
    Memory& memory = memory_[device];
    if (bytes == 0 ||
        static_cast<double>(memory.allocated) + static_cast<double>(bytes) > settings.memory_bytes)
        return 0;
    const std::uint64_t address = memory.next;
    memory.next += (bytes + 511) / 512 * 512;
    memory.allocated += bytes;
    memory.blocks[address] = bytes;
    return address;
}

std::uint64_t Machine::release(std::int32_t device, std::uint64_t address) {
    Memory& memory = memory_[device];
    const auto found = memory.blocks.find(address);
    if (found == memory.blocks.end()) return 0;
    const std::uint64_t bytes = found->second;
    memory.blocks.erase(found);
    memory.allocated -= bytes;
    return bytes;
}

std::uint64_t Machine::allocated(std::int32_t device) const {
    const auto found = memory_.find(device);
    return found == memory_.end() ? 0 : found->second.allocated;
}

}  // namespace marey::simulated
