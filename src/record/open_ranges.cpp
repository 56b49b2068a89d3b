// open_ranges.cpp: the ranges that are open, read while their threads run, and the calls of threads that were
// in them when a tracer began and have not recorded them since.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "record/thread_log.h"
#include "record/thread_registry.h"
#include "record/value_encoding.h"

namespace marey {

using detail::load_acquire;

namespace {

// Its owner may be writing there: torn data fails the caller's second check, and every length is checked. The
// copy itself is an intended race on plain bytes, hence the exemption.
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread")))
#endif
void copy_open_payload(const ThreadEntry& entry, std::uint32_t side, std::vector<std::byte>& payload) noexcept {
    std::size_t offset = (side - 1) * std::size_t{8};
    const std::byte* base = entry.state->side;
    std::size_t size = detail::kSideBytes;
    if (offset >= detail::kSideBytes) {
        if (entry.side_segment == nullptr) return;
        offset -= detail::kSideBytes;
        base = entry.side_segment->data();
        size = entry.side_segment->capacity();
    }
    if (offset + sizeof(detail::SideEntry) > size) return;
    const auto* const words = reinterpret_cast<const volatile std::uint32_t*>(base + offset);
    const std::size_t bytes = words[0];
    if (bytes > detail::kMaxPayloadBytes || offset + sizeof(detail::SideEntry) + bytes > size) return;
    payload.resize(bytes);
    const auto* const from =
        reinterpret_cast<const volatile std::byte*>(base + offset + sizeof(detail::SideEntry));
    for (std::size_t i = 0; i < bytes; ++i) payload[i] = from[i];
}

}  // namespace

void ThreadRegistry::add_open(const ThreadEntry& entry, std::vector<OpenRange>& all) noexcept {
    std::vector<OpenRange> open;
    const std::uint32_t depth = load_acquire(entry.state->depth);
    for (std::uint32_t index = 0; index < depth; ++index) {
        const detail::OpenSlot* const slot = entry.slot(index);
        if (slot == nullptr) break;
        const std::uint64_t start = load_acquire(slot->start);
        const std::uint64_t what = load_acquire(slot->what);
        OpenRange range{.thread = entry.id,
                        .depth = index,
                        .start = start,
                        .site = static_cast<std::uint32_t>(what & (detail::kMaxSites - 1)),
                        .flags = static_cast<std::uint8_t>((what >> detail::kSiteBits) & 0x7f)};
        if (const auto side = static_cast<std::uint32_t>(what >> 32)) {
            copy_open_payload(entry, side, range.payload);
        }
        // Counts only if it did not change while we read.
        if (start == 0 || range.site == 0 || load_acquire(slot->start) != start ||
            load_acquire(slot->what) != what) {
            continue;
        }
        journal_.names().use(range.site);  // its thread may not have run since the spool was created
        open.push_back(std::move(range));
    }
    journal_.publish_names();
    // Of equal starts, the innermost one, as its owner will choose.
    for (const ThreadEntry::EndedElsewhere& ended : entry.ended_elsewhere) {
        for (std::size_t i = open.size(); i-- != 0;) {
            if (open[i].start != ended.start || open[i].depth > ended.index || open[i].end != 0) continue;
            open[i].end = std::max(ended.end, ended.start);
            break;
        }
    }
    for (std::size_t i = open.size(); i-- != 0 && open[i].end != 0 && is_waited_for(open[i].site);)
        open[i].flags |= detail::kRecordWaited;
    std::move(open.begin(), open.end(), std::back_inserter(all));
}

std::vector<OpenRange> ThreadRegistry::open_ranges() noexcept {
    std::vector<OpenRange> open;
    for (const auto& entry : entries_) add_open(*entry, open);
    for (AbsentThread& thread : absent_) add_absent(thread, open);
    return open;
}

// ---- absent threads ----

std::size_t ThreadRegistry::set_absent(std::vector<AbsentStack> stacks) noexcept {
    const ScopedLock lock(recorder_mutex);
    absent_.clear();
    try {
        for (AbsentStack& stack : stacks) {
            const ThreadEntry* const known = find_os_thread(stack.os_tid);
            absent_.push_back(
                {known != nullptr ? known->id : next_id_++, known != nullptr, std::move(stack)});
        }
    } catch (const std::bad_alloc&) {
    }
    return stacks.size() - absent_.size();
}

void ThreadRegistry::forget_absent(std::int64_t os_tid) noexcept {
    const ScopedLock lock(recorder_mutex);
    std::erase_if(absent_, [os_tid](const AbsentThread& each) { return each.stack.os_tid == os_tid; });
}

// A thread that has been mentioned already has its number.
std::uint32_t ThreadRegistry::number_of(std::int64_t os_tid) noexcept {
    for (const AbsentThread& each : absent_) {
        if (each.stack.os_tid == os_tid && find(each.id) == nullptr) return each.id;
    }
    for (const NotedThread& each : noted_) {
        if (each.os_tid == os_tid && find(each.id) == nullptr) return each.id;
    }
    return next_id_++;
}

void ThreadRegistry::add_absent(AbsentThread& thread, std::vector<OpenRange>& open) noexcept {
    std::uint32_t depth = 0;
    std::vector<std::uint32_t> seen;  // sites of calls that an earlier tracing saw begin: still open
    if (const ThreadEntry* const entry = find(thread.id)) {
        depth = load_acquire(entry->state->depth);  // inside the ranges that it has marked itself
        for (std::uint32_t index = 0; index < depth; ++index) {
            const detail::OpenSlot* const slot = entry->slot(index);
            if (slot == nullptr) break;
            const auto is_it = [&](const ThreadEntry::EndedElsewhere& ended) {
                return ended.start == detail::load_relaxed(slot->start);
            };
            const auto& ended = entry->ended_elsewhere;
            if (is_call(*slot) && std::none_of(ended.begin(), ended.end(), is_it))
                seen.push_back(site_of(*slot));
        }
    } else if (!thread.in_journal) {
        std::string name;
        std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread.stack.os_tid) + "/comm"), name);
        detail::ThreadStartedRecord record{};
        record.thread = thread.id;
        record.name = journal_.names().intern(name);
        record.os_tid = thread.stack.os_tid;
        journal_.publish_names();
        journal_.write(detail::JournalKind::ThreadStarted, record);
        thread.in_journal = true;
    }
    auto next_seen = seen.begin();
    for (const AbsentStack::Call& call : thread.stack.calls) {
        if (next_seen != seen.end() && *next_seen == call.site) {
            ++next_seen;
            continue;
        }
        OpenRange range{.thread = thread.id, .depth = depth++, .start = call.start, .site = call.site};
        if (call.line > 0) {
            alignas(8) std::byte values[64];
            ValueEncoder encoder(values, values + sizeof values);
            encoder.add(journal_.names().intern("line"), 0, Value(std::int64_t{call.line}), {true, true});
            journal_.publish_names();
            range.payload.assign(values, encoder.end());
        }
        open.push_back(std::move(range));
    }
}

}  // namespace marey
