// event_message_fuzzer.cpp: any bytes as an event message, and any body in a valid envelope.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include <marey/error.h>
#include <marey/remote.h>

#include "base/checksum.h"
#include "collect/event_message.h"
#include "collect/remote_events.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"
#include "trace/saved_trace.h"
#include "trace/trace_difference_fixture.h"

namespace {

void require(bool holds, const char* what, const std::string& detail = "") {
    if (holds) return;
    std::fprintf(stderr, "check failed: %s %s\n", what, detail.c_str());
    std::abort();
}

template <class Record>
void put(std::vector<std::byte>& journal, marey::detail::JournalKind kind, Record record,
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
    using namespace marey::detail;
    marey::RawLog log;
    log.clock_source = ClockSource::Injected;
    SessionStartRecord start{};
    start.session = 1;
    start.ticks = 1;
    put(log.journal, JournalKind::SessionStart, start);
    RemoteEventsRecord record{};
    record.head.reserved = is_our_clock ? marey::kRemoteClockIsOurs : 0;
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
    const marey::Trace trace = marey::build_trace(log, {.session = 1, .threads = 1});
    const std::string fault = marey::testing::find_fault(trace);
    require(fault.empty(), "the tables are consistent:", fault);
    (void)marey::pack_events(marey::events_of(trace));
    const auto again = marey::unpack_trace(marey::pack_trace(trace.data()), "saved");
    const std::string difference = marey::testing::find_difference(trace.data(), *again);
    require(difference.empty(), "saving keeps every table:", difference);
}

void check(const std::string& bytes) {
    try {
        const marey::EventMessage message = marey::unpack_events(bytes);
        const std::string again = marey::pack_events(message);
        require(marey::pack_events(marey::unpack_events(again)) == again, "packing is stable");
        build(bytes, true);
        build(bytes, false);
    } catch (const marey::Error&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marey::event_message;
    const std::string input(reinterpret_cast<const char*>(data), size);
    check(input);
    std::string honest = marey::pack_events({}).substr(0, kHeaderBytes - 8);
    const auto append = [&](std::uint64_t word) {
        for (int i = 0; i < 8; ++i) honest += static_cast<char>(word >> (8 * i));
    };
    append(kHeaderBytes + size + kChecksumBytes);
    honest += input;
    append(marey::checksum64(std::as_bytes(std::span(honest))));
    check(honest);
    return 0;
}
