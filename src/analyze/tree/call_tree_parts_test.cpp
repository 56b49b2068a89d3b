// call_tree_parts_test.cpp: trees of very many paths, without those that a picture cannot show.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include <marey/call_tree.h>
#include <marey/error.h>

#include "analyze/trace_fixture.h"

namespace marey {
namespace {

constexpr std::uint32_t kParts = 1000;

/// One recursion of 20 levels again and again, and in each of its levels random ranges of 60 names. At the
/// end, a root that no path has met before.
class ManyPaths {
  public:
    explicit ManyPaths(bool is_device) {
        const Scope scope = is_device ? Scope::Device : Scope::User;
        for (int i = 0; i < 60; ++i) fixture_.site("name " + std::to_string(i), scope);
        const std::uint32_t deep = fixture_.site("deep", scope);
        fixture_.thread("main", {});
        for (int round = 0; round < 7000; ++round) {
            for (int level = 0; level < 20; ++level) {
                open(deep);
                if (level == round % 20) add_random_ranges();
            }
            while (!open_.empty()) close();
        }
        open(fixture_.site("late", scope));
        add_random_ranges();
        close();
        TrackInfo& track = data_.tracks.back();
        track.range_count = static_cast<Row>(data_.range_start_ns.size());
        if (is_device) {
            track.kind = TrackKind::Device;
            track.device = {DeviceType::Cuda, 0};
        }
    }

    Trace trace() { return fixture_.window(0, time_).trace(); }

  private:
    void add_random_ranges() {
        const std::size_t outside = open_.size();
        for (int i = 0; i < 60; ++i) {
            while (open_.size() > outside && random_() % 100 < 45) close();
            open(static_cast<std::uint32_t>(random_() % 60));
        }
        while (open_.size() > outside) close();
    }
    void open(std::uint32_t site) {
        const auto row = static_cast<Row>(data_.range_start_ns.size());
        data_.range_parent.push_back(open_.empty() ? kNoRow : open_.back());
        data_.range_depth.push_back(static_cast<std::uint32_t>(open_.size()));
        data_.range_start_ns.push_back(time_);
        data_.range_duration_ns.push_back(0);
        data_.range_self_ns.push_back(0);
        data_.range_site.push_back(site);
        data_.range_flags.push_back(0);
        open_.push_back(row);
        spend(static_cast<std::int64_t>(1 + random_() % 9));
    }
    void close() {
        spend(1);
        data_.range_duration_ns[open_.back()] = time_ - data_.range_start_ns[open_.back()];
        open_.pop_back();
    }
    void spend(std::int64_t time) {
        time_ += time;
        data_.range_self_ns[open_.back()] += time;
    }

