// saved_trace_test.cpp: a saved trace equals the trace; anything else is an error.
#include "trace/saved_trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include <marey/error.h>

#include "base/compress.h"
#include "trace/random_trace_fixture.h"
#include "trace/saved_format.h"
#include "trace/saved_trace_repair_fixture.h"
#include "trace/trace_data.h"
#include "trace/trace_difference_fixture.h"

namespace marey {
namespace {

using testing::find_difference;
using testing::random_data;

TEST(SavedTrace, OfEveryTraceLoadsEqual) {
    std::size_t overlaps = 0, far_parents = 0, devices = 0, details = 0, links = 0, lists = 0, memory = 0;
    for (std::uint32_t seed = 1; seed <= 150; ++seed) {
        const auto data = random_data(seed);
        ASSERT_EQ(find_damage(*data), "") << seed;
        for (const bool is_compressed : {true, false}) {
            const auto again = unpack_trace(pack_trace(*data, is_compressed), "saved");
            ASSERT_EQ(find_difference(*data, *again), "") << seed;
        }
        for (const TrackInfo& track : data->tracks) {
            overlaps += track.kind == TrackKind::Overlap;
            devices += track.kind == TrackKind::Device;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row)
                far_parents += data->range_parent[row] != kNoRow && data->range_depth[row] == 0;
        }
        details += data->range_details.size();
        links += data->links.size();
        lists += data->list_items.size();
        memory += data->memory_bytes.size();
    }
    for (const std::size_t seen : {overlaps, far_parents, devices, details, links, lists, memory})
        EXPECT_GT(seen, 100u);
}

TEST(SavedTrace, ColumnsOfDefaultsAreLeftOutButOneOfEachTable) {
    TraceData data;
    data.strings = {"", "a"};
    data.sites.resize(3);  // only their number is known
    data.processes.resize(1);
    data.threads.resize(1);
    data.counter_time_ns = {0, 0};
    data.counter_site = {0, 0};
    data.counter_thread = {0, 0};
    data.counter_value = {0.0, -0.0};  // equal, but not the same
    ASSERT_EQ(find_damage(data), "");
    const std::vector<std::byte> bytes = pack_trace(data, false);
    EXPECT_LT(std::to_integer<int>(bytes[16]), 12);  // columns; about a hundred with those of defaults
    const auto again = unpack_trace(bytes, "saved");
    EXPECT_EQ(find_difference(data, *again), "");
    EXPECT_EQ(again->sites.size(), 3u);
    EXPECT_TRUE(std::signbit(again->counter_value[1]));
}

template <class T>
T changed(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
        return value + "x";
    } else {
        return saved::from_number<T>(saved::to_number(value) ^ 1);
    }
}

TEST(SavedTrace, DistinguishesEveryColumn) {
    const auto data = random_data(3);
    int columns_seen = 0;
    visit_columns([&](const TableInfo& table, const auto&... columns) {
        const auto one = [&](const auto& column) {
            TraceData other = *data;
            auto&& rows = column.in(other);
            if (rows.empty()) return;
            auto& cell = std::invoke(column.member, rows.back());
            cell = changed(cell);
            EXPECT_EQ(find_difference(*data, other), std::string(table.name) + "." + column.name);
            ++columns_seen;
        };
        (one(columns), ...);
    });
    EXPECT_GT(columns_seen, 100);
}

TEST(SavedTrace, OfAnEmptyTraceIsEmpty) {
    const TraceData empty;
    EXPECT_EQ(find_difference(empty, *unpack_trace(pack_trace(empty), "saved")), "");
}

