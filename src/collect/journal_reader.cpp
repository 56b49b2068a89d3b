// journal_reader.cpp: reads the two metadata streams. Survives any bytes; memory stays in proportion to them.
#include "collect/journal_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "collect/log_records.h"

namespace marey {

using namespace detail;

namespace {

/// Adds the place to equal names of functions at different places: overloads, lambdas, file-local functions.
void add_places(NameTables& tables) {
    std::map<StringId, std::set<std::pair<StringId, std::uint32_t>>> places;
    const auto is_function = [&](std::size_t i) { return (tables.site_flags[i] & kSiteFunction) != 0; };
    for (std::size_t i = 0; i < tables.sites.size(); ++i) {
        const SiteInfo& site = tables.sites[i];
        if (is_function(i)) places[site.name].insert({site.file, site.line});
    }
    for (std::size_t i = 0; i < tables.sites.size(); ++i) {
        SiteInfo& site = tables.sites[i];
        if (!is_function(i) || places[site.name].size() < 2) continue;
        const std::string& file = tables.strings[site.file];
        tables.strings.push_back(tables.strings[site.name] + " (" + file.substr(file.rfind('/') + 1) + ":" +
                                 std::to_string(site.line) + ")");
        site.name = static_cast<StringId>(tables.strings.size() - 1);
    }
}

/// Its name becomes a string after those that have ids.
void add_run_time_site(NameTables& tables, const StreamCursor& at) {
    RunTimeSiteRecord record;
    if (!at.get(record) || record.id < kFirstRunTimeSite || record.id >= kMaxSites) return;
    const auto text = at.tail<RunTimeSiteRecord>(record.length);
    if (text.size() != record.length || tables.site_rows.row(record.id) < tables.sites.size()) return;
    tables.site_rows.add(record.id);
    SiteInfo& site = tables.sites.emplace_back();
    tables.site_flags.push_back(0);
    site.scope = static_cast<Scope>(record.scope & 31);
    site.category = record.category;
    if (text.empty()) return;
    site.name = static_cast<StringId>(tables.strings.size());
    tables.strings.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
}

}  // namespace

NameTables read_names(std::span<const std::byte> stream) {
    NameTables tables;
    // Dense ids make this bound exact; anything beyond it is damage.
    const std::size_t max_strings = stream.size() / sizeof(StringRecord) + 1;
    const std::size_t max_sites = stream.size() / sizeof(SiteRecord) + 1;
    const std::size_t max_modules = stream.size() / sizeof(ModuleRecord) + 1;
    std::vector<StreamCursor> run_time;
    for (StreamCursor at(stream); at.next();) {
        if (at.kind() == static_cast<std::uint16_t>(NameKind::String)) {
            StringRecord record;
            if (!at.get(record) || record.id == 0 || record.id >= max_strings) continue;
            const auto text = at.tail<StringRecord>(record.length);
            if (text.size() != record.length) continue;
            if (record.id >= tables.strings.size()) tables.strings.resize(record.id + 1);
            tables.strings[record.id].assign(reinterpret_cast<const char*>(text.data()), text.size());
        } else if (at.kind() == static_cast<std::uint16_t>(NameKind::Site)) {
            SiteRecord record;
            if (!at.get(record) || record.id == 0 || record.id >= max_sites || record.id >= kFirstRunTimeSite)
                continue;
            if (record.id > tables.sites.size()) {
                tables.sites.resize(record.id);
                tables.site_flags.resize(record.id);
            }
            tables.site_flags[record.id - 1] = record.flags;
            SiteInfo& site = tables.sites[record.id - 1];
            site = {record.name, record.file, record.line, static_cast<Scope>(record.scope & 31)};
            if ((record.flags & kSiteOverload) != 0) site.overload = std::exchange(site.file, 0);
            const auto category = at.tail<SiteRecord>(sizeof(SiteCategory));
            if (category.size() == sizeof(SiteCategory))
                site.category = read_as<SiteCategory>(category.data()).category;
        } else if (at.kind() == static_cast<std::uint16_t>(NameKind::Module)) {
            ModuleRecord record;
            if (!at.get(record) || record.id == 0 || record.id >= max_modules || record.id >= kMaxModules)
                continue;
            if (record.id > tables.modules.size()) tables.modules.resize(record.id);
            tables.modules[record.id - 1] = {record.path, record.build_id, record.bias};
        } else if (at.kind() == static_cast<std::uint16_t>(NameKind::RunTimeSite)) {
            run_time.push_back(at);
        }
    }
    tables.site_rows.set_permanent(static_cast<std::uint32_t>(tables.sites.size()));
    for (const StreamCursor& at : run_time) add_run_time_site(tables, at);
    const auto known = [&](StringId& id) {
        if (id >= tables.strings.size()) id = 0;
    };
    for (SiteInfo& site : tables.sites) {
        known(site.name);
        known(site.file);
        known(site.overload);
        known(site.category);
    }
    for (NamedModule& module : tables.modules) {
        known(module.path);
        known(module.build_id);
    }
    add_places(tables);
    return tables;
}

const JournalSession* Journal::find_session(std::uint64_t id) const noexcept {
    for (const JournalSession& session : sessions) {
        if (session.marks.id == id) return &session;
    }
    return nullptr;
}

namespace {

class JournalReader {
  public:
    JournalReader(Journal& journal, std::uint64_t session, std::uint64_t end_ticks)
        : journal_(journal), wanted_(session), end_ticks_(end_ticks) {}

