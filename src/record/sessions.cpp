// sessions.cpp: starting, ending and reading sessions. A session is a view: its marks, and its claims on
// chunks.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include <marey/error.h>

#include "record/clock.h"
#include "record/devices.h"
#include "record/journal.h"
#include "record/nvtx_injection.h"
#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey {

using detail::JournalKind;
using detail::load_acquire;

namespace {

constexpr std::uint64_t kFlushTimeoutNs = 2'000'000'000;

std::uint32_t option_bits(const SessionOptions& options, std::uint32_t device_types) noexcept {
    std::uint32_t bits = 0;
    if (device_types != 0)
        bits |=
            (options.device_activities & (kDeviceAll | kDeviceTimes)) * detail::kOptionFirstDeviceActivity;
    if (options.record_values) bits |= detail::kOptionValues;
    if (options.record_shapes) bits |= detail::kOptionShapes;
    if (options.concrete_inputs || options.with_flops)
        bits |= detail::kOptionConcreteInputs | detail::kOptionShapes;
    if (options.profile_memory) bits |= detail::kOptionMemory;
    if (options.with_flops) bits |= detail::kOptionFlops;
    if (options.with_stack) bits |= detail::kOptionStacks;
    if (options.with_modules) bits |= detail::kOptionModules;
    return bits;
}

std::string absolute_path(const std::string& path) {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    return error ? path : absolute.string();
}

// How much memory of logs is kept for the next session when the last one has ended.
constexpr std::size_t kWarmBytes = std::size_t{2} << 20;

// The journal as one session's capture carries it: without the marks of others (0: of any).
std::vector<std::byte> journal_of(const std::vector<std::byte>& journal, std::uint64_t session) {
    std::vector<std::byte> own;
    for (std::size_t at = 0; at + sizeof(detail::StreamRecord) <= journal.size();) {
        detail::StreamRecord head;
        std::memcpy(&head, journal.data() + at, sizeof head);
        const auto kind = static_cast<JournalKind>(head.kind);
        const bool marks = kind == JournalKind::SessionStart || kind == JournalKind::SessionStop ||
                           kind == JournalKind::OpenAtStop || kind == JournalKind::RemoteEvents ||
                           kind == JournalKind::Metadata;
        std::uint64_t id = session;
        if (marks) std::memcpy(&id, journal.data() + at + sizeof head, sizeof id);
        if (id == session)
            own.insert(own.end(), journal.begin() + static_cast<std::ptrdiff_t>(at),
                       journal.begin() + static_cast<std::ptrdiff_t>(at + head.bytes));
        at += head.bytes;
    }
    return own;
}

}  // namespace

/// Keeps the chunks of a log alive (and mapped) until its reader is done.
struct Recorder::Claims {
    std::uint64_t fork_generation = 0;
    std::shared_ptr<Spool> spool;
    std::vector<Block*> chunks;

    Claims() = default;
    Claims(const Claims&) = delete;
    Claims& operator=(const Claims&) = delete;
    ~Claims() {
        Recorder& recorder = Recorder::get();
        std::lock_guard lock(recorder.mutex_);
        if (fork_generation != recorder.fork_generation_) return;  // the parent's chunks do not exist here
        for (Block* chunk : chunks) recorder.release_chunk(chunk);
        if (recorder.sessions_.empty()) recorder.memory_.decommit(kWarmBytes);
    }
};

SessionEntry* Recorder::find(std::uint64_t id) noexcept {
    for (const auto& session : sessions_) {
        if (session->id == id) return session.get();
    }
    return nullptr;
}

