// builder.cpp: converts events by their phase.
#include "formats/chrome/builder.h"

#include <algorithm>

#include "analyze/events/event_categories.h"
#include "base/text_hash.h"
#include "formats/sampled_profile.h"

namespace marey {
namespace {

// 73 years around zero: sums and differences of times never overflow.
constexpr std::int64_t kMaxChromeTimeNs = std::int64_t{1} << 61;

constexpr std::string_view kNoBegin = "has no begin event";
constexpr std::string_view kNoEnd = "has no end event";

bool is_far(std::int64_t time_ns) {
    return time_ns > kMaxChromeTimeNs || time_ns < -kMaxChromeTimeNs;
}

}  // namespace

void ChromeBuilder::add(const ChromeEvent& event) {
    if (event.has_text_time)
        violations_.add("event_fields", event.name, event.time_ns, "has a time that is not a number");
    if (event.phase == 'M') {
        add_metadata(event);
    } else if (!is_read_phase(event.phase)) {
        const bool is_empty = !event.has_name && !event.has_time && event.pid.number == ChromeId::kMissing;
        if (event.phase != 0) {
            ++unread_[event.phase];
        } else if (!is_empty) {  // some programs end the list with {}
            add_malformed("missing phase", event);
        }
    } else if (!event.has_time) {
        add_malformed("missing time", event);
    } else if (is_far(event.time_ns) || is_far(event.duration_ns)) {
        add_malformed("time out of range", event);
    } else {
        add_timed(event);
    }
}

void ChromeBuilder::add_timed(const ChromeEvent& event) {
    switch (event.phase) {
        case 'X':
            return add_complete(event);
        case 'B':
            return begin(event);
        case 'E':
            return end(event);
        case 'b':
        case 'S':
            return begin_async(event);
        case 'e':
        case 'F':
            return end_async(event);
        case 'C':
            return add_counter(event);
        case 's':
        case 't':
        case 'f':
            return add_flow(event);
        default:  // i, I, R, and points of async events: n, T, p
            return add_instant(event);
    }
}

// ---- ranges

void ChromeBuilder::add_complete(const ChromeEvent& event) {
    if (is_window_mark(event)) return;
    // Our exporter adds user ranges on device queues, which follow from the others.
    if (facts_.is_marey_trace && arguments_.has(ChromeKey::Derived) &&
        assembler_.text(event.category) == "gpu_user_annotation")
        return;
    if (!event.has_duration) ++no_duration_;
    if (!event.has_duration || event.duration_ns < 0)
        violations_.add("event_fields", event.name, event.time_ns, "has no duration or a negative one");
    const std::uint32_t row = rows_.index(event.pid, event.tid);
    violations_.add_range(row, event.name, event.time_ns, event.time_ns + event.duration_ns);
    const RangeProperties facts = describe(event, row);
    const std::uint32_t lane = rows_.lane(row);
    const RangeId range =
        add_range(lane, event.time_ns, event.time_ns + event.duration_ns, facts, arguments_.finish());
    if (range == TraceAssembler::LinkEnd::kNoRange) return;
    ImportedRow& state = rows_.at(row);
    state.last_range = range;
    state.last_start_ns = event.time_ns;
    if (event.has_bind_id) add_bound_flows(event, range);
}

ChromeBuilder::RangeProperties ChromeBuilder::describe(const ChromeEvent& event, std::uint32_t row) {
    RangeProperties facts;
    ChromeSiteKey key{event.name, event.category};
    const CategoryMeaning& meaning = sites_.meaning(event.category);
    facts.is_device = meaning.place == CategoryMeaning::Place::Device;
    if (meaning.is_sampled) facts.flags |= kSampled;
    has_samples_ = has_samples_ || meaning.is_sampled;
    if (facts.is_device) read_device(row, meaning);
    if (arguments_.has_special()) {
        if (meaning.place != CategoryMeaning::Place::Host) {
            const std::int64_t correlation = arguments_.integer(ChromeKey::Correlation).value_or(0);
            facts.has_correlation = correlation != 0;
            facts.correlation = static_cast<std::uint64_t>(correlation);
        }
        read_numbers(facts);
        if (facts_.is_marey_trace) read_marey_arguments(facts, key);
    }
    facts.site = sites_.site(key);
    return facts;
}

void ChromeBuilder::read_numbers(RangeProperties& facts) {
    if (const auto sequence = arguments_.integer(ChromeKey::Sequence); sequence && *sequence >= 0) {
        facts.detail.sequence = *sequence;
        arguments_.forget(ChromeKey::Sequence);
        const std::int64_t forward = arguments_.integer(ChromeKey::ForwardThread).value_or(-1);
        if (forward >= 0 && forward <= std::numeric_limits<std::uint32_t>::max()) {
            facts.detail.forward_thread = static_cast<std::uint32_t>(forward);
            arguments_.forget(ChromeKey::ForwardThread);
        }
    }
    if (const auto id = arguments_.integer(ChromeKey::RecordFunctionId); id && *id >= 0) {
        facts.detail.id = static_cast<std::uint64_t>(*id);
        arguments_.forget(ChromeKey::RecordFunctionId);
    }
    facts.is_unfinished = arguments_.take_bool(ChromeKey::Finished, false);
}

/// Reads the members that our exporter adds.
void ChromeBuilder::read_marey_arguments(RangeProperties& facts, ChromeSiteKey& key) {
    read_marey_site(key);
    if (arguments_.take_bool(ChromeKey::BeganBefore, true)) facts.flags |= kBeganBefore;
    if (arguments_.take_bool(ChromeKey::EndInferred, true)) facts.flags |= kEndInferred;
    if (const auto call = arguments_.integer(ChromeKey::CallNumber); call && *call > 0) {
        facts.detail.call = static_cast<std::uint64_t>(*call);
        arguments_.forget(ChromeKey::CallNumber);
        const std::int64_t part = arguments_.integer(ChromeKey::CallPart).value_or(-1);
        if (part >= 0 && part <= (kFirstPart | kLastPart | kWholeCall | kTask)) {
            facts.detail.part = static_cast<std::uint32_t>(part);
            arguments_.forget(ChromeKey::CallPart);
        }
    }
    // Ids that the exporter generates.
    for (const ChromeKey made : {ChromeKey::ExternalId, ChromeKey::EventIndex, ChromeKey::PythonId,
                                 ChromeKey::PythonParent, ChromeKey::PythonThread, ChromeKey::Correlation})
        arguments_.forget(made);
}

void ChromeBuilder::read_marey_site(ChromeSiteKey& key) {
    key.at = arguments_.take_string(ChromeKey::At);
    key.scope = arguments_.take_string(ChromeKey::ScopeName);
    key.overload = arguments_.take_string(ChromeKey::Overload);
    key.mangled = arguments_.take_string(ChromeKey::MangledName);
}

/// The row of a device event is a device stream. Values that match the row are removed from the event.
void ChromeBuilder::read_device(std::uint32_t index, const CategoryMeaning& meaning) {
    ImportedRow& row = rows_.at(index);
    const auto device = arguments_.integer(ChromeKey::DeviceNumber);
    const auto stream = arguments_.integer(ChromeKey::Stream);
    if (!row.is_device) row.device_type = meaning.device;
    row.is_device = true;
    if (row.device < 0 && device) row.device = *device;
    if (row.stream < 0 && stream) row.stream = *stream;
    if (device && *device == row.device) arguments_.forget(ChromeKey::DeviceNumber);
    if (stream && *stream == row.stream) arguments_.forget(ChromeKey::Stream);
}

ChromeBuilder::RangeId ChromeBuilder::add_range(std::uint32_t lane, std::int64_t start_ns,
                                                std::int64_t end_ns, const RangeProperties& facts,
                                                std::span<const Argument> values) {
    see(start_ns);
    see(end_ns);
    if ((facts.detail.part & kWholeCall) != 0) {  // generated by our exporter from the parts
        if ((facts.detail.part & kTask) != 0)
            assembler_.add_task(lane, facts.detail.call, assembler_.name_of_site(facts.site));
        return TraceAssembler::LinkEnd::kNoRange;
    }
    const RangeId range = assembler_.add_range(lane, start_ns, end_ns - start_ns, facts.site, facts.flags);
    assembler_.add_values(range, values);
    const RangeDetail& detail = facts.detail;
    if (detail.sequence >= 0 || detail.id != 0 || detail.call != 0) assembler_.add_detail(range, detail);
    if (facts.is_unfinished) unfinished_.push_back({range, end_ns});
    if (facts.has_correlation) flows_.add_launch(facts.correlation, range, facts.is_device);
    return range;
}

ChromeBuilder::Open ChromeBuilder::opened(const ChromeEvent& event) {
    const std::uint32_t row = rows_.index(event.pid, event.tid);
    const RangeProperties facts = describe(event, row);
    const std::span<const Argument> values = arguments_.finish();
    see(event.time_ns);
    return {event.time_ns, row, event.name, facts, {values.begin(), values.end()}};
}

void ChromeBuilder::begin(const ChromeEvent& event) {
    Open open = opened(event);
    if (open.row >= open_.size()) open_.resize(open.row + 1);
    rows_.lane(open.row);
    open_[open.row].push_back(std::move(open));
}

/// Ends the innermost open range or, if the name matches an outer one, that range and all ranges inside it.
void ChromeBuilder::end(const ChromeEvent& event) {
    const std::uint32_t row = rows_.index(event.pid, event.tid);
    if (row >= open_.size() || open_[row].empty()) return add_unmatched_end(event);
    std::vector<Open>& stack = open_[row];
    if (event.has_name && event.name != stack.back().name) {
        const bool is_open =
            std::ranges::any_of(stack, [&](const Open& open) { return open.name == event.name; });
        if (!is_open && event.name != 0) return add_unmatched_end(event);
        for (; is_open && stack.back().name != event.name; stack.pop_back()) {
            ++mismatched_ends_;
            violations_.add("begin_end", stack.back().name, stack.back().time_ns, kNoEnd);
            close(rows_.lane(row), stack.back(), event.time_ns, kEndInferred);
        }
    }
    violations_.add_range(row, stack.back().name, stack.back().time_ns, event.time_ns);
    close(rows_.lane(row), stack.back(), event.time_ns, 0, arguments_.finish());
    stack.pop_back();
}

void ChromeBuilder::add_unmatched_end(const ChromeEvent& event) {
    ++unmatched_ends_;
    violations_.add("begin_end", event.name, event.time_ns, kNoBegin);
}

void ChromeBuilder::close(std::uint32_t lane, Open& open, std::int64_t end_ns, std::uint16_t flags,
                          std::span<const Argument> more) {
    open.values.insert(open.values.end(), more.begin(), more.end());
    open.facts.flags |= flags;
    add_range(lane, open.time_ns, end_ns, open.facts, open.values);
}

// ---- async

std::uint64_t ChromeBuilder::async_key(const ChromeEvent& event) const {
    std::uint64_t key = mix_hash(event.id, event.category);
    if (event.is_local_id)
        key =
            mix_hash(key, static_cast<std::uint64_t>(event.pid.number) ^ std::uint64_t{event.pid.text} << 40);
    const bool is_old_form = event.phase == 'S' || event.phase == 'F';
    return is_old_form ? mix_hash(key, event.name) : key;
}

void ChromeBuilder::begin_async(const ChromeEvent& event) {
    if (!event.has_id) return add_malformed("async event without an id", event);
    open_async_[async_key(event)].push_back(opened(event));
}

void ChromeBuilder::end_async(const ChromeEvent& event) {
    if (!event.has_id) return add_malformed("async event without an id", event);
    const std::uint64_t key = async_key(event);
    const std::span<const Argument> values = arguments_.finish();
    const auto found = open_async_.find(key);
    if (found == open_async_.end() || found->second.empty() || found->second.back().time_ns > event.time_ns) {
        early_ends_[key].push_back({event.time_ns, event.name, {values.begin(), values.end()}});
        return;
    }
    Open& open = found->second.back();
    close(rows_.async_lane(open.row), open, event.time_ns, 0, values);
    found->second.pop_back();
    if (found->second.empty()) open_async_.erase(found);
}

/// Begin events, latest first, take the first end that is not before them.
void ChromeBuilder::match_early_ends() {
    for (auto& [key, ends] : early_ends_) {
        const auto found = open_async_.find(key);
        if (found == open_async_.end()) {
            unmatched_ends_ += ends.size();
            for (const EarlyEnd& end : ends) violations_.add("begin_end", end.name, end.time_ns, kNoBegin);
            continue;
        }
        std::multimap<std::int64_t, EarlyEnd*> by_time;
        for (EarlyEnd& end : ends) by_time.emplace(end.time_ns, &end);
        std::vector<Open>& begins = found->second;
        std::ranges::stable_sort(begins, {}, &Open::time_ns);
        std::vector<Open> rest;
        for (; !begins.empty(); begins.pop_back()) {
            const auto end = by_time.lower_bound(begins.back().time_ns);
            if (end == by_time.end()) {
                rest.push_back(std::move(begins.back()));
                continue;
            }
            close(rows_.async_lane(begins.back().row), begins.back(), end->first, 0, end->second->values);
            by_time.erase(end);
        }
        begins = std::move(rest);
        unmatched_ends_ += by_time.size();
        for (const auto& [time_ns, end] : by_time) violations_.add("begin_end", end->name, time_ns, kNoBegin);
    }
}

void ChromeBuilder::add_unmatched_begins(std::span<const Open> begins) {
    unmatched_begins_ += begins.size();
    for (const Open& open : begins) violations_.add("begin_end", open.name, open.time_ns, kNoEnd);
}

/// Ranges that are still open end with the window.
void ChromeBuilder::close_all() {
    match_early_ends();
    for (std::vector<Open>& stack : open_) {
        add_unmatched_begins(stack);
        for (Open& open : stack) close(rows_.lane(open.row), open, last_ns_, kUnfinished);
    }
    for (auto& [key, begins] : open_async_) {
        add_unmatched_begins(begins);
        for (Open& open : begins) close(rows_.async_lane(open.row), open, last_ns_, kUnfinished);
    }
}

// ---- points in time

/// The site of an instant or a counter.
std::uint32_t ChromeBuilder::point_site(const ChromeEvent& event) {
    ChromeSiteKey key{event.name, event.category};
    if (facts_.is_marey_trace) read_marey_site(key);
    return sites_.site(key);
}

void ChromeBuilder::add_instant(const ChromeEvent& event) {
    if (is_window_mark(event)) return;
    const Row thread = rows_.thread(rows_.index(event.pid, event.tid));
    see(event.time_ns);
    if (add_memory(event, thread)) return;
    const std::uint32_t site = point_site(event);
    assembler_.add_instant(thread, event.time_ns, site, arguments_.finish());
}

/// Reads PyTorch's allocation reports.
bool ChromeBuilder::add_memory(const ChromeEvent& event, Row thread) {
    const std::string& name = assembler_.text(event.name);
    const bool out_of_memory = name == "[OutOfMemory]";
    if ((!out_of_memory && name != "[memory]") || !arguments_.integer(ChromeKey::Bytes)) return false;
    AllocationReport report{.time_ns = event.time_ns,
                            .address = arguments_.take_address(),
                            .bytes = *arguments_.take_integer(ChromeKey::Bytes),
                            .total_allocated = arguments_.take_integer(ChromeKey::TotalAllocated).value_or(0),
                            .total_reserved = arguments_.take_integer(ChromeKey::TotalReserved).value_or(0),
                            .out_of_memory = out_of_memory};
    const std::int64_t type = arguments_.take_integer(ChromeKey::DeviceType).value_or(0);
    const std::int64_t index = arguments_.take_integer(ChromeKey::DeviceId).value_or(-1);
    report.device.type = type >= 0 && type <= 255 ? static_cast<DeviceType>(type) : DeviceType::Other;
    report.device.index = index >= 0 && index <= std::numeric_limits<std::int32_t>::max()
                              ? static_cast<std::int32_t>(index)
                              : -1;
    assembler_.add_memory(thread, report);
    return true;
}

void ChromeBuilder::add_counter(const ChromeEvent& event) {
    const Row thread = rows_.thread(rows_.index(event.pid, event.tid));
    ChromeSiteKey key{event.name, event.category};
    if (facts_.is_marey_trace) read_marey_site(key);
    const std::span<const Argument> series = arguments_.finish();
    for (const Argument& value : series) {
        double number = 0;
        if (value.kind == ValueKind::Int) {
            number = static_cast<double>(value.integer);
        } else if (value.kind == ValueKind::Double) {
            number = value.real;
        } else if (value.kind == ValueKind::Bool) {
            number = value.boolean ? 1 : 0;
        } else if (value.kind == ValueKind::None) {
            number = std::numeric_limits<double>::quiet_NaN();  // as our exporter writes it
        } else {
            ++unread_series_;
            continue;
        }
        if (series.size() > 1 || event.has_id) {
            text_ = assembler_.text(event.name);
            if (event.has_id)
                text_ += "[" +
                         (event.id_text.empty() ? std::to_string(event.id) : std::string(event.id_text)) +
                         "]";
            if (series.size() > 1) text_ += " " + assembler_.text(value.key);
            key.name = assembler_.string(text_);
        }
        see(event.time_ns);
        assembler_.add_counter(thread, event.time_ns, sites_.site(key), number);
    }
}

// ---- flows

void ChromeBuilder::add_flow(const ChromeEvent& event) {
    if (!event.has_id) return add_malformed("flow event without an id", event);
    const std::uint32_t row = rows_.index(event.pid, event.tid);
    const ImportedRow& state = rows_.at(row);
    const std::string& name = assembler_.text(event.name);
    LinkKind kind = LinkKind::Flow;
    if (name == "fwdbwd") kind = LinkKind::ForwardBackward;
    if (name == "remote") kind = LinkKind::Remote;
    if (name == "ac2g" || name == "async_cpu_to_gpu") {
        kind = LinkKind::Launch;
        if (event.phase == 'f') flows_.add_known_flow(event.number_of_id);
    }
    const bool is_named = kind == LinkKind::Flow && !(facts_.is_marey_trace && name == "flow");
    LinkEnd place;
    place.time_ns = event.time_ns;
    if (state.last_range != LinkEnd::kNoRange && state.last_start_ns == event.time_ns) {
        place.range = state.last_range;
    } else {
        place.lane = rows_.lane(row);
        place.is_next = event.phase == 'f' && event.bind_point != 'e';
    }
    std::uint64_t key = mix_hash(event.id, std::uint64_t{event.name} << 32 | event.category);
    if (event.is_local_id) key = mix_hash(key, static_cast<std::uint64_t>(event.pid.number));
    const auto point = event.phase == 's'   ? ImportedFlows::Point::Start
                       : event.phase == 't' ? ImportedFlows::Point::Step
                                            : ImportedFlows::Point::End;
    const StringId shown = event.name != 0 ? event.name : event.category;
    flows_.add(key, point, place, kind, is_named ? shown : 0);
}

/// The newer form: a range itself declares incoming and outgoing flows.
void ChromeBuilder::add_bound_flows(const ChromeEvent& event, RangeId range) {
    if (!event.flows_in && !event.flows_out) return;
    LinkEnd place{.range = range, .time_ns = event.time_ns};
    const auto point = event.flows_in && event.flows_out ? ImportedFlows::Point::Step
                       : event.flows_in                  ? ImportedFlows::Point::End
                                                         : ImportedFlows::Point::Start;
    flows_.add(mix_hash(event.bind_id, 0x62696E64), point, place, LinkKind::Flow, event.category);
}

// ---- metadata

/// Reads the span and the two instants by which PyTorch and our exporter mark the window.
bool ChromeBuilder::is_window_mark(const ChromeEvent& event) {
    if (event.pid.text == 0) return false;
    const std::string& name = assembler_.text(event.name);
    const std::string& pid = assembler_.text(event.pid.text);
    const bool is_span = event.phase == 'X' && pid == "Spans" && assembler_.text(event.category) == "Trace";
    const bool is_start = event.phase != 'X' && pid == "Traces" && name.starts_with("Iteration Start");
    const bool is_end = event.phase != 'X' && name == "Record Window End";
    if (!is_span && !is_start && !is_end) return false;
    if (is_end) violations_.end_window(event.time_ns);
    if (is_end && facts_.is_marey_trace) return true;  // the span ends with the window, this a little later
    see(event.time_ns);
    if (is_span) see(event.time_ns + std::max<std::int64_t>(event.duration_ns, 0));
    return true;
}

void ChromeBuilder::add_metadata(const ChromeEvent& event) {
    const std::string& what = assembler_.text(event.name);
    if (what == "process_name") {
        rows_.name_process(event.pid, arguments_.take_string(ChromeKey::Name));
    } else if (what == "process_labels") {
        rows_.label_process(event.pid, arguments_.take_string(ChromeKey::Labels));
    } else if (what == "thread_name") {
        name_row(event);
    } else if (what == kChromeWindow) {
        see(event.time_ns);
        see(event.time_ns + std::max<std::int64_t>(event.duration_ns, 0));
    } else if (what != "process_sort_index" && what != "thread_sort_index") {
        ++unread_metadata_;
    }
}

void ChromeBuilder::name_row(const ChromeEvent& event) {
    const std::uint32_t index = rows_.index(event.pid, event.tid);
    rows_.name_row(index, arguments_.take_string(ChromeKey::Name));
    const auto owner = arguments_.integer(ChromeKey::ThreadOwner);
    if (!facts_.is_marey_trace || !owner) return;
    ChromeId pid = event.pid;
    if (const auto given = arguments_.integer(ChromeKey::ThreadPid)) pid = {*given, 0};
    const std::uint32_t owner_index = rows_.index(pid, {*owner, 0});
    const std::string& kind = assembler_.text(arguments_.take_string(ChromeKey::TrackKind));
    ImportedRow& row = rows_.at(index);
    if (row.thread != kNoRow) return;                     // too late
    if (owner_index == index && kind != "async") return;  // an ordinary thread
    row.owner = owner_index;
    row.kind = kind == "async"     ? ImportedRow::Kind::Async
               : kind == "overlap" ? ImportedRow::Kind::Overlap
                                   : ImportedRow::Kind::Track;
}

Trace ChromeBuilder::finish() {
    if (first_ns_ > last_ns_) first_ns_ = last_ns_ = 0;
    close_all();
    violations_.finish(first_ns_, last_ns_);
    std::uint64_t ended = 0;
    for (const Unfinished& range : unfinished_) {
        if (range.end_ns == last_ns_) {
            assembler_.add_flags(range.range, kUnfinished);
        } else {
            ++ended;
        }
    }
    assembler_.add_problem("ended_early", "unfinished ranges end before the end of the window", ended);
    flows_.finish();
    rows_.finish(facts_.is_marey_trace);
    rows_.add_facts(facts_.base_ns, facts_.rank, facts_.host);
    add_problems();
    assembler_.set_window(first_ns_, last_ns_);
    return assembler_.finish();
}

void ChromeBuilder::add_problems() {
    const auto add = [&](const char* code, const std::string& text, std::uint64_t count) {
        assembler_.add_problem(code, text, count);
    };
    if (has_samples_) add_sampled_problem(assembler_);
    for (const auto& [cause, count] : malformed_)
        add("malformed_event", "events could not be read: " + cause, count);
    for (const auto& [phase, count] : unread_) {
        std::string_view what = "unknown";
        if (std::string_view("NOD").find(phase) != std::string_view::npos) what = "objects";
        if (phase == 'v' || phase == 'V') what = "memory dumps";
        if (phase == 'P') what = "samples";
        if (phase == 'c') what = "clock synchronization";
        if (phase == '(' || phase == ')') what = "contexts";
        add("unread_phase",
            std::string("events of phase '") + phase + "' (" + std::string(what) + ") are not read", count);
    }
    add("unmatched_end", "end events without a begin event", unmatched_ends_);
    add("unmatched_begin", "begin events without an end event; their ranges end with the window",
        unmatched_begins_);
    add("mismatched_end", "ranges without an end event were ended by the end of an enclosing range",
        mismatched_ends_);
    add("no_duration", "complete events without a duration were given a duration of 0", no_duration_);
    add("unread_series", "counter values that are not numbers were skipped", unread_series_);
    add("unread_metadata", "metadata events of unknown names", unread_metadata_);
}

}  // namespace marey