    TraceFixture fixture_;
    TraceData& data_ = fixture_.data();
    std::mt19937_64 random_{1};
    std::vector<Row> open_;
    std::int64_t time_ = 0;
};

/// The ranges of each node and of all nodes below it.
std::vector<std::uint64_t> ranges_of(const CallTree& tree) {
    std::vector<std::uint64_t> ranges(tree.nodes.size());
    for (std::size_t i = tree.nodes.size(); i-- > 0;) {
        ranges[i] += tree.nodes[i].count + tree.nodes[i].left_out;
        if (tree.nodes[i].parent != kNoRow) ranges[tree.nodes[i].parent] += ranges[i];
    }
    return ranges;
}

/// Expects every node of `part` in `all`, with equal values, and there none that could be seen but is
/// missing.
void expect_visible_part(const CallTree& all, const CallTree& part) {
    std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> places;
    std::int64_t whole_ns = 0, whole_self_ns = 0;
    for (std::uint32_t i = 0; i < all.nodes.size(); ++i) {
        places[{all.nodes[i].parent, all.nodes[i].name}] = i;
        if (all.nodes[i].parent != kNoRow) continue;
        whole_ns += all.nodes[i].total_ns;
        whole_self_ns += all.nodes[i].self_ns;
    }
    const std::vector<std::uint64_t> ranges_of_all = ranges_of(all), ranges_of_part = ranges_of(part);
    std::vector<std::uint32_t> same(part.nodes.size());
    std::vector<bool> is_found(all.nodes.size());
    for (std::uint32_t i = 0; i < part.nodes.size(); ++i) {
        const CallTreeNode& node = part.nodes[i];
        const auto place = places.find({node.parent == kNoRow ? kNoRow : same[node.parent], node.name});
        ASSERT_NE(place, places.end()) << i;
        same[i] = place->second;
        is_found[same[i]] = true;
        const CallTreeNode& expected = all.nodes[same[i]];
        ASSERT_EQ(node.count, expected.count) << i;
        ASSERT_EQ(node.total_ns, expected.total_ns) << i;
        ASSERT_EQ(node.self_ns, expected.self_ns) << i;
        ASSERT_TRUE(all.bottom_up || ranges_of_part[i] == ranges_of_all[same[i]]) << i;
    }
    for (std::uint32_t i = 0; i < all.nodes.size(); ++i) {
        const std::uint32_t parent = all.nodes[i].parent;
        const bool is_inside_wide =
            parent == kNoRow ||
            (is_found[parent] && (all.bottom_up ? all.nodes[parent].self_ns > whole_self_ns / kParts
                                                : all.nodes[parent].total_ns > whole_ns / kParts));
        ASSERT_TRUE(is_found[i] || !is_inside_wide) << i;
    }
}

TEST(CallTreePartsTest, VeryManyPathsLeaveOutOnlyNodesThatCannotBeSeen) {
    for (const bool is_device : {false, true}) {
        const Trace trace = ManyPaths(is_device).trace();
        const CallTree all = call_tree(trace), part = call_tree(trace, {.parts = kParts});
        ASSERT_GT(all.nodes.size(), 300'000u) << "enough for several passes";
        EXPECT_LT(part.nodes.size(), all.nodes.size() * 3 / 4);
        expect_visible_part(all, part);
    }
}

TEST(CallTreePartsTest, VeryManyCallersLeaveOutOnlyNodesThatCannotBeSeen) {
    const Trace trace = ManyPaths(true).trace();
    CallTreeOptions options{.bottom_up = true, .caller_levels = 3};
    const CallTree all = call_tree(trace, options);
    options.parts = kParts;
    const CallTree part = call_tree(trace, options);
    ASSERT_GT(all.nodes.size(), 300'000u);
    EXPECT_LT(part.nodes.size(), all.nodes.size() * 3 / 4);
    expect_visible_part(all, part);
    options.callers_of = "deep";
    const CallTree callers = call_tree(trace, options);
    ASSERT_FALSE(callers.nodes.empty());
    EXPECT_EQ(callers.nodes[0].name, "deep");
    EXPECT_EQ(callers.nodes[0].count, 140'000u);
    for (std::size_t i = 1; i < callers.nodes.size(); ++i) ASSERT_NE(callers.nodes[i].parent, kNoRow);
}

TEST(CallTreePartsTest, FewPathsAreAllKept) {
    const Trace trace = TraceFixture()
                            .thread("t", {{"a", 0, 1'000'000, {{"b", 10, 1, {{"c", 10, 1}}}, {"a", 20, 1}}}})
                            .trace();
    for (const bool bottom_up : {false, true}) {
        const CallTree all = call_tree(trace, {.bottom_up = bottom_up});
        const CallTree part = call_tree(trace, {.bottom_up = bottom_up, .parts = 10});
        ASSERT_EQ(part.nodes.size(), all.nodes.size());
        for (std::size_t i = 0; i < all.nodes.size(); ++i) EXPECT_EQ(part.nodes[i].name, all.nodes[i].name);
    }
    EXPECT_TRUE(call_tree(trace, {.bottom_up = true, .callers_of = "unknown"}).nodes.empty());
    EXPECT_THROW(call_tree(trace, {.by_thread = true, .parts = 10}), Error);
}

}  // namespace
}  // namespace marey
