// log_fixture.h: for tests: handwritten logs, with given ticks, as a RawLog or as the bytes of a capture.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <marey/detail/log_format.h>
#include <marey/detail/thread_state.h>
#include <marey/scope.h>
#include <marey/trace.h>
#include <marey/value.h>

#include "record/raw_log.h"

namespace marey::testing {

/// Bytes that plain structs are appended to.
class ByteList {
  public:
    template <class T>
    requires std::is_trivially_copyable_v<T>
    void add(const T& value) { add_bytes(&value, sizeof value); }
    void add_bytes(const void* data, std::size_t count) {
        const auto* const first = static_cast<const std::byte*>(data);
        bytes_.insert(bytes_.end(), first, first + count);
    }
    void pad(std::size_t unit) { bytes_.resize((bytes_.size() + unit - 1) / unit * unit); }
    const std::vector<std::byte>& bytes() const { return bytes_; }
    std::vector<std::byte>& bytes() { return bytes_; }
    std::size_t size() const { return bytes_.size(); }

  private:
    std::vector<std::byte> bytes_;
};

class LogWriter;

/// An array as Values writes it.
struct ArraySpec {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides = {};  ///< none, or as many as sizes
    DType dtype = DType::Float32;
    Layout layout = Layout::Strided;
    Device device = {};
    bool is_defined = true;
    std::uint64_t storage = 0;
    std::uint64_t storage_id = 0;
    std::uint32_t flags = 0;  ///< more of ArrayFlags
};

/// The values of a range or instant: `log.values().integer("n", 3).text("file", "a.txt")`.
class Values {
  public:
    explicit Values(LogWriter& log) : log_(&log) {}
    /// The next value is an input, or an output.
    Values& input() { return flag(detail::kValueInput); }
    Values& output() { return flag(detail::kValueOutput); }

    Values& boolean(std::string_view key, bool value) { return scalar(key, 1, value ? 1 : 0); }
    Values& integer(std::string_view key, std::int64_t value) {
        return scalar(key, 2, static_cast<std::uint64_t>(value));
    }
    Values& real(std::string_view key, double value) {
        std::uint64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        return scalar(key, 3, bits);
    }
    Values& text(std::string_view key, std::string_view value, bool truncated = false) {
        header(key, 4, truncated, value.size());
        list_.add_bytes(value.data(), value.size());
        list_.pad(8);
        return *this;
    }
    /// The next `count` values, given with the key "", are its items.
    Values& list(std::string_view key, std::size_t count, bool truncated = false) {
        header(key, 5, truncated, count);
        return *this;
    }
    Values& array(std::string_view key, const ArraySpec& array) {
        header(key, 6, false, array.sizes.size());
        const std::uint32_t flags = array.flags | (array.strides.empty() ? 0 : detail::kArrayStrides) |
                                    (array.is_defined ? 0 : detail::kArrayUndefined);
        list_.add(detail::ArrayHeader{
            static_cast<std::uint8_t>(array.dtype), static_cast<std::uint8_t>(array.layout),
            static_cast<std::uint8_t>(array.device.type), static_cast<std::uint8_t>(flags),
            array.device.index, array.storage, array.storage_id});
        list_.add_bytes(array.sizes.data(), array.sizes.size() * sizeof(std::int64_t));
        list_.add_bytes(array.strides.data(), array.strides.size() * sizeof(std::int64_t));
        return *this;
    }
    Values& none(std::string_view key, ValueKind left_out = ValueKind::None) {
        header(key, 0, false, static_cast<std::size_t>(left_out));
        return *this;
    }
    /// Facts about the range itself.
    Values& facts(std::int64_t sequence, std::uint64_t forward_thread = 0, std::uint64_t id = 0) {
        header("", detail::kValueFacts, false, 0);
        list_.add(detail::RangeProperties{sequence, forward_thread, id});
        return *this;
    }
    /// Where it began, the innermost frame first: words as log_format.h has them.
    Values& stack(const std::vector<std::uint64_t>& frames, bool truncated = false) {
        header("", detail::kValueStack, truncated, frames.size());
        list_.add_bytes(frames.data(), frames.size() * sizeof(std::uint64_t));
        return *this;
    }
    /// Values that were encoded elsewhere.
    Values& raw(std::span<const std::byte> bytes) {
        list_.add_bytes(bytes.data(), bytes.size());
        return *this;
    }
    const std::vector<std::byte>& bytes() const { return list_.bytes(); }

