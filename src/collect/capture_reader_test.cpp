// capture_reader_test.cpp: complete, truncated, damaged and hostile captures.
#include "collect/capture_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <marey/error.h>

#include "collect/compact.h"
#include "collect/log_fixture.h"
#include "collect/random_log_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"

namespace marey {
namespace {

using namespace detail;
using testing::find_fault;
using testing::LogWriter;
using testing::outline;
using testing::problem_codes;
using Bytes = std::vector<std::byte>;

Trace build(const Bytes& file) {
    Trace trace = build_trace(read_capture_bytes(file, nullptr, "x.marey"), {.threads = 1});
    EXPECT_EQ(find_fault(trace), "");
    return trace;
}

std::string error_of(const Bytes& file) {
    try {
        read_capture_bytes(file, nullptr, "x.marey");
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

template <class T>
void poke(Bytes& file, std::size_t offset, T value) {
    std::memcpy(file.data() + offset, &value, sizeof value);
}

BlockHeader block_at(const Bytes& file, std::size_t block) {
    BlockHeader header;
    std::memcpy(static_cast<void*>(&header), file.data() + block * kBlockBytes, sizeof header);
    return header;
}

std::size_t find_block(const Bytes& file, BlockKind kind) {
    for (std::size_t block = 1; block < file.size() / kBlockBytes; ++block) {
        if (block_at(file, block).kind == static_cast<std::uint16_t>(kind)) return block;
    }
    return 0;
}

TEST(CaptureReader, ReturnsTheRecordedData) {
    for (std::uint32_t seed = 1; seed <= 12; ++seed) {
        const LogWriter log = testing::random_log(seed);
        const Trace from_file = build(log.file());
        const Trace from_memory = build_trace(log.raw());
        EXPECT_EQ(outline(from_file), outline(from_memory)) << seed;
        EXPECT_EQ(from_file.string(from_file.processes()[0].command_line), "program --fast");
        EXPECT_EQ(from_file.processes()[0].pid, 42);
    }
}

TEST(CaptureReader, LoadsAFileByItsPath) {
    const auto path =
        std::filesystem::temp_directory_path() / ("marey-reader-" + std::to_string(getpid()) + ".marey");
    LogWriter log;
    log.start(4, 1).start(5, 1).stop(4, 100).stop(5, 45);
    log.thread(1).range("a", 10, 20, 0).range("b", 50, 60, 0);
    const Bytes file = log.file();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    EXPECT_EQ(outline(Trace::load(path)), "thread 1: a 10-20 b 50-60\n");
    EXPECT_EQ(outline(Trace::load(path, 5)), "thread 1: a 10-20\n");
    try {
        Trace::load(path, 6);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()), path.string() + ": has no session 6");
    }
    std::filesystem::remove(path);
}

TEST(CaptureReader, ErrorsNameTheFileAndTheCause) {
    LogWriter log;
    const Bytes good = log.file();
    EXPECT_EQ(error_of({}), "x.marey: empty file, not a Marey capture");
    EXPECT_EQ(error_of(Bytes(100)), "x.marey: not a Marey capture");
    EXPECT_EQ(error_of(Bytes(good.begin(), good.begin() + 20)), "x.marey: truncated in its header");
    EXPECT_EQ(error_of(Bytes(good.begin(), good.begin() + 2000)), "x.marey: truncated in its header");
    Bytes file = good;
    poke(file, offsetof(FileHeader, version), std::uint32_t{2});
    EXPECT_EQ(error_of(file), "x.marey: written by a newer Marey (format 2)");
    file = good;
    poke(file, offsetof(FileHeader, byte_order), std::uint32_t{0x04030201});
    EXPECT_EQ(error_of(file), "x.marey: written on a machine with a different byte order");
    file = good;
    poke(file, offsetof(FileHeader, block_bytes), std::uint32_t{4096});
    EXPECT_EQ(error_of(file), "x.marey: unsupported block size: 4096 bytes");
    EXPECT_THROW(read_capture("/nonexistent/x.marey"), Error);
    EXPECT_THROW(read_capture("/"), Error);
}

TEST(CaptureReader, ShowsTheOpenRangesOfAKilledProgramToAnyDepth) {
    LogWriter log;
    for (std::uint32_t depth = 0; depth < 4000; ++depth) {
        const Bytes payload =
            depth % 3 == 0 ? log.values().integer("depth", depth).text("text", std::string(60, 'x')).bytes()
                           : Bytes();
        log.thread(1).open("r", 10 + depth, depth, payload);
    }
    const Trace trace = build(log.file());
    ASSERT_EQ(trace.ranges().size(), 4000u);
    for (Row row = 0; row < 4000; ++row) {
        EXPECT_EQ(trace.ranges().start_ns[row], 10 + row);
        ASSERT_EQ(trace.range_arguments(row).size(), row % 3 == 0 ? 2u : 0u) << row;
        if (row % 3 == 0) {
            EXPECT_EQ(trace.range_arguments(row)[0].integer, row);
        }
    }
}

TEST(CaptureReader, ThreadBlocksAreLaidOutAsDocumented) {
    // docs/formats/capture.md states these: changing them changes the format.
    EXPECT_EQ(offsetof(ThreadState, depth), 144u);
    EXPECT_EQ(offsetof(ThreadState, dropped), 200u);
    EXPECT_EQ(offsetof(ThreadState, resyncs), 208u);
    EXPECT_EQ(offsetof(ThreadState, clamped), 216u);
    EXPECT_EQ(offsetof(ThreadState, slots), 512u);
    EXPECT_EQ(offsetof(ThreadState, side), 16640u);
}

TEST(CaptureReader, ASlotThatWasBeingFilledIsNotAnOpenRange) {
    LogWriter log;
    log.thread(1).open("a", 10, 0).open("b", 20, 1).open("c", 0, 2);
    EXPECT_EQ(outline(build(log.file())), "thread 1: a 10-20> { b 20-20> }\n");
}

TEST(CaptureReader, ASlotThatOnlyCountsABeginMadeWhileOffIsNotAnOpenRange) {
    LogWriter log;
    log.thread(1).open("a", 10, 0).open("b", 20, 1);
    Bytes file = log.file();
    const std::size_t slots =
        find_block(file, BlockKind::Thread) * kBlockBytes + offsetof(ThreadState, slots);
    poke(file, slots + offsetof(OpenSlot, what), std::uint64_t{kSlotObjectless} << kSiteBits);
    EXPECT_EQ(outline(build(file)), "thread 1: b 20-20>\n");
}

TEST(CaptureReader, ThreadBlocksOfAFinishedCaptureAreIgnored) {
    LogWriter log;
    log.thread(1).range("done", 11, 12, 1).open("a", 10, 0);
    log.finished = true;
    EXPECT_EQ(outline(build(log.file())), "thread 1: done 11-12\n");
}

TEST(CaptureReader, TheLargerOfTheCountersInThreadBlocksAndJournalCounts) {
    LogWriter log;
    log.born(1, "main", 1).losses(1, 5, 2, 9).thread(1).open("a", 10, 0);
    Bytes file = log.file();
    const std::size_t at = find_block(file, BlockKind::Thread) * kBlockBytes;
    poke(file, at + offsetof(ThreadState, dropped), std::uint64_t{7});
    poke(file, at + offsetof(ThreadState, resyncs), std::uint64_t{3});
    poke(file, at + offsetof(ThreadState, clamped), std::uint64_t{1});
    EXPECT_EQ(problem_codes(build(file)), "dropped_in_handler=7 overwritten=2 resyncs=9 clamped");
}

TEST(CaptureReader, OnlyCommittedRecordsCount) {
    LogWriter log;
    log.thread(1).range("a", 10, 20, 0).range("b", 30, 40, 0);
    Bytes file = log.file();
    const std::size_t at = find_block(file, BlockKind::Log) * kBlockBytes;
    poke(file, at + offsetof(BlockHeader, committed), std::uint64_t{16});
    EXPECT_EQ(outline(build(file)), "thread 1: a 10-20\n");
}

TEST(CaptureReader, FreeBlocksAreIgnoredWhateverTheirBytes) {
    LogWriter log;
    log.thread(1).range("a", 10, 20, 0).next_chunk().range("b", 30, 40, 0);
    Bytes file = log.file();
    const std::size_t at = find_block(file, BlockKind::Log) * kBlockBytes;
    poke(file, at + offsetof(BlockHeader, kind), std::uint16_t{0});
    const Trace trace = build(file);
    EXPECT_EQ(outline(trace), "thread 1: b 30-40\n");
    EXPECT_EQ(problem_codes(trace), "");
}

TEST(CaptureReader, ADamagedBlockIsLeftOutAndReported) {
    LogWriter log;
    log.thread(1).range("a", 10, 20, 0).next_chunk().range("b", 30, 40, 0);
    const Bytes good = log.file();
    const std::size_t at = find_block(good, BlockKind::Log) * kBlockBytes;
    for (const std::size_t offset : {offsetof(BlockHeader, magic), offsetof(BlockHeader, committed) + 5}) {
        Bytes file = good;
        file[at + offset] ^= std::byte{0x10};
        const Trace trace = build(file);
        EXPECT_EQ(outline(trace), "thread 1: b 30-40\n");
        EXPECT_EQ(problem_codes(trace), "damaged_chunk");
    }
}

TEST(CaptureReader, AnIncompleteRecordEndsItsChunk) {
    LogWriter log;
    log.thread(1).range("a", 10, 20, 0).long_range("l", 21, 22, 0).range("b", 30, 40, 0);
    Bytes file = log.file();
    const std::size_t at = find_block(file, BlockKind::Log) * kBlockBytes + sizeof(BlockHeader) + 16;
    poke(file, at + offsetof(LongRecord, units), std::uint16_t{1});
    const Trace trace = build(file);
    EXPECT_EQ(outline(trace), "thread 1: a 10-20\n");
    EXPECT_EQ(problem_codes(trace), "damaged_chunk");
}

TEST(CaptureReader, StreamsAreJoinedInOrderOfSequence) {
    LogWriter log;
    log.thread(1).range("first", 10, 20, 0).range("second", 30, 40, 0);
    Bytes file = log.file();
    // Cut the names block in two, in the middle of a record, and put the second half first in the file.
    const std::size_t at = find_block(file, BlockKind::Names) * kBlockBytes;
    const BlockHeader header = block_at(file, at / kBlockBytes);
    const std::size_t half = header.committed / 2 / 8 * 8;
    Bytes second(kBlockBytes);
    std::memcpy(second.data(), file.data() + at, sizeof header);
    std::memcpy(second.data() + sizeof header, file.data() + at + sizeof header + half,
                header.committed - half);
    poke(second, offsetof(BlockHeader, committed), header.committed - half);
    poke(second, offsetof(BlockHeader, sequence), header.sequence + 100);
    poke(file, at + offsetof(BlockHeader, committed), std::uint64_t{half});
    file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), second.begin(), second.end());
    const Trace trace = build(file);
    EXPECT_EQ(outline(trace), "thread 1: first 10-20 second 30-40\n");
    EXPECT_EQ(problem_codes(trace), "");
}

