// session_table.cpp: looking sessions up, adding data to them, and handing out chunks against their claims.
#include "record/session_table.h"

#include <algorithm>
#include <new>
#include <utility>

#include <marey/error.h>

#include "record/clocks/clock.h"
#include "record/devices/devices.h"
#include "record/thread_log.h"
#include "record/thread_registry.h"

namespace marey {

using detail::BlockHeader;
using detail::BlockKind;
using detail::kBlockBytes;
using detail::load_relaxed;
using detail::ThreadState;

namespace {

// How much memory of logs is kept for the next session when the last one has ended.
constexpr std::size_t kWarmBytes = std::size_t{2} << 20;

}  // namespace

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
    if (options.sample != 0) bits |= detail::kOptionSamples;
    return bits;
}

LogSpan span_of(const Block& chunk) noexcept {
    LogSpan span;
    span.data = chunk.data();
    span.bytes = detail::load_acquire(chunk.header->committed);
    span.thread = chunk.header->thread;
    span.sequence = chunk.header->sequence;
    span.base_ticks = chunk.header->base_ticks;
    span.pair = chunk.header->pair;
    return span;
}

// ---- sessions ----

SessionEntry* SessionTable::find(std::uint64_t id) noexcept {
    for (const auto& session : entries_) {
        if (session->id == id) return session.get();
    }
    return nullptr;
}

bool SessionTable::is_any_open() const noexcept {
    return std::any_of(entries_.begin(), entries_.end(),
                       [](const auto& session) { return !session->is_closed; });
}

bool SessionTable::is_running(std::uint64_t id) noexcept {
    const ScopedLock lock(recorder_mutex);
    return find(id) != nullptr;
}

void SessionTable::add(std::unique_ptr<SessionEntry> session) {
    entries_.push_back(std::move(session));
}

void SessionTable::remove(std::uint64_t id) noexcept {
    SessionEntry* const session = find(id);
    for (Block* chunk : session->chunks) release(chunk);
    std::erase_if(entries_, [id](const auto& each) { return each->id == id; });
    if (!entries_.empty()) return;
    for (Block* chunk : leftovers_) {
        chunk->is_open = false;
        if (chunk->claims == 0) chunk->store->free_block(chunk);
    }
    leftovers_.clear();
    store_.memory.decommit(kWarmBytes);
}

std::shared_ptr<const ContextSessions> SessionTable::make_context(const ContextSessions* outer,
                                                                  const SessionEntry& session) {
    auto made = std::make_shared<ContextSessions>();
    made->id = next_context_++;
    if (outer = settled(outer); outer != nullptr) {
        made->outer = outer->shared_from_this();
        std::copy_if(outer->members.begin(), outer->members.end(), std::back_inserter(made->members),
                     [](const auto& member) { return !member->is_closed.load(std::memory_order_relaxed); });
    }
    made->members.push_back(session.tasks);
    std::vector<std::uint64_t> ids;
    for (const auto& member : made->members) ids.push_back(member->session);
    detail::ContextRecord record{};
    record.context = made->id;
    record.count = ids.size();
    journal_.write(detail::JournalKind::Context, record, std::as_bytes(std::span(ids)));
    return made;
}

SessionOptions SessionTable::active_options() noexcept {
    SessionOptions all;
    all.scopes = ScopeSet();
    all.max_bytes = 0;
    all.record_values = false;
    all.threads = Threads::Tasks;
    const ScopedLock lock(recorder_mutex);
    const auto* const entry = static_cast<const ThreadEntry*>(calling_thread()->owner);
    const ContextSessions* const sessions = entry != nullptr ? entry->sessions : nullptr;
    for (const auto& session : entries_) {
        if (session->is_closed) continue;
        if (session->tasks != nullptr && (sessions == nullptr || !sessions->holds(*session->tasks))) continue;
        const SessionOptions& options = session->options;
        if (session->tasks == nullptr) all.threads = Threads::All;
        all.scopes = ScopeSet::from_bits(all.scopes.bits() | options.scopes.bits());
        all.max_bytes = std::max(all.max_bytes, options.max_bytes);
        for (const SessionOption& option : kSessionOptions) {
            if (const auto* const its = std::get_if<bool SessionOptions::*>(&option.member))
                all.*(*its) |= options.*(*its);
        }
    }
    return all;
}

