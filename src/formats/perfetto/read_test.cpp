// read_test.cpp: traces as other programs write them.
#include <gtest/gtest.h>

#include <string>

#include <marey/error.h>
#include <marey/import.h>

#include "formats/perfetto/fields.h"
#include "formats/perfetto/proto_fixture.h"
#include "formats/perfetto/read.h"

#if MAREY_HAVE_PROTOZERO

namespace marey {
namespace {

using namespace perfetto;
using testing::Proto;

class PerfettoTest : public ::testing::Test {
  protected:
    Proto packet(std::uint32_t sequence = 1) { return Proto().number(PacketField::SequenceId, sequence); }
    void add(const Proto& packet) { file_.message(TraceField::Packet, packet); }
    /// A process 10 (uuid 1) with a thread 11 (uuid 2).
    void add_thread() {
        add(packet()
                .number(PacketField::SequenceFlags, kStateClearedFlag)
                .message(
                    PacketField::TrackDescriptor,
                    Proto()
                        .number(TrackField::Uuid, 1)
                        .message(TrackField::Process,
                                 Proto().number(ProcessField::Pid, 10).text(ProcessField::Name, "app"))));
        add(packet().message(PacketField::TrackDescriptor,
                             Proto()
                                 .number(TrackField::Uuid, 2)
                                 .number(TrackField::ParentUuid, 1)
                                 .message(TrackField::Thread, Proto()
                                                                  .number(ThreadField::Pid, 10)
                                                                  .number(ThreadField::Tid, 11)
                                                                  .text(ThreadField::Name, "main"))));
    }
    void add_track(std::uint64_t uuid, std::uint64_t parent, std::string_view name) {
        add(packet().message(PacketField::TrackDescriptor, Proto()
                                                               .number(TrackField::Uuid, uuid)
                                                               .number(TrackField::ParentUuid, parent)
                                                               .text(TrackField::Name, name)));
    }
    static Proto event(std::int32_t type, std::uint64_t track, std::string_view name = "") {
        Proto event;
        event.number(EventField::Type, static_cast<std::uint64_t>(type)).number(EventField::TrackUuid, track);
        if (!name.empty()) event.text(EventField::Name, name);
        return event;
    }
    void add_event(std::uint64_t time, const Proto& event) {
        add(packet().number(PacketField::Timestamp, time).message(PacketField::TrackEvent, event));
    }
    void add_phase(std::uint64_t time, char phase, std::string_view name, Proto more = {}) {
        more.number(PhaseEventField::Phase, static_cast<std::uint64_t>(phase));
        add_event(time, Proto()
                            .text(EventField::Name, name)
                            .text(EventField::Categories, "old")
                            .message(EventField::LegacyEvent, more));
    }
    Trace read() { return read_perfetto_bytes(file_.bytes(), "test"); }
    static std::uint64_t problem(const Trace& trace, std::string_view code) {
        std::uint64_t count = 0;
        for (const ProblemInfo& info : trace.problems()) count += info.code == code ? info.count : 0;
        return count;
    }
    /// "name start-end" of every range, track by track.
    static std::string outline(const Trace& trace) {
        std::string text;
        const RangeColumns ranges = trace.ranges();
        for (const TrackInfo& track : trace.tracks()) {
            text += std::string(trace.string(track.name)) + ":";
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                text += " " + std::string(ranges.depth[row], '>') + std::string(trace.range_name(row)) + " " +
                        std::to_string(ranges.start_ns[row]) + "-" +
                        std::to_string(ranges.start_ns[row] + ranges.duration_ns[row]);
                if ((ranges.flags[row] & kUnfinished) != 0) text += "...";
            }
            text += "\n";
        }
        return text;
    }