TEST(CaptureReader, TwoBlocksThatClaimTheSamePlaceAreSurvived) {
    LogWriter log;
    log.thread(1).range("a", 10, 20, 0).next_chunk().range("b", 30, 40, 0).open("o", 5, 0);
    Bytes file = log.file();
    const Bytes copy(file.begin() + kBlockBytes, file.end());
    file.insert(file.end(), copy.begin(), copy.end());
    EXPECT_EQ(build(file).ranges().size(), 5u);
}

TEST(CaptureReader, ATruncatedCaptureIsReadAsFarAsItIsComplete) {
    const LogWriter log = testing::random_log(11);
    const Bytes file = log.file();
    std::size_t most = 0;
    const auto check = [&](std::size_t length) {
        const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
        if (length < sizeof(FileHeader)) {
            EXPECT_NE(error_of(cut), "");
            return;
        }
        most = std::max(most, build(cut).ranges().size());
    };
    for (std::size_t length = 0; length < file.size(); length += 997) check(length);
    for (std::size_t length = 0; length <= file.size(); length += kBlockBytes) check(length);
    EXPECT_GE(most, build(file).ranges().size());
}

TEST(CaptureReader, ATruncatedFinishedCaptureIsReported) {
    LogWriter log;
    log.start(1, 1).stop(1, 100);
    log.thread(1).range("a", 10, 20, 0).next_chunk().range("b", 30, 40, 0).next_chunk().range("c", 50, 60, 0);
    log.finished = true;
    Bytes file = log.file();
    // The second chunk is free, so nothing in it shows a cut through it.
    const std::size_t free = (find_block(file, BlockKind::Log) + 1) * kBlockBytes;
    poke(file, free + offsetof(BlockHeader, kind), static_cast<std::uint16_t>(BlockKind::Free));
    EXPECT_EQ(problem_codes(build(file)), "");
    for (const std::size_t length : {free, free + 5000, free + kBlockBytes, file.size() - 1}) {
        const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_EQ(problem_codes(build(cut)), "truncated") << length;
    }
    // Earlier writers did not state the length.
    poke(file, offsetof(FileHeader, blocks), std::uint32_t{0});
    EXPECT_EQ(problem_codes(build(file)), "");
    file.resize(free + 5000);
    EXPECT_EQ(problem_codes(build(file)), "truncated");
}