// ---- for sources ----

RecordingNeeds SessionTable::needs() noexcept {
    const ScopedLock lock(recorder_mutex);
    RecordingNeeds needs;
    for (const auto& session : entries_) {
        if (session->is_closed) continue;
        needs.scopes |= session->options.scopes.bits();
        const std::uint32_t devices = session->pauses_devices ? 0 : session->device_types;
        needs.option_bits |= option_bits(session->options, devices);
        needs.device_types |= devices;
        needs.sample_rate = std::max(needs.sample_rate, session->options.sample);
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

bool SessionTable::records_devices(std::uint64_t id) noexcept {
    const ScopedLock lock(recorder_mutex);
    const SessionEntry* const session = find(id);
    return session != nullptr && !session->is_closed && session->device_types != 0;
}

bool SessionTable::writes_file(std::uint64_t id) noexcept {
    const ScopedLock lock(recorder_mutex);
    const SessionEntry* const session = find(id);
    return session != nullptr && !session->output_path.empty();
}

// ---- data added from outside ----

void SessionTable::add_remote_events(std::uint64_t id, detail::RemoteEventsRecord record,
                                     std::string_view prefix, std::span<const std::byte> message) {
    const ScopedLock lock(recorder_mutex);
    SessionEntry* const session = find(id);
    if (session == nullptr || session->is_closed)
        throw Error("events cannot be added to a session that is not running");
    // A message is never dropped in part: it is refused if it does not fit, while its owner can still react.
    if (message.size() > session->max_bytes - std::min(session->max_bytes, session->remote_bytes))
        throw Error("events cannot be added: " + std::to_string(message.size()) +
                    " more bytes would exceed the session's max_bytes");
    record.session = id;
    record.prefix = journal_.names().intern(prefix);
    record.message_bytes = static_cast<std::uint32_t>(message.size());
    journal_.publish_names();
    journal_.write(detail::JournalKind::RemoteEvents, record, message);
    session->remote_bytes += message.size();
}

void SessionTable::add_metadata(std::uint64_t id, std::string_view key, std::span<const std::byte> json) {
    const ScopedLock lock(recorder_mutex);
    const SessionEntry* const session = find(id);
    if (session == nullptr || session->is_closed)
        throw Error("metadata cannot be added to a session that is not running");
    journal_.write_fact(id, key, json);
}

void SessionTable::add_device_fact(DeviceType type, std::string_view key, std::string_view json) noexcept {
    const ScopedLock lock(recorder_mutex);
    try {
        for (const auto& session : entries_) {
            if (session->is_closed || (session->device_types & device_bit(type)) == 0) continue;
            std::string& known_json = session->device_facts[std::string(key)];
            if (known_json == json) continue;
            known_json = json;
            journal_.write_fact(session->id, key, std::as_bytes(std::span(json)));
        }
    } catch (const std::bad_alloc&) {  // continue without it
    }
}

// ---- chunks ----

bool SessionTable::has_recorded() const noexcept {
    return std::any_of(entries_.begin(), entries_.end(),
                       [](const auto& session) { return !session->is_closed && !session->chunks.empty(); });
}

std::uint64_t SessionTable::claimable_bytes() const noexcept {
    std::uint64_t most = 0;
    for (const auto& session : entries_) {
        if (session->claims_chunks() && session->claimed_bytes < session->max_bytes)
            most = std::max(most, session->max_bytes - session->claimed_bytes);
    }
    return most;
}

std::uint64_t SessionTable::size_limit() const noexcept {
    std::uint64_t highest = 0;
    for (const auto& session : entries_) {
        if (!session->is_closed) highest = std::max(highest, session->max_bytes);
    }
    return highest;
}

void SessionTable::claim(SessionEntry& session, Block* chunk) {
    session.chunks.push_back(chunk);
    session.claimed_bytes += chunk->blocks * kBlockBytes;
    if (session.ledger != nullptr) session.ledger->add(chunk->blocks * kBlockBytes);
    ++chunk->claims;
}

void SessionTable::claim_leftovers(SessionEntry& session) {
    for (Block* chunk : leftovers_) claim(session, chunk);
}

bool SessionTable::give(ThreadEntry& entry, Block* chunk, std::uint64_t ticks) noexcept {
    BlockHeader& header = *chunk->header;
    header.thread = entry.id;
    header.sequence = next_sequence_++;
    header.base_ticks = ticks;
    header.pair = Clock::pair();
    header.previous = entry.state->newest_chunk;
    for (const auto& session : entries_) {
        if (session->claims_chunks()) claim(*session, chunk);
    }
    if (chunk->claims == 0) {  // the last session ended while space was made
        chunk->store->free_block(chunk);
        return false;
    }
    chunk->is_open = true;
    detail::store_release(header.kind, static_cast<std::uint16_t>(BlockKind::Log));
    install(entry, chunk);
    return true;
}

bool SessionTable::give_leftover(ThreadEntry& entry, std::size_t bytes) noexcept {
    if (entry.chunks_taken != 0 || leftovers_.empty()) return false;
    Block* const chunk = leftovers_.back();
    const std::size_t left = chunk->capacity() - load_relaxed(chunk->header->committed);
    if (chunk->store != &store_.current() || left < bytes + 2 * sizeof(detail::LongRecord)) return false;
    leftovers_.pop_back();
    install(entry, chunk);
    detail::LongRecord* const record = append_long(*entry.state, detail::RecordKind::ThreadSwitch, 0);
    record->time = entry.birth;
    record->word2 = entry.id;
    commit(*entry.state);
    return true;
}

void SessionTable::install(ThreadEntry& entry, Block* chunk) noexcept {
    ThreadState& state = *entry.state;
    entry.chunk = chunk;
    ++entry.chunks_taken;
    entry.chunk_spool = chunk->store == &store_.memory ? nullptr : store_.spool;
    detail::store_relaxed(state.newest_chunk, detail::chunk_name(chunk->header->sequence, chunk->place));
    state.chunk_data = chunk->data();
    state.committed = &chunk->header->committed;
    state.base_ticks = chunk->header->base_ticks;
    state.cursor = chunk->data() + load_relaxed(chunk->header->committed);
    state.limit = chunk->data() + chunk->capacity() / detail::kRecordUnit * detail::kRecordUnit;
}

void SessionTable::remember_last_full(ThreadEntry& entry, Block* chunk) noexcept {
    Block* const before = std::exchange(entry.last_full, chunk);
    // It may have been returned since, and belong to another thread.
    if (before != nullptr && before->last_full_of == entry.id) before->last_full_of = 0;
    if (chunk != nullptr) chunk->last_full_of = entry.id;
}

void SessionTable::leave(ThreadEntry& entry, bool reusable) noexcept {
    Block* const chunk = std::exchange(entry.chunk, nullptr);
    ThreadState& state = *entry.state;
    state.cursor = state.limit = nullptr;
    if (chunk == nullptr) return;
    chunk->left_ticks = Clock::now();
    // Not a chunk of a finished file: its blocks go with the last thread that uses it.
    const bool stays = chunk->store == &store_.memory || chunk->store == &store_.current();
    remember_last_full(entry, stays ? chunk : nullptr);
    const std::size_t left = chunk->capacity() - load_relaxed(chunk->header->committed);
    // An earlier chunk may still be claimed by a reader; the running sessions do not claim it.
    const bool is_claimed = chunk->claims != 0 && entry.period == period_ && is_any_open();
    if (reusable && chunk->store == &store_.current() && is_claimed && left >= 256) {
        leftovers_.push_back(chunk);  // the next new thread continues in it
        entry.chunk_spool.reset();
        return;
    }
    chunk->is_open = false;
    if (chunk->claims == 0) chunk->store->free_block(chunk);
    entry.chunk_spool.reset();
}

void SessionTable::release(Block* chunk) noexcept {
    if (--chunk->claims == 0 && !chunk->is_open) {
        chunk->store->free_block(chunk);
        space_may_be_free();
    }
}

// The oldest chunk that may be overwritten. Every living thread keeps the chunk that it fills and the one
// before, so that a thread that gets no core, or sleeps, still has its last records.
bool SessionTable::evict_oldest(SessionEntry& session, std::uint64_t until) noexcept {
    auto leftover = leftovers_.end();
    const auto oldest = std::find_if(session.chunks.begin(), session.chunks.end(),
                                     [&](Block* chunk) MAREY_REQUIRES(recorder_mutex) {
                                         if (!chunk->is_open) return chunk->last_full_of == 0;
                                         leftover = std::find(leftovers_.begin(), leftovers_.end(), chunk);
                                         return leftover != leftovers_.end();
                                     });
    if (oldest == session.chunks.end() || (*oldest)->left_ticks >= until) return false;
    if (leftover != leftovers_.end()) {
        (*leftover)->is_open = false;
        leftovers_.erase(leftover);
    }
    Block* const chunk = *oldest;
    session.chunks.erase(oldest);
    session.claimed_bytes -= chunk->blocks * kBlockBytes;
    if (session.ledger != nullptr) session.ledger->subtract(chunk->blocks * kBlockBytes);
    journal_.count_overwritten(session.id, chunk->header->thread);
    // Others may still claim it; the file has lost it now, so that the rest of the thread has no holes.
    if (session.id == store_.owner && chunk->store == &store_.spool->store()) chunk->store->hide(chunk);
    release(chunk);
    return true;
}

void SessionTable::evict_expired() noexcept {
    for (const auto& session : entries_) {
        if (session->options.last_ns == 0 || session->is_closed) continue;
        const auto last = static_cast<std::uint64_t>(static_cast<double>(session->options.last_ns) / 1e9 *
                                                     Clock::ticks_per_second());
        const std::uint64_t now = Clock::now();
        while (last < now && evict_oldest(*session, now - last)) {
        }
    }
}

struct SessionTable::Claims {
    SessionTable& table;
    std::uint64_t forks;
    std::shared_ptr<Spool> spool;
    std::vector<Block*> chunks;

    Claims(SessionTable& from, std::uint64_t made_after_forks, std::shared_ptr<Spool> mapped) noexcept
        : table(from), forks(made_after_forks), spool(std::move(mapped)) {}
    Claims(const Claims&) = delete;
    Claims& operator=(const Claims&) = delete;
    ~Claims() {
        const ScopedLock lock(recorder_mutex);
        if (forks != table.forks_) return;  // the parent's chunks do not exist here
        for (Block* chunk : chunks) table.release(chunk);
        if (table.entries_.empty()) table.store_.memory.decommit(kWarmBytes);
    }
};

void SessionTable::hold(const SessionEntry& session, RawLog& log) {
    auto claims = std::make_shared<Claims>(*this, forks_, store_.spool);
    log.spans.reserve(session.chunks.size());
    for (Block* chunk : session.chunks) {
        ++chunk->claims;
        claims->chunks.push_back(chunk);
        log.spans.push_back(span_of(*chunk));
    }
    log.keep_alive = std::move(claims);
}

void SessionTable::forget_spool() noexcept {
    std::erase_if(leftovers_, [this](const Block* chunk) MAREY_REQUIRES(recorder_mutex) {
        return chunk->store == &store_.spool->store();
    });
}

void SessionTable::forked() noexcept {
    ++forks_;
    std::vector<Block*> chunks;
    for (const auto& session : entries_) {
        if (session->tasks != nullptr) session->tasks->is_closed.store(true, std::memory_order_relaxed);
        for (Block* chunk : session->chunks) {
            if (chunk->store != &store_.memory) continue;
            chunk->is_open = false;
            chunk->claims = 1;
            chunks.push_back(chunk);
        }
    }
    entries_.clear();
    leftovers_.clear();
    std::sort(chunks.begin(), chunks.end());
    chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
    for (Block* chunk : chunks) release(chunk);
}

}  // namespace marey
