// session_options_test.cpp: the text form of a session's options.
#include <gtest/gtest.h>
#include <marey/error.h>
#include <marey/session_options.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

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
    EXPECT_FALSE(parse_options("calls=on,c_calls=auto", false).scopes.contains(Scope::CFunction));
    EXPECT_TRUE(parse_options("calls=on,c_calls=on", false).scopes.contains(Scope::CFunction));
    const SessionOptions without = parse_options("c_calls=off,calls=on");
    EXPECT_TRUE(without.scopes.contains(Scope::PythonFunction));
    EXPECT_FALSE(without.scopes.contains(Scope::CFunction));
    EXPECT_EQ(parse_options("c_calls=off").scopes, ScopeSet::all());
    EXPECT_EQ(error_of("c_calls=some"), "c_calls: invalid value 'some': expected on or off");
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
        {"1TB", std::uint64_t{1} << 40},
        {"64 mb", 64 << 20},
        {"18446744073709551615", ~std::uint64_t{0}},
    };
    for (const auto& [text, bytes] : table) {
        EXPECT_EQ(parse_options(std::string("max=") + text).max_bytes, bytes) << text;
    }
}

TEST(ParseOptions, NamesAnInvalidSize) {
    for (const std::string text :
         {"", "0", "0MB", "-1", "+1", " 1", "MB", "1.5GB", "1PB", "64MBx", "1bib", "0x10",
          "18446744073709551616", "18446744073709551615KB", "17179869184GB"}) {
        EXPECT_EQ(error_of("max=" + text),
                  "max: invalid size '" + text + "': expected a number with an optional unit, such as 512MB");
    }
    EXPECT_EQ(error_of("max"), error_of("max="));
}

TEST(ParseOptions, ReadsPolicies) {
    EXPECT_EQ(parse_options("policy=stop").policy, Policy::Stop);
    EXPECT_EQ(parse_options("policy=drop").policy, Policy::Drop);
    EXPECT_EQ(parse_options("policy=ring").policy, Policy::Ring);
    for (const std::string text : {"", "Ring", "ring ", "often"}) {
        EXPECT_EQ(error_of("policy=" + text),
                  "policy: invalid value '" + text + "': expected stop, drop or ring");
    }
}

TEST(ParseOptions, ReadsScopes) {
    EXPECT_EQ(parse_options("scopes=all").scopes, ScopeSet::all());
    for (int i = 0; i < kScopeCount; ++i) {
        const auto scope = static_cast<Scope>(i);
        EXPECT_EQ(parse_options(std::string("scopes=") + scope_name(scope)).scopes, ScopeSet{scope});
    }
    EXPECT_TRUE(error_of("scopes=user|users").starts_with("scopes: unknown scope 'users'; expected all, "));
    EXPECT_TRUE(error_of("scopes=").starts_with("scopes: unknown scope ''"));
    EXPECT_TRUE(error_of("scopes=user|").starts_with("scopes: unknown scope ''"));
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
    EXPECT_EQ(error_of("devices="), "devices: invalid list '': expected names separated by '|'");
    EXPECT_EQ(error_of("devices=a||b"), "devices: invalid list 'a||b': expected names separated by '|'");
    EXPECT_EQ(error_of("device_activities=naps"),
              "device_activities: unknown device activity 'naps'; expected kernels, copies, sets, calls, "
              "driver_calls, waits, overhead, times, default or all");
}

TEST(ParseOptions, ReadsSwitches) {
    for (const char* const text : {"values", "values=", "values=1", "values=on", "values=yes"}) {
        EXPECT_TRUE(parse_options(text).record_values) << text;
    }
    for (const char* const text : {"values=0", "values=off", "values=no"}) {
        EXPECT_FALSE(parse_options(text).record_values) << text;
    }
    EXPECT_EQ(error_of("values=maybe"), "values: invalid value 'maybe': expected on or off");
    const SessionOptions none = parse_options("shapes=off,inputs=off,memory=off,flops=off");
    EXPECT_FALSE(none.record_shapes || none.concrete_inputs || none.profile_memory || none.with_flops);
    EXPECT_TRUE(parse_options("shapes").record_shapes);
    EXPECT_TRUE(parse_options("inputs=1").concrete_inputs);
    EXPECT_TRUE(parse_options("memory=on").profile_memory);
    EXPECT_TRUE(parse_options("flops=yes").with_flops);
}

TEST(ParseOptions, NamesAnUnknownKey) {
    for (const std::string text : {"colour=red", "Out=x", " out=x", "garbage", "=x", "="}) {
        EXPECT_EQ(
            error_of(text),
            "'" + text +
                "': expected out=, name=, max=, policy=, last=, scopes=, values=, command_line=, memory=, "
                "sample=, "
                "shapes=, inputs=, flops=, devices=, device_activities=, nvtx=, clock_exchange=, control=, "
                "include=, exclude=, fold_libraries=, min_duration_ns=, max_depth=, call_budget=, "
                "call_lines=, calls=, or c_calls=");
    }
}

