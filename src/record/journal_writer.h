// journal_writer.h: what captures have besides the logs of threads: names, and the journal.
#pragma once

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <marey/detail/hot_path.h>
#include <marey/detail/log_format.h>
#include <marey/value.h>

#include "record/name_table.h"
#include "record/raw_log.h"
#include "record/recorder_mutex.h"
#include "record/spool.h"

namespace marey {

/// The two streams of captures, in memory and, while there is one, in the spool: the names of the process,
/// and the journal of threads, sessions, clock pairs, losses and problems, which is written while a session
/// lives.
class JournalWriter {
  public:
    explicit JournalWriter(LogStore& store) noexcept : store_(store) {}

    // -- any thread: these take the lock --
    std::uint32_t register_site(const detail::Site& site) noexcept MAREY_EXCLUDES(recorder_mutex);
    std::uint32_t intern_site(std::string_view name, std::string_view file, std::uint32_t line, Scope scope,
                              std::uint32_t flags = 0, std::string_view category = {}) noexcept
        MAREY_EXCLUDES(recorder_mutex);
    std::uint32_t intern_dynamic(std::string_view name, Scope scope, std::uint32_t category = 0) noexcept
        MAREY_EXCLUDES(recorder_mutex);
    std::uint32_t intern(std::string_view text) noexcept MAREY_EXCLUDES(recorder_mutex);
    std::uint32_t intern_key(std::string_view text) noexcept MAREY_EXCLUDES(recorder_mutex);
    void add_code_place(std::uint32_t place, std::uint32_t site, std::uint32_t line) noexcept
        MAREY_EXCLUDES(recorder_mutex);
    /// Interns a module, with its place in memory.
    void add_module(std::string_view path, std::string_view build_id, std::uint64_t bias, std::uint64_t begin,
                    std::uint64_t end) noexcept MAREY_EXCLUDES(recorder_mutex);
    std::uint32_t intern_module(std::string_view path, std::string_view build_id, std::uint64_t bias) noexcept
        MAREY_EXCLUDES(recorder_mutex);
    /// Called by the owner of a log before it writes a site that it may have looked up before the capture
    /// began.
    void use_site(std::uint32_t site) noexcept {
        if (!names_.is_shown(site)) [[unlikely]]
            use_hidden_site(site);
    }
    /// Puts a problem into the captures being written and, if `print`, on standard error once.
    void note(std::string_view code, std::string_view text, bool print = true) noexcept
        MAREY_EXCLUDES(recorder_mutex);
    void add_cost(detail::CostKind kind, std::uint64_t picoseconds) noexcept MAREY_EXCLUDES(recorder_mutex);
    void add_clock_exchange(std::string_view peer, detail::ClockExchangeRecord record) noexcept
        MAREY_EXCLUDES(recorder_mutex);
    /// Which call an open range of a thread is part of.
    void note_open_part(std::uint32_t thread, std::uint64_t start, std::uint64_t call,
                        std::uint8_t flags) noexcept MAREY_EXCLUDES(recorder_mutex);
    void add_site_values(std::uint32_t site, std::uint64_t ticks, std::span<const KeyedValue> values) noexcept
        MAREY_EXCLUDES(recorder_mutex);
    /// Lookups need no lock, changes do: publish_names() comes after them.
    NameTable& names() noexcept { return names_; }
    /// Adds the run-time names that a log of this process refers to.
    void add_run_time_names(RawLog& log) const;

