// environment_test.cpp: what environment variables request.
#include <gtest/gtest.h>
#include <marey/execution_trace.h>

namespace marey {
namespace {

// E4
TEST(ExecutionTraceRequest, IsMadeByOurVariable) {
    const auto request = [](const char* own) {
        own != nullptr ? setenv("MAREY_EXECUTION_TRACE", own, 1) : unsetenv("MAREY_EXECUTION_TRACE");
        return execution_trace_request();
    };
    EXPECT_FALSE(request(nullptr).is_wanted);
    EXPECT_FALSE(request("").is_wanted);
    EXPECT_FALSE(request("0").is_wanted);
    EXPECT_TRUE(request("1").is_wanted);
    EXPECT_EQ(request("1").path, "");
    EXPECT_EQ(request("/tmp/x.json").path, "/tmp/x.json");
    EXPECT_FALSE(request("1").with_resources);
    setenv("MAREY_EXECUTION_TRACE_EXTRAS", "1", 1);
    EXPECT_TRUE(request("1").with_resources);
    unsetenv("MAREY_EXECUTION_TRACE_EXTRAS");
    setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1", 1);  // read by the source for PyTorch
    EXPECT_FALSE(request(nullptr).is_wanted);
    unsetenv("ENABLE_PYTORCH_EXECUTION_TRACE");
}

}  // namespace
}  // namespace marey