TEST(ParseOptions, ReadsTheTimeThatARingKeeps) {
    EXPECT_EQ(parse_options("last=30s").last_ns, 30'000'000'000u);
    EXPECT_EQ(parse_options("last=250ms").last_ns, 250'000'000u);
    EXPECT_EQ(parse_options("last=2min").last_ns, 120'000'000'000u);
    EXPECT_EQ(parse_options("last=0s").last_ns, 0u);
    for (const std::string text : {"", "30", "s", "-1s", "1.5s", "1h", "30 s", "18446744073709551615min"}) {
        EXPECT_EQ(error_of("last=" + text),
                  "last: invalid time '" + text +
                      "': expected a number with a unit (ns, us, ms, s or min), such as 30s");
    }
}

TEST(ParseOptions, ReadsTheFiltersOfCalls) {
    const SessionOptions options = parse_options(
        "include=shop,include=src/*.py,exclude=numpy,fold_libraries,min_duration_ns=10,max_depth=4294967295,"
        "call_budget=7,call_lines=on");
    EXPECT_EQ(options.calls.include, (std::vector<std::string>{"shop", "src/*.py"}));
    EXPECT_EQ(options.calls.exclude, std::vector<std::string>{"numpy"});
    EXPECT_TRUE(options.calls.fold_libraries && options.calls.lines);
    EXPECT_EQ(options.calls.min_duration_ns, 10u);
    EXPECT_EQ(options.calls.max_depth, 4294967295u);
    EXPECT_EQ(options.calls.budget, 7u);
    EXPECT_EQ(error_of("max_depth=4294967296"),
              "max_depth: invalid value '4294967296': expected a number from 0 to 4294967295");
    EXPECT_EQ(error_of("include=["), "include: the pattern '[' has an unclosed '['");
}

TEST(OptionEntry, IsReadBackAsGiven) {
    for (const std::string value : {"a", "", "a,c_calls=auto.marey", "a\\,b\\", "a=b"})
        EXPECT_EQ(parse_options(option_entry("out", value) + ",name=x").output, value);
}

TEST(SessionOptionTable, HasEachNameAndKeyOnce) {
    std::set<std::string> names, keys;
    for (const SessionOption& option : kSessionOptions) {
        EXPECT_TRUE(names.insert(option.name).second) << option.name;
        if (*option.key != '\0') {
            EXPECT_TRUE(keys.insert(option.key).second) << option.key;
        }
        EXPECT_LT(std::string(option.help).size(), 72u) << option.name;
    }
}

TEST(SessionOptionTable, IsDocumented) {
    std::ifstream page(std::filesystem::path(MAREY_SOURCE_DIR) / "docs/reference/environment.md");
    const std::string text{std::istreambuf_iterator<char>(page), {}};
    const auto cell = [](std::string_view code) {
        return code.empty() ? std::string() : "`" + std::string(code.substr(0, code.find(','))) + "` ";
    };
    for (const SessionOption& option : kSessionOptions) {
        const std::string flag = *option.flag != '\0' ? cell(option.flag) : "[^|]*";
        const std::string row =
            R"(\n\| )" + cell(option.key) + R"(\| )" + flag + R"(\| )" + cell(option.name);
        EXPECT_TRUE(std::regex_search(text, std::regex(row + R"(\|)"))) << "no row of the table is" << row;
    }
}

TEST(PathOfRank, HasTheRankBeforeTheSuffixOnce) {
    EXPECT_EQ(path_of_rank("out/app.marey", 3), "out/app.rank3.marey");
    EXPECT_EQ(path_of_rank("out.d/app", 0), "out.d/app.rank0");
    EXPECT_EQ(path_of_rank("out/app.rank3.marey", 3), "out/app.rank3.marey");
    EXPECT_EQ(path_of_rank("app.rank3", 3), "app.rank3");
    EXPECT_EQ(path_of_rank("app.rank3.marey", 30), "app.rank3.rank30.marey");
    EXPECT_EQ(path_of_rank("app.marey", -1), "app.marey");
    EXPECT_EQ(path_of_rank("", 3), "");
}

class EnvironmentRankTest : public ::testing::Test {
  protected:
    static constexpr const char* kNames[] = {
        "RANK",     "WORLD_SIZE",   "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
        "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS",         "SLURM_STEP_NUM_TASKS"};
    void SetUp() override { clear(); }
    void TearDown() override { clear(); }
    static void clear() {
        for (const char* const name : kNames) unsetenv(name);
    }
};

TEST_F(EnvironmentRankTest, IsARankOfSeveral) {
    for (const auto& [own_name, world_name] : {std::pair("RANK", "WORLD_SIZE"),
                                               {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                               {"PMI_RANK", "PMI_SIZE"},
                                               {"SLURM_PROCID", "SLURM_NTASKS"},
                                               {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}) {
        const auto rank = [&](const char* own, const char* world) {
            setenv(own_name, own, 1);
            setenv(world_name, world, 1);
            return environment_rank();
        };
        EXPECT_EQ(rank("3", "4"), 3);
        EXPECT_EQ(environment_rank_and_size().size, 4);
        for (const auto& [own, world] :
             {std::pair("0", "1"), {"", "2"}, {"one", "2"}, {"-1", "2"}, {"2", "2"}, {"1", "99999999999"}})
            EXPECT_EQ(rank(own, world), -1) << own << " of " << world;
        clear();
    }
    EXPECT_EQ(environment_rank(), -1);
}

TEST_F(EnvironmentRankTest, NeedsNoWorldSizeIfRankIsSet) {
    setenv("RANK", "2", 1);
    EXPECT_EQ(environment_rank(), 2);
    EXPECT_EQ(environment_rank_and_size().size, 0);
    setenv("RANK", "captain", 1);
    EXPECT_EQ(environment_rank(), -1);
    clear();
    setenv("SLURM_PROCID", "2", 1);  // every process of a Slurm job has it
    EXPECT_EQ(environment_rank(), -1);
}

TEST_F(EnvironmentRankTest, IsThatOfTheInnermostLauncher) {
    setenv("SLURM_PROCID", "1", 1);
    setenv("SLURM_NTASKS", "2", 1);
    setenv("RANK", "5", 1);
    setenv("WORLD_SIZE", "8", 1);
    EXPECT_EQ(environment_rank(), 5);
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    setenv("SLURM_PROCID", "3", 1);
    EXPECT_EQ(environment_rank(), 3);
}

}  // namespace
}  // namespace marey
