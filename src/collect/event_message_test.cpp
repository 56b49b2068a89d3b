// event_message_test.cpp: what event messages carry, and which bytes are rejected.
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <marey/error.h>
#include <marey/remote.h>

#include "trace/random_trace_fixture.h"
#include "trace/saved_trace.h"
#include "trace/saved_trace_repair_fixture.h"
#include "trace/trace_assembler.h"
#include "trace/trace_data.h"
#include "trace/trace_difference_fixture.h"

namespace marey {
namespace {

Trace random_trace(unsigned seed, bool is_arbitrary = false) {
    return testing::RandomTrace(seed, {.max_ranges = 80, .is_arbitrary = is_arbitrary}).make();
}

std::string rejection_reason(const std::string& bytes) {
    try {
        unpack_events(bytes);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

// L1 L2 L4
TEST(EventMessage, KeepsEveryTable) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        const Trace trace = random_trace(seed, true);
        EXPECT_EQ(testing::find_difference(unpack_events(pack_events(trace)).data(), trace.data()), "");
    }
    EXPECT_EQ(unpack_events(pack_events(Trace())).ranges().size(), 0u);
}

TEST(EventMessage, ARangeTakesAFewBytesAndARepeatedNameNone) {
    TraceAssembler assembler;
    assembler.add_process({});
    assembler.add_thread({});
    const std::uint32_t lane = assembler.add_lane({});
    SiteInfo site;
    site.name = assembler.string(std::string(300, 'n'));
    std::mt19937 random(3);
    for (int i = 0; i < 1000; ++i)
        assembler.add_range(lane, i * 1000, 400 + static_cast<int>(random() % 500), assembler.site(site));
    EXPECT_LT(pack_events(assembler.finish()).size(), 1000 * 4 + 2000u);
}

/// The values of a row as texts, with those of lists.
std::string values_of(const Trace& trace, std::span<const Argument> values) {
    std::string text;
    for (const Argument& value : values) {
        text += std::string(trace.string(value.key)) + "=" + std::to_string(static_cast<int>(value.kind));
        if (value.kind == ValueKind::String) text += trace.string(value.string);
        if (value.kind == ValueKind::Int) text += std::to_string(value.integer);
        if (value.kind == ValueKind::List)
            text +=
                "[" + values_of(trace, trace.list_items().subspan(value.list.first, value.list.count)) + "]";
        if (value.kind == ValueKind::Array) {
            const ArrayInfo& array = trace.arrays()[value.array];
            for (std::uint32_t i = 0; i < array.dimensions; ++i)
                text += "x" + std::to_string(trace.array_extents()[array.first_extent + i]);
        }
        text += ";";
    }
    return text;
}

TEST(EventMessage, SelectedEventsAreSentWithTheirValues) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        const Trace trace = random_trace(seed);
        const auto is_sent = [](Row row) { return row % 3 != 1; };
        const Trace sent = unpack_events(pack_events(trace, {.ranges = is_sent}));
        EXPECT_EQ(find_damage(sent.data()), "");
        Row next = 0;
        for (Row row = 0; row < trace.ranges().size(); ++row) {
            if (!is_sent(row)) continue;
            ASSERT_LT(next, sent.ranges().size());
            EXPECT_EQ(sent.range_name(next), trace.range_name(row));
            EXPECT_EQ(sent.ranges().start_ns[next], trace.ranges().start_ns[row]);
            EXPECT_EQ(values_of(sent, sent.range_arguments(next)),
                      values_of(trace, trace.range_arguments(row)));
            ++next;
        }
        EXPECT_EQ(sent.ranges().size(), next);
        EXPECT_EQ(sent.instants().size(), trace.instants().size());
        for (Row row = 0; row < sent.instants().size(); ++row)
            EXPECT_EQ(values_of(sent, sent.instant_arguments(row)),
                      values_of(trace, trace.instant_arguments(row)));
    }
}