Recorder::Started Recorder::start(const SessionOptions& options) {
    const RequestedDevices devices = find_devices(
        options.devices, options.device_activities);  // loads and registers them: no lock is held
    const std::string nvtx_inactive = options.with_nvtx ? nvtx_inactive_reason() : std::string();
    std::lock_guard source_lock(source_mutex_);
    measure_costs();
    Started started{};
    std::shared_ptr<const ContextSessions> context;
    ThreadEntry* own = nullptr;
    {
        std::unique_lock lock(mutex_);
        if (disabled_)
            throw Error("this copy of Marey does not record: another copy is already loaded in this process");
        auto session = std::make_unique<SessionEntry>();
        session->id = next_session_++;
        session->options = options;
        if (options.scopes.empty()) session->options.scopes = ScopeSet::all();
        session->max_bytes = options.max_bytes;
        session->device_types = devices.types;
        session->timed_devices =
            (options.device_activities & kDeviceTimes) != 0 ? devices.types : devices.without_source;
        if (session->timed_devices != 0) session->options.device_activities |= kDeviceTimes;
        if (options.threads == Threads::Tasks) {
            lock.unlock();
            const ScopedEnable enabled;
            const SlowPath path;
            detail::ThreadState* const state = ready_thread();
            lock.lock();
            if (state == nullptr) throw Error("this thread cannot record");
            own = static_cast<ThreadEntry*>(state->owner);
            session->tasks_thread = own->id;
            session->tasks = std::make_shared<TaskSession>();
            session->tasks->session = session->id;
            session->tasks->armed = armed_bits(session->options);
        }
        const bool first = sessions_.empty();
        if (first) {
            noted_.clear();
            ++period_;
        }
        if (!options.output.empty()) {
            session->output_path = absolute_path(options.output);
            if (!spool_) {
                spool_ = Spool::create(session->output_path);
                spool_owner_ = session->id;
                session->output_path = spool_->path();
                names_in_spool_ = 0;
                names_.begin_capture();
                ++names_number_;
                publish_names();
                // Sessions that already run have no file: the capture contains their threads and clock, not
                // the sessions.
                if (!journal_.empty()) spool_->append_journal(journal_of(journal_, 0));
            } else {
                std::vector<std::string> claimed;
                for (const auto& other : sessions_) claimed.push_back(other->output_path);
                session->output_path = free_path(session->output_path, claimed);
            }
        }
        start_background();
        if (first) {
            for (const auto& entry : threads_) journal_thread(*entry);
            journal_costs();
        }
        journal_clock();
        session->start_ticks = Clock::now();
        for (const auto& entry : threads_) {
            if (entry->chunk != nullptr && entry->period == period_) session->chunks.push_back(entry->chunk);
        }
        session->chunks.insert(session->chunks.end(), leftover_chunks_.begin(), leftover_chunks_.end());
        for (Block* chunk : session->chunks) {
            ++chunk->claims;
            session->claimed_bytes += chunk->blocks * detail::kBlockBytes;
        }
        // Earlier losses are not this session's losses.
        for (const auto& entry : threads_) journal_losses(*entry);
        for (auto& [thread, overwritten] : overwritten_) overwritten.in_file = nullptr;
        detail::SessionStartRecord record{};
        record.session = session->id;
        record.ticks = session->start_ticks;
        record.max_bytes = session->max_bytes;
        record.scopes = session->options.scopes.bits();
        record.name = names_.intern(options.name);
        record.thread = session->tasks_thread;
        record.option_bits = option_bits(session->options, devices.types);
        record.device_types = devices.types;
        record.policy = static_cast<std::uint32_t>(options.policy);
        publish_names();
        journal(JournalKind::SessionStart, record);
        if (own != nullptr) context = make_context(*own, *session);
        started = {session->id, session->output_path};
        sessions_.push_back(std::move(session));
        if (!nvtx_inactive.empty()) add_note("nvtx_not_listening", nvtx_inactive);
        rearm();
        if (background_idles_) wake().notify_all();
    }
    if (context != nullptr) {
        enter_sessions(context.get());
        if (own->sessions == context.get()) own->sessions_owner = std::move(context);
    }
    notify_sources();
    for (const std::string& problem : devices.problems) note("device_unavailable", problem);
    return started;
}

void Recorder::start_for_environment(const SessionOptions& options) {
    const Started started = start(options);
    // The captures of a program's other processes are named like this too, while the first one still runs.
    if (started.output_path != options.output && !is_being_recorded(options.output))
        warn(options.output + ": already exists, from an earlier run; this run's capture is " +
             started.output_path);
    std::lock_guard lock(mutex_);
    environment_session_ = started.id;
}

// ---- reading threads while they run ----

