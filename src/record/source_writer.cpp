// source_writer.cpp: recording on behalf of sources.
#include "record/source_writer.h"

#include <algorithm>

#include "record/clock.h"
#include "record/journal.h"
#include "record/recorder.h"
#include "record/thread_log.h"
#include "record/value_encoding.h"

namespace kymo {

using detail::load_relaxed;
using detail::Opened;
using detail::ThreadState;

void add_source(std::shared_ptr<Source> source) {
    Recorder::get().add_source(std::move(source));
}

std::uint32_t traced_site(std::string_view name, std::string_view file, std::uint32_t line,
                          Scope scope) noexcept {
    const SlowPath path;
    return path ? Recorder::get().intern_site(name, file, line, scope) : 0;
}

bool attach_thread() noexcept {
    if (load_relaxed(detail::current_thread->armed) == 0) return false;
    const SlowPath path;
    return path && ready_thread() != nullptr;
}

std::size_t open_before(std::span<const std::uint32_t> sites, std::uint64_t start, Opened* opened) noexcept {
    const SlowPath path;
    ThreadState* const state = path ? ready_thread() : nullptr;
    if (state == nullptr || (load_relaxed(state->armed) & detail::kArmedRecorder) == 0) return 0;
    for (std::size_t i = 0; i < sites.size(); ++i) {
        opened[i] = push_open(*state, sites[i], 0, 0);
        if (opened[i].index == detail::kNotOpen) return i;
        opened[i].start = std::max<std::uint64_t>(start, 1);
        detail::store_release(Recorder::get().slot(*state, state->depth - 1)->start, opened[i].start);
    }
    return sites.size();
}

void close_late(Opened opened) noexcept {
    const AsEnabled enabled;
    const SlowPath path;
    ThreadState* const state = path && detail::current_thread->owner != nullptr ? ending_thread() : nullptr;
    if (state == nullptr) return;
    const std::uint32_t index = find_open(*state, opened.index, opened.start);
    if (index != detail::kNotOpen) pop_open(*state, index, Clock::now(), detail::kRecordUnfinished);
}

void Recorder::add_site_values(std::uint32_t site, std::uint64_t ticks,
                               std::span<const KeyedValue> values) noexcept {
    std::lock_guard lock(mutex_);
    if (sessions_.empty()) return;
    alignas(8) std::byte payload[detail::kMaxPayloadBytes];
    for (std::size_t next = 0; next < values.size();) {
        // As many as fit; one that is too long for a record of its own is cut.
        ValueEncoder encoder(payload, payload + sizeof payload);
        const std::size_t first = next;
        for (; next < values.size(); ++next) {
            std::byte* const before = encoder.end();
            if (next != first && before - payload > static_cast<std::ptrdiff_t>(sizeof payload / 2)) break;
            encoder.add(names_.intern(values[next].key), 0, values[next].value, {true, true});
        }
        detail::SiteValuesRecord record{};
        record.ticks = ticks;
        record.site = site;
        record.payload_bytes = static_cast<std::uint32_t>(encoder.end() - payload);
        publish_names();
        journal(detail::JournalKind::SiteValues, record,
                {payload, static_cast<std::size_t>(encoder.end() - payload)});
    }
}

void add_site_values(std::uint32_t site, std::uint64_t ticks, std::span<const KeyedValue> values) noexcept {
    const SlowPath path;
    if (path && site != 0) Recorder::get().add_site_values(site, ticks, values);
}

std::uint64_t source_ticks() noexcept {
    return Clock::now();
}

void note_problem(std::string_view code, std::string_view text) noexcept {
    Recorder::get().note(code, text);
}

}  // namespace kymo
