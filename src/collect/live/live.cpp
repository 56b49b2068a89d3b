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
#include "collect/log_records.h"
#include "collect/run_file.h"
#include "collect/trace_builder.h"
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

void write_snapshot(const std::string& path, const std::string& out, const NewestPart& part) {
    RawLog log = read_part(path, part);
    leave_tree(log);
    std::erase_if(log.problems, [](const RawProblem& problem) { return problem.code == "running"; });
    write_packed(log, out);
}

}  // namespace marey
