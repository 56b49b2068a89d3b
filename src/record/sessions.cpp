// sessions.cpp: starting, ending and reading sessions. A session is a view: its marks, and its claims on
// chunks.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include <marey/control.h>
#include <marey/error.h>

#include "base/process_text.h"
#include "base/small_file.h"
#include "record/clocks/clock.h"
#include "record/devices/devices.h"
#include "record/nvtx_injection.h"
#include "record/process_identity.h"
#include "record/process_report.h"
#include "record/recorder.h"
#include "record/recorder_parts.h"
#include "record/stack_numbers.h"
#include "record/thread_log.h"

namespace marey {

using detail::JournalKind;

namespace {

constexpr std::uint64_t kFlushTimeoutNs = 2'000'000'000;

std::string absolute_path(const std::string& path) {
    if (path.starts_with('/')) return path;
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    return error ? path : absolute.string();
}

/// Whether the capture at `path` is of a process of the same tree, which may have ended.
bool is_of_own_tree(const std::string& path) {
    const std::string bytes = read_small_file(path.c_str(), sizeof(detail::FileHeader));
    detail::FileHeader header{};
    if (bytes.size() != sizeof header) return false;
    std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
    const ScopedLock lock(recorder_mutex);
    return std::memcmp(header.tree, process_identity().record.tree, sizeof header.tree) == 0;
}

}  // namespace

// ---- starting ----

// Its own file, if it is the first that needs one; else a name for what is cut out of that file when it ends.
void Recorder::open_output(SessionEntry& session) {
    if (!session.options.record_command_line) hide_command_line();
    if (session.options.output.empty()) return;
    session.output_path = absolute_path(session.options.output);
    if (!store_.spool) {
        store_.spool = Spool::create(session.output_path);
        store_.owner = session.id;
        session.output_path = store_.spool->path();
        journal_.begin_capture();
        return;
    }
    std::vector<std::string> claimed;
    for (const auto& other : sessions_.entries()) claimed.push_back(other->output_path);
    session.output_path = free_path(session.output_path, claimed);
}

Recorder::Started Recorder::start(const SessionOptions& options) {
    if (options.control) allow_control();
    if (options.sample != 0) sampling::register_source();
    const RequestedDevices devices = find_devices(
        options.devices, options.device_activities);  // loads and registers them: no lock is held
    const std::string nvtx_inactive = options.with_nvtx ? nvtx_inactive_reason() : std::string();
    // Before the locks: a forked child may start its environment session here.
    ThreadEntry* own = nullptr;
    if (options.threads == Threads::Tasks) {
        const ScopedEnable enabled;
        const SlowPath path(kNoRecord);
        if (const detail::ThreadState* const state = ready_thread())
            own = static_cast<ThreadEntry*>(state->owner);
    }
    const ScopedLock source_lock(source_mutex_);
    const std::span<const detail::CostRecord> costs = measured_costs();
    Started started{};
    std::shared_ptr<const ContextSessions> context;
    {
        const ScopedLock lock(recorder_mutex);
        if (disabled_)
            throw Error("this copy of Marey does not record: another copy is already loaded in this process");
        if (options.threads == Threads::Tasks && own == nullptr) throw Error("this thread cannot record");
        auto made = std::make_unique<SessionEntry>();
        SessionEntry& session = *made;
        session.id = sessions_.next_id();
        session.options = options;
        if (options.scopes.empty()) session.options.scopes = ScopeSet::all();
        if (options.last_ns != 0) session.options.policy = Policy::Ring;
        session.max_bytes = options.max_bytes;
        session.device_types = devices.types;
        session.timed_devices =
            (options.device_activities & kDeviceTimes) != 0 ? devices.types : devices.without_source;
        if (session.timed_devices != 0) session.options.device_activities |= kDeviceTimes;
        if (own != nullptr) {
            session.tasks_thread = own->id;
            session.tasks = std::make_shared<TaskSession>();
            session.tasks->session = session.id;
            session.tasks->armed = armed_bits(session.options);
        }
        const bool first = sessions_.entries().empty();
        if (first) {
            journal_.forget_notes();
            sessions_.begin_period();
        }
        open_output(session);
        if (first) {
            journal_.open();
            const ProcessIdentity& identity = process_identity();
            journal_.write(JournalKind::ProcessIdentity, identity.record,
                           std::as_bytes(identity.known_ancestors()));
            threads_.write_starts();
            journal_.write_costs(costs);
        }
        journal_.write_clock();
        session.start_ticks = Clock::now();
        for (const auto& entry : threads_.entries()) {
            if (entry->chunk != nullptr && entry->period == sessions_.period())
                SessionTable::claim(session, entry->chunk);
        }
        sessions_.claim_leftovers(session);
        // Earlier losses are not this session's losses.
        threads_.write_losses();
        detail::SessionStartRecord record{};
        record.session = session.id;
        record.ticks = session.start_ticks;
        record.max_bytes = session.max_bytes;
        record.scopes = session.options.scopes.bits();
        record.name = journal_.names().intern(options.name);
        record.thread = session.tasks_thread;
        record.option_bits = option_bits(session.options, devices.types);
        record.device_types = devices.types;
        record.policy = static_cast<std::uint32_t>(session.options.policy);
        journal_.publish_names();
        journal_.write(JournalKind::SessionStart, record);
        if (own != nullptr) context = sessions_.make_context(own->sessions, session);
        started = {session.id, session.output_path};
        sessions_.add(std::move(made));
        if (!nvtx_inactive.empty()) journal_.add_note("nvtx_not_listening", nvtx_inactive);
        rearm();
        background_.start();
    }
    if (context != nullptr) {
        enter_sessions(context.get());
        if (own->sessions == context.get()) own->sessions_owner = std::move(context);
    }
    notify_sources();
    for (const std::string& problem : devices.problems) journal_.note("device_unavailable", problem);
    return started;
}

bool Recorder::continue_for_environment(const SessionOptions& options) {
    const ScopedLock source_lock(source_mutex_);
    {
        const ScopedLock lock(recorder_mutex);
        SessionEntry* const running = sessions_.find(environment_session_);
        if (running == nullptr) return false;
        running->options.scopes = options.scopes.empty() ? ScopeSet::all() : options.scopes;
        rearm();
    }
    notify_sources();
    return true;
}

void Recorder::start_for_environment(const SessionOptions& options) {
    if (continue_for_environment(options)) return;
    const Started started = start(options);
    // The captures of a program's other processes are named like this too, while the first one still runs.
    const bool is_child = [] {
        const ScopedLock lock(recorder_mutex);
        return is_forked_process();
    }();
    if (started.output_path != options.output && !is_child && !is_being_recorded(options.output) &&
        !is_of_own_tree(options.output))
        warn(options.output + ": already exists, from an earlier run; this run's capture is " +
             started.output_path);
    const ScopedLock lock(recorder_mutex);
    environment_session_ = started.id;
    SessionEntry* const session = sessions_.find(started.id);
    if (session == nullptr) return;
    // As PyTorch's traces have it, so that readers notice a rank whose capture is absent.
    if (const auto [rank, size] = environment_rank_and_size(); size > 0) {
        const std::string info =
            "{\"rank\":" + std::to_string(rank) + ",\"world_size\":" + std::to_string(size) + "}";
        journal_.write_fact(started.id, "distributedInfo", std::as_bytes(std::span(info)));
    }
    std::string problem;
    const std::string tree = tree_text(process_identity().record.tree);
    if (ledger_.open(tree, problem)) {
        session->ledger = &ledger_;
        ledger_.add(session->claimed_bytes);
        report_process(tree, started.output_path);
    } else if (!problem.empty()) {
        journal_.add_note("ledger_damaged", problem);
    }
}

// ---- reading and ending ----

void Recorder::close_session(SessionEntry& session, std::uint64_t ticks) noexcept {
    session.is_closed = true;
    if (session.tasks != nullptr) session.tasks->is_closed.store(true, std::memory_order_relaxed);
    session.end_ticks = ticks;
    // For every thread, also if the session follows tasks: the marks in the logs show which ranges belong to
    // it.
    for (OpenRange& range : threads_.open_ranges()) {
        const detail::OpenAtStopRecord record = open_at_stop(session.id, range);
        journal_.write(JournalKind::OpenAtStop, record, range.payload);
    }
    threads_.write_losses();
    journal_.write_overwritten(session.id);
    if (const std::uint64_t lost = lost_outside_.load(std::memory_order_relaxed)) {
        journal_.write_note(
            "lost_outside",
            "records were lost: their threads could not be registered, or they were made inside the "
            "recorder",
            lost);
    }
    journal_.write_clock();
    detail::SessionStopRecord record{};
    record.session = session.id;
    record.ticks = ticks;
    record.size_limit_reached = session.size_limit_reached ? 1 : 0;
    journal_.write(JournalKind::SessionStop, record);
}

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
        log.open = threads_.open_ranges();
        threads_.write_losses();
        journal_.write_overwritten(session.id);
        journal_.write_clock();
    } else {
        log.end_ticks = session.end_ticks;
    }
    sessions_.hold(session, log);
    log.names = journal_.names().stream();
    log.journal = journal_.bytes();
    log.finished = session.is_closed;
}

