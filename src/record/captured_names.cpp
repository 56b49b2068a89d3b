// captured_names.cpp: interning, and how names get into captures and into the logs of sessions.
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <marey/detail/log_format.h>

#include "native/function_name.h"
#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey {
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
        if (head.kind == static_cast<std::uint16_t>(detail::JournalKind::OpenAtStop))
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

// First into the spool, then visible: a name that a thread finds must be there.
void Recorder::publish_names() noexcept {
    const auto append = [this](std::span<const std::byte> records) {
        if (!records.empty() && !spool_->append_names(records))
            add_note("names_lost", spool_->path() + ": no space left for names");
    };
    if (spool_) {
        append(std::span(names_.stream()).subspan(std::exchange(names_in_spool_, names_.stream().size())));
        append(names_.queued_stream());
    }
    names_.show();
}

void Recorder::use_hidden_site(std::uint32_t site) noexcept {
    std::lock_guard lock(mutex_);
    names_.use(site);
    publish_names();
}

// Called by the owner before its open ranges get into another spool. (A signal handler may have interrupted
// the filling of a slot, so that one without a start counts too.)
void Recorder::use_open_sites(ThreadEntry& entry) noexcept {
    for (std::uint32_t index = 0; index < entry.state->depth; ++index)
        names_.use(site_of(*slot(*entry.state, index)));
    publish_names();
}

void Recorder::add_run_time_names(RawLog& log) const {
    for (const std::uint32_t site : run_time_sites_of(log)) names_.append_run_time_site(log.names, site);
}

std::uint32_t Recorder::register_site(const detail::Site& site) noexcept {
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

std::uint32_t Recorder::intern_site(std::string_view name, std::string_view file, std::uint32_t line,
                                    Scope scope, std::uint32_t flags, std::string_view category) noexcept {
    std::lock_guard lock(mutex_);
    const std::uint32_t id = names_.intern_site(name, file, line, scope, flags, names_.intern(category));
    publish_names();
    return id;
}

std::uint32_t Recorder::intern_dynamic(std::string_view name, Scope scope, std::uint32_t category) noexcept {
    std::lock_guard lock(mutex_);
    const std::uint32_t id = names_.intern_dynamic(name, scope, category);
    publish_names();
    return id;
}

std::uint32_t Recorder::intern(std::string_view text) noexcept {
    std::lock_guard lock(mutex_);
    const std::uint32_t id = names_.intern(text);
    publish_names();
    return id;
}

std::uint32_t Recorder::intern_key(std::string_view text) noexcept {
    std::lock_guard lock(mutex_);
    const std::uint32_t id = names_.intern_key(text);
    publish_names();
    return id;
}

std::uint32_t Recorder::intern_module(std::string_view path, std::string_view build_id,
                                      std::uint64_t bias) noexcept {
    std::lock_guard lock(mutex_);
    const std::uint32_t id = names_.intern_module(path, build_id, bias);
    publish_names();
    return id;
}

}  // namespace marey