    void read(const StreamCursor& at) {
        switch (static_cast<JournalKind>(at.kind())) {
            case JournalKind::ThreadStarted:
                if (ThreadStartedRecord record; at.get(record) && record.thread != 0) {
                    JournalThread& thread = journal_.threads[record.thread];
                    thread.name = record.name;
                    thread.os_tid = record.os_tid;
                    thread.birth = record.ticks;
                    saw(record.ticks);
                }
                break;
            case JournalKind::ThreadNamed:
                if (ThreadNamedRecord record; at.get(record) && record.thread != 0) {
                    journal_.threads[record.thread].name = record.name;
                }
                break;
            case JournalKind::ThreadEnded:
                if (ThreadEndedRecord record; at.get(record) && record.thread != 0) {
                    journal_.threads[record.thread].death = record.ticks;
                    saw(record.ticks);
                }
                break;
            case JournalKind::Clock:
                if (ClockRecord record; at.get(record)) {
                    journal_.pairs.push_back(record.pair);
                    saw(record.pair.ticks);
                }
                break;
            case JournalKind::SessionStart:
                if (SessionStartRecord record; at.get(record)) read_start(record);
                break;
            case JournalKind::SessionStop:
                if (SessionStopRecord record; at.get(record)) read_stop(record);
                break;
            case JournalKind::OpenAtStop:
                if (OpenAtStopRecord record; at.get(record)) {
                    if (record.session != wanted_) break;
                    auto payload = at.tail<OpenAtStopRecord>(record.payload_bytes);
                    std::uint64_t end = 0;
                    if ((record.flags & kRecordAsync) != 0 && payload.size() >= sizeof end) {
                        payload = payload.first(payload.size() - sizeof end);
                        end = read_as<std::uint64_t>(payload.data() + payload.size());
                    }
                    journal_.open_at_stop.push_back({record.thread,
                                                     record.depth,
                                                     record.start,
                                                     record.site,
                                                     static_cast<std::uint8_t>(record.flags),
                                                     {payload.begin(), payload.end()},
                                                     end});
                }
                break;
            case JournalKind::Losses:
                if (LossesRecord record; at.get(record) && record.thread != 0 && !has_stopped_) {
                    JournalThread& thread = journal_.threads[record.thread];
                    const LossesRecord& before = before_[record.thread];
                    LossesRecord& total = totals_[record.thread];
                    // Each total only grows, and a record may leave some of them 0.
                    const auto update = [&](std::uint64_t LossesRecord::*field) {
                        total.*field = std::max(total.*field, record.*field);
                        return total.*field - std::min(total.*field, before.*field);
                    };
                    thread.dropped = update(&LossesRecord::dropped);
                    if (record.session == 0 || record.session == static_cast<std::uint32_t>(wanted_))
                        thread.overwritten_chunks = update(&LossesRecord::overwritten_chunks);
                    thread.resyncs = update(&LossesRecord::resyncs);
                    thread.clamped = update(&LossesRecord::clamped);
                }
                break;
            case JournalKind::Cost:
                if (CostRecord record; at.get(record)) journal_.costs.push_back(record);
                break;
            case JournalKind::Note:
                if (NoteRecord record; at.get(record)) {
                    journal_.notes.push_back({record.code, record.text, record.count});
                }
                break;
            case JournalKind::Context:
                if (ContextRecord record; at.get(record) && record.count <= 0xffff) {
                    const auto tail = at.tail<ContextRecord>(record.count * sizeof(std::uint64_t));
                    auto& sessions = journal_.contexts[record.context];
                    sessions.resize(tail.size() / sizeof(std::uint64_t));
                    if (!tail.empty()) std::memcpy(sessions.data(), tail.data(), tail.size());
                }
                break;
            case JournalKind::RemoteEvents:
                if (RemoteEventsRecord record; at.get(record) && record.session == wanted_) {
                    journal_.messages.push_back({record, at.tail<RemoteEventsRecord>(record.message_bytes)});
                    saw(record.call_end);
                }
                break;
            case JournalKind::Metadata:
                if (MetadataRecord record; at.get(record) && record.session == wanted_) {
                    const auto json = at.tail<MetadataRecord>(record.json_bytes);
                    journal_.facts.push_back(
                        {record.key, {reinterpret_cast<const char*>(json.data()), json.size()}});
                }
                break;
            case JournalKind::OpenPart:
                if (OpenPartRecord record; at.get(record) && record.call != 0) {
                    const auto flags = static_cast<std::uint8_t>(record.flags & kPartFirst);
                    journal_.open_parts.insert_or_assign({record.thread, record.start},
                                                         std::pair{record.call, flags});
                }
                break;
            case JournalKind::SiteValues:
                if (SiteValuesRecord record; at.get(record)) {
                    journal_.site_values.push_back({record, at.tail<SiteValuesRecord>(record.payload_bytes)});
                    saw(record.ticks);
                }
                break;
            case JournalKind::ProcessEnd:
                if (ProcessEndRecord record; at.get(record)) journal_.process_end = record;
                break;
            case JournalKind::RunProblem:
                if (RunProblemRecord record; at.get(record)) read_run_problem(record, at);
                break;
            case JournalKind::ClockExchange:
                if (ClockExchangeRecord record; at.get(record)) {
                    const auto peer = at.tail<ClockExchangeRecord>(record.peer_bytes);
                    journal_.exchanges.push_back(
                        {record, {reinterpret_cast<const char*>(peer.data()), peer.size()}});
                }
                break;
            case JournalKind::ProcessIdentity:
                if (ProcessIdentityRecord record; at.get(record)) read_identity(record, at);
                break;
            default:
                break;
        }
    }