  private:
    inline void header(std::string_view key, int kind, bool truncated, std::size_t count);
    Values& flag(std::uint8_t flag) {
        next_flags_ |= flag;
        return *this;
    }
    Values& scalar(std::string_view key, int kind, std::uint64_t bits) {
        header(key, kind, false, 0);
        list_.add(bits);
        return *this;
    }
    LogWriter* log_;
    ByteList list_;
    std::uint8_t next_flags_ = 0;
};

/// A chunk of a thread's log.
struct Chunk {
    std::uint32_t thread = 0;
    std::uint64_t sequence = 0;
    std::uint64_t base_ticks = 0;
    detail::ClockPair pair;
    ByteList records;
};

/// One thread's log. Times are ticks; records are given in the order of their ends, as a recorder would write
/// them.
class ThreadLog {
  public:
    ThreadLog(LogWriter& log, std::uint32_t id) : log_(&log), id_(id) {}

    /// A closed scope; compact where it fits.
    inline ThreadLog& range(std::string_view name, std::uint64_t start, std::uint64_t end,
                            std::uint32_t depth, Scope scope = Scope::User);
    inline ThreadLog& long_range(std::string_view name, std::uint64_t start, std::uint64_t end,
                                 std::uint32_t depth, int flags = 0,
                                 const std::vector<std::byte>& payload = {}, Scope scope = Scope::User);
    /// A range of less than 2^32 ticks, with a number.
    ThreadLog& sequenced_range(std::string_view name, std::uint64_t start, std::uint64_t end,
                               std::uint32_t depth, std::uint32_t sequence, std::uint32_t forward_thread = 0,
                               Scope scope = Scope::User);
    inline ThreadLog& instant(std::string_view name, std::uint64_t time);
    inline ThreadLog& long_instant(std::string_view name, std::uint64_t time,
                                   const std::vector<std::byte>& payload);
    inline ThreadLog& counter(std::string_view name, std::uint64_t time, double value);
    inline ThreadLog& integer_counter(std::string_view name, std::uint64_t time, std::int64_t value);
    inline ThreadLog& async_begin(std::uint64_t id, std::string_view name, std::uint64_t time,
                                  std::uint32_t depth, const std::vector<std::byte>& payload = {});
    /// A movable range that is shortened where calls cross it.
    inline ThreadLog& step_begin(std::uint64_t id, std::string_view name, std::uint64_t time,
                                 std::uint32_t depth);
    inline ThreadLog& async_end(std::uint64_t id, std::uint64_t time, std::uint32_t depth);
    /// As recorders write it: with the name and the start, in case the begin is lost.
    inline ThreadLog& async_end_of(std::uint64_t id, std::string_view name, std::uint64_t start,
                                   std::uint64_t time, std::uint32_t depth);
    ThreadLog& dropped(std::uint64_t count, std::uint32_t min_depth, std::uint64_t time = 0) {
        return put(detail::RecordKind::Dropped, 0, 0, time, count, min_depth);
    }
    ThreadLog& mark(std::uint64_t context, std::uint64_t time, std::uint32_t depth = 0) {
        return put(detail::RecordKind::ContextMark, 0, 0, time, context, depth);
    }
    ThreadLog& adopted(std::uint64_t time, std::uint32_t depth, std::uint64_t count) {
        return put(detail::RecordKind::Adopted, 0, 0, time, count, depth);
    }
    /// The following records in this chunk belong to another thread; continue with the returned object.
    ThreadLog& switch_to(std::uint32_t thread, std::uint64_t birth) {
        return put(detail::RecordKind::ThreadSwitch, 0, 0, birth, thread, 0);
    }
    ThreadLog& blob(std::uint64_t tag, const std::vector<std::byte>& payload, std::uint64_t time = 0) {
        return put(detail::RecordKind::Blob, 0, 0, time, tag, 0, payload);
    }
    inline ThreadLog& memory(std::uint64_t time, std::uint64_t address, std::int64_t bytes,
                             std::int64_t total_allocated = 0, std::int64_t total_reserved = 0,
                             Device device = {}, bool out_of_memory = false);
    /// A record of any kind, known or not.
    inline ThreadLog& put(detail::RecordKind kind, int flags, std::uint32_t site, std::uint64_t time,
                          std::uint64_t word2, std::uint32_t depth,
                          const std::vector<std::byte>& payload = {});
    inline ThreadLog& compact(std::uint8_t kind, std::uint32_t site, std::uint64_t start, std::uint64_t end,
                              std::uint32_t depth);
    /// The range that comes next, which began at `start`, is part of a call.
    inline ThreadLog& part(std::uint64_t start, std::uint64_t call, int flags);
    /// A further part of a call, whose Part is at `place` in this chunk.
    inline ThreadLog& resumed(std::uint64_t start, std::uint64_t end, std::uint32_t depth, std::size_t place,
                              bool is_last);
    /// Where the next record goes.
    std::size_t place() { return chunk().records.bytes().size() / detail::kRecordUnit; }
    /// The records that follow are in a new chunk.
    inline ThreadLog& next_chunk(std::uint64_t base_ticks = 0, detail::ClockPair pair = {});
    /// Open in a program that was killed (or is being read).
    inline ThreadLog& open(std::string_view name, std::uint64_t start, std::uint32_t depth,
                           const std::vector<std::byte>& payload = {});

