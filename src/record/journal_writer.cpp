// journal_writer.cpp: interning, and how names and the journal get into captures and into the logs of
// sessions.
#include "record/journal_writer.h"

#include <algorithm>

#include "native/function_name.h"
#include "record/clocks/clock.h"
#include "record/recorder_parts.h"
#include "record/stack_numbers.h"
#include "record/value_encoding.h"

namespace marey {

using detail::JournalKind;

namespace {

class SiteSet {
  public:
    void add(std::uint32_t site) {
        if (site < detail::kFirstRunTimeSite) return;
        const std::size_t place = site - detail::kFirstRunTimeSite;
        if (place >= seen_.size()) seen_.resize(place + 1);
        if (seen_[place]) return;
        seen_[place] = true;
        sites.push_back(site);
    }
    std::vector<std::uint32_t> sites;

  private:
    std::vector<bool> seen_;
};

template <class Record>
Record record_at(const std::byte* place) {
    Record record;
    std::memcpy(&record, place, sizeof record);
    return record;
}

void add_sites(SiteSet& sites, const LogSpan& span) {
    for (std::size_t at = 0; at + detail::kRecordUnit <= span.bytes;) {
        const std::byte* const place = span.data + at;
        const auto kind = static_cast<detail::RecordKind>(*place);
        if ((static_cast<std::uint8_t>(kind) & detail::kLongBit) != 0) {
            if (span.bytes - at < sizeof(detail::LongRecord)) return;
            const auto record = record_at<detail::LongRecord>(place);
            if (record.units == 0) return;
            sites.add(record.site);
            at += record.units * detail::kRecordUnit;
            continue;
        }
        // A Resumed has the site of another record of its block.
        if (kind == detail::RecordKind::Range || kind == detail::RecordKind::Instant)
            sites.add(record_at<detail::CompactRecord>(place).word1 & (detail::kMaxSites - 1));
        at += detail::kRecordUnit;
    }
}

void add_sites(SiteSet& sites, const std::vector<std::byte>& journal) {
    for (std::size_t at = 0; at + sizeof(detail::StreamRecord) <= journal.size();) {
        const auto head = record_at<detail::StreamRecord>(journal.data() + at);
        if (head.kind == static_cast<std::uint16_t>(JournalKind::OpenAtStop))
            sites.add(record_at<detail::OpenAtStopRecord>(journal.data() + at).site);
        at += head.bytes;
    }
}

// The run-time sites that a log of this process refers to, each once. Takes time for the log, not for the
// names of the process.
std::vector<std::uint32_t> run_time_sites_of(const RawLog& log) {
    SiteSet sites;
    for (const LogSpan& span : log.spans) add_sites(sites, span);
    for (const OpenRange& open : log.open) sites.add(open.site);
    add_sites(sites, log.journal);
    return std::move(sites.sites);
}

}  // namespace

// ---- names ----

void JournalWriter::publish_names() noexcept {
    const auto append_names = [this](std::span<const std::byte> records) MAREY_REQUIRES(recorder_mutex) {
        if (!records.empty() && !store_.spool->append_names(records))
            add_note("names_lost", store_.spool->path() + ": no space left for names");
    };
    if (store_.spool) {
        append_names(
            std::span(names_.stream()).subspan(std::exchange(names_in_spool_, names_.stream().size())));
        append_names(names_.queued_stream());
    }
    names_.show();
}

void JournalWriter::mirror_stacks() noexcept {
    if (!stack_numbers().mirror(store_.spool.get()))
        add_note("names_lost", store_.spool->path() + ": no space left for stacks");
}

void JournalWriter::use_hidden_site(std::uint32_t site) noexcept {
    const ScopedLock lock(recorder_mutex);
    names_.use(site);
    publish_names();
}

void JournalWriter::add_run_time_names(RawLog& log) const {
    for (const std::uint32_t site : run_time_sites_of(log)) names_.append_run_time_site(log.names, site);
    stack_numbers().append_to(log.names);
}

std::uint32_t JournalWriter::register_site(const detail::Site& site) noexcept {
    if (site.layout != detail::kLayoutNumber) {
        note("layout_mismatch",
             std::string("a library was built with a different version of Marey's headers (layout ") +
                 std::to_string(site.layout) + " instead of " + std::to_string(detail::kLayoutNumber) +
                 "); its ranges are not recorded");
        return 0;
    }
    const bool is_function = site.name_form == detail::SiteName::Signature;
    const std::string name = site.name != nullptr ? site.name : "";
    return intern_site(is_function ? function_name(name) : name, site.file != nullptr ? site.file : "",
                       site.line, site.scope, is_function ? std::uint32_t{detail::kSiteFunction} : 0);
}

std::uint32_t JournalWriter::intern_site(std::string_view name, std::string_view file, std::uint32_t line,
                                         Scope scope, std::uint32_t flags,
                                         std::string_view category) noexcept {
    const ScopedLock lock(recorder_mutex);
    const std::uint32_t id = names_.intern_site(name, file, line, scope, flags, names_.intern(category));
    publish_names();
    return id;
}

std::uint32_t JournalWriter::intern_dynamic(std::string_view name, Scope scope,
                                            std::uint32_t category) noexcept {
    const ScopedLock lock(recorder_mutex);
    const std::uint32_t id = names_.intern_dynamic(name, scope, category);
    publish_names();
    return id;
}

std::uint32_t JournalWriter::intern(std::string_view text) noexcept {
    const ScopedLock lock(recorder_mutex);
    const std::uint32_t id = names_.intern(text);
    publish_names();
    return id;
}

std::uint32_t JournalWriter::intern_key(std::string_view text) noexcept {
    const ScopedLock lock(recorder_mutex);
    const std::uint32_t id = names_.intern_key(text);
    publish_names();
    return id;
}

std::uint32_t JournalWriter::intern_module(std::string_view path, std::string_view build_id,
                                           std::uint64_t bias) noexcept {
    const ScopedLock lock(recorder_mutex);
    const std::uint32_t id = names_.intern_module(path, build_id, bias);
    publish_names();
    return id;
}

void JournalWriter::add_code_place(std::uint32_t place, std::uint32_t site, std::uint32_t line) noexcept {
    const ScopedLock lock(recorder_mutex);
    names_.add_code_place(place, site, line);
    publish_names();
}

void JournalWriter::add_module(std::string_view path, std::string_view build_id, std::uint64_t bias,
                               std::uint64_t begin, std::uint64_t end) noexcept {
    const ScopedLock lock(recorder_mutex);
    const std::uint32_t id = names_.intern_module(path, build_id, bias);
    if (id != 0) names_.add_module_extent(id, begin, end);
    publish_names();
}

// ---- the journal ----

void JournalWriter::append(std::span<const std::byte> record) noexcept {
    bytes_.insert(bytes_.end(), record.begin(), record.end());
    if (store_.spool) store_.spool->append_journal(record);
}

void JournalWriter::write_clock() noexcept {
    detail::ClockRecord record{};
    record.pair = Clock::pair();
    write(JournalKind::Clock, record);
}

void JournalWriter::write_costs(std::span<const detail::CostRecord> measured) noexcept {
    for (const detail::CostRecord& cost : measured) write(JournalKind::Cost, cost);
    for (const detail::CostRecord& cost : source_costs_) write(JournalKind::Cost, cost);
}

void JournalWriter::add_cost(detail::CostKind kind, std::uint64_t picoseconds) noexcept {
    detail::CostRecord record{};
    record.event = static_cast<std::uint32_t>(kind);
    record.picoseconds = picoseconds;
    const ScopedLock lock(recorder_mutex);
    std::erase_if(source_costs_, [&](const detail::CostRecord& cost) { return cost.event == record.event; });
    source_costs_.push_back(record);
    write(JournalKind::Cost, record);
}

void JournalWriter::add_clock_exchange(std::string_view peer, detail::ClockExchangeRecord record) noexcept {
    record.peer_bytes = static_cast<std::uint32_t>(peer.size());
    const ScopedLock lock(recorder_mutex);
    write(JournalKind::ClockExchange, record, std::as_bytes(std::span(peer)));
}

void JournalWriter::write_fact(std::uint64_t session, std::string_view key, std::span<const std::byte> json) {
    detail::MetadataRecord record{};
    record.session = session;
    record.key = names_.intern(key);
    record.json_bytes = static_cast<std::uint32_t>(json.size());
    publish_names();
    write(JournalKind::Metadata, record, json);
}

void JournalWriter::write_losses(std::uint32_t thread, const detail::ThreadState& state) noexcept {
    detail::LossesRecord record{};
    record.thread = thread;
    record.dropped = detail::load_relaxed(state.dropped);
    record.resyncs = detail::load_relaxed(state.resyncs);
    record.clamped = detail::load_relaxed(state.clamped);
    if (record.dropped + record.resyncs + record.clamped == 0) return;
    write(JournalKind::Losses, record);
}

void JournalWriter::write_overwritten(std::uint64_t session) noexcept {
    for (auto at = overwritten_.lower_bound({session, 0});
         at != overwritten_.end() && at->first.first == session; ++at) {
        detail::LossesRecord record{};
        record.thread = at->first.second;
        record.session = static_cast<std::uint32_t>(session);
        record.overwritten_chunks = at->second.chunks;
        write(JournalKind::Losses, record);
    }
}

void JournalWriter::count_overwritten(std::uint64_t session, std::uint32_t thread) noexcept {
    Overwritten& overwritten = overwritten_[{session, thread}];
    ++overwritten.chunks;
    if (overwritten.in_file != nullptr) {
        detail::store_release(*overwritten.in_file, overwritten.chunks);
    } else if (store_.spool) {
        detail::LossesRecord record{};
        record.head = {static_cast<std::uint16_t>(JournalKind::Losses), 0, sizeof record};
        record.thread = thread;
        record.session = static_cast<std::uint32_t>(session);
        record.overwritten_chunks = overwritten.chunks;
        overwritten.in_file = store_.spool->append_losses(record);
    }
}

void JournalWriter::write_note(std::string_view code, std::string_view text, std::uint64_t count) noexcept {
    detail::NoteRecord record{};
    record.code = names_.intern(code);
    record.text = names_.intern(text);
    record.count = count;
    publish_names();
    write(JournalKind::Note, record);
}

void JournalWriter::add_note(std::string_view code, std::string_view text, bool print) noexcept {
    if (std::find(noted_.begin(), noted_.end(), text) != noted_.end()) return;
    noted_.emplace_back(text);
    if (print) warn(text);
    write_note(code, text);
}

void JournalWriter::note(std::string_view code, std::string_view text, bool print) noexcept {
    const ScopedLock lock(recorder_mutex);
    add_note(code, text, print);
}

void JournalWriter::note_open_part(std::uint32_t thread, std::uint64_t start, std::uint64_t call,
                                   std::uint8_t flags) noexcept {
    detail::OpenPartRecord record{};
    record.start = start;
    record.call = call;
    record.thread = thread;
    record.flags = flags;
    const ScopedLock lock(recorder_mutex);
    write(JournalKind::OpenPart, record);
}

void JournalWriter::add_site_values(std::uint32_t site, std::uint64_t ticks,
                                    std::span<const KeyedValue> values) noexcept {
    const ScopedLock lock(recorder_mutex);
    if (!is_open_) return;
    alignas(8) std::byte payload[detail::kMaxPayloadBytes];
    for (std::size_t next = 0; next < values.size();) {
        // As many as fit; one that is too long for a single record is cut.
        ValueEncoder encoder(payload, payload + sizeof payload);
        const std::size_t first = next;
        for (; next < values.size(); ++next) {
            std::byte* const before = encoder.end();
            if (next != first && before - payload > static_cast<std::ptrdiff_t>(sizeof payload / 2)) break;
            encoder.add(names_.intern(values[next].key), 0, values[next].value, {true, true});
        }
        detail::SiteValuesRecord record{};
        record.ticks = ticks;
        record.site = site;
        record.payload_bytes = static_cast<std::uint32_t>(encoder.end() - payload);
        publish_names();
        write(JournalKind::SiteValues, record, {payload, static_cast<std::size_t>(encoder.end() - payload)});
    }
}

std::vector<std::byte> JournalWriter::bytes_of(std::uint64_t session) const {
    std::vector<std::byte> own;
    for (std::size_t at = 0; at + sizeof(detail::StreamRecord) <= bytes_.size();) {
        detail::StreamRecord head;
        std::memcpy(&head, bytes_.data() + at, sizeof head);
        const auto kind = static_cast<JournalKind>(head.kind);
        const bool marks = kind == JournalKind::SessionStart || kind == JournalKind::SessionStop ||
                           kind == JournalKind::OpenAtStop || kind == JournalKind::RemoteEvents ||
                           kind == JournalKind::Metadata;
        std::uint64_t id = session;
        if (marks) std::memcpy(&id, bytes_.data() + at + sizeof head, sizeof id);
        if (id == session)
            own.insert(own.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at),
                       bytes_.begin() + static_cast<std::ptrdiff_t>(at + head.bytes));
        at += head.bytes;
    }
    return own;
}

// ---- captures and sessions ----

void JournalWriter::begin_capture() noexcept {
    names_in_spool_ = 0;
    names_.begin_capture();
    ++names_number_;
    publish_names();
    mirror_stacks();
    if (!bytes_.empty()) store_.spool->append_journal(bytes_of(0));
}

void JournalWriter::close() noexcept {
    is_open_ = false;
    bytes_.clear();
    overwritten_.clear();
}

void JournalWriter::forked() noexcept {
    close();
    noted_.clear();
    names_in_spool_ = 0;
}

}  // namespace marey