  private:
    void saw(std::uint64_t ticks) { journal_.latest_ticks = std::max(journal_.latest_ticks, ticks); }

    void read_run_problem(const RunProblemRecord& record, const StreamCursor& at) {
        const std::uint64_t bytes = std::uint64_t{record.code_bytes} + record.text_bytes;
        const auto tail = at.tail<RunProblemRecord>(bytes);
        if (tail.size() != bytes || bytes == 0) return;
        const std::string_view text(reinterpret_cast<const char*>(tail.data()), tail.size());
        journal_.run_problems.push_back({std::string(text.substr(0, record.code_bytes)),
                                         std::string(text.substr(record.code_bytes)), record.count});
    }

    void read_identity(const ProcessIdentityRecord& record, const StreamCursor& at) {
        const std::size_t count = std::min<std::size_t>(record.ancestors, kMaxAncestors);
        const auto tail = at.tail<ProcessIdentityRecord>(count * sizeof(AncestorRecord));
        journal_.identity = record;
        journal_.ancestors.resize(tail.size() / sizeof(AncestorRecord));
        if (!journal_.ancestors.empty())
            std::memcpy(journal_.ancestors.data(), tail.data(),
                        journal_.ancestors.size() * sizeof(AncestorRecord));
    }

    // Losses before the session began are not its losses.
    void forget_losses() {
        before_ = totals_;
        for (auto& [id, thread] : journal_.threads) {
            thread.dropped = thread.overwritten_chunks = thread.resyncs = thread.clamped = 0;
        }
    }

    void read_start(const SessionStartRecord& record) {
        if (index_.count(record.session) != 0) return;
        index_.emplace(record.session, journal_.sessions.size());
        SessionMarks marks;
        marks.id = record.session;
        marks.start_ticks = record.ticks;
        marks.scopes = record.scopes;
        marks.thread = record.thread;
        marks.option_bits = record.option_bits;
        marks.device_types = record.device_types;
        marks.policy = record.policy;
        marks.max_bytes = record.max_bytes;
        journal_.sessions.push_back({std::move(marks), record.name});
        if (wanted_ == 0) wanted_ = record.session;
        if (record.session == wanted_) forget_losses();
        saw(record.ticks);
    }

    void read_stop(const SessionStopRecord& record) {
        const auto found = index_.find(record.session);
        if (found == index_.end() || (end_ticks_ != 0 && record.ticks > end_ticks_)) return;
        SessionMarks& marks = journal_.sessions[found->second].marks;
        marks.stopped = true;
        marks.stop_ticks = std::max(record.ticks, marks.start_ticks);
        marks.size_limit_reached = record.size_limit_reached != 0;
        if (record.session == wanted_) has_stopped_ = true;
        saw(record.ticks);
    }

    Journal& journal_;
    std::uint64_t wanted_;
    std::uint64_t end_ticks_;
    std::unordered_map<std::uint64_t, std::size_t> index_;
    bool has_stopped_ = false;  // later losses are not the session's losses either
    std::unordered_map<std::uint32_t, LossesRecord> totals_;  // the last of each thread
    std::unordered_map<std::uint32_t, LossesRecord> before_;  // those when the session started
};

}  // namespace

Journal read_journal(std::span<const std::byte> stream, std::uint64_t session, std::uint64_t end_ticks) {
    Journal journal;
    JournalReader reader(journal, session, end_ticks);
    for (StreamCursor at(stream); at.next();) reader.read(at);
    return journal;
}

std::vector<SessionMarks> list_sessions(const RawLog& log) {
    const NameTables names = read_names(log.names);
    Journal journal = read_journal(log.journal, 0);
    std::vector<SessionMarks> sessions;
    sessions.reserve(journal.sessions.size());
    for (JournalSession& session : journal.sessions) {
        if (session.name < names.strings.size()) session.marks.name = names.strings[session.name];
        sessions.push_back(std::move(session.marks));
    }
    return sessions;
}

}  // namespace marey