  private:
    inline Chunk& chunk();
    LogWriter* log_;
    std::uint32_t id_;
    Chunk* chunk_ = nullptr;
};

/// A complete log. Threads are created when they are named. With an injected clock, ticks are nanoseconds.
class LogWriter {
  public:
    detail::ClockSource clock_source = detail::ClockSource::Injected;
    std::uint64_t ticks_per_second = 1'000'000'000;
    bool finished = false;
    std::string host = "host";
    std::uint64_t end_ticks = 0;      ///< of raw()
    bool are_run_time_names = false;  ///< new sites without a file are sites of names made at run time

    std::uint32_t string(std::string_view text) {
        if (text.empty()) return 0;
        const auto [place, is_new] = strings_.try_emplace(std::string(text), strings_.size() + 1);
        if (is_new) {
            detail::StringRecord record{};
            record.head = {static_cast<std::uint16_t>(detail::NameKind::String), 0,
                           static_cast<std::uint32_t>(sizeof record + (text.size() + 7) / 8 * 8)};
            record.id = place->second;
            record.length = static_cast<std::uint32_t>(text.size());
            names_.add(record);
            names_.add_bytes(text.data(), text.size());
            names_.pad(8);
        }
        return place->second;
    }
    std::uint32_t site(std::string_view name, Scope scope = Scope::User, std::string_view file = "",
                       std::uint32_t line = 0, std::uint32_t flags = 0) {
        const std::string key = std::string(name) + '\0' + std::string(file) + '\0' + std::to_string(line) +
                                '\0' + std::to_string(static_cast<int>(scope)) + '\0' + std::to_string(flags);
        if (const auto found = sites_.find(key); found != sites_.end()) return found->second;
        if (are_run_time_names && file.empty() && line == 0 && flags == 0) {
            const auto id = static_cast<std::uint32_t>(detail::kFirstRunTimeSite + 700 * run_time_sites_++);
            return sites_.emplace(key, run_time_site(id, name, scope)).first->second;
        }
        detail::SiteRecord record{};
        record.head = {static_cast<std::uint16_t>(detail::NameKind::Site), 0, sizeof record};
        record.name = string(name);
        record.file = string(file);
        record.line = line;
        record.scope = static_cast<std::uint32_t>(scope);
        record.flags = flags;
        record.id = static_cast<std::uint32_t>(sites_.size() - run_time_sites_ + 1);
        names_.add(record);
        sites_.emplace(key, record.id);
        return record.id;
    }
    /// A site with its own category.
    std::uint32_t categorised_site(std::string_view name, std::string_view category,
                                   Scope scope = Scope::User) {
        const std::string key = "category " + std::string(category) + '\0' + std::string(name) + '\0' +
                                std::to_string(static_cast<int>(scope));
        if (const auto found = sites_.find(key); found != sites_.end()) return found->second;
        const detail::SiteCategory tail{string(category), 0};
        detail::SiteRecord record{};
        record.head = {static_cast<std::uint16_t>(detail::NameKind::Site), 0, sizeof record + sizeof tail};
        record.name = string(name);
        record.scope = static_cast<std::uint32_t>(scope);
        record.id = static_cast<std::uint32_t>(sites_.size() - run_time_sites_ + 1);
        names_.add(record);
        names_.add(tail);
        sites_.emplace(key, record.id);
        return record.id;
    }
    /// A name made at run time, with any id from detail::kFirstRunTimeSite on.
    std::uint32_t run_time_site(std::uint32_t id, std::string_view name, Scope scope = Scope::User,
                                std::string_view category = "") {
        detail::RunTimeSiteRecord record{};
        record.head = {static_cast<std::uint16_t>(detail::NameKind::RunTimeSite), 0,
                       static_cast<std::uint32_t>(sizeof record + (name.size() + 7) / 8 * 8)};
        record.id = id;
        record.scope = static_cast<std::uint32_t>(scope);
        record.category = string(category);
        record.length = static_cast<std::uint32_t>(name.size());
        names_.add(record);
        names_.add_bytes(name.data(), name.size());
        names_.pad(8);
        return id;
    }
    /// The next number of a program or library.
    std::uint32_t module(std::string_view path, std::string_view build_id, std::uint64_t bias = 0) {
        detail::ModuleRecord record{};
        record.head = {static_cast<std::uint16_t>(detail::NameKind::Module), 0, sizeof record};
        record.path = string(path);
        record.build_id = string(build_id);
        record.bias = bias;
        record.id = ++modules_;
        names_.add(record);
        return record.id;
    }
    Values values() { return Values(*this); }
    ThreadLog& thread(std::uint32_t id) { return threads_.try_emplace(id, *this, id).first->second; }

