// output_file_test.cpp: output appears complete or not at all.
#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <marey/error.h>

#if MAREY_HAVE_ZLIB
#include <zlib.h>
#endif

namespace marey {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "marey_output_XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }

    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    static std::string content(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }
    std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
    }

    fs::path folder_;
};

// K11
TEST_F(OutputFileTest, AppearsOnlyWhenCommitted) {
    OutputFile file(path("a.json"));
    file.write("hello");
    EXPECT_FALSE(fs::exists(path("a.json")));
    file.commit();
    EXPECT_EQ(content(path("a.json")), "hello");
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, WithoutCommitTheOldFileStaysAndNothingIsLeftBeside) {
    std::ofstream(path("a.json")) << "old";
    {
        OutputFile file(path("a.json"));
        file.write(std::string(3 * OutputFile::kBufferBytes, 'x'));
    }
    EXPECT_EQ(content(path("a.json")), "old");
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, ReplacesAnOldFileAndKeepsItsMode) {
    std::ofstream(path("a.json")) << "old";
    ASSERT_EQ(::chmod(path("a.json").c_str(), 0640), 0);
    OutputFile file(path("a.json"));
    file.write("new");
    file.commit();
    EXPECT_EQ(content(path("a.json")), "new");
    struct stat info {};
    ASSERT_EQ(::stat(path("a.json").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(OutputFileTest, WritesThroughASymbolicLink) {
    std::ofstream(path("real.json")) << "old";
    fs::create_symlink("real.json", path("link.json"));
    OutputFile file(path("link.json"));
    file.write("new");
    file.commit();
    EXPECT_TRUE(fs::is_symlink(path("link.json")));
    EXPECT_EQ(content(path("real.json")), "new");
}

TEST_F(OutputFileTest, RefusesToWriteThroughTheLinkOfAnotherUser) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make such a link";
    constexpr uid_t kOther = 65534;
    std::ofstream(path("real.json")) << "old";
    fs::create_symlink("real.json", path("theirs.json"));
    fs::create_symlink("nowhere.json", path("dangling.json"));
    fs::create_symlink("theirs.json", path("mine.json"));
    for (const char* const link : {"theirs.json", "dangling.json"})
        ASSERT_EQ(::lchown(path(link).c_str(), kOther, kOther), 0);
    for (const char* const link : {"theirs.json", "dangling.json", "mine.json"})
        EXPECT_THROW(OutputFile(path(link)), Error) << link;
    EXPECT_EQ(content(path("real.json")), "old");
    EXPECT_FALSE(fs::exists(path("nowhere.json")));
}

TEST_F(OutputFileTest, RefusesAFolderLinkOfAnotherUserWhereAnybodyCanPutOne) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make such a link";
    constexpr uid_t kOther = 65534;
    for (const char* const name : {"private", "shared"}) {
        fs::create_directories(path(name) + "/real");
        fs::create_directory_symlink("real", path(name) + "/link");
        ASSERT_EQ(::lchown((path(name) + "/link").c_str(), kOther, kOther), 0);
    }
    ASSERT_EQ(::chmod(path("shared").c_str(), 01777), 0);
    EXPECT_NO_THROW(OutputFile(path("private/link/out.json")));
    EXPECT_THROW(OutputFile(path("shared/link/out.json")), Error);
    EXPECT_NO_THROW(OutputFile(path("shared/real/../real/out.json")));
}

TEST_F(OutputFileTest, KeepsEveryByteWhateverTheSizesOfThePieces) {
    std::string expected;
    OutputFile file(path("a.bin"));
    for (std::size_t i = 0; i < 4000; ++i) {
        const std::size_t size = i % 500 == 4 ? OutputFile::kBufferBytes + i * 31 : i * 7 % 997;
        const std::string piece(size, static_cast<char>('a' + i % 26));
        if (i % 2 == 0) {
            file.write(piece);
        } else {
            char* out = file.reserve(piece.size() + 64);
            std::memcpy(out, piece.data(), piece.size());
            file.advance(out + piece.size());
        }
        expected += piece;
    }
    const std::string large(OutputFile::kBufferBytes + 12345, 'L');
    char* out = file.reserve(large.size());
    std::memcpy(out, large.data(), large.size());
    file.advance(out + large.size());
    file.write("end");
    file.commit();
    EXPECT_TRUE(content(path("a.bin")) == expected + large + "end");
}

TEST_F(OutputFileTest, BytesSinceAPositionAreAvailableUntilTheyLeaveTheBuffer) {
    OutputFile file(path("a.bin"));
    file.write("before");
    const std::uint64_t start = file.position();
    EXPECT_EQ(start, 6u);
    file.write("afterwards");
    EXPECT_EQ(file.written_since(start), "afterwards");
    const std::string large(2 * OutputFile::kBufferBytes, 'L');
    file.write(large);
    EXPECT_EQ(file.written_since(start), "");
    const std::uint64_t late = file.position();
    EXPECT_EQ(late, start + 10 + large.size());
    file.write("late");
    EXPECT_EQ(file.written_since(late), "late");
    file.commit();
}

TEST_F(OutputFileTest, DevicesAreWrittenInPlace) {
    OutputFile file("/dev/null");
    file.write("gone");
    file.commit();
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFileTest, AFullDiskIsAnErrorThatNamesTheFile) {
    if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
    OutputFile file("/dev/full");
    file.write("x");
    try {
        file.commit();
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "/dev/full: cannot write: No space left on device");
    }
}

TEST_F(OutputFileTest, AMissingFolderIsAnErrorThatNamesTheFile) {
    try {
        OutputFile file(path("none/a.json"));
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()),
                  path("none/a.json") + ": cannot create: No such file or directory");
    }
    EXPECT_THROW(OutputFile(folder_.string()), Error);
}

#if MAREY_HAVE_ZLIB
// K11
TEST_F(OutputFileTest, TheSuffixGzCompresses) {
    std::string expected;
    for (int i = 0; i < 200000; ++i) expected += std::to_string(i) + ",";
    OutputFile file(path("a.json.gz"));
    file.write(expected);
    file.commit();
    EXPECT_LT(fs::file_size(path("a.json.gz")), expected.size() / 2);
    gzFile packed = gzopen(path("a.json.gz").c_str(), "rb");
    ASSERT_NE(packed, nullptr);
    std::string back(expected.size() + 1, '\0');
    back.resize(static_cast<std::size_t>(gzread(packed, back.data(), static_cast<unsigned>(back.size()))));
    gzclose(packed);
    EXPECT_TRUE(back == expected);
}
#endif

TEST_F(OutputFileTest, AFileThatIsAlreadyOpenIsWrittenInPlace) {
    std::ofstream(path("log")) << "precious ";
    const int open = ::open(path("log").c_str(), O_WRONLY | O_APPEND);
    ASSERT_GE(open, 0);
    OutputFile file("/dev/fd/" + std::to_string(open));
    file.write("and more");
    file.commit();
    ::close(open);
    EXPECT_EQ(content(path("log")), "precious and more");
}

}  // namespace
}  // namespace marey