void Recorder::finish_output(SessionEntry& session) noexcept {
    if (session.output_path.empty() || !store_.spool) return;
    const bool only = sessions_.entries().size() == 1;
    const bool owner = store_.owner == session.id;
    if (owner && only && !store_.spool->is_temporary() &&
        (store_.spool->is_in_place() || store_.spool->has_name()))
        return;  // forget() finishes it in place
    bool moved = false;
    try {
        if (owner && !store_.spool->is_temporary()) {
            if (store_.spool->is_in_place()) {
                store_.spool->move_aside();
                moved = store_.spool->is_temporary();
            } else {
                warn(session.output_path + ": removed while it was being recorded; writing it again");
            }
        }
        RawLog log;
        for (const Block* chunk : session.chunks) log.spans.push_back(span_of(*chunk));
        log.journal = journal_.bytes_of(session.id);
        log.names = journal_.names().stream();
        journal_.add_run_time_names(log);
        const std::string path = write_cut(session.output_path, log.names, log.journal, log.spans);
        if (path != session.output_path)
            warn(session.output_path + ": already exists; the capture is " + path);
    } catch (const std::exception& error) {
        if (moved) store_.spool->move_back(session.output_path);
        // Then the spool is its capture, and keeps its chunks: they stay claimed.
        if (moved && !store_.spool->is_temporary()) {
            const BlockStore& spooled = store_.spool->store();
            std::erase_if(session.chunks, [&](const Block* chunk) { return chunk->store == &spooled; });
        }
        warn(error.what());
    }
}

