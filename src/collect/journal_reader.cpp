// journal_reader.cpp: reads the two metadata streams. Survives any bytes; memory stays in proportion to them.
#include "collect/journal_reader.h"

#include <algorithm>
#include <cstring>
#include <set>
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

// Code that has ended before it was named has places without records.
constexpr std::size_t kSpareCodePlaces = std::size_t{1} << 16;

void add_stacks(NameTables& tables, const StreamCursor& at, std::size_t max_stacks) {
    StackNodesRecord record;
    if (!at.get(record) || record.first == 0) return;
    const auto nodes = at.tail<StackNodesRecord>(std::uint64_t{record.count} * sizeof(StackNode));
    const std::size_t end = record.first - 1 + nodes.size() / sizeof(StackNode);
    if (nodes.empty() || end > max_stacks) return;
    if (end > tables.frames.stacks.size()) tables.frames.stacks.resize(end);
    std::memcpy(&tables.frames.stacks[record.first - 1], nodes.data(), nodes.size());
}

}  // namespace

NameTables read_names(std::span<const std::byte> stream) {
    NameTables tables;
    // Dense ids make this bound exact; anything beyond it is damage.
    const std::size_t max_strings = stream.size() / sizeof(StringRecord) + 1;
    const std::size_t max_sites = stream.size() / sizeof(SiteRecord) + 1;
    const std::size_t max_modules = stream.size() / sizeof(ModuleRecord) + 1;
    const std::size_t max_places = stream.size() / sizeof(CodePlaceRecord) + kSpareCodePlaces;
    const std::size_t max_stacks =
        stream.size() / sizeof(StackNode) * 4 + 4 * kStackNodes;  // blocks may be missing
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
            if (record.id > tables.frames.modules.size()) tables.frames.modules.resize(record.id);
            tables.frames.modules[record.id - 1] = {record.path, record.build_id, record.bias};
        } else if (const auto place = at.as<CodePlaceRecord>(NameKind::CodePlace)) {
            std::vector<CodePlaceRecord>& places = tables.frames.places;
            if (place->place == 0 || place->place > max_places) continue;
            if (place->place > places.size()) places.resize(place->place);
            places[place->place - 1] = *place;
        } else if (const auto extent = at.as<ModuleExtentRecord>(NameKind::ModuleExtent)) {
            tables.frames.extents.push_back({extent->begin, extent->end, extent->module});
        } else if (at.kind() == static_cast<std::uint16_t>(NameKind::StackNodes)) {
            add_stacks(tables, at, max_stacks);
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
    for (NamedModule& module : tables.frames.modules) {
        known(module.path);
        known(module.build_id);
    }
    std::reverse(tables.frames.extents.begin(), tables.frames.extents.end());
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
        if (const auto started = at.as<ThreadStartedRecord>(JournalKind::ThreadStarted)) {
            if (started->thread == 0) return;
            JournalThread& thread = journal_.threads[started->thread];
            thread.name = started->name;
            thread.os_tid = started->os_tid;
            thread.birth = started->ticks;
            saw(started->ticks);
        } else if (const auto named = at.as<ThreadNamedRecord>(JournalKind::ThreadNamed)) {
            if (named->thread != 0) journal_.threads[named->thread].name = named->name;
        } else if (const auto ended = at.as<ThreadEndedRecord>(JournalKind::ThreadEnded)) {
            if (ended->thread == 0) return;
            journal_.threads[ended->thread].death = ended->ticks;
            saw(ended->ticks);
        } else if (const auto clock = at.as<ClockRecord>(JournalKind::Clock)) {
            journal_.pairs.push_back(clock->pair);
            saw(clock->pair.ticks);
        } else if (const auto start = at.as<SessionStartRecord>(JournalKind::SessionStart)) {
            read_start(*start);
        } else if (const auto stop = at.as<SessionStopRecord>(JournalKind::SessionStop)) {
            read_stop(*stop);
        } else if (const auto open = at.as<OpenAtStopRecord>(JournalKind::OpenAtStop)) {
            if (open->session == wanted_) read_open(*open, at);
        } else if (const auto losses = at.as<LossesRecord>(JournalKind::Losses)) {
            if (losses->thread != 0 && !has_stopped_) read_losses(*losses);
        } else if (const auto cost = at.as<CostRecord>(JournalKind::Cost)) {
            journal_.costs.push_back(*cost);
        } else if (const auto sampling = at.as<SamplingRecord>(JournalKind::Sampling)) {
            if (!has_stopped_) read_sampling(*sampling);
        } else if (const auto note = at.as<NoteRecord>(JournalKind::Note)) {
            journal_.notes.push_back({note->code, note->text, note->count});
        } else if (const auto context = at.as<ContextRecord>(JournalKind::Context)) {
            if (context->count > 0xffff) return;
            const auto tail = at.tail<ContextRecord>(context->count * sizeof(std::uint64_t));
            auto& sessions = journal_.contexts[context->context];
            sessions.resize(tail.size() / sizeof(std::uint64_t));
            if (!tail.empty()) std::memcpy(sessions.data(), tail.data(), tail.size());
        } else if (const auto remote = at.as<RemoteEventsRecord>(JournalKind::RemoteEvents)) {
            if (remote->session != wanted_) return;
            journal_.messages.push_back({*remote, at.tail<RemoteEventsRecord>(remote->message_bytes)});
            saw(remote->call_end);
        } else if (const auto fact = at.as<MetadataRecord>(JournalKind::Metadata)) {
            if (fact->session == wanted_)
                journal_.facts.push_back({fact->key, at.text<MetadataRecord>(fact->json_bytes)});
        } else if (const auto part = at.as<OpenPartRecord>(JournalKind::OpenPart)) {
            if (part->call == 0) return;
            const auto flags = static_cast<std::uint8_t>(part->flags & kPartFirst);
            journal_.open_parts.insert_or_assign({part->thread, part->start}, std::pair{part->call, flags});
        } else if (const auto values = at.as<SiteValuesRecord>(JournalKind::SiteValues)) {
            journal_.site_values.push_back({*values, at.tail<SiteValuesRecord>(values->payload_bytes)});
            saw(values->ticks);
        } else if (const auto end = at.as<ProcessEndRecord>(JournalKind::ProcessEnd)) {
            journal_.process_end = *end;
        } else if (const auto problem = at.as<RunProblemRecord>(JournalKind::RunProblem)) {
            read_run_problem(*problem, at);
        } else if (const auto exchange = at.as<ClockExchangeRecord>(JournalKind::ClockExchange)) {
            journal_.exchanges.push_back({*exchange, at.text<ClockExchangeRecord>(exchange->peer_bytes)});
        } else if (const auto identity = at.as<ProcessIdentityRecord>(JournalKind::ProcessIdentity)) {
            read_identity(*identity, at);
        }
    }

  private:
    void saw(std::uint64_t ticks) { journal_.latest_ticks = std::max(journal_.latest_ticks, ticks); }

    void read_open(const OpenAtStopRecord& record, const StreamCursor& at) {
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

    void read_losses(const LossesRecord& record) {
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

    void read_sampling(SamplingRecord record) {
        last_sampling_ = record;
        for (const auto total : {&SamplingRecord::torn, &SamplingRecord::cut, &SamplingRecord::lost})
            record.*total -= std::min(record.*total, sampling_before_.*total);
        journal_.sampling = record;
    }

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
        sampling_before_ = last_sampling_;
        if (journal_.sampling) read_sampling(last_sampling_);
        for (auto& [id, thread] : journal_.threads) {
            thread.dropped = thread.overwritten_chunks = thread.resyncs = thread.clamped = 0;
        }
    }

    void read_start(const SessionStartRecord& record) {
        if (index_.count(record.session) != 0) return;
        index_.emplace(record.session, journal_.sessions.size());
        SessionMarks marks{.id = record.session,
                           .start_ticks = record.ticks,
                           .scopes = record.scopes,
                           .thread = record.thread,
                           .option_bits = record.option_bits,
                           .device_types = record.device_types,
                           .policy = record.policy,
                           .max_bytes = record.max_bytes};
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
    SamplingRecord last_sampling_{};
    SamplingRecord sampling_before_{};  // that when the session started
    bool has_stopped_ = false;          // later losses are not the session's losses either
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