    Proto file_;
};

TEST_F(PerfettoTest, SlicesNestAndTheirTracksAreThreads) {
    add_thread();
    add_event(100, event(kSliceBegin, 2, "outer"));
    add_event(110, event(kSliceBegin, 2, "inner"));
    add_event(120, event(kSliceEnd, 2));
    add_event(130, event(kSliceEnd, 2));
    const Trace trace = read();
    EXPECT_EQ(outline(trace), "main: outer 100-130 >inner 110-120\n");
    EXPECT_EQ(trace.processes()[0].pid, 10);
    EXPECT_EQ(trace.string(trace.processes()[0].name), "app");
    EXPECT_EQ(trace.threads()[0].os_tid, 11);
    EXPECT_TRUE(trace.problems().empty());
}

TEST_F(PerfettoTest, EventsOfATrackMayComeInAnyOrderAndBeforeItsDescriptor) {
    add_event(120, event(kSliceEnd, 2));
    add_event(100, event(kSliceBegin, 2, "a"));
    add_thread();
    EXPECT_EQ(outline(read()), "main: a 100-120\n");
}

TEST_F(PerfettoTest, InternedNamesBelongToTheirSequence) {
    add_thread();
    const auto names = [](std::string_view name) {
        return Proto()
            .message(InternedField::EventNames,
                     Proto().number(InternedTextField::Iid, 7).text(InternedTextField::Text, name))
            .message(InternedField::EventCategories,
                     Proto().number(InternedTextField::Iid, 7).text(InternedTextField::Text, "cat"))
            .message(InternedField::SourceLocations, Proto()
                                                         .number(SourceLocationField::Iid, 7)
                                                         .text(SourceLocationField::File, "a.cc")
                                                         .number(SourceLocationField::Line, 3));
    };
    for (const std::uint32_t sequence : {1u, 2u}) {
        add(packet(sequence)
                .number(PacketField::Timestamp, 100 * sequence)
                // After the event that uses it.
                .message(PacketField::TrackEvent, event(kSliceBegin, 2)
                                                      .number(EventField::NameIid, 7)
                                                      .number(EventField::CategoryIids, 7)
                                                      .number(EventField::SourceLocationIid, 7))
                .message(PacketField::InternedData, names(sequence == 1 ? "one" : "two")));
        add_event(100 * sequence + 50, event(kSliceEnd, 2));
    }
    const Trace trace = read();
    EXPECT_EQ(outline(trace), "main: one 100-150 two 200-250\n");
    const SiteInfo& site = trace.sites()[trace.ranges().site[0]];
    EXPECT_EQ(trace.string(site.category), "cat");
    EXPECT_EQ(trace.string(site.file), "a.cc");
    EXPECT_EQ(site.line, 3u);
}

TEST_F(PerfettoTest, EventsAfterALossAreCountedUntilTheStateIsReset) {
    add_thread();
    add(packet().number(PacketField::PacketsDropped, 1));
    add_event(100, event(kInstant, 2, "lost"));
    add(packet().number(PacketField::SequenceFlags, kStateClearedFlag));
    add_event(200, event(kInstant, 2, "kept"));
    const Trace trace = read();
    EXPECT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(problem(trace, "lost_packets"), 1u);
    EXPECT_EQ(problem(trace, "stateless_events"), 1u);
}

TEST_F(PerfettoTest, IncrementalClocksCountFromPacketToPacket) {
    add_thread();
    const auto clock = [](std::uint64_t id, std::uint64_t time) {
        return Proto().number(ClockField::Id, id).number(ClockField::Timestamp, time);
    };
    add(packet()
            .message(
                PacketField::ClockSnapshot,
                Proto()
                    .message(ClockSnapshotField::Clocks, clock(kBootClock, 5000))
                    .message(ClockSnapshotField::Clocks, clock(kRealtimeClock, 105000))
                    .message(
                        ClockSnapshotField::Clocks,
                        clock(64, 3).number(ClockField::IsIncremental, 1).number(ClockField::UnitNs, 1000)))
            .message(PacketField::Defaults, Proto()
                                                .number(DefaultsField::TimestampClock, 64)
                                                .message(DefaultsField::TrackEvent,
                                                         Proto().number(EventDefaultsField::TrackUuid, 2))));
    add_event(1, Proto().number(EventField::Type, kSliceBegin).text(EventField::Name, "a"));
    add_event(2, Proto().number(EventField::Type, kSliceEnd));
    const Trace trace = read();
    EXPECT_EQ(outline(trace), "main: a 6000-8000\n");
    EXPECT_EQ(trace.processes()[0].realtime_offset_ns, 100000);
}

TEST_F(PerfettoTest, TracksBelowAThreadAreAsync) {
    add_thread();
    add_track(3, 2, "requests");
    add_event(100, event(kSliceBegin, 3, "get"));
    add_event(150, event(kSliceEnd, 3));
    const Trace trace = read();
    ASSERT_EQ(trace.tracks().size(), 1u);
    EXPECT_EQ(trace.tracks()[0].kind, TrackKind::Async);
    EXPECT_EQ(trace.string(trace.tracks()[0].name), "requests");
    EXPECT_EQ(trace.threads()[trace.tracks()[0].thread].os_tid, 11);
}

TEST_F(PerfettoTest, TracksThatContainThemselvesAreHarmless) {
    add_track(3, 4, "a");
    add_track(4, 3, "b");
    add_event(100, event(kInstant, 3, "i"));
    EXPECT_EQ(read().instants().size(), 1u);
}

TEST_F(PerfettoTest, CountersMayBeIntegersFractionsAndDeltas) {
    add_thread();
    const auto counter = [&](std::uint64_t uuid, std::string_view name, const Proto& descriptor) {
        add(packet().message(PacketField::TrackDescriptor, Proto()
                                                               .number(TrackField::Uuid, uuid)
                                                               .number(TrackField::ParentUuid, 1)
                                                               .text(TrackField::Name, name)
                                                               .message(TrackField::Counter, descriptor)));
    };
    counter(5, "whole", Proto().number(CounterField::UnitMultiplier, 10));
    counter(6, "delta", Proto().number(CounterField::IsIncremental, 1));
    add_event(1, event(kCounter, 5).number(EventField::CounterValue, 4));
    add_event(2, event(kCounter, 5).real(EventField::DoubleCounterValue, 0.5));
    add_event(3, event(kCounter, 6).number(EventField::CounterValue, 3));
    add_event(4, event(kCounter, 6).number(EventField::CounterValue, 4));
    add_event(5, event(kSliceBegin, 2, "a")
                     .number(EventField::ExtraCounterTracks, 6)
                     .number(EventField::ExtraCounterValues, 1));
    add_event(6, event(kSliceEnd, 2));
    const Trace trace = read();
    const CounterColumns counters = trace.counters();
    ASSERT_EQ(counters.size(), 5u);
    EXPECT_EQ(std::vector<double>(counters.value.begin(), counters.value.end()),
              (std::vector<double>{40, 5, 3, 7, 8}));
}

TEST_F(PerfettoTest, FlowsLinkRangesInTimeOrder) {
    add_thread();
    for (int i = 0; i < 3; ++i) {
        const auto time = static_cast<std::uint64_t>(100 * i);
        add_event(time, event(kSliceBegin, 2, "r" + std::to_string(i))
                            .fixed64(i < 2 ? EventField::FlowIds : EventField::TerminatingFlowIds, 77));
        add_event(time + 50, event(kSliceEnd, 2));
    }
    const Trace trace = read();
    ASSERT_EQ(trace.links().size(), 2u);
    EXPECT_EQ(trace.links()[0].from, 0u);
    EXPECT_EQ(trace.links()[0].to, 1u);
    EXPECT_EQ(trace.links()[1].from, 1u);
    EXPECT_EQ(trace.links()[1].to, 2u);
    EXPECT_EQ(trace.links()[0].kind, LinkKind::Flow);
}

TEST_F(PerfettoTest, AnnotationsOfEveryKindBecomeValues) {
    add_thread();
    const auto named = [](std::string_view name) { return Proto().text(AnnotationField::Name, name); };
    Proto instant = event(kInstant, 2, "i");
    for (const Proto& annotation :
         {named("bool").number(AnnotationField::Bool, 1), named("uint").number(AnnotationField::Uint, ~0ull),
          named("int").number(AnnotationField::Int, static_cast<std::uint64_t>(-5)),
          named("double").real(AnnotationField::Double, 0.5),
          named("text").text(AnnotationField::String, "t"),
          named("list")
              .message(AnnotationField::ArrayValues, Proto().number(AnnotationField::Int, 1))
              .message(AnnotationField::ArrayValues, Proto().number(AnnotationField::Int, 2)),
          named("dict").message(AnnotationField::DictEntries, named("x").number(AnnotationField::Int, 3)),
          named("old").message(AnnotationField::Nested,
                               Proto()
                                   .number(NestedField::Type, kNestedDict)
                                   .text(NestedField::DictKeys, "k")
                                   .message(NestedField::DictValues, Proto().text(NestedField::String, "v"))),
          named("none")}) {
        instant.message(EventField::DebugAnnotations, annotation);
    }
    add_event(1, instant);
    const Trace trace = read();
    std::string keys;
    for (const Argument& value : trace.instant_arguments(0))
        keys +=
            std::string(trace.string(value.key)) + ":" + std::to_string(static_cast<int>(value.kind)) + " ";
    EXPECT_EQ(keys, "bool:1 uint:3 int:2 double:3 text:4 list:5 dict.x:2 old.k:4 none:0 ");
    EXPECT_EQ(trace.instant_arguments(0)[2].integer, -5);
    EXPECT_EQ(trace.instant_arguments(0)[5].list.count, 2u);
}

TEST_F(PerfettoTest, OldEventsWithPhasesAreRead) {
    add(packet().message(
        PacketField::ThreadDescriptor,
        Proto().number(ThreadField::Pid, 10).number(ThreadField::Tid, 11).text(ThreadField::Name, "main")));
    add_phase(1000, 'B', "b");
    add_phase(2000, 'E', "b");
    add_phase(3000, 'X', "x", Proto().number(PhaseEventField::DurationUs, 4));
    add_phase(4000, 'b', "async", Proto().number(PhaseEventField::UnscopedId, 9));
    add_phase(5000, 'e', "async", Proto().number(PhaseEventField::UnscopedId, 9));
    add_phase(6000, 'I', "i");
    add_phase(7000, '?', "what");
    const Trace trace = read();
    EXPECT_EQ(outline(trace), "main: b 1000-2000 x 3000-7000\nold: async 4000-5000\n");
    EXPECT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(problem(trace, "unknown_events"), 1u);
}

TEST_F(PerfettoTest, UnreadDataIsCounted) {
    add_thread();
    add(packet().text(1, "ftrace"));
    add(packet().text(1, "ftrace"));
    add(packet().text(33, "a configuration has no recorded data"));
    add_event(1, event(kSliceEnd, 2));
    add_event(2, event(kSliceBegin, 2, "open").text(21, "a log message"));
    add_event(3, event(kInstant, 99, "nowhere"));
    const Trace trace = read();
    EXPECT_EQ(problem(trace, "unread_packets"), 2u);
    EXPECT_EQ(problem(trace, "lone_ends"), 1u);
    EXPECT_EQ(problem(trace, "unfinished"), 1u);
    EXPECT_EQ(problem(trace, "unread_fields"), 1u);
    EXPECT_EQ(problem(trace, "undescribed_tracks"), 1u);
    EXPECT_EQ(outline(trace), "main: open 2-3...\n");
}

TEST_F(PerfettoTest, ATruncatedFileGivesTheCompletePackets) {
    add_thread();
    add_event(100, event(kInstant, 2, "one"));
    const std::size_t whole = file_.bytes().size();
    add_event(200, event(kInstant, 2, "two"));
    for (std::size_t size = whole + 1; size < file_.bytes().size(); ++size) {
        const Trace trace = read_perfetto_bytes(file_.bytes().substr(0, size), "test");
        EXPECT_EQ(trace.instants().size(), 1u);
        EXPECT_EQ(problem(trace, "cut_short"), 1u);
    }
}

TEST_F(PerfettoTest, ADamagedPacketIsSkippedAndTheNextIsRead) {
    add_thread();
    file_.text(TraceField::Packet, "\x5a\x7f");  // an event longer than its packet
    add_event(200, event(kInstant, 2, "two"));
    const Trace trace = read();
    EXPECT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(problem(trace, "damaged_packets"), 1u);
}

TEST_F(PerfettoTest, FilesWrittenByPerfettoAreRead) {
    const std::string folder = MAREY_SOURCE_DIR "/tests/data/corpus/perfetto/";
    const Trace sdk = open_trace(folder + "sdk.pftrace");
    EXPECT_EQ(outline(sdk), "t: n 6000-31000 >n 11000-26000 >>n 16000-21000\n");
    EXPECT_EQ(sdk.links().size(), 2u);
    EXPECT_EQ(sdk.counters().value.back(), 12);
    EXPECT_EQ(sdk.string(sdk.range_arguments(0)[1].key), "d.k");
    EXPECT_TRUE(sdk.problems().empty());

    const Trace phases = open_trace(folder + "phases.pftrace");
    EXPECT_EQ(outline(phases),
              "thread 1: x 103000-106000 x 109000-113000\nc: x 112000-115000 x 124000-133000\n");
    EXPECT_EQ(problem(phases, "unread_packets"), 1u);
    EXPECT_EQ(problem(phases, "unknown_events"), 1u);  // a counter without values
#if MAREY_HAVE_ZLIB
    EXPECT_EQ(outline(open_trace(folder + "compressed.pftrace")), outline(phases));
#endif
}

TEST_F(PerfettoTest, OtherFilesAreNotPerfettoTraces) {
    EXPECT_THROW(read_perfetto_bytes("{\"traceEvents\":[]}", "x"), Error);
    EXPECT_THROW(read_perfetto_bytes("", "x"), Error);
    const auto is = [](const std::string& text) {
        return is_perfetto({reinterpret_cast<const std::byte*>(text.data()), text.size()});
    };
    add_thread();
    EXPECT_TRUE(is(file_.bytes()));
    EXPECT_FALSE(is("\n{\"traceEvents\":[]}"));
    EXPECT_FALSE(is("\n\n\n\n[]"));
    EXPECT_FALSE(is("MAREY"));
    EXPECT_FALSE(is("SQLite format 3"));
    EXPECT_FALSE(is(""));
}

}  // namespace
}  // namespace marey

#endif