    LogWriter& born(std::uint32_t thread, std::string_view name, std::uint64_t ticks,
                    std::int64_t os_tid = 100) {
        detail::ThreadStartedRecord record{};
        record.thread = thread;
        record.name = string(name);
        record.os_tid = os_tid;
        record.ticks = ticks;
        return journal(detail::JournalKind::ThreadStarted, record);
    }
    LogWriter& named(std::uint32_t thread, std::string_view name) {
        detail::ThreadNamedRecord record{};
        record.thread = thread;
        record.name = string(name);
        return journal(detail::JournalKind::ThreadNamed, record);
    }
    LogWriter& died(std::uint32_t thread, std::uint64_t ticks) {
        detail::ThreadEndedRecord record{};
        record.thread = thread;
        record.ticks = ticks;
        return journal(detail::JournalKind::ThreadEnded, record);
    }
    static constexpr std::uint32_t kAllOptions =
        detail::kOptionValues | detail::kOptionShapes | detail::kOptionConcreteInputs | detail::kOptionMemory;
    struct SessionParts {
        std::string name = "";
        std::uint32_t scopes = ~0u;
        std::uint32_t thread = 0;
        std::uint32_t option_bits = detail::kOptionValues;
        std::uint32_t policy = 0;
        std::uint64_t max_bytes = 0;
        std::uint32_t device_types = 0;
    };
    LogWriter& start(std::uint64_t session, std::uint64_t ticks) {
        return start(session, ticks, SessionParts());
    }
    LogWriter& start(std::uint64_t session, std::uint64_t ticks, const SessionParts& parts) {
        detail::SessionStartRecord record{};
        record.session = session;
        record.ticks = ticks;
        record.max_bytes = parts.max_bytes;
        record.scopes = parts.scopes;
        record.name = string(parts.name);
        record.thread = parts.thread;
        record.option_bits = parts.option_bits;
        record.policy = parts.policy;
        record.device_types = parts.device_types;
        return journal(detail::JournalKind::SessionStart, record);
    }
    LogWriter& stop(std::uint64_t session, std::uint64_t ticks, bool size_limit_reached = false) {
        detail::SessionStopRecord record{};
        record.session = session;
        record.ticks = ticks;
        record.size_limit_reached = size_limit_reached;
        return journal(detail::JournalKind::SessionStop, record);
    }
    LogWriter& open_at_stop(std::uint64_t session, std::uint32_t thread, std::string_view name,
                            std::uint64_t start, std::uint32_t depth,
                            const std::vector<std::byte>& payload = {}, std::uint32_t flags = 0) {
        detail::OpenAtStopRecord record{};
        record.flags = flags;
        record.session = session;
        record.start = start;
        record.thread = thread;
        record.depth = depth;
        record.site = site(name);
        record.payload_bytes = static_cast<std::uint32_t>(payload.size());
        return journal(detail::JournalKind::OpenAtStop, record, payload);
    }
    LogWriter& open_part(std::uint32_t thread, std::uint64_t start, std::uint64_t call, std::uint32_t flags) {
        detail::OpenPartRecord record{};
        record.start = start;
        record.call = call;
        record.thread = thread;
        record.flags = flags;
        return journal(detail::JournalKind::OpenPart, record);
    }
    LogWriter& losses(std::uint32_t thread, std::uint64_t dropped, std::uint64_t overwritten = 0,
                      std::uint64_t resyncs = 0, std::uint64_t clamped = 0) {
        detail::LossesRecord record{};
        record.thread = thread;
        record.dropped = dropped;
        record.overwritten_chunks = overwritten;
        record.resyncs = resyncs;
        record.clamped = clamped;
        return journal(detail::JournalKind::Losses, record);
    }
    LogWriter& pair(std::uint64_t ticks, std::int64_t raw_ns, std::int64_t real_ns = 0,
                    std::uint64_t width = 0) {
        detail::ClockRecord record{};
        record.pair = {ticks, raw_ns, real_ns, width};
        return journal(detail::JournalKind::Clock, record);
    }
    LogWriter& cost(detail::CostKind event, std::uint64_t picoseconds) {
        detail::CostRecord record{};
        record.event = static_cast<std::uint32_t>(event);
        record.picoseconds = picoseconds;
        return journal(detail::JournalKind::Cost, record);
    }
    LogWriter& note(std::string_view code, std::string_view text, std::uint64_t count = 1) {
        detail::NoteRecord record{};
        record.code = string(code);
        record.text = string(text);
        record.count = count;
        return journal(detail::JournalKind::Note, record);
    }
    LogWriter& context(std::uint64_t id, const std::vector<std::uint64_t>& sessions) {
        detail::ContextRecord record{};
        record.context = id;
        record.count = sessions.size();
        std::vector<std::byte> tail(sessions.size() * 8);
        if (!tail.empty()) std::memcpy(tail.data(), sessions.data(), tail.size());
        return journal(detail::JournalKind::Context, record, tail);
    }
    /// Known values of a site.
    LogWriter& site_values(std::string_view name, std::uint64_t ticks,
                           const std::vector<std::byte>& payload) {
        detail::SiteValuesRecord record{};
        record.ticks = ticks;
        record.site = site(name);
        record.payload_bytes = static_cast<std::uint32_t>(payload.size());
        return journal(detail::JournalKind::SiteValues, record, payload);
    }
    /// Events from another process; `head.reserved` states whether its clock is ours.
    LogWriter& remote(detail::RemoteEventsRecord record, std::string_view prefix, std::string_view message) {
        record.prefix = string(prefix);
        record.message_bytes = static_cast<std::uint32_t>(message.size());
        const auto bytes = std::as_bytes(std::span(message));
        return journal(detail::JournalKind::RemoteEvents, record, {bytes.begin(), bytes.end()});
    }
    LogWriter& exchange(std::string_view peer, std::int64_t sent_ns, std::int64_t arrived_ns,
                        std::int64_t answered_ns, std::int64_t received_ns) {
        detail::ClockExchangeRecord record{};
        record.sent_ns = sent_ns;
        record.arrived_ns = arrived_ns;
        record.answered_ns = answered_ns;
        record.received_ns = received_ns;
        record.peer_bytes = static_cast<std::uint32_t>(peer.size());
        const auto bytes = std::as_bytes(std::span(peer));
        return journal(detail::JournalKind::ClockExchange, record, {bytes.begin(), bytes.end()});
    }
    template <class Record>
    LogWriter& journal(detail::JournalKind kind, Record record, const std::vector<std::byte>& tail = {}) {
        const std::size_t bytes = (sizeof record + tail.size() + 7) / 8 * 8;
        record.head.kind = static_cast<std::uint16_t>(kind);
        record.head.bytes = static_cast<std::uint32_t>(bytes);
        journal_.add(record);
        journal_.add_bytes(tail.data(), tail.size());
        journal_.pad(8);
        return *this;
    }

