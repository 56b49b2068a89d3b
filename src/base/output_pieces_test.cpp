// output_pieces_test.cpp: pieces are in order whoever made them; a failure ends the work and is passed on.
#include "base/output_pieces.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>

#include <marey/error.h>

#if MAREY_HAVE_ZLIB
#include <zlib.h>
#endif

namespace marey {
namespace {

/// Of any size, sometimes up to twice the file's buffer.
std::string text_of(std::size_t piece) {
    const std::size_t size = piece % 50 == 7 ? 2 * OutputFile::kBufferBytes + piece : piece * 131 % 5000;
    return std::to_string(piece) + std::string(size, static_cast<char>('a' + piece % 26)) + "\n";
}

PieceWriter write_text(OutputBuffer& out) {
    return [&out](std::size_t piece) { out.write(text_of(piece)); };
}

TEST(OutputPieces, AreInOrderWhoeverMadeThem) {
    constexpr std::size_t kCount = 300;
    std::string expected = "head ";
    for (std::size_t i = 0; i < kCount; ++i) expected += text_of(i);
    for (const unsigned threads : {0u, 1u, 2u, 3u, 16u, 1000u}) {
        std::ostringstream stream;
        OutputFile file(stream);
        file.write("head ");
        write_pieces(file, kCount, write_text, threads);
        file.write("tail");
        file.commit();
        EXPECT_TRUE(stream.str() == expected + "tail") << threads;
    }
}

#if MAREY_HAVE_ZLIB
TEST(OutputPieces, AreCompressedAsOneStream) {
    std::string expected;
    for (std::size_t i = 0; i < 100; ++i) expected += text_of(i);
    std::string folder = ::testing::TempDir() + "marey_pieces_XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/pieces.gz";
    OutputFile file(path);
    write_pieces(file, 100, write_text, 3);
    file.commit();
    gzFile const read = ::gzopen(path.c_str(), "rb");
    std::string text(expected.size() + 1, '\0');
    const int size = ::gzread(read, text.data(), static_cast<unsigned>(text.size()));
    ::gzclose(read);
    text.resize(static_cast<std::size_t>(std::max(0, size)));
    EXPECT_TRUE(text == expected);
    ::unlink(path.c_str());
    ::rmdir(folder.c_str());
}
#endif

TEST(OutputPieces, NoneAreWrittenAtOnce) {
    std::ostringstream stream;
    OutputFile file(stream);
    write_pieces(file, 0, write_text, 4);
    file.commit();
    EXPECT_EQ(stream.str(), "");
}

TEST(OutputPieces, OneThreadWritesIntoTheFileItself) {
    std::ostringstream stream;
    OutputFile file(stream);
    const auto make_writer = [&](OutputBuffer& out) {
        EXPECT_EQ(&out, &file);
        return write_text(out);
    };
    write_pieces(file, 10, make_writer, 1);
    write_pieces(file, 1, make_writer, 8);
}

TEST(OutputPieces, OnlyAFewAreInMemory) {
    constexpr unsigned kThreads = 4;
    std::atomic<std::size_t> begun{0};
    /// Counts how many pieces have been begun each time that bytes arrive.
    class Watch : public std::streambuf {
      public:
        explicit Watch(const std::atomic<std::size_t>& begun) : begun_(begun) {}
        std::size_t most_ahead = 0;

      private:
        std::streamsize xsputn(const char*, std::streamsize size) override {
            ::usleep(200);  // in this time the others could make all of them
            most_ahead = std::max(most_ahead, begun_.load() - written_);
            written_ += static_cast<std::size_t>(size) / OutputFile::kBufferBytes;
            return size;
        }
        const std::atomic<std::size_t>& begun_;
        std::size_t written_ = 0;
    } watch(begun);
    std::ostream stream(&watch);
    OutputFile file(stream);
    const std::string text(OutputFile::kBufferBytes, 'x');
    const auto make_writer = [&](OutputBuffer& out) -> PieceWriter {
        return [&](std::size_t) {
            ++begun;
            out.write(text);
        };
    };
    write_pieces(file, 200, make_writer, kThreads);
    file.commit();
    EXPECT_EQ(begun.load(), 200u);
    EXPECT_LE(watch.most_ahead, 5 * kThreads);
}

TEST(OutputPieces, AFailureWhereverItHappensIsPassedOn) {
    for (const unsigned threads : {1u, 2u, 8u}) {
        for (const std::size_t bad : {std::size_t{0}, std::size_t{57}, std::size_t{999}}) {
            std::ostringstream stream;
            OutputFile file(stream);
            const auto make_writer = [&](OutputBuffer& out) -> PieceWriter {
                return [&, bad](std::size_t piece) {
                    if (piece == bad) throw std::bad_alloc();
                    out.write("x");
                };
            };
            EXPECT_THROW(write_pieces(file, 1000, make_writer, threads), std::bad_alloc);
        }
    }
}

TEST(OutputPieces, AWriterThatCannotBeMadeIsAFailure) {
    for (const unsigned threads : {1u, 2u, 8u}) {
        std::ostringstream stream;
        OutputFile file(stream);
        std::atomic<unsigned> made{0};
        const auto make_writer = [&](OutputBuffer& out) {
            if (++made == threads) throw std::runtime_error("the last one");
            return write_text(out);
        };
        EXPECT_THROW(write_pieces(file, 1000, make_writer, threads), std::runtime_error);
    }
}

TEST(OutputPieces, AFullDiskIsAFailure) {
    if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
    for (const unsigned threads : {1u, 2u, 8u}) {
        OutputFile file("/dev/full");
        EXPECT_THROW(write_pieces(file, 1000, write_text, threads), Error);
    }
}

TEST(MemoryOutput, KeepsEveryByteAndGivesItsBlocksAway) {
    MemoryOutput out;
    std::string expected;
    for (std::size_t i = 0; i < 100; ++i) {
        out.write(text_of(i));
        expected += text_of(i);
    }
    EXPECT_EQ(out.position(), expected.size());
    MemoryOutput::Block block = out.exchange({});
    EXPECT_TRUE(block.bytes() == expected);
    EXPECT_EQ(out.written_since(0), "");
    const std::uint64_t start = out.position();
    out.write("more");
    EXPECT_EQ(out.written_since(start), "more");
    const char* const memory = block.memory.get();
    EXPECT_EQ(out.exchange(std::move(block)).bytes(), "more");
    EXPECT_EQ(out.reserve(1), memory);
}

}  // namespace
}  // namespace marey