std::vector<OpenRange> Recorder::open_ranges(const ThreadEntry& entry) noexcept {
    std::vector<OpenRange> open;
    const detail::ThreadState& state = *entry.state;
    const std::uint32_t depth = load_acquire(state.depth);
    for (std::uint32_t index = 0; index < depth; ++index) {
        const detail::OpenSlot* slot = nullptr;
        if (index < detail::kOpenSlots) {
            slot = &state.slots[index];
        } else {
            const std::size_t segment = (index - detail::kOpenSlots) / detail::kSlotsPerSegment;
            if (segment >= entry.open_segments.size()) break;
            slot = reinterpret_cast<const detail::OpenSlot*>(entry.open_segments[segment]->data()) +
                   (index - detail::kOpenSlots) % detail::kSlotsPerSegment;
        }
        const std::uint64_t start = load_acquire(slot->start);
        const std::uint64_t what = load_acquire(slot->what);
        OpenRange range;
        range.thread = entry.id;
        range.depth = index;
        range.start = start;
        range.site = static_cast<std::uint32_t>(what & (detail::kMaxSites - 1));
        range.flags = static_cast<std::uint8_t>((what >> detail::kSiteBits) & 0x7f);
        if (const auto side = static_cast<std::uint32_t>(what >> 32)) {
            copy_open_payload(entry, side, range.payload);
        }
        // Counts only if it did not change while we read.
        if (start == 0 || range.site == 0 || load_acquire(slot->start) != start ||
            load_acquire(slot->what) != what) {
            continue;
        }
        names_.use(range.site);  // its thread may not have run since the spool was created
        open.push_back(std::move(range));
    }
    publish_names();
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
    return open;
}