    /// The input of the builder. Points into this object, which must outlive it and not change.
    RawLog raw() const {
        RawLog log;
        log.pid = 42;
        log.host = host;
        log.executable = "/bin/program";
        log.command_line = "program --fast";
        log.clock_source = clock_source;
        log.ticks_per_second = ticks_per_second;
        log.names = names_.bytes();
        log.journal = journal_.bytes();
        for (const Chunk& chunk : chunks_) {
            log.spans.push_back({chunk.records.bytes().data(), chunk.records.size(), chunk.thread,
                                 chunk.sequence, chunk.base_ticks, chunk.pair});
        }
        log.open = open_;
        log.end_ticks = end_ticks;
        log.finished = finished;
        return log;
    }

    /// The same as a capture file. Chunks take as many blocks as they need.
    std::vector<std::byte> file() const;

  private:
    friend class ThreadLog;
    ByteList names_;
    ByteList journal_;
    std::map<std::string, std::uint32_t> strings_;
    std::map<std::string, std::uint32_t> sites_;
    std::uint32_t run_time_sites_ = 0;
    std::uint32_t modules_ = 0;
    std::map<std::uint32_t, ThreadLog> threads_;
    std::deque<Chunk> chunks_;
    std::vector<OpenRange> open_;
};

/// The trace of a session of the log (0: of the only one), whose tables are checked.
Trace build(const LogWriter& log, std::uint64_t session = 0);

}  // namespace marey::testing
