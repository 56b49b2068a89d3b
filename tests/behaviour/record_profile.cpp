// record_profile.cpp: profiles a scope into a Chrome trace, written when it ends.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <marey/all.h>

namespace {

std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}
bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

class RecordProfile : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/marey-profile-XXXXXX";
        folder_ = mkdtemp(name);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }

    std::string folder_;
};

// L11
TEST_F(RecordProfile, WritesAChromeTraceOfItsScopeToAFile) {
    { MAREY_RANGE("before"); }
    {
        const marey::RecordProfile guard(path("trace.json"));
        MAREY_RANGE("quoted \"name\"");
        EXPECT_FALSE(std::filesystem::exists(path("trace.json")));
    }
    { MAREY_RANGE("after"); }
    const std::string text = text_of(path("trace.json"));
    EXPECT_TRUE(contains(text, R"("name":"quoted \"name\"")"));
    EXPECT_TRUE(contains(text, R"("ph":"X")"));
    EXPECT_FALSE(contains(text, "before"));
    EXPECT_FALSE(contains(text, "after"));
    EXPECT_EQ(text.front(), '{');
    EXPECT_TRUE(text.ends_with("\"traceName\":\"" + path("trace.json") + "\"}\n"));
    EXPECT_FALSE(marey::is_recording());
}

// L11
TEST_F(RecordProfile, WritesTheSameToAStream) {
    std::ostringstream stream;
    {
        const marey::RecordProfile guard(stream);
        for (int i = 0; i < 20'000; ++i) {
            MAREY_RANGE("work");
        }
    }
    EXPECT_GT(stream.str().size(), 1'000'000u);
    EXPECT_TRUE(stream.str().ends_with("]}\n"));
}

// L11
TEST_F(RecordProfile, AFailureIsOneLineAndNoException) {
    ::testing::internal::CaptureStderr();
    { const marey::RecordProfile guard(path("no/such/folder.json")); }
    const std::string of_file = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(of_file.rfind("marey: cannot write the profile: " + path("no/such/folder.json"), 0), 0u)
        << of_file;
    EXPECT_EQ(of_file.find('\n'), of_file.size() - 1);

    std::ostringstream broken;
    broken.setstate(std::ios::badbit);
    broken.exceptions(std::ios::goodbit);
    ::testing::internal::CaptureStderr();
    { const marey::RecordProfile guard(broken); }
    EXPECT_TRUE(contains(::testing::internal::GetCapturedStderr(), "marey: cannot write the profile: "));

    ::testing::internal::CaptureStderr();
    { const marey::RecordProfile guard(path("x.json"), {.output = path("no/such/capture.marey")}); }
    const std::string of_start = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(of_start.rfind("marey: cannot start the profile: ", 0), 0u) << of_start;
    EXPECT_EQ(of_start.find('\n'), of_start.size() - 1);
    EXPECT_FALSE(std::filesystem::exists(path("x.json")));
}

// L11
TEST_F(RecordProfile, StoppedByItsUserItWritesNothing) {
    {
        marey::RecordProfile guard(path("trace.json"));
        { MAREY_RANGE("work"); }
        EXPECT_EQ(guard.session().snapshot().ranges().size(), 1u);
        guard.session().discard();
    }
    EXPECT_FALSE(std::filesystem::exists(path("trace.json")));
}

}  // namespace