TEST(CaptureReader, FlippedBytesNeverDoHarm) {
    std::mt19937 random(3);
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
        const Bytes good = testing::random_log(seed + 20).file();
        for (int round = 0; round < 400; ++round) {
            Bytes file = good;
            for (std::uint32_t flips = 1 + random() % 30; flips != 0; --flips) {
                // Half of them where they matter most: in the first bytes of a block.
                const std::size_t block = random() % (file.size() / kBlockBytes) * kBlockBytes;
                const std::size_t at =
                    random() % 2 == 0 ? block + random() % 256 : block + random() % kBlockBytes;
                file[at] ^= std::byte{static_cast<unsigned char>(random())};
            }
            try {
                build(file);
            } catch (const Error&) {
            }
            ASSERT_FALSE(HasFailure()) << "seed " << seed << " round " << round;
        }
    }
}

TEST(CaptureReader, RandomBytesAfterAGoodHeaderNeverDoHarm) {
    std::mt19937_64 random(5);
    const Bytes good = testing::random_log(1).file();
    for (int round = 0; round < 200; ++round) {
        Bytes file(good.begin(), good.begin() + 6 * kBlockBytes);
        for (std::size_t block = 1; block < 6; ++block) {
            BlockHeader header;
            header.magic = kBlockMagic;
            header.kind = static_cast<std::uint16_t>(1 + random() % 6);
            header.blocks = static_cast<std::uint16_t>(random() % 3 == 0 ? random() : 1);
            header.thread = static_cast<std::uint32_t>(random() % 3);
            header.sequence = random() % 4;
            header.base_ticks = random() >> random() % 64;
            header.pair = {random() >> random() % 64, static_cast<std::int64_t>(random()), 0,
                           random() >> random() % 64};
            header.committed = random() % kBlockBytes;
            header.segment = static_cast<std::uint32_t>(random() % 3);
            std::memcpy(file.data() + block * kBlockBytes, &header, sizeof header);
            for (std::size_t at = sizeof header; at < kBlockBytes; at += 8) {
                poke(file, block * kBlockBytes + at, random() >> (random() % 64));
            }
        }
        try {
            build(file);
        } catch (const Error&) {
        }
        ASSERT_FALSE(HasFailure()) << "round " << round;
    }
}

}  // namespace
}  // namespace marey
