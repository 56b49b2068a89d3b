// node_file_test.cpp: the file of an execution trace is JSON whenever somebody looks.
#include "emitters/node_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <kymo/error.h>

#include "base/strict_json.h"

namespace kymo {
namespace {

class NodeFiles : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/kymo-test-XXXXXX";
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

TEST_F(NodeFiles, SayAtOnceWhenTheyCannotBeMade) {
    EXPECT_THROW(NodeFile(folder_ + "/none/x.json"), Error);
    EXPECT_THROW(NodeFile(folder_ + "/none/x.json.gz"), Error);
    EXPECT_THROW(NodeFile("/dev/full"), Error);
}

}  // namespace
}  // namespace kymo
