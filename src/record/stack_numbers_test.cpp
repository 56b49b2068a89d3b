// stack_numbers_test.cpp: stacks have the same number if and only if they are equal.
#include "record/stack_numbers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "record/recorder_parts.h"
#include "record/spool.h"

namespace marey {
namespace {

using Frames = std::vector<std::uint64_t>;
using Nodes = std::vector<detail::StackNode>;

/// The nodes by number; that of 0 is none.
Nodes nodes_of(const StackNumbers& numbers) {
    std::vector<std::byte> names;
    numbers.append_to(names);
    Nodes nodes(1);
    for (std::size_t at = 0; at < names.size();) {
        detail::StackNodesRecord record;
        std::memcpy(&record, &names[at], sizeof record);
        EXPECT_EQ(record.first, nodes.size());
        EXPECT_EQ(record.head.bytes, sizeof record + record.count * sizeof(detail::StackNode));
        EXPECT_LE(record.head.bytes, detail::kBlockBytes - sizeof(detail::BlockHeader));
        nodes.resize(nodes.size() + record.count);
        std::memcpy(&nodes[record.first], &names[at + sizeof record],
                    record.count * sizeof(detail::StackNode));
        at += record.head.bytes;
    }
    return nodes;
}

Frames frames_of(const Nodes& nodes, std::uint32_t number) {
    Frames frames;
    while (number != 0) {
        EXPECT_EQ(nodes.at(number).is_complete, 1U);
        EXPECT_LT(nodes.at(number).outer, number);
        frames.push_back(nodes.at(number).frame);
        number = nodes.at(number).outer;
    }
    return frames;
}

std::vector<Frames> random_stacks(unsigned seed, std::size_t count) {
    std::minstd_rand random(seed);
    std::vector<Frames> stacks;
    for (std::size_t i = 0; i < count; ++i) {
        Frames frames(1 + random() % 12);
        for (std::uint64_t& frame : frames) frame = random() % 5;  // 0 is a frame too
        stacks.push_back(frames);
    }
    return stacks;
}

TEST(StackNumbers, AreEqualForEqualStacksOnly) {
    const auto numbers = std::make_unique<StackNumbers>();
    std::map<Frames, std::uint32_t> known;
    std::set<std::uint32_t> different;
    for (int round = 0; round < 2; ++round) {
        for (const Frames& frames : random_stacks(3, 20'000)) {
            const std::uint32_t number = numbers->add(frames);
            ASSERT_NE(number, 0U);
            ASSERT_EQ(known.try_emplace(frames, number).first->second, number);
            different.insert(number);
        }
    }
    EXPECT_EQ(different.size(), known.size());
    const Nodes nodes = nodes_of(*numbers);
    EXPECT_GT(nodes.size(), 3 * detail::kStackNodes);
    for (const auto& [frames, number] : known) ASSERT_EQ(frames_of(nodes, number), frames);
    EXPECT_EQ(numbers->add(Frames{}), 0U);
}

TEST(StackNumbers, AreEqualForThreadsThatAddTheSameStacksAtOnce) {
    const auto numbers = std::make_unique<StackNumbers>();
    const std::vector<Frames> stacks = random_stacks(5, 20'000);
    std::vector<std::vector<std::uint32_t>> found(4);
    std::vector<std::thread> threads;
    for (auto& own : found) {
        threads.emplace_back([&numbers, &stacks, &own] {
            for (const Frames& frames : stacks) own.push_back(numbers->add(frames));
        });
    }
    for (std::thread& thread : threads) thread.join();
    const Nodes nodes = nodes_of(*numbers);
    for (std::size_t i = 0; i < stacks.size(); ++i) {
        for (const auto& own : found) {
            ASSERT_EQ(own[i], found[0][i]);
            ASSERT_EQ(frames_of(nodes, own[i]), stacks[i]);
        }
    }
}

/// The nodes in the Stacks blocks of a capture.
Nodes nodes_in(const std::string& path) {
    Nodes nodes(1);
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
    std::vector<std::byte> block(detail::kBlockBytes);
    while (file && std::fread(block.data(), 1, block.size(), file.get()) == block.size()) {
        detail::BlockHeader header;
        std::memcpy(static_cast<void*>(&header), block.data(), sizeof header);
        if (header.magic != detail::kBlockMagic ||
            header.kind != static_cast<std::uint16_t>(detail::BlockKind::Stacks))
            continue;
        EXPECT_EQ(header.committed, detail::kStackNodes * sizeof(detail::StackNode));
        const std::size_t first = header.segment * detail::kStackNodes + 1;
        if (nodes.size() < first + detail::kStackNodes) nodes.resize(first + detail::kStackNodes);
        std::memcpy(&nodes[first], block.data() + sizeof header,
                    detail::kStackNodes * sizeof(detail::StackNode));
    }
    return nodes;
}

TEST(StackNumbers, AreInTheCaptureOnceItHasBlocksForThem) {
    const auto numbers = std::make_unique<StackNumbers>();
    const std::vector<Frames> stacks = random_stacks(9, 3000);
    std::vector<std::uint32_t> found;
    recorder_journal();  // makes the recorder, which takes the lock
    const ScopedLock lock(recorder_mutex);
    EXPECT_TRUE(numbers->mirror(nullptr));
    for (std::size_t i = 0; i < 500; ++i)
        found.push_back(numbers->add(stacks[i]));  // before there is a capture
    EXPECT_TRUE(numbers->is_behind());
    const std::shared_ptr<Spool> spool = Spool::create(::testing::TempDir() + "stack_numbers.marey");
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
        for (const Frames& frames : random_stacks(9, 3000)) numbers->add(frames);
    });
    for (std::size_t i = 500; i < stacks.size(); ++i) {
        found.push_back(numbers->add(stacks[i]));
        if (numbers->is_behind()) {
            EXPECT_TRUE(numbers->mirror(spool.get()));
        }
    }
    threads[0].join();
    EXPECT_TRUE(numbers->mirror(spool.get()));
    const Nodes nodes = nodes_in(spool->path());
    EXPECT_GT(nodes.size(), 2 * detail::kStackNodes);
    for (std::size_t i = 0; i < stacks.size(); ++i) ASSERT_EQ(frames_of(nodes, found[i]), stacks[i]);

    EXPECT_TRUE(numbers->end_mirror());
    numbers->add(Frames{77});
    EXPECT_TRUE(numbers->is_behind());
    for (const detail::StackNode& node : nodes_in(spool->path())) ASSERT_NE(node.frame, 77U);
    std::remove(spool->path().c_str());
}

}  // namespace
}  // namespace marey
