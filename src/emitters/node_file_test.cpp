// node_file_test.cpp: the file of an execution trace is valid JSON at any time.
#include "emitters/node_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <marey/error.h>

#include "json/strict_json_fixture.h"

namespace marey {
namespace {

class NodeFiles : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/marey-test-XXXXXX";
        folder_ = mkdtemp(name);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string path() const { return folder_ + "/x.json"; }
    std::size_t nodes() const {
        std::ifstream file(path());
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        StrictJson::Value whole;
        EXPECT_EQ(StrictJson::parse(text, whole), "");
        EXPECT_EQ(whole["schema"].text, "1.1.1-chakra.0.0.4");
        EXPECT_LE(whole["start_ts"].number(), whole["finish_ts"].number());
        return whole["nodes"].items.size();
    }
    // The descriptor of the open file; 0: none.
    int descriptor() const {
        for (int fd = 3; fd < 4096; ++fd) {
            char target[4096] = {};
            const ssize_t length =
                readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target - 1);
            if (length > 0 && path() == target) return fd;
        }
        return 0;
    }
    std::string folder_;
};

// E3
TEST_F(NodeFiles, AreJsonFromTheStartAndAfterEveryFlush) {
    NodeFile file(path());
    EXPECT_EQ(nodes(), 0u);
    for (std::size_t i = 1; i <= 3; ++i) {
        file.append("{}");
        file.flush();
        EXPECT_EQ(nodes(), i);
    }
    file.flush();
    EXPECT_EQ(nodes(), 3u);
    const std::string large = "{\"a\": \"" + std::string(5000, 'x') + "\"}";
    for (int i = 0; i < 100; ++i) {
        file.append(large);
        nodes();
    }
    file.finish();
    EXPECT_EQ(nodes(), 103u);
}

TEST_F(NodeFiles, FailAtOnceWhenTheyCannotBeCreated) {
    EXPECT_THROW(NodeFile(folder_ + "/none/x.json"), Error);
    EXPECT_THROW(NodeFile(folder_ + "/none/x.json.gz"), Error);
    EXPECT_THROW(NodeFile("/dev/full"), Error);
}

TEST_F(NodeFiles, SurviveTheProgramClosingTheirDescriptor) {
    NodeFile file(path());
    file.append("{}");
    file.flush();
    // As a daemon does. The program's file gets the number.
    const int closed = descriptor();
    ASSERT_GT(closed, 0);
    const std::string other = folder_ + "/other";
    const int own = open(other.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(dup3(own, closed, O_CLOEXEC), closed);
    close(own);
    file.append("{}");
    file.flush();
    EXPECT_EQ(nodes(), 2u);
    file.finish();
    EXPECT_EQ(nodes(), 2u);
    EXPECT_EQ(std::filesystem::file_size(other), 0u);
    EXPECT_EQ(close(closed), 0);  // still the program's
}

TEST_F(NodeFiles, FailWhenTheirFileIsGone) {
    NodeFile file(path());
    ASSERT_EQ(close(descriptor()), 0);
    std::filesystem::remove(path());
    file.append("{}");
    EXPECT_THROW(file.finish(), Error);
}

}  // namespace
}  // namespace marey