TEST(SavedTrace, ThatCompressesToAlmostNothingIsReadBack) {
    TraceData data = *random_data(1);
    for (auto* column : {&data.range_start_ns, &data.range_duration_ns, &data.range_self_ns})
        column->assign(400'000, 0);
    data.range_site.assign(400'000, 0);
    data.range_parent.assign(400'000, kNoRow);
    data.range_depth.assign(400'000, 0);
    data.range_flags.assign(400'000, 0);
    data.tracks.resize(1);
    data.tracks[0].first_range = 0;
    data.tracks[0].range_count = 400'000;
    data.range_arguments.clear();
    data.range_details.clear();
    data.links.clear();
    const std::vector<std::byte> bytes = pack_trace(data);
    EXPECT_LT(bytes.size(), 200'000u);
    EXPECT_EQ(find_difference(data, *unpack_trace(bytes, "saved")), "");
}

TEST(SavedTrace, GivesItsWindowWithoutTheRest) {
    const auto data = random_data(5);
    EXPECT_EQ(unpack_window(pack_trace(*data), "saved").session_id, data->window.session_id);
    EXPECT_EQ(unpack_window(pack_trace(*data), "saved").session_name, data->window.session_name);
}

TEST(SavedTrace, ThatIsDamagedOrCutOffIsAnErrorThatNamesIt) {
    const std::vector<std::byte> whole = pack_trace(*random_data(2));
    std::mt19937 random(7);
    for (std::size_t at = 0; at < whole.size(); at += 1 + random() % 7) {
        if (at >= 40 && at < saved::kHeaderBytes) continue;  // reserved
        std::vector<std::byte> bytes = whole;
        bytes[at] ^= std::byte{static_cast<unsigned char>(1u << random() % 8)};
        try {
            (void)unpack_trace(bytes, "x.marey");
            ADD_FAILURE() << "byte " << at;
        } catch (const Error& error) {
            EXPECT_EQ(std::string(error.what()).rfind("x.marey: ", 0), 0u) << error.what();
        }
    }
    for (std::size_t length = 0; length < whole.size(); length += 1 + random() % 50)
        EXPECT_THROW(unpack_trace(std::span(whole).first(length), "x.marey"), Error) << length;
}

TEST(SavedTrace, WithUnknownAndMissingColumnsLoadsWithDefaults) {
    TraceData data = *random_data(4);
    for (SiteInfo& site : data.sites) site.line = 7;
    std::vector<std::byte> bytes = pack_trace(data, false);
    const std::size_t entry = testing::find_entry(bytes, saved::column_id(ModelTable::Sites, 3));
    ASSERT_NE(entry, 0u);
    testing::put_little_endian(bytes, entry, 0x7f01, 4);
    testing::repair_checksums(bytes);
    const auto again = unpack_trace(bytes, "saved");
    for (SiteInfo& site : data.sites) site.line = 0;
    EXPECT_EQ(find_difference(data, *again), "");
}

TEST(SavedTrace, OfANewerVersionIsRejectedByName) {
    std::vector<std::byte> bytes = pack_trace(*random_data(4));
    bytes[8] = std::byte{2};
    try {
        (void)unpack_trace(bytes, "x.marey");
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("newer Marey"), std::string::npos) << error.what();
    }
}

TEST(SavedTrace, ThatStatesSizesTooLargeForTheFileIsRejected) {
    for (const std::size_t field : {8u, 16u}) {  // rows, bytes
        std::vector<std::byte> bytes = pack_trace(*random_data(6), false);
        testing::put_little_endian(
            bytes, testing::find_entry(bytes, saved::column_id(ModelTable::Ranges, saved::kDepth)) + field,
            std::uint64_t{1} << 40);
        testing::repair_checksums(bytes);
        EXPECT_THROW(unpack_trace(bytes, "x.marey"), Error);
    }
}

TEST(SavedTrace, ThatIsForgedIsRejectedOrConsistent) {
    std::mt19937 random(11);
    int read = 0, refused = 0;
    for (int round = 0; round < 3000; ++round) {
        std::vector<std::byte> bytes = pack_trace(*random_data(1 + round % 20), false);
        for (int i = 1 + round % 3; i-- != 0;)
            bytes[saved::kHeaderBytes + random() % (bytes.size() - saved::kHeaderBytes)] =
                static_cast<std::byte>(random());
        testing::repair_checksums(bytes);
        try {
            EXPECT_EQ(find_damage(*unpack_trace(bytes, "x.marey")), "");
            ++read;
        } catch (const Error&) {
            ++refused;
        }
    }
    EXPECT_GT(read, 100);
    EXPECT_GT(refused, 100);
}

/// A trace with something in every table.
TraceData full_trace() {
    for (std::uint32_t seed = 1;; ++seed) {
        const auto data = random_data(seed);
        if (data->range_start_ns.size() > 20 && data->tracks.size() > 2 && data->links.size() > 2 &&
            data->instant_time_ns.size() > 2 && data->counter_time_ns.size() > 2 && data->arrays.size() > 2 &&
            data->memory_time_ns.size() > 2 && data->range_arguments.size() > 2 && !data->metadata.empty() &&
            data->list_items.size() > 9 && data->range_details.size() > 2)
            return *data;
    }
}

TEST(TraceDamage, IsFoundInEveryTable) {
    using Breaker = std::function<void(TraceData&)>;
    const Breaker breakers[] = {
        [](TraceData& d) { d.strings[0] = "x"; },
        [](TraceData& d) { d.sites[2].raw_name = 1'000'000; },
        [](TraceData& d) { d.sites[2].category = 1'000'000; },
        [](TraceData& d) { d.sites[2].scope = static_cast<Scope>(32); },
        [](TraceData& d) { d.window.end_ns = d.window.start_ns - 1; },
        [](TraceData& d) { d.window.start_ns = std::numeric_limits<std::int64_t>::min(); },
        [](TraceData& d) { d.processes[0].host = 1'000'000; },
        [](TraceData& d) { d.processes[0].realtime_offset_ns = std::numeric_limits<std::int64_t>::max(); },
        [](TraceData& d) { d.threads[0].process = 99; },
        [](TraceData& d) { d.threads[0].name = 1'000'000; },
        [](TraceData& d) { d.tracks[1].kind = static_cast<TrackKind>(4); },
        [](TraceData& d) { d.tracks[1].thread = 99; },
        [](TraceData& d) { d.tracks[1].first_range += 1; },
        [](TraceData& d) { d.tracks.back().range_count -= 1; },
        [](TraceData& d) { d.range_site[3] = 99; },
        [](TraceData& d) { d.range_depth[0] = 1; },
        [](TraceData& d) { d.range_parent[0] = 0; },
        [](TraceData& d) { d.range_flags.pop_back(); },
        [](TraceData& d) { d.range_duration_ns[3] = -1; },
        [](TraceData& d) { d.range_start_ns[3] = std::numeric_limits<std::int64_t>::max(); },
        [](TraceData& d) { d.instant_thread[0] = 99; },
        [](TraceData& d) { d.instant_site.push_back(0); },
        [](TraceData& d) { d.counter_site[0] = 99; },
        [](TraceData& d) { d.counter_value.pop_back(); },
        [](TraceData& d) { d.memory_thread[0] = 99; },
        [](TraceData& d) { d.memory_device.pop_back(); },
        [](TraceData& d) { d.range_arguments[0].row = 1'000'000; },
        [](TraceData& d) { std::swap(d.range_arguments[0], d.range_arguments[1]); },
        [](TraceData& d) { d.range_arguments[0].first = ~0u; },
        [](TraceData& d) { d.arguments[0].key = 1'000'000; },
        [](TraceData& d) { d.arguments[0].kind = static_cast<ValueKind>(7); },
        [](TraceData& d) { d.arguments[0].role = static_cast<ArgumentRole>(4); },
        [](TraceData& d) {
            d.list_items[4].kind = ValueKind::List;
            d.list_items[4].list = {4, 1};
        },
        [](TraceData& d) { d.arrays[1].first_extent = 1'000'000; },
        [](TraceData& d) { d.range_details[0].range = 1'000'000; },
        [](TraceData& d) { std::swap(d.range_details.front(), d.range_details.back()); },
        [](TraceData& d) { d.links[0].to = 1'000'000; },
        [](TraceData& d) { d.links[0].kind = static_cast<LinkKind>(0); },
        [](TraceData& d) { d.links[0].name = 1'000'000; },
        [](TraceData& d) { std::swap(d.links.front(), d.links.back()); },
        [](TraceData& d) { d.metadata[0].json = "{"; },
    };
    const TraceData whole = full_trace();
    ASSERT_EQ(find_damage(whole), "");
    for (std::size_t i = 0; i < std::size(breakers); ++i) {
        TraceData data = whole;
        breakers[i](data);
        EXPECT_NE(find_damage(data), "") << i;
        EXPECT_THROW(pack_trace(data), Error) << i;
    }
}

TEST(TraceDamage, IsAListThatReachesMoreItemsThanThereAreOrNestsWithoutEnd) {
    TraceData data;
    const auto add = [&](std::uint32_t first, std::uint32_t count) {
        Argument item;
        item.kind = ValueKind::List;
        item.list = {first, count};
        data.list_items.push_back(item);
    };
    data.list_items.resize(2);
    for (std::uint32_t i = 0; i < 40; ++i) add(2 * i, 2), add(2 * i, 2);  // doubles each time
    EXPECT_NE(find_damage(data), "");
    data.list_items.resize(1);
    for (std::uint32_t i = 0; i < 1000; ++i) add(i, 1);
    EXPECT_EQ(find_damage(data), "");
    for (std::uint32_t i = 1000; i < 2000; ++i) add(i, 1);
    EXPECT_NE(find_damage(data), "");
}

std::filesystem::path corpus() {
    return std::filesystem::path(MAREY_SOURCE_DIR) / "tests/data/corpus/saved_trace";
}

TEST(SavedTrace, SeedsOfTheFuzzerAreSurvived) {
    ASSERT_TRUE(std::filesystem::exists(corpus())) << corpus() << " was not found";
    if (std::getenv("MAREY_WRITE_GOLDENS") != nullptr) {
        for (std::uint32_t seed = 0; seed < 6; ++seed) {
            const auto bytes = pack_trace(seed == 0 ? TraceData() : *random_data(seed), seed % 3 == 2);
            std::ofstream(corpus() / ("random" + std::to_string(seed) + ".trace"), std::ios::binary)
                .write(reinterpret_cast<const char*>(bytes.data()),
                       static_cast<std::streamsize>(bytes.size()));
        }
    }
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(corpus())) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        try {
            EXPECT_EQ(find_damage(*unpack_trace(std::as_bytes(std::span(text)), "seed")), "");
        } catch (const Error& error) {
            EXPECT_FALSE(can_compress()) << entry.path() << error.what();
        }
        ++count;
    }
    EXPECT_GE(count, 6);
}

}  // namespace
}  // namespace marey
