// formats_test.cpp: formats are detected from the file contents; unknown or damaged files are rejected with
// their path.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>

#include <marey/error.h>
#include <marey/import.h>

#include "base/golden_fixture.h"

#if MAREY_HAVE_ZLIB
#include <zlib.h>
#endif

namespace marey {
namespace {

class ImportFormatsTest : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / ("marey-formats-" + std::to_string(getpid()));
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream(path(name), std::ios::binary) << bytes;
        return path(name);
    }
    /// The error when opening it, without the path; "" if it succeeds.
    static std::string failure(const std::string& path) {
        try {
            (void)open_trace(path);
        } catch (const Error& error) {
            const std::string text = error.what();
            return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : "without path: " + text;
        }
        return "";
    }

  private:
    std::filesystem::path folder_;
};

TEST(FileFormatsTest, TheGuideListsEachOfThem) {
    const std::filesystem::path page =
        std::filesystem::path(MAREY_SOURCE_DIR) / "docs" / "guide" / "formats.md";
    const std::string now = read_text(page);
    const std::string mark = "<!-- formats_test writes this table (MAREY_WRITE_GOLDENS=1). -->\n";
    const std::size_t begin = now.find(mark), end = now.find("<!-- end of the table -->"),
                      read = now.find("## Read");
    ASSERT_TRUE(begin < end && end < read && read != now.npos);
    std::string table = "| `--to` | suffix | what it is | leaves out |\n|---|---|---|---|\n";
    for (const FileFormat& format : file_formats()) {
        const std::string name = "`" + std::string(format.name) + "`";
        if (format.recognizes != nullptr && format.name != "marey") {
            EXPECT_NE(now.find(name, read), now.npos) << name << " is read";
        }
        if (format.write == nullptr) continue;
        table.append("| ").append(name).append(" | `").append(format.suffixes.front()).append("` | ");
        table.append(format.description).append(" | ");
        table.append(format.leaves_out.empty() ? "nothing" : format.leaves_out).append(" |\n");
    }
    expect_file(now.substr(0, begin + mark.size()) + "\n" + table + "\n" + now.substr(end), page);
}

TEST(FileFormatsTest, HaveDistinctNamesAndSuffixes) {
    std::set<std::string_view> seen;
    for (const FileFormat& format : file_formats()) {
        EXPECT_TRUE(seen.insert(format.name).second) << format.name;
        for (const std::string_view suffix : format.suffixes)
            EXPECT_TRUE(seen.insert(suffix).second) << suffix;
        EXPECT_EQ(format.recognizes != nullptr, (format.read != nullptr) != (format.read_bytes != nullptr))
            << format.name;
        EXPECT_EQ(format.suffixes.empty(), format.write == nullptr) << format.name;
        EXPECT_TRUE(format.recognizes != nullptr || format.write != nullptr) << format.name;
    }
}

TEST_F(ImportFormatsTest, AnUnknownFormatIsAnErrorThatListsTheKnownOnes) {
    std::string expected = "unknown file format; known: marey";
    for (const FileFormat& format : file_formats().subspan(1)) {
        if (format.recognizes != nullptr) expected += ", " + std::string(format.name);
    }
    std::string noise = "\x01";
    std::mt19937 random(3);
    for (int i = 0; i < 4000; ++i) noise += static_cast<char>(random());
    EXPECT_EQ(failure(write("junk", "this is not a trace")), expected);
    EXPECT_EQ(failure(write("table.csv", "name,start\na,1\n")), expected);
    EXPECT_EQ(failure(write("noise.bin", noise)), expected);
    EXPECT_EQ(failure(write("brackets.json", "[[[[")), expected);
    EXPECT_EQ(failure(write("junk.marey", std::string(100, '\0'))), expected);
}

TEST_F(ImportFormatsTest, EmptyFilesAndBrokenCapturesAreReported) {
    EXPECT_EQ(failure(write("empty.pftrace", "")), "the file is empty");
    EXPECT_EQ(failure(write("empty.marey", "")), "the file is empty");
    EXPECT_EQ(failure(write("begin.marey", "MAREYnothing")), "not a Marey capture");
    EXPECT_EQ(failure(path("missing")), "No such file or directory");
    EXPECT_EQ(failure(path("")), "Is a directory");
}

TEST_F(ImportFormatsTest, APipeThatIsNotACaptureNeedsItsFormat) {
    const std::string pipe = path("pipe");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const std::string text = R"([{"ph":"X","name":"a","ts":0,"dur":1}])";
    const auto fill = [&] { std::ofstream(pipe) << text; };
    std::thread writer(fill);
    EXPECT_EQ(failure(pipe),
              "not a Marey capture; a pipe is read as a Marey capture unless --from gives its format");
    writer.join();
    writer = std::thread(fill);
    EXPECT_EQ(open_trace(pipe, "chrome").ranges().size(), 1u);
    writer.join();
}

#if MAREY_HAVE_ZLIB

TEST_F(ImportFormatsTest, DamagedGzipGivesTheIntactPartAndTheDamage) {
    std::string events = "[";
    std::mt19937 random(5);
    for (int i = 0; i < 2000; ++i) {
        events += (i > 0 ? "," : "") + std::string(R"({"ph":"X","pid":1,"tid":1,"name":"n)") +
                  std::to_string(random()) + R"(","ts":)" + std::to_string(i) + R"(,"dur":1})";
    }
    const std::string packed = path("a.json.gz");
    gzFile file = ::gzopen(packed.c_str(), "wb");
    ASSERT_GT(::gzwrite(file, events.data(), static_cast<unsigned>(events.size())), 0);
    ASSERT_EQ(::gzclose(file), Z_OK);
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(packed));
    std::fstream damaged(packed, std::ios::binary | std::ios::in | std::ios::out);
    damaged.seekp(size / 2);
    damaged << std::string(64, '\xff');
    damaged.close();
    EXPECT_EQ(failure(packed), "");
    const Trace trace = open_trace(packed);
    EXPECT_GT(trace.ranges().size(), 100u);
    EXPECT_LT(trace.ranges().size(), 2000u);
    ASSERT_FALSE(trace.problems().empty());
    EXPECT_EQ(trace.problems()[0].code, "cut_short");
}

TEST_F(ImportFormatsTest, GzipDamagedAtTheStartIsReported) {
    EXPECT_EQ(failure(write("a.json.gz", "\x1f\x8b\x08garbage that is not a stream")),
              "the compressed data is damaged");
}

#endif

}  // namespace
}  // namespace marey
