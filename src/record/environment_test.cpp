// environment_test.cpp: the text form of a session's options.
#include <gtest/gtest.h>
#include <marey/error.h>
#include <marey/execution_trace.h>

#include "record/recorder.h"

namespace marey {
namespace {

std::string error_of(std::string_view text) {
    try {
        parse_options(text);
    } catch (const Error& error) {
        return error.what();
    }
    return "(no error)";
}

TEST(ParseOptions, AnEmptyTextGivesTheDefaults) {
    for (const char* const text : {"", ",", ",,"}) {
        const SessionOptions options = parse_options(text);
        EXPECT_EQ(options.output, "");
        EXPECT_EQ(options.name, "");
        EXPECT_EQ(options.max_bytes, std::uint64_t{1} << 30);
        EXPECT_EQ(options.policy, Policy::Stop);
        EXPECT_EQ(options.scopes, ScopeSet::all());
        EXPECT_TRUE(options.record_values);
    }
}

TEST(ParseOptions, AcceptsEveryKeyInAnyOrder) {
    const SessionOptions options = parse_options(
        "values=off,name=night run,scopes=user|function,policy=ring,max=512MB,out=/tmp/app.marey");
    EXPECT_EQ(options.output, "/tmp/app.marey");
    EXPECT_EQ(options.name, "night run");
    EXPECT_EQ(options.max_bytes, std::uint64_t{512} << 20);
    EXPECT_EQ(options.policy, Policy::Ring);
    EXPECT_EQ(options.scopes, (ScopeSet{Scope::User, Scope::Function}));
    EXPECT_FALSE(options.record_values);
}

TEST(ParseOptions, CallsAreRecordedWithOrWithoutThoseIntoC) {
    EXPECT_FALSE(parse_options("out=a").with_stack);
    EXPECT_FALSE(parse_options("calls=off").with_stack);
    for (const char* const text : {"calls=on", "calls=on,c_calls=on", "c_calls=auto,calls=on"}) {
        EXPECT_TRUE(parse_options(text).with_stack) << text;
        EXPECT_EQ(parse_options(text).scopes, ScopeSet::all()) << text;
    }
    const SessionOptions without = parse_options("c_calls=off,calls=on");
    EXPECT_TRUE(without.scopes.contains(Scope::PythonFunction));
    EXPECT_FALSE(without.scopes.contains(Scope::CFunction));
    EXPECT_EQ(parse_options("c_calls=off").scopes, ScopeSet::all());
    EXPECT_EQ(error_of("c_calls=some"), "c_calls=some: expected on or off");
}

TEST(ParseOptions, TheLastValueOfAKeyCounts) {
    EXPECT_EQ(parse_options("out=a,out=b").output, "b");
}

TEST(ParseOptions, ABackslashEscapesTheNextCharacter) {
    EXPECT_EQ(parse_options("out=a\\,b.marey,name=x").output, "a,b.marey");
    EXPECT_EQ(parse_options("out=a\\\\b").output, "a\\b");
    EXPECT_EQ(parse_options("out=a\\").output, "a\\");
    EXPECT_EQ(parse_options("out=a=b").output, "a=b");
    EXPECT_EQ(parse_options("out= a b ").output, " a b ");
}

TEST(ParseOptions, ReadsSizes) {
    const std::pair<const char*, std::uint64_t> table[] = {
        {"1", 1},
        {"12345B", 12345},
        {"1k", 1 << 10},
        {"3K", 3 << 10},
        {"3kB", 3 << 10},
        {"3KB", 3 << 10},
        {"3KiB", 3 << 10},
        {"64M", 64 << 20},
        {"64MB", 64 << 20},
        {"64MiB", 64 << 20},
        {"2G", std::uint64_t{2} << 30},
        {"2GB", std::uint64_t{2} << 30},
        {"2GiB", std::uint64_t{2} << 30},
        {"18446744073709551615", ~std::uint64_t{0}},
    };
    for (const auto& [text, bytes] : table) {
        EXPECT_EQ(parse_options(std::string("max=") + text).max_bytes, bytes) << text;
    }
}

TEST(ParseOptions, NamesAnInvalidSize) {
    for (const std::string text :
         {"", "0", "0MB", "-1", "+1", " 1", "1 MB", "MB", "1.5GB", "1TB", "1mb", "64MBx", "0x10",
          "18446744073709551616", "18446744073709551615KB", "17179869184GB"}) {
        EXPECT_EQ(error_of("max=" + text), "max=" + text + ": expected a size such as 64MB or 2GB");
    }
    EXPECT_EQ(error_of("max"), "max=: expected a size such as 64MB or 2GB");
}

TEST(ParseOptions, ReadsPolicies) {
    EXPECT_EQ(parse_options("policy=stop").policy, Policy::Stop);
    EXPECT_EQ(parse_options("policy=drop").policy, Policy::Drop);
    EXPECT_EQ(parse_options("policy=ring").policy, Policy::Ring);
    for (const std::string text : {"", "Ring", "ring ", "often"}) {
        EXPECT_EQ(error_of("policy=" + text), "policy=" + text + ": expected stop, drop or ring");
    }
}

TEST(ParseOptions, ReadsScopes) {
    EXPECT_EQ(parse_options("scopes=all").scopes, ScopeSet::all());
    for (int i = 0; i < kScopeCount; ++i) {
        const auto scope = static_cast<Scope>(i);
        EXPECT_EQ(parse_options(std::string("scopes=") + scope_name(scope)).scopes, ScopeSet{scope});
    }
    EXPECT_EQ(error_of("scopes=user|users"), "scopes=user|users: unknown scope 'users'");
    EXPECT_EQ(error_of("scopes="), "scopes=: unknown scope ''");
    EXPECT_EQ(error_of("scopes=user|"), "scopes=user|: unknown scope ''");
}

TEST(ParseOptions, ReadsDevicesAndTheirActivities) {
    EXPECT_TRUE(parse_options("out=a").devices.empty());
    EXPECT_EQ(parse_options("devices=cuda").devices, std::vector<std::string>{"cuda"});
    EXPECT_EQ(parse_options("devices=cuda|my device").devices,
              (std::vector<std::string>{"cuda", "my device"}));
    EXPECT_EQ(parse_options("out=a").device_activities, kDeviceDefault);
    EXPECT_EQ(parse_options("device_activities=default|waits").device_activities, kDeviceAll);
    EXPECT_EQ(parse_options("device_activities=kernels|times").device_activities,
              kDeviceKernels | kDeviceTimes);
    EXPECT_EQ(error_of("devices="), "devices=: expected names such as cuda");
    EXPECT_EQ(error_of("devices=a||b"), "devices=a||b: expected names such as cuda");
    EXPECT_EQ(error_of("device_activities=naps"),
              "unknown device activity 'naps'; expected kernels, copies, sets, calls, "
              "driver_calls, waits, overhead, times, default or all");
}

TEST(ParseOptions, ReadsSwitches) {
    for (const char* const text : {"values", "values=", "values=1", "values=on", "values=yes"}) {
        EXPECT_TRUE(parse_options(text).record_values) << text;
    }
    for (const char* const text : {"values=0", "values=off", "values=no"}) {
        EXPECT_FALSE(parse_options(text).record_values) << text;
    }
    EXPECT_EQ(error_of("values=maybe"), "values=maybe: expected on or off");
    const SessionOptions none = parse_options("shapes=off,inputs=off,memory=off,flops=off");
    EXPECT_FALSE(none.record_shapes || none.concrete_inputs || none.profile_memory || none.with_flops);
    EXPECT_TRUE(parse_options("shapes").record_shapes);
    EXPECT_TRUE(parse_options("inputs=1").concrete_inputs);
    EXPECT_TRUE(parse_options("memory=on").profile_memory);
    EXPECT_TRUE(parse_options("flops=yes").with_flops);
}

TEST(ParseOptions, NamesAnUnknownKey) {
    for (const std::string text : {"colour=red", "Out=x", " out=x", "garbage", "=x", "="}) {
        EXPECT_EQ(error_of(text),
                  "'" + text +
                      "': expected out=, max=, policy=, scopes=, name=, values=, shapes=, "
                      "inputs=, memory=, flops=, devices=, device_activities=, nvtx=, calls= or c_calls=");
    }
}

// E4
TEST(ExecutionTraceRequest, IsMadeByOurVariableOrElseByPyTorchs) {
    const auto request = [](const char* own, const char* other) {
        own != nullptr ? setenv("MAREY_EXECUTION_TRACE", own, 1) : unsetenv("MAREY_EXECUTION_TRACE");
        other != nullptr ? setenv("ENABLE_PYTORCH_EXECUTION_TRACE", other, 1)
                         : unsetenv("ENABLE_PYTORCH_EXECUTION_TRACE");
        return execution_trace_request();
    };
    EXPECT_FALSE(request(nullptr, nullptr).is_wanted);
    EXPECT_FALSE(request("", "0").is_wanted);
    EXPECT_FALSE(request("0", "1").is_wanted);
    EXPECT_TRUE(request(nullptr, "1").is_wanted);
    EXPECT_TRUE(request("1", nullptr).is_wanted);
    EXPECT_EQ(request("1", nullptr).path, "");
    EXPECT_EQ(request("/tmp/x.json", "0").path, "/tmp/x.json");
    EXPECT_FALSE(request("1", nullptr).with_resources);
    setenv("MAREY_EXECUTION_TRACE_EXTRAS", "1", 1);
    EXPECT_TRUE(request("1", nullptr).with_resources);
    unsetenv("MAREY_EXECUTION_TRACE_EXTRAS");
    request(nullptr, nullptr);
}

}  // namespace
}  // namespace marey
