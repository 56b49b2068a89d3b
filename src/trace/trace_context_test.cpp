// trace_context_test.cpp: reads the header traceparent, and refuses what W3C Trace Context refuses.
#include "trace/trace_context.h"

#include <gtest/gtest.h>

#include <string>

namespace marey {
namespace {

TEST(TraceContext, ReadsTheIdsOfTheHeader) {
    const auto context = parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    ASSERT_TRUE(context);
    EXPECT_EQ(context->trace_id[0], 0x4bf92f3577b34da6u);
    EXPECT_EQ(context->trace_id[1], 0xa3ce929d0e0e4736u);
    EXPECT_EQ(context->span_id, 0x00f067aa0ba902b7u);
    EXPECT_TRUE(parse_traceparent("00-0000000000000000a3ce929d0e0e4736-00f067aa0ba902b7-00"));
    EXPECT_TRUE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"));
}

TEST(TraceContext, RefusesOtherTexts) {
    for (const std::string text : {
             "",
             "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
             "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
             "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
             "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
             "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
             "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
             "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
             "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
         })
        EXPECT_FALSE(parse_traceparent(text)) << text;
}

}  // namespace
}  // namespace marey
