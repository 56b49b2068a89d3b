// absent_threads.cpp: threads that were in calls when a tracer began and have not recorded them since.
#include <algorithm>
#include <fstream>
#include <string>

#include "record/journal.h"
#include "record/recorder.h"
#include "record/thread_log.h"
#include "record/value_encoding.h"

namespace marey {

void Recorder::set_absent(std::vector<AbsentStack> stacks) noexcept {
    std::lock_guard lock(mutex_);
    absent_.clear();
    try {
        for (AbsentStack& stack : stacks) {
            const auto known = std::find_if(threads_.begin(), threads_.end(), [&](const auto& entry) {
                return entry->is_thread && entry->os_tid == stack.os_tid;
            });
            const std::uint32_t id = known != threads_.end() ? (*known)->id : next_thread_++;
            absent_.push_back({id, known != threads_.end(), std::move(stack)});
        }
    } catch (const std::bad_alloc&) {
        count_lost(stacks.size() - absent_.size());
    }
}

void Recorder::forget_absent(std::int64_t os_tid) noexcept {
    std::lock_guard lock(mutex_);
    std::erase_if(absent_, [os_tid](const AbsentThread& each) { return each.stack.os_tid == os_tid; });
}

// A thread that has been mentioned already has its number.
std::uint32_t Recorder::number_of_thread(std::int64_t os_tid) noexcept {
    for (const AbsentThread& each : absent_) {
        const auto has_it = [&](const auto& entry) { return entry->id == each.id; };
        if (each.stack.os_tid == os_tid && std::none_of(threads_.begin(), threads_.end(), has_it))
            return each.id;
    }
    return next_thread_++;
}

std::vector<OpenRange> Recorder::absent_open_ranges() noexcept {
    std::vector<OpenRange> open;
    for (AbsentThread& thread : absent_) {
        std::uint32_t depth = 0;
        std::vector<std::uint32_t> seen;  // sites of calls that an earlier tracing saw begin: still open
        const auto entry = std::find_if(threads_.begin(), threads_.end(),
                                        [&](const auto& each) { return each->id == thread.id; });
        if (entry != threads_.end()) {
            depth =
                detail::load_acquire((*entry)->state->depth);  // inside the ranges that it has marked itself
            for (std::uint32_t index = 0; index < depth; ++index) {
                const detail::OpenSlot& open_slot = *slot(*(*entry)->state, index);
                const auto is_it = [&](const ThreadEntry::EndedElsewhere& ended) {
                    return ended.start == detail::load_relaxed(open_slot.start);
                };
                const auto& ended = (*entry)->ended_elsewhere;
                if (is_call(open_slot) && std::none_of(ended.begin(), ended.end(), is_it))
                    seen.push_back(site_of(open_slot));
            }
        } else if (!thread.in_journal) {
            std::string name;
            std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread.stack.os_tid) + "/comm"),
                         name);
            detail::ThreadStartedRecord record{};
            record.thread = thread.id;
            record.name = names_.intern(name);
            record.os_tid = thread.stack.os_tid;
            publish_names();
            journal(detail::JournalKind::ThreadStarted, record);
            thread.in_journal = true;
        }
        auto next_seen = seen.begin();
        for (const AbsentStack::Call& call : thread.stack.calls) {
            if (next_seen != seen.end() && *next_seen == call.site) {
                ++next_seen;
                continue;
            }
            OpenRange range;
            range.thread = thread.id;
            range.depth = depth++;
            range.start = call.start;
            range.site = call.site;
            if (call.line > 0) {
                alignas(8) std::byte values[64];
                ValueEncoder encoder(values, values + sizeof values);
                encoder.add(names_.intern("line"), 0, Value(std::int64_t{call.line}), {true, true});
                publish_names();
                range.payload.assign(values, encoder.end());
            }
            open.push_back(std::move(range));
        }
    }
    return open;
}

}  // namespace marey