    // -- the lock is held --
    /// Provides blocks for the stacks that are in use.
    void mirror_stacks() noexcept MAREY_REQUIRES(recorder_mutex);
    /// First into the spool, then visible: a name that a thread finds must be there.
    void publish_names() noexcept MAREY_REQUIRES(recorder_mutex);
    /// Distinguishes the spools: each has its own run-time names.
    std::uint32_t names_number() const noexcept MAREY_REQUIRES(recorder_mutex) { return names_number_; }
    /// Writes one record. Nothing is written before open().
    template <class Record>
    void write(detail::JournalKind kind, Record record, std::span<const std::byte> tail = {}) noexcept
        MAREY_REQUIRES(recorder_mutex) {
        static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % 8 == 0);
        if (!is_open_) return;
        const std::size_t bytes = (sizeof record + tail.size() + 7) / 8 * 8;
        record.head.kind = static_cast<std::uint16_t>(kind);
        record.head.bytes = static_cast<std::uint32_t>(bytes);
        std::vector<std::byte> whole(bytes);
        std::memcpy(whole.data(), &record, sizeof record);
        if (!tail.empty()) std::memcpy(whole.data() + sizeof record, tail.data(), tail.size());
        append(whole);
    }
    void write_clock() noexcept MAREY_REQUIRES(recorder_mutex);
    void write_costs(std::span<const detail::CostRecord> measured) noexcept MAREY_REQUIRES(recorder_mutex);
    void write_fact(std::uint64_t session, std::string_view key, std::span<const std::byte> json)
        MAREY_REQUIRES(recorder_mutex);
    void write_losses(std::uint32_t thread, const detail::ThreadState& state) noexcept
        MAREY_REQUIRES(recorder_mutex);
    /// Writes a note; `count`: how often it happened.
    void write_note(std::string_view code, std::string_view text, std::uint64_t count = 1) noexcept
        MAREY_REQUIRES(recorder_mutex);
    /// note() for holders of the lock.
    void add_note(std::string_view code, std::string_view text, bool print = true) noexcept
        MAREY_REQUIRES(recorder_mutex);
    /// The session has overwritten a chunk of this thread. One record in the capture, updated in place: the
    /// journal of a ring that runs for days stays small.
    void count_overwritten(std::uint64_t session, std::uint32_t thread) noexcept
        MAREY_REQUIRES(recorder_mutex);
    void write_overwritten(std::uint64_t session) noexcept MAREY_REQUIRES(recorder_mutex);

    /// The spool was just created: it gets the names, and the journal so far without its sessions, which have
    /// no file.
    void begin_capture() noexcept MAREY_REQUIRES(recorder_mutex);
    /// The first session starts.
    void open() noexcept MAREY_REQUIRES(recorder_mutex) { is_open_ = true; }
    /// The last session has ended.
    void close() noexcept MAREY_REQUIRES(recorder_mutex);
    /// In the child of a fork: closed, and not yet in a spool.
    void forked() noexcept MAREY_REQUIRES(recorder_mutex);
    /// A problem is reported once in a row of overlapping sessions.
    void forget_notes() noexcept MAREY_REQUIRES(recorder_mutex) { noted_.clear(); }
    const std::vector<std::byte>& bytes() const noexcept MAREY_REQUIRES(recorder_mutex) { return bytes_; }
    /// The journal as one session's capture carries it: without the marks of others (0: of any).
    std::vector<std::byte> bytes_of(std::uint64_t session) const MAREY_REQUIRES(recorder_mutex);

  private:
    void append(std::span<const std::byte> record) noexcept MAREY_REQUIRES(recorder_mutex);
    void use_hidden_site(std::uint32_t site) noexcept MAREY_EXCLUDES(recorder_mutex);

    NameTable names_;
    LogStore& store_;
    bool is_open_ MAREY_GUARDED_BY(recorder_mutex) = false;
    std::vector<std::byte> bytes_ MAREY_GUARDED_BY(recorder_mutex);
    std::size_t names_in_spool_ MAREY_GUARDED_BY(recorder_mutex) = 0;  ///< bytes of the names stream
    std::uint32_t names_number_ MAREY_GUARDED_BY(recorder_mutex) = 1;
    std::vector<std::string> noted_ MAREY_GUARDED_BY(recorder_mutex);
    struct Overwritten {
        std::uint64_t chunks = 0;
        std::uint64_t* in_file =
            nullptr;  ///< the same in the capture, for readers after a crash; null: not yet
    };
    std::map<std::pair<std::uint64_t, std::uint32_t>, Overwritten> overwritten_
        MAREY_GUARDED_BY(recorder_mutex);  ///< by session and thread
    std::vector<detail::CostRecord> source_costs_ MAREY_GUARDED_BY(recorder_mutex);  ///< measured by sources
};

/// The cost of recording each kind of event on this machine, measured at the first call. Needs source_mutex.
std::span<const detail::CostRecord> measured_costs() noexcept;

}  // namespace marey
