// load.cpp: Trace::load: reads and builds a capture file, or reads a saved trace; the sessions of a capture,
// without its events.
#include <algorithm>
#include <set>
#include <utility>

#include <marey/error.h>
#include <marey/load.h>
#include <marey/merge.h>
#include <marey/trace.h>

#include "base/mapped_file.h"
#include "collect/capture_reader.h"
#include "collect/clocks/clock_fit.h"
#include "collect/journal_reader.h"
#include "collect/run_file.h"
#include "collect/trace_builder.h"
#include "trace/saved_trace.h"

namespace marey {
namespace {

/// Process and session of those that are listed. A session may be in the file of another one of its process
/// too.
using ListedSessions = std::set<std::pair<std::int64_t, std::uint64_t>>;

void add_sessions(const RunMember& member, ListedSessions& known, std::vector<SessionInfo>& sessions) {
    const RawLog log = read_member(member, false);
    const Journal journal = read_journal(log.journal, 0);
    std::vector<detail::ClockPair> pairs = clock_pairs(log, journal);
    std::uint64_t latest = std::max(log.end_ticks, journal.latest_ticks);
    for (const detail::ClockPair& pair : pairs) latest = std::max(latest, pair.ticks);
    const ClockFit fit(log.clock_source, log.ticks_per_second, std::move(pairs));
    for (const SessionMarks& marks : list_sessions(log)) {
        if (!known.emplace(log.pid, marks.id).second) continue;
        const std::uint64_t end = marks.stopped ? marks.stop_ticks : std::max(latest, marks.start_ticks);
        sessions.push_back(
            {marks.id, marks.name, fit.to_ns(marks.start_ticks), fit.to_ns(end), marks.stopped});
    }
}

}  // namespace

Trace Trace::load(const std::string& path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    if (is_run_file(file->bytes())) return load_merged({path}).trace;
    if (is_saved_trace(file->bytes())) return Trace(unpack_trace(file->bytes(), path));
    return build_trace(read_capture(file, path));
}

Trace load_trace(const std::string& path, LoadProgress& progress) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    if (is_run_file(file->bytes())) return load_merged({path}).trace;
    if (is_saved_trace(file->bytes())) return Trace(unpack_trace(file->bytes(), path));
    return build_trace(read_capture(file, path), {.progress = &progress});
}

Trace Trace::load_for_averages(const std::string& path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    if (is_run_file(file->bytes())) return load_merged({path}, {.for_averages = true}).trace;
    if (is_saved_trace(file->bytes())) return Trace(unpack_trace(file->bytes(), path));
    return build_trace(read_capture(file, path), {.part_details = false});
}

Trace Trace::load(const std::string& path, std::uint64_t session_id) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    if (is_run_file(file->bytes())) return load_merged({path}, {.session = session_id}).trace;
    if (is_saved_trace(file->bytes())) {
        if (unpack_window(file->bytes(), path).session_id == session_id)
            return Trace(unpack_trace(file->bytes(), path));
        throw Error(path + ": has no session " + std::to_string(session_id));
    }
    const RawLog log = read_capture(file, path);
    for (const SessionMarks& session : list_sessions(log)) {
        if (session.id == session_id) {
            ViewRequest request;
            request.session = session_id;
            return build_trace(log, request);
        }
    }
    throw Error(path + ": has no session " + std::to_string(session_id));
}

std::vector<SessionInfo> list_sessions(const std::string& path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    if (is_saved_trace(file->bytes())) {
        const WindowInfo window = unpack_window(file->bytes(), path);
        return {{window.session_id, window.session_name, window.start_ns, window.end_ns, window.finished}};
    }
    std::vector<RunMember> members;
    if (is_run_file(file->bytes()))
        members = read_run_file(file, path).members;
    else
        members.push_back({path, file, file->bytes()});
    ListedSessions known;
    std::vector<SessionInfo> sessions;
    for (const RunMember& member : members) add_sessions(member, known, sessions);
    return sessions;
}

}  // namespace marey