// Its owner may be writing there: torn data fails the caller's second check, and every length is checked. The
// copy itself is an intended race on plain bytes, hence the exemption.
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread")))
#endif
void Recorder::copy_open_payload(const ThreadEntry& entry, std::uint32_t side, std::vector<std::byte>& payload) noexcept {
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

void Recorder::close_session(SessionEntry& session, std::uint64_t ticks) noexcept {
    session.is_closed = true;
    if (session.tasks != nullptr) session.tasks->is_closed.store(true, std::memory_order_relaxed);
    session.end_ticks = ticks;
    const auto journal_open = [&](OpenRange& range) {
        detail::OpenAtStopRecord record{};
        record.session = session.id;
        record.start = range.start;
        record.thread = range.thread;
        record.depth = range.depth;
        record.site = range.site;
        record.flags = range.flags & ~std::uint32_t{detail::kRecordAsync};
        if (range.end != 0) {
            const auto* const end = reinterpret_cast<const std::byte*>(&range.end);
            range.payload.insert(range.payload.end(), end, end + sizeof range.end);
            record.flags |= detail::kRecordAsync;
        }
        record.payload_bytes = static_cast<std::uint32_t>(range.payload.size());
        journal(JournalKind::OpenAtStop, record, range.payload);
    };
    // For every thread, also if the session follows tasks: the marks in the logs show which ranges belong to
    // it.
    for (const auto& entry : threads_) {
        for (OpenRange& range : open_ranges(*entry)) journal_open(range);
        journal_losses(*entry);
    }
    for (OpenRange& range : absent_open_ranges()) journal_open(range);
    if (const std::uint64_t lost = __atomic_load_n(&lost_outside_, __ATOMIC_RELAXED)) {
        detail::NoteRecord note{};
        note.code = names_.intern("lost_outside");
        note.text = names_.intern(
            "records were lost: their threads could not be registered, or they were made inside the "
            "recorder");
        note.count = lost;
        publish_names();
        journal(JournalKind::Note, note);
    }
    journal_clock();
    detail::SessionStopRecord record{};
    record.session = session.id;
    record.ticks = ticks;
    record.ceiling_reached = session.ceiling_reached ? 1 : 0;
    journal(JournalKind::SessionStop, record);
}

namespace {

LogSpan span_of(const Block& chunk) noexcept {
    LogSpan span;
    span.data = chunk.data();
    span.bytes = load_acquire(chunk.header->committed);
    span.thread = chunk.header->thread;
    span.sequence = chunk.header->sequence;
    span.base_ticks = chunk.header->base_ticks;
    span.pair = chunk.header->pair;
    return span;
}

}  // namespace

// The run-time names are added without the lock.
void Recorder::collect(SessionEntry& session, RawLog& log) noexcept {
    detail::FileHeader facts;
    fill_file_header(facts);
    log.pid = facts.pid;
    log.node = static_cast<std::int32_t>(facts.node);
    log.host = facts.host;
    log.executable = facts.executable;
    log.command_line.assign(facts.command_line, facts.command_line_bytes);
    while (!log.command_line.empty() && log.command_line.back() == '\0') log.command_line.pop_back();
    std::replace(log.command_line.begin(), log.command_line.end(), '\0', ' ');
    log.clock_source = Clock::source();
    log.ticks_per_second = Clock::ticks_per_second();
    // Open stacks before the log: a range that ends in between is then in both, never in neither.
    if (!session.is_closed) {
        log.end_ticks = Clock::now();
        for (const auto& entry : threads_) {
            std::vector<OpenRange> open = open_ranges(*entry);
            std::move(open.begin(), open.end(), std::back_inserter(log.open));
            journal_losses(*entry);
        }
        std::vector<OpenRange> absent = absent_open_ranges();
        std::move(absent.begin(), absent.end(), std::back_inserter(log.open));
        journal_clock();
    } else {
        log.end_ticks = session.end_ticks;
    }
    auto claims = std::make_shared<Claims>();
    claims->fork_generation = fork_generation_;
    claims->spool = spool_;
    log.spans.reserve(session.chunks.size());
    for (Block* chunk : session.chunks) {
        ++chunk->claims;
        claims->chunks.push_back(chunk);
        log.spans.push_back(span_of(*chunk));
    }
    log.keep_alive = std::move(claims);
    log.names = names_.stream();
    log.journal = journal_;
    log.finished = session.is_closed;
}

// ---- ending ----

void Recorder::finish_output(SessionEntry& session) noexcept {
    if (session.output_path.empty() || !spool_) return;
    const bool only = sessions_.size() == 1;
    const bool owner = spool_owner_ == session.id;
    if (owner && only && !spool_->is_temporary() && (spool_->is_in_place() || spool_->has_name()))
        return;  // forget() finishes it in place
    bool moved = false;
    try {
        if (owner && !spool_->is_temporary()) {
            if (spool_->is_in_place()) {
                spool_->move_aside();
                moved = spool_->is_temporary();
            } else {
                warn(session.output_path + ": removed while it was being recorded; writing it again");
            }
        }
        RawLog log;
        std::vector<CutChunk> chunks;
        for (const Block* chunk : session.chunks) {
            log.spans.push_back(span_of(*chunk));
            chunks.push_back({chunk, log.spans.back().bytes});
        }
        log.journal = journal_of(journal_, session.id);
        log.names = names_.stream();
        add_run_time_names(log);
        const std::string path = write_cut(session.output_path, log.names, log.journal, chunks);
        if (path != session.output_path)
            warn(session.output_path + ": already exists; the capture is " + path);
    } catch (const std::exception& error) {
        if (moved) spool_->move_back(session.output_path);
        // Then the spool is its capture, and keeps its chunks: they stay claimed.
        if (moved && !spool_->is_temporary()) {
            std::erase_if(session.chunks,
                          [this](const Block* chunk) { return chunk->store == &spool_->store(); });
        }
        warn(error.what());
    }
}

void Recorder::forget(std::uint64_t id) noexcept {
    SessionEntry* const session = find(id);
    if (session == nullptr) return;
    finish_output(*session);
    const std::shared_ptr<Spool> spool = spool_;  // mapped until its chunks are let go
    std::deque<Block*> chunks = std::move(session->chunks);
    const bool last = sessions_.size() == 1;
    if (last && spool_) close_spool();  // before its chunks are released: a finished file keeps them
    for (Block* chunk : chunks) release_chunk(chunk);
    std::erase_if(sessions_, [id](const auto& each) { return each->id == id; });
    if (last) {
        for (Block* chunk : leftover_chunks_) {
            chunk->is_open = false;
            if (chunk->claims == 0) chunk->store->free_block(chunk);
        }
        leftover_chunks_.clear();
        overwritten_.clear();
        journal_.clear();
        for (const auto& entry : threads_) {
            entry->in_journal = false;
            entry->chunks_taken = 0;
        }
        ahead_ = 2;
        memory_.decommit(kWarmBytes);
    }
    rearm();
}

void Recorder::close_spool() noexcept {
    std::erase_if(leftover_chunks_, [this](const Block* chunk) { return chunk->store == &spool_->store(); });
    for (const auto& entry : threads_) {
        if (entry->last_full != nullptr && entry->last_full->store == &spool_->store())
            entry->last_full = nullptr;
    }
    spool_->finish();
    spool_.reset();  // threads that still use it, and logs being read, keep it mapped
    spool_owner_ = 0;
}

bool Recorder::stop(std::uint64_t id, RawLog& log) {
    std::lock_guard source_lock(source_mutex_);
    flush_sources(records_devices(id));
    {
        std::unique_lock lock(mutex_);
        SessionEntry* const session = find(id);
        if (session == nullptr) return false;
        if (!session->is_closed) close_session(*session, Clock::now());
        wake().wait(lock, [this] { return !extending_; });
        collect(*session, log);
        forget(id);
    }
    notify_sources();
    add_run_time_names(log);
    return true;
}

bool Recorder::snapshot(std::uint64_t id, RawLog& log) {
    std::lock_guard source_lock(source_mutex_);
    flush_sources(false);
    {
        std::lock_guard lock(mutex_);
        SessionEntry* const session = find(id);
        if (session == nullptr) return false;
        collect(*session, log);
    }
    add_run_time_names(log);
    return true;
}

void Recorder::discard(std::uint64_t id) noexcept {
    std::lock_guard source_lock(source_mutex_);
    flush_sources(records_devices(id));
    {
        std::unique_lock lock(mutex_);
        SessionEntry* const session = find(id);
        if (session == nullptr) return;
        if (!session->is_closed) close_session(*session, Clock::now());
        wake().wait(lock, [this] { return !extending_; });
        forget(id);
    }
    notify_sources();
}

void Recorder::record_devices(std::uint64_t id, bool is_wanted) {
    std::lock_guard source_lock(source_mutex_);
    if (!is_wanted) flush_sources(true);
    {
        std::lock_guard lock(mutex_);
        SessionEntry* const session = find(id);
        if (session == nullptr) throw Error("this session is not running");
        session->pauses_devices = !is_wanted;
    }
    notify_sources();
}

bool Recorder::is_running(std::uint64_t id) noexcept {
    std::lock_guard lock(mutex_);
    return find(id) != nullptr;
}

void Recorder::finish_all() noexcept {
    std::vector<std::uint64_t> ids;
    {
        std::lock_guard lock(mutex_);
        for (const auto& session : sessions_) {
            if (!session->output_path.empty()) ids.push_back(session->id);
        }
    }
    for (const std::uint64_t id : ids) discard(id);
}

void Recorder::prepare_exit() noexcept {
    std::vector<std::uint64_t> cut;  // captures that are cut out of the spool
    {
        std::lock_guard lock(mutex_);
        for (const auto& session : sessions_) {
            if (!session->output_path.empty() && session->id != spool_owner_) cut.push_back(session->id);
        }
    }
    for (const std::uint64_t id : cut) discard(id);
    {
        std::lock_guard source_lock(source_mutex_);
        flush_sources(records_devices(spool_owner_));
        std::lock_guard lock(mutex_);
        is_exiting_ = spool_ && !spool_->is_temporary() && spool_->is_in_place() && sessions_.size() == 1;
        if (is_exiting_) {
            spool_->store().file().stop_reopening();
            for (const auto& source : sources_) source->needs_changed(RecordingNeeds{});
        }
    }
    if (!is_exiting_) return finish_all();
    // It calls functions that a preloaded library may have replaced, such as the clock's.
    std::unique_lock lock(mutex_);
    stop_background(lock);
}

void Recorder::finish_in_place() noexcept {
    if (!is_exiting_) prepare_exit();
    std::unique_lock lock(mutex_);
    SessionEntry* const session = find(spool_owner_);
    if (!is_exiting_ || session == nullptr) return;
    if (!session->is_closed) close_session(*session, Clock::now());
    rearm();
    wake().wait(lock, [this] { return !extending_; });
    spool_->finish();
}

// ---- sources ----

RecordingNeeds Recorder::needs() noexcept {
    std::lock_guard lock(mutex_);
    RecordingNeeds needs;
    for (const auto& session : sessions_) {
        if (session->is_closed) continue;
        needs.scopes |= session->options.scopes.bits();
        const std::uint32_t devices = session->pauses_devices ? 0 : session->device_types;
        needs.option_bits |= option_bits(session->options, devices);
        needs.device_types |= devices;
        needs.timed_devices |= devices & session->timed_devices;
        if (devices != 0) needs.device_activities |= session->options.device_activities;
        if (!session->options.with_stack) continue;
        try {
            needs.calls.push_back({session->id, session->options.calls});
        } catch (const std::bad_alloc&) {  // without memory for its filter there is none
            needs.calls.clear();
            return needs;
        }
    }
    return needs;
}

void Recorder::notify_sources() noexcept {
    if (sources_.empty()) return;
    const RecordingNeeds now = needs();
    for (const auto& source : sources_) source->needs_changed(now);
}

void Recorder::flush_sources(bool wait_for_devices) noexcept {
    for (const auto& source : sources_) source->flush(kFlushTimeoutNs, wait_for_devices);
}

bool Recorder::records_devices(std::uint64_t id) noexcept {
    std::lock_guard lock(mutex_);
    const SessionEntry* const session = find(id);
    return session != nullptr && !session->is_closed && session->device_types != 0;
}

void Recorder::add_source(std::shared_ptr<Source> source) {
    std::lock_guard source_lock(source_mutex_);
    source->needs_changed(needs());
    sources_.push_back(std::move(source));
}

}  // namespace marey