TEST(EventMessage, EventsThatAreLeftOutAreNotInTheBytes) {
    TraceAssembler assembler;
    assembler.add_process({});
    assembler.add_thread({});
    const std::uint32_t lane = assembler.add_lane({});
    const auto text = [&](std::string_view content) {
        Argument value;
        value.kind = ValueKind::String;
        value.string = assembler.string(content);
        return value;
    };
    const auto list = [&](const Argument& item) {
        Argument value;
        value.kind = ValueKind::List;
        value.list = assembler.add_list(std::span(&item, 1));
        return value;
    };
    for (const std::string name : {"open", "secret"}) {
        SiteInfo site;
        site.name = assembler.string(name + " range");
        const auto range = assembler.add_range(lane, 10, 5, assembler.site(site));
        assembler.add_values(range, std::vector{text(name + " value"), list(list(text(name + " item")))});
        assembler.add_instant(0, 12, assembler.site(site), std::vector{text(name + " mark")});
        assembler.add_counter(0, 12, assembler.site(site), 1);
    }
    const Trace trace = assembler.finish();
    const auto has = [](const Trace& sent, const std::string& wanted) {
        const auto& strings = sent.data().strings;
        return std::find(strings.begin(), strings.end(), wanted) != strings.end();
    };
    const Trace sent = unpack_events(pack_events(trace, {.names = {"open range"}}));
    for (const char* const kind : {" range", " value", " item", " mark"}) {
        EXPECT_TRUE(has(trace, std::string("secret") + kind));
        EXPECT_TRUE(has(sent, std::string("open") + kind));
        EXPECT_FALSE(has(sent, std::string("secret") + kind));
    }
    EXPECT_EQ(sent.instants().size(), 1u);
    EXPECT_EQ(sent.counters().size(), 1u);
    EXPECT_EQ(unpack_events(pack_events(trace, {.marks = false})).counters().size(), 0u);
}

TEST(EventMessage, ANewerVersionIsRejectedByName) {
    std::string bytes = pack_events(random_trace(1));
    bytes[8] = 2;
    EXPECT_EQ(rejection_reason(bytes), "event message: saved by a newer Marey (saved trace 2)");
}

TEST(EventMessage, ATruncatedOneIsRejected) {
    const std::string bytes = pack_events(random_trace(1));
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_NE(rejection_reason(bytes.substr(0, length)), "") << length;
    EXPECT_EQ(rejection_reason(bytes.substr(0, 20)), "event message: truncated in its header");
    EXPECT_EQ(rejection_reason("GET / HTTP/1.1"), "event message: not a saved trace");
    EXPECT_EQ(rejection_reason(""), "event message: not a saved trace");
}

TEST(EventMessage, OneWithAFlippedBitIsRejectedOrUnchanged) {
    const Trace trace = random_trace(2);
    std::string bytes = pack_events(trace);
    int unchanged = 0;
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
        if (rejection_reason(bytes).empty()) {
            EXPECT_EQ(testing::find_difference(unpack_events(bytes).data(), trace.data()), "") << bit;
            ++unchanged;
        }
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    }
    EXPECT_EQ(unchanged, 64);  // the reserved word of the header
}

TEST(EventMessage, TimesThatCouldOverflowAreRejected) {
    auto data = std::make_shared<TraceData>();
    data->window.end_ns = (std::int64_t{1} << 60) + 1;
    EXPECT_EQ(rejection_reason(pack_events(Trace(data))), "event message: its window is not a valid time");
    --data->window.end_ns;
    EXPECT_EQ(rejection_reason(pack_events(Trace(data))), "");
}

TEST(EventMessage, ForgedOnesAreReadOrRejectedButNothingElse) {
    std::mt19937 random(7);
    const std::vector<std::byte> whole = pack_trace(random_trace(4).data(), false);
    int read = 0;
    for (int i = 0; i < 2'000; ++i) {
        std::vector<std::byte> changed = whole;
        for (unsigned k = 0; k <= random() % 3; ++k)
            changed[random() % changed.size()] = static_cast<std::byte>(random());
        testing::repair_checksums(changed);
        const std::string bytes(reinterpret_cast<const char*>(changed.data()), changed.size());
        if (!rejection_reason(bytes).empty()) continue;
        const Trace trace = unpack_events(bytes);
        EXPECT_EQ(testing::find_difference(unpack_events(pack_events(trace)).data(), trace.data()), "");
        ++read;
    }
    EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace marey