void Recorder::forget(SessionEntry& session) noexcept {
    finish_output(session);
    const std::shared_ptr<Spool> spool = store_.spool;  // mapped until its chunks are let go
    const bool last = sessions_.entries().size() == 1;
    if (last && store_.spool) close_spool();  // before its chunks are released: a finished file keeps them
    sessions_.remove(session.id);
    if (last) {
        journal_.close();
        threads_.reset();
        background_.reset();
    }
    rearm();
}

void Recorder::close_spool() noexcept {
    sessions_.forget_spool();
    threads_.forget_spool();
    // A thread that is stopped where it writes keeps the capture mapped.
    if (!stack_numbers().end_mirror()) new std::shared_ptr<Spool>(store_.spool);  // NOLINT
    store_.spool->finish();
    store_.spool.reset();  // threads that still use it, and logs being read, keep it mapped
    store_.owner = 0;
}

bool Recorder::end_session(std::uint64_t id, RawLog* log) noexcept {
    const ScopedLock source_lock(source_mutex_);
    // Nobody reads a discarded session. Taking CUPTI's buffers from it would make the next calls slow.
    if (log != nullptr || sessions_.writes_file(id)) flush_sources(sessions_.records_devices(id));
    {
        const ScopedLock lock(recorder_mutex);
        SessionEntry* const session = sessions_.find(id);
        if (session == nullptr) return false;
        if (!session->is_closed) close_session(*session, Clock::now());
        background_.wait_for_extension();
        if (log != nullptr) collect(*session, *log);
        forget(*session);
    }
    notify_sources();
    return true;
}

