// event_message_fuzzer.cpp: any bytes as an event message, and any columns under valid checksums.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <marey/error.h>
#include <marey/remote.h>

#include "collect/remote_events.h"
#include "collect/trace_builder.h"
#include "trace/saved_trace_repair_fixture.h"
#include "trace/trace_data.h"
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
    const std::string damage = marey::find_damage(trace.data());
    require(damage.empty(), "the tables are consistent:", damage);
    const auto again = marey::unpack_events(marey::pack_events(trace));
    const std::string difference = marey::testing::find_difference(trace.data(), again.data());
    require(difference.empty(), "sending keeps every table:", difference);
    const auto some = marey::unpack_events(
        marey::pack_events(trace, {.ranges = [](marey::Row row) { return row % 2 == 0; }, .memory = false}));
    require(some.ranges().size() == (trace.ranges().size() + 1) / 2, "every other range is sent");
}

void check(const std::vector<std::byte>& bytes) {
    const std::string message(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    try {
        (void)marey::unpack_events(message);
    } catch (const marey::Error&) {
        return;
    }
    build(message, true);
    build(message, false);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto* const first = reinterpret_cast<const std::byte*>(data);
    std::vector<std::byte> bytes(first, first + size);
    check(bytes);
    marey::testing::repair_checksums(bytes);
    check(bytes);
    return 0;
}
