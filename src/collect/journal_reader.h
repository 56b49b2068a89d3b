// journal_reader.h: the decoded journal and names streams: threads, sessions, contexts, losses, strings,
// sites.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include <marey/detail/log_format.h>
#include <marey/trace.h>

#include "collect/site_rows.h"
#include "record/raw_log.h"

namespace marey {

/// One session in the journal.
struct SessionMarks {
    std::uint64_t id = 0;
    std::string name{};
    std::uint64_t start_ticks = 0;
    std::uint64_t stop_ticks = 0;  ///< 0 while it runs, or when the program died first
    bool stopped = false;
    bool size_limit_reached = false;
    std::uint32_t scopes = ~0u;
    std::uint32_t thread = 0;  ///< 0: all threads
    std::uint32_t option_bits = 0;
    std::uint32_t device_types = 0;  ///< a bit each
    std::uint32_t policy = 0;
    std::uint64_t max_bytes = 0;
};

/// All sessions of a log, in order of their starts in the journal.
std::vector<SessionMarks> list_sessions(const RawLog& log);

/// A program or library of native frames.
struct NamedModule {
    StringId path = 0;
    StringId build_id = 0;
    std::uint64_t bias = 0;
};

/// Where a module was in memory.
struct ModuleExtent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t module = 0;
};

/// Everything that the frame words of recorded stacks refer to.
struct FrameNames {
    std::vector<NamedModule> modules;             ///< module `id` is modules[id - 1]
    std::vector<ModuleExtent> extents;            ///< the last one first
    std::vector<detail::CodePlaceRecord> places;  ///< place `number` is places[number - 1]
    std::vector<detail::StackNode> stacks;        ///< stack `number` is stacks[number - 1]
};

/// The strings, sites and modules of a names stream. String ids are those of the stream; [0] is "".
struct NameTables {
    std::vector<std::string> strings{std::string()};
    std::vector<SiteInfo> sites;  ///< site `id` is sites[site_rows.row(id)]
    SiteRows site_rows;
    std::vector<std::uint32_t> site_flags;  ///< detail::SiteFlags, by site
    FrameNames frames;
};
NameTables read_names(std::span<const std::byte> stream);

struct JournalThread {
    std::uint32_t name = 0;
    std::int64_t os_tid = 0;
    std::uint64_t birth = 0;  ///< ticks; 0: unknown
    std::uint64_t death = 0;  ///< ticks; 0: it is alive
    std::uint64_t dropped = 0;
    std::uint64_t overwritten_chunks = 0;
    std::uint64_t resyncs = 0;
    std::uint64_t clamped = 0;
};

struct JournalNote {
    std::uint32_t code = 0;
    std::uint32_t text = 0;
    std::uint64_t count = 0;
};

/// A session as the journal has it, with its name still a string id.
struct JournalSession {
    SessionMarks marks;
    std::uint32_t name = 0;
};

/// A message from another process, for the requested session.
struct JournalMessage {
    detail::RemoteEventsRecord record;
    std::span<const std::byte> bytes;  ///< lies in the stream that was read
};

/// A fact given to the requested session.
struct JournalFact {
    std::uint32_t key = 0;
    std::string json;
};

/// For ranges that are or were open, by thread and start in ticks: the call and its PartRecordFlags.
using OpenParts = std::map<std::pair<std::uint32_t, std::uint64_t>, std::pair<std::uint64_t, std::uint8_t>>;

/// Known values of a site.
struct JournalSiteValues {
    detail::SiteValuesRecord record;
    std::span<const std::byte> payload;  ///< lies in the stream that was read
};

/// An exchange with another host.
struct JournalExchange {
    detail::ClockExchangeRecord record;
    std::string peer;
};

/// The journal, in one pass. Records that are too short or refer to unknown ids are skipped.
struct Journal {
    std::map<std::uint32_t, JournalThread> threads;  ///< by logical id
    std::vector<JournalSession> sessions;
    std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> contexts;  ///< context -> session ids
    std::vector<detail::ClockPair> pairs;
    std::vector<detail::CostRecord> costs;
    std::vector<JournalNote> notes;
    std::optional<detail::SamplingRecord> sampling;  ///< with the totals of the session
    std::vector<OpenRange> open_at_stop;             ///< of the requested session
    OpenParts open_parts;
    std::vector<JournalMessage> messages;
    std::vector<JournalFact> facts;
    std::vector<JournalSiteValues> site_values;
    std::vector<JournalExchange> exchanges;
    std::optional<detail::ProcessEndRecord> process_end;
    std::vector<ProblemInfo> run_problems;
    std::optional<detail::ProcessIdentityRecord> identity;
    std::vector<detail::AncestorRecord> ancestors;  ///< the parent first
    std::uint64_t latest_ticks = 0;

    const JournalSession* find_session(std::uint64_t id) const noexcept;
};

/// `session`: the session whose OpenAtStop, RemoteEvents and Metadata records are needed (0: the first
/// session). `end_ticks`: when the log was read (0: unknown); a session that stopped after it, while the
/// journal was read, still ran then. The stream must outlive the journal's messages and values.
Journal read_journal(std::span<const std::byte> stream, std::uint64_t session, std::uint64_t end_ticks = 0);

}  // namespace marey