bool Recorder::stop(std::uint64_t id, RawLog& log) {
    const bool is_known = end_session(id, &log);
    if (is_known) journal_.add_run_time_names(log);
    return is_known;
}

void Recorder::discard(std::uint64_t id) noexcept {
    end_session(id, nullptr);
}

bool Recorder::snapshot(std::uint64_t id, RawLog& log) {
    const ScopedLock source_lock(source_mutex_);
    flush_sources(false);
    {
        const ScopedLock lock(recorder_mutex);
        SessionEntry* const session = sessions_.find(id);
        if (session == nullptr) return false;
        collect(*session, log);
        log.journal = journal_.bytes_of(id);
    }
    journal_.add_run_time_names(log);
    return true;
}

void Recorder::record_devices(std::uint64_t id, bool is_wanted) {
    const ScopedLock source_lock(source_mutex_);
    if (!is_wanted) flush_sources(true);
    {
        const ScopedLock lock(recorder_mutex);
        SessionEntry* const session = sessions_.find(id);
        if (session == nullptr) throw Error("this session is not running");
        session->pauses_devices = !is_wanted;
    }
    notify_sources();
}

// ---- the end of the process ----

void Recorder::finish_all() noexcept {
    std::vector<std::uint64_t> ids;
    {
        const ScopedLock lock(recorder_mutex);
        for (const auto& session : sessions_.entries()) {
            if (!session->output_path.empty()) ids.push_back(session->id);
        }
    }
    for (const std::uint64_t id : ids) discard(id);
}

void Recorder::prepare_exit() noexcept {
    std::vector<std::uint64_t> cut;  // captures that are cut out of the spool
    std::uint64_t in_place = 0;
    {
        const ScopedLock lock(recorder_mutex);
        in_place = store_.owner;
        for (const auto& session : sessions_.entries()) {
            if (!session->output_path.empty() && session->id != in_place) cut.push_back(session->id);
        }
    }
    for (const std::uint64_t id : cut) discard(id);
    {
        const ScopedLock source_lock(source_mutex_);
        flush_sources(sessions_.records_devices(in_place));
        const ScopedLock lock(recorder_mutex);
        is_exiting_ = store_.spool && !store_.spool->is_temporary() && store_.spool->is_in_place() &&
                      sessions_.entries().size() == 1;
        if (is_exiting_) {
            store_.spool->store().file().stop_reopening();
            recorder_mutex.unlock();  // sources take it while they hold locks of their own
            for (const auto& source : sources_) source->needs_changed(RecordingNeeds{});
            recorder_mutex.lock();
            // It calls functions that a preloaded library may have replaced, such as the clock's.
            background_.stop_for_good();
            return;
        }
    }
    finish_all();
}

void Recorder::finish_in_place() noexcept {
    const ScopedLock lock(recorder_mutex);
    if (!is_exiting_) {
        recorder_mutex.unlock();
        prepare_exit();
        recorder_mutex.lock();
    }
    SessionEntry* const session = sessions_.find(store_.owner);
    if (!is_exiting_ || session == nullptr) return;
    if (!session->is_closed) close_session(*session, Clock::now());
    rearm();
    background_.wait_for_extension();
    store_.spool->finish();
}

// ---- sources ----

void Recorder::notify_sources() noexcept {
    if (sources_.empty()) return;
    const RecordingNeeds now = sessions_.needs();
    for (const auto& source : sources_) source->needs_changed(now);
}

void Recorder::flush_sources(bool wait_for_devices) noexcept {
    for (const auto& source : sources_) source->flush(kFlushTimeoutNs, wait_for_devices);
}

void Recorder::add_source(std::shared_ptr<Source> source) {
    const ScopedLock source_lock(source_mutex_);
    source->needs_changed(sessions_.needs());
    sources_.push_back(std::move(source));
}

}  // namespace marey
