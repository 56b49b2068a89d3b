// live.cpp: the newest part of a capture as a trace or as a capture of its own.
#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include <marey/live.h>

#include "base/mapped_file.h"
#include "collect/capture_reader.h"
#include "collect/compact.h"
#include "collect/journal_reader.h"
#include "collect/live/snapshot.h"
#include "collect/log_records.h"
#include "collect/run_file.h"
#include "collect/trace_builder.h"
#include "json/json_document.h"
#include "json/json_writer.h"
#include "trace/saved_trace.h"

namespace marey {
namespace {

/// The first session that runs, as that of a whole run does; otherwise the last one; 0: there is none.
std::uint64_t newest_session(const RawLog& log) {
    const std::vector<SessionMarks> sessions = list_sessions(log);
    if (sessions.empty()) return 0;
    const auto running = std::ranges::find(sessions, false, &SessionMarks::stopped);
    return running != sessions.end() ? running->id : sessions.back().id;
}

/// Lets the sessions that were not stopped begin where the wanted part does: then the time of a range that
/// was open before is cut there too.
void begin_sessions_later(RawLog& log) {
    if (log.since_ticks == 0) return;
    std::set<std::uint64_t> open;
    for (const SessionMarks& session : list_sessions(log)) {
        if (!session.stopped) open.insert(session.id);
    }
    for (StreamCursor at(log.journal); at.next();) {
        auto start = at.as<detail::SessionStartRecord>(detail::JournalKind::SessionStart);
        if (!start || !open.contains(start->session) || start->ticks >= log.since_ticks) continue;
        start->ticks = log.since_ticks;
        std::memcpy(log.journal.data() + (log.journal.size() - at.rest_bytes()), &*start, sizeof *start);
    }
}

/// Takes the log out of its run, whose captures are read together: it repeats a part of one of them.
void leave_tree(RawLog& log) {
    for (StreamCursor at(log.journal); at.next();) {
        auto identity = at.as<detail::ProcessIdentityRecord>(detail::JournalKind::ProcessIdentity);
        if (!identity) continue;
        std::fill(std::begin(identity->tree), std::end(identity->tree), std::uint8_t{0});
        std::memcpy(log.journal.data() + (log.journal.size() - at.rest_bytes()), &*identity,
                    sizeof *identity);
    }
}

constexpr std::string_view kReasonKey = "snapshot";

/// Adds the reason to the metadata of each session.
void add_reason(RawLog& log, const SnapshotReason& reason) {
    if (reason.text.empty()) return;
    std::string json;
    JsonWriter(json)
        .begin_object()
        .member("reason", reason.text)
        .member("begin_ns", reason.begin_ns)
        .member("end_ns", reason.end_ns)
        .member("thread", reason.os_tid)
        .end_object();
    const auto key = static_cast<std::uint32_t>(read_names(log.names).strings.size());
    append_stream_record(log.names, detail::NameKind::String,
                         detail::StringRecord{{}, key, static_cast<std::uint32_t>(kReasonKey.size())},
                         kReasonKey);
    for (const SessionMarks& session : list_sessions(log))
        append_stream_record(
            log.journal, detail::JournalKind::Metadata,
            detail::MetadataRecord{{}, session.id, key, static_cast<std::uint32_t>(json.size())}, json);
}

RawLog read_part(const std::string& path, const NewestPart& part) {
    RawLog log = read_newest(
        path, {.log_bytes = part.log_bytes != 0 ? part.log_bytes : std::numeric_limits<std::size_t>::max(),
               .last_ns = part.last_ns});
    begin_sessions_later(log);
    return log;
}

}  // namespace

Trace load_newest(const std::string& path, const NewestPart& part) {
    {
        const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
        if (is_run_file(file->bytes()) || is_saved_trace(file->bytes())) return Trace::load(path);
    }
    const RawLog log = read_part(path, part);
    return build_trace(log, {.session = newest_session(log), .threads = 1});
}

void finish_snapshot(RawLog& log, const SnapshotReason& reason) {
    leave_tree(log);
    std::erase_if(log.problems, [](const RawProblem& problem) { return problem.code == "running"; });
    add_reason(log, reason);
}

void write_snapshot(const std::string& path, const std::string& out, const NewestPart& part,
                    const SnapshotReason& reason) {
    RawLog log = read_part(path, part);
    finish_snapshot(log, reason);
    write_packed(log, out, PackFor::Speed);
}

std::optional<SnapshotReason> snapshot_reason(const Trace& trace) {
    const auto found = std::ranges::find(trace.metadata(), kReasonKey, &MetadataInfo::key);
    if (found == trace.metadata().end()) return std::nullopt;
    const JsonDocument document(found->json);
    const JsonDocument::Value root = document.root();
    if (!root.is_object()) return std::nullopt;  // a program's own metadata may have this name
    return SnapshotReason{.text = root["reason"].text(),
                          .begin_ns = root["begin_ns"].integer().value_or(0),
                          .end_ns = root["end_ns"].integer().value_or(0),
                          .os_tid = root["thread"].integer().value_or(0)};
}

}  // namespace marey
