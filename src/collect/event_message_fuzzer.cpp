// event_message_fuzzer.cpp: any bytes as an event message, and any body in an honest envelope.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include <kymo/error.h>
#include <kymo/remote.h>

#include "base/checksum.h"
#include "collect/event_message.h"
#include "collect/remote_events.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline.h"
#include "trace/saved_trace.h"
#include "trace/trace_difference.h"

namespace {

void require(bool holds, const char* what, const std::string& detail = "") {
    if (holds) return;
    std::fprintf(stderr, "broken promise: %s %s\n", what, detail.c_str());
    std::abort();
}

template <class Record>
void put(std::vector<std::byte>& journal, kymo::detail::JournalKind kind, Record record,
         std::string_view tail = {}) {
    const std::size_t bytes = (sizeof record + tail.size() + 7) / 8 * 8;
    record.head.kind = static_cast<std::uint16_t>(kind);
    record.head.bytes = static_cast<std::uint32_t>(bytes);
    const std::size_t at = journal.size();
    journal.resize(at + bytes);
    std::memcpy(journal.data() + at, &record, sizeof record);
    if (!tail.empty()) std::memcpy(journal.data() + at + sizeof record, tail.data(), tail.size());
}

void build(const std::string& message, bool is_our_clock) {
    using namespace kymo::detail;
    kymo::RawLog log;
    log.clock_source = ClockSource::Injected;
    SessionStartRecord start{};
    start.session = 1;
    start.ticks = 1;
    put(log.journal, JournalKind::SessionStart, start);
    RemoteEventsRecord record{};
    record.head.reserved = is_our_clock ? kymo::kRemoteClockIsOurs : 0;
    record.session = 1;
    record.call_start = 10;
    record.call_end = 1000;
    record.node = -1;
    record.message_bytes = static_cast<std::uint32_t>(message.size());
    put(log.journal, JournalKind::RemoteEvents, record, message);
    SessionStopRecord stop{};
    stop.session = 1;
    stop.ticks = 1'000'000;
    put(log.journal, JournalKind::SessionStop, stop);
    const kymo::Trace trace = kymo::build_trace(log, {.session = 1, .threads = 1});
    const std::string fault = kymo::testing::find_fault(trace);
    require(fault.empty(), "the tables hold together:", fault);
    (void)kymo::pack_events(kymo::events_of(trace));
    const auto again = kymo::unpack_trace(kymo::pack_trace(trace.data()), "saved");
    const std::string difference = kymo::testing::find_difference(trace.data(), *again);
    require(difference.empty(), "saving keeps every table:", difference);
}

void check(const std::string& bytes) {
    try {
        const kymo::EventMessage message = kymo::unpack_events(bytes);
        const std::string again = kymo::pack_events(message);
        require(kymo::pack_events(kymo::unpack_events(again)) == again, "packing is stable");
        build(bytes, true);
        build(bytes, false);
    } catch (const kymo::Error&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kymo::event_message;
    const std::string input(reinterpret_cast<const char*>(data), size);
    check(input);
    std::string honest = kymo::pack_events({}).substr(0, kHeaderBytes - 8);
    const auto append = [&](std::uint64_t word) {
        for (int i = 0; i < 8; ++i) honest += static_cast<char>(word >> (8 * i));
    };
    append(kHeaderBytes + size + kChecksumBytes);
    honest += input;
    append(kymo::checksum64(std::as_bytes(std::span(honest))));
    check(honest);
    return 0;
}
