// input_text_test.cpp: texts are read completely, whatever the pieces.
#include "json/input_text.h"

#include <gtest/gtest.h>

#include <string>

#include <marey/error.h>

#include "base/expansion_limit.h"

#if MAREY_HAVE_ZLIB
#include <zlib.h>
#endif

namespace marey {
namespace {

/// Reads on, keeping `kept` bytes each time.
std::string read_all(std::unique_ptr<ByteSource> source, std::size_t piece, std::size_t kept) {
    InputText text(std::move(source), piece);
    std::string all;
    std::size_t seen = 0;  // of the text in memory
    while (true) {
        all.append(text.begin() + seen, text.end());
        EXPECT_EQ(*text.end(), '"');
        const std::size_t size = static_cast<std::size_t>(text.end() - text.begin());
        seen = std::min(size, kept);
        const char* const from = text.end() - seen;
        EXPECT_EQ(text.offset() + size, all.size());
        if (!text.read_on(from)) return all;
    }
}

std::string sample() {
    std::string text;
    for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919) + ",";
    return text;
}

TEST(InputText, PiecesOfAnySizeGiveTheWholeText) {
    const std::string text = sample();
    for (const std::size_t piece : {1u, 16u, 1000u, 1u << 20}) {
        for (const std::size_t kept : {0u, 5u, 100u})
            EXPECT_EQ(read_all(memory_source(text), piece, kept), text) << piece << " " << kept;
    }
    EXPECT_EQ(read_all(memory_source(""), 16, 0), "");
    EXPECT_EQ(read_all(memory_source("x"), 16, 0), "x");
}

TEST(InputText, AMissingFileIsAnErrorThatNamesIt) {
    try {
        open_source("/nowhere/file");
        FAIL();
    } catch (const Error& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("/nowhere/file: ")) << error.what();
    }
    EXPECT_THROW(open_source("/"), Error);
}

#if MAREY_HAVE_ZLIB
std::string packed(const std::string& text) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

TEST(InputText, GzipIsUnpackedMemberByMember) {
    const std::string text = sample();
    const std::string half = text.substr(0, text.size() / 2), rest = text.substr(text.size() / 2);
    for (const std::size_t piece : {1u, 1000u, 1u << 20}) {
        EXPECT_EQ(read_all(memory_source(packed(text)), piece, 3), text);
        const std::string two = packed(half) + packed(rest);
        EXPECT_EQ(read_all(memory_source(two), piece, 3), text);
        const std::string with_garbage = packed(text) + "garbage";
        EXPECT_EQ(read_all(memory_source(with_garbage), piece, 3), text);
    }
}

TEST(InputText, DamagedGzipGivesItsBeginningAndReportsTheDamage) {
    const std::string whole = packed(sample());
    for (const std::size_t size : {std::size_t{2}, std::size_t{10}, whole.size() / 2, whole.size() - 1}) {
        const std::string part = whole.substr(0, size);
        const auto source = memory_source(part);
        std::string text(sample().size() + 1, '\0');
        std::size_t count = 0, last = 0;
        while ((last = source->read(text.data() + count, text.size() - count)) > 0) count += last;
        EXPECT_EQ(text.substr(0, count), sample().substr(0, count));
        EXPECT_EQ(source->damage(), "the compressed data is truncated") << size;
    }
    std::string broken = whole;
    broken[whole.size() / 2] = static_cast<char>(~broken[whole.size() / 2]);
    const auto source = memory_source(broken);
    std::string text(1000, '\0');
    while (source->read(text.data(), text.size()) > 0) {
    }
    EXPECT_FALSE(source->damage().empty());
}

std::size_t bytes_until_refused(const std::string& file, std::string& message) {
    const auto source = memory_source(file);
    std::string text(1 << 20, '\0');
    std::size_t count = 0;
    try {
        while (const std::size_t last = source->read(text.data(), text.size())) count += last;
    } catch (const Error& error) {
        message = error.what();
    }
    return count;
}

TEST(InputText, GzipThatExpandsOutOfProportionIsRefused) {
    std::string message;
    const std::string small = packed(std::string(ExpansionLimit::kFreeBytes, ' '));
    EXPECT_EQ(bytes_until_refused(small, message), ExpansionLimit::kFreeBytes);
    EXPECT_EQ(message, "") << "64 MiB are allowed whatever the ratio";
    // 1000:1 in one member, and in many of which each is allowed.
    std::string members;
    for (int i = 0; i < 3; ++i) members += small;
    for (const std::string& bomb : {packed(std::string(256 << 20, ' ')), members}) {
        message.clear();
        EXPECT_LE(bytes_until_refused(bomb, message), ExpansionLimit::kFreeBytes + (1 << 20));
        EXPECT_NE(message.find("more than 100 times its size"), std::string::npos) << message;
    }
}
#endif

}  // namespace
}  // namespace marey
