// profile_readers_test.cpp: profiles of other tools: whole, damaged and hostile ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include <marey/export.h>
#include <marey/import.h>

#include "formats/profile_reader_fixture.h"
#include "formats/pstats/marshal.h"
#include "trace/random_trace_fixture.h"

namespace marey {
namespace {

namespace fs = std::filesystem;

using testing::read_bytes;

/// The formats whose files are read as a whole.
std::vector<FileFormat> profile_formats() {
    std::vector<FileFormat> formats;
    for (const FileFormat& format : file_formats()) {
        if (format.read_bytes != nullptr) formats.push_back(format);
    }
    return formats;
}

fs::path profile_corpus(std::string_view format) {
    return fs::path(MAREY_SOURCE_DIR) / "tests" / "data" / "corpus" / format;
}

std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
}

/// Self time of each name, in nanoseconds.
std::map<std::string, std::int64_t> self_by_name(const Trace& trace) {
    std::map<std::string, std::int64_t> times;
    for (Row row = 0; row < trace.ranges().size(); ++row)
        times[std::string(trace.range_name(row))] += trace.ranges().self_ns[row];
    return times;
}

bool has_problem(const Trace& trace, std::string_view code) {
    return std::any_of(trace.problems().begin(), trace.problems().end(),
                       [&](const ProblemInfo& problem) { return problem.code == code; });
}

TEST(ProfileReaders, EverySampleOfTheCorpusIsRecognizedAndRead) {
    for (const FileFormat& format : profile_formats()) {
        std::size_t files = 0;
        for (const auto& entry : fs::directory_iterator(profile_corpus(format.name))) {
            SCOPED_TRACE(entry.path());
            ++files;
            const FileFormat* const detected = detect_format(entry.path().string());
            ASSERT_NE(detected, nullptr);
            EXPECT_EQ(detected->name, format.name);
            const Trace trace = open_trace(entry.path().string());
            EXPECT_GT(trace.ranges().size(), 0u);
            EXPECT_TRUE(validate(trace).empty());
            const bool is_summed = entry.path().filename() == "cprofile.prof";
            const bool is_exact = format.name == "otlp" || is_summed;
            EXPECT_NE(has_problem(trace, "sampled"), is_exact);
            EXPECT_EQ(is_summed, !trace.range_details().empty());
        }
        EXPECT_GT(files, 0u) << format.name;
    }
}

TEST(ProfileReaders, DamagedFilesAreRefusedOrReadInPart) {
    for (const FileFormat& format : profile_formats()) {
        for (const auto& entry : fs::directory_iterator(profile_corpus(format.name))) {
            SCOPED_TRACE(entry.path());
            const std::string whole = bytes_of(entry.path());
            const std::size_t step = std::max<std::size_t>(whole.size() / 200, 1);
            for (std::size_t at = 0; at < whole.size(); at += step) {
                EXPECT_EQ(testing::broken_table(format, std::string_view(whole).substr(0, at)), "") << at;
                std::string changed = whole;
                for (const char byte : {'\0', '\xff', '9', '('}) {
                    changed[at] = byte;
                    EXPECT_EQ(testing::broken_table(format, changed), "") << at;
                }
            }
        }
    }
}

TEST(ProfileReaders, OnlySampledRangesHaveTheFlag) {
    const Trace trace =
        read_bytes("speedscope", bytes_of(profile_corpus("speedscope") / "evented.speedscope.json"));
    std::map<std::string, int> sampled, exact;
    for (Row row = 0; row < trace.ranges().size(); ++row)
        ++((trace.ranges().flags[row] & kSampled) != 0 ? sampled : exact)[std::string(trace.range_name(row))];
    EXPECT_EQ(exact["main"], 1);
    EXPECT_EQ(sampled["main"], 1);
    EXPECT_EQ(self_by_name(trace).at("leaf \xc3\xa9"), 2500 + 20);
    EXPECT_EQ(self_by_name(trace).at("main"), 9250 - 2500 + 10);
}

TEST(Collapsed, StacksAreMergedAndKeepTheirWeights) {
    const Trace trace = read_bytes("collapsed", "a;b 3\na 2\na;b;c 4\nz 1\na;b 5\nnonsense\n");
    EXPECT_EQ(trace.ranges().size(), 4u);
    EXPECT_EQ(self_by_name(trace),
              (std::map<std::string, std::int64_t>{{"a", 2}, {"b", 8}, {"c", 4}, {"z", 1}}));
    EXPECT_TRUE(has_problem(trace, "unread_lines"));
    EXPECT_THROW(read_bytes("collapsed", "nothing here\n"), Error);
    EXPECT_THROW(read_bytes("collapsed", "a 2305843009213693952\na 2305843009213693952\n"), Error);
}

TEST(PerfScript, ALongWordIsLookedAtOnce) {
    // Looked at once for each of its colons, it would take minutes.
    const std::string line = "app 1 " + std::string(std::size_t{4} << 20, ':') + "\n";
    EXPECT_THROW(read_bytes("perf", line), Error);
    const std::string samples = "app 7 1.5: cpu-clock:\n\t7f main (app)\n\n";
    EXPECT_EQ(read_bytes("perf", line + samples).threads().size(), 1u);
}

TEST(PerfScript, SamplesLastUntilTheNextOneAndThreadsAreApart) {
    const Trace trace = read_bytes("perf", bytes_of(profile_corpus("perf") / "by_hand.txt"));
    ASSERT_EQ(trace.threads().size(), 2u);
    EXPECT_EQ(trace.string(trace.threads()[0].name), "my app");
    EXPECT_EQ(trace.threads()[0].os_tid, 4712);
    const auto times = self_by_name(trace);
    EXPECT_EQ(times.at("std::vector<int, std::allocator<int> >::push_back(int const&)"), 1'000'000);
    EXPECT_EQ(times.at("main"), 1'000'000);
}

TEST(Pprof, InlinedFunctionsAreEntriesOfTheirOwn) {
    const Trace trace = open_trace((profile_corpus("pprof") / "go_like.pb.gz").string());
    const auto times = self_by_name(trace);
    EXPECT_EQ(times.at("inlined"), 80'000'000);
    EXPECT_EQ(times.at("main.main"), 20'000'000);
    EXPECT_EQ(times.at("main.leaf"), 0);
}

TEST(Pprof, LengthsBeyondTheFileAreRefused) {
    EXPECT_THROW(read_bytes("pprof", "\x0a\x7f"), Error);
    EXPECT_THROW(read_bytes("pprof", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), Error);
    EXPECT_THROW(read_bytes("pprof", ""), Error);
}

TEST(Pprof, SharedLocationsCannotExpandWithoutLimit) {
    // One location with 5,000 inlined lines, and a million references to it: 5e9 entries from 2 MB.
    const auto field = [](char tag, const std::string& body) {
        std::string bytes(1, tag);
        std::size_t size = body.size();
        for (; size >= 0x80; size >>= 7) bytes += static_cast<char>(size | 0x80);
        return bytes + static_cast<char>(size) + body;
    };
    std::string location = "\x08\x01";
    for (int i = 0; i < 5000; ++i) location += field('\x22', std::string("\x08\x01", 2));
    const std::string sample = field('\x0a', std::string(1'000'000, '\x01')) + field('\x12', "\x01");
    const std::string file = field('\x0a', "") + field('\x22', location) + field('\x12', sample) +
                             field('\x2a', std::string("\x08\x01", 2)) + field('\x32', "");
    EXPECT_THROW(read_bytes("pprof", file), Error);
}

TEST(Firefox, AStackThatIsItsOwnPrefixIsARoot) {
    const Trace trace = read_bytes("firefox", bytes_of(profile_corpus("firefox") / "thread_tables.json"));
    EXPECT_TRUE(has_problem(trace, "unread_entries"));
    EXPECT_EQ(self_by_name(trace), (std::map<std::string, std::int64_t>{{"leaf", 2'000'000}, {"main", 0}}));
}

TEST(Firefox, MarkersAreExactRangesAndInstants) {
    const Trace trace = read_bytes("firefox", bytes_of(profile_corpus("firefox") / "shared_tables.json"));
    EXPECT_EQ(trace.instants().size(), 1u);
    const auto times = self_by_name(trace);
    EXPECT_EQ(times.at("main"), 1'000'000);
    EXPECT_EQ(times.at("leaf"), 2'000'000);
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        const bool is_marker = trace.range_name(row) == "paint";
        EXPECT_EQ((trace.ranges().flags[row] & kSampled) == 0, is_marker);
        if (is_marker) {
            EXPECT_EQ(trace.ranges().duration_ns[row], 1'000'000);
        }
    }
}

TEST(Otlp, SpansNestAndKeepTheirAttributes) {
    const Trace trace = read_bytes("otlp", bytes_of(profile_corpus("otlp") / "sdk.json"));
    ASSERT_EQ(trace.ranges().size(), 3u);
    EXPECT_EQ(trace.range_name(0), "GET /cart");
    EXPECT_EQ(trace.ranges().parent[1], 0u);
    EXPECT_EQ(trace.ranges().parent[2], 0u);
    std::map<std::string, std::int64_t> numbers;
    for (const Argument& value : trace.range_arguments(0)) {
        if (value.kind == ValueKind::Int) numbers[std::string(trace.string(value.key))] = value.integer;
    }
    EXPECT_EQ(numbers.at("http.status"), 200);
    EXPECT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(read_bytes("otlp", bytes_of(profile_corpus("otlp") / "lines.json")).processes().size(), 2u);
}

/// A span of one microsecond.
std::string span(const std::string& id, const std::string& parent, int thread, int start_us) {
    const std::string start = std::to_string(start_us);
    return R"({"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":")" + id + R"(","parentSpanId":")" +
           parent + R"(","name":")" + id + R"(","startTimeUnixNano":")" + start +
           R"(000","endTimeUnixNano":")" + start +
           R"(999","attributes":[{"key":"thread.id","value":{"intValue":")" + std::to_string(thread) +
           R"("}}]})";
}

TEST(Otlp, ParentsInACircleAreReadAndWritten) {
    const std::string a = "00000000000000aa", b = "00000000000000bb", c = "00000000000000cc";
    // Two threads, a span that is its own parent, one whose number another span has, and one without a
    // parent.
    const Trace trace =
        read_bytes("otlp", R"({"resourceSpans":[{"scopeSpans":[{"spans":[)" + span(a, b, 1, 1) + "," +
                               span(b, a, 2, 1) + "," + span(c, c, 1, 3) + "," + span(a, b, 1, 5) + "," +
                               span("00000000000000dd", "00000000000000ee", 2, 3) + "]}]}]}");
    EXPECT_EQ(trace.ranges().size(), 5u);
    std::multimap<std::string, std::string> links;
    for (const LinkInfo& link : trace.links())
        links.emplace(trace.range_name(link.from), trace.range_name(link.to));
    EXPECT_EQ(links, (std::multimap<std::string, std::string>{{a, b}, {b, a}, {b, a}}));
    for (const char* const suffix : {".otlp.json", ".json", ".pftrace"}) {
        const fs::path path = fs::path(::testing::TempDir()) / (std::string("marey_circle") + suffix);
        export_trace(trace, path.string());
        EXPECT_EQ(open_trace(path.string()).sites().size(), 4u) << suffix;
        fs::remove(path);
    }
}

std::string marshalled(std::string_view bytes) {
    MarshalObject object;
    return read_marshal(bytes, object);
}

TEST(Marshal, ReferencesToContainersAndLengthsBeyondTheEndAreRefused) {
    using namespace std::string_view_literals;
    EXPECT_EQ(marshalled("i\x05\0\0\0"sv), "");
    EXPECT_NE(marshalled("\xa9\x01r\0\0\0\0"sv), "");  // a tuple that holds itself
    EXPECT_NE(marshalled("(\xff\xff\xff\x7f"sv), "");  // 2^31 items
    EXPECT_NE(marshalled("u\xff\xff\xff\x7f"sv), "");  // a text of 2 GiB
    EXPECT_NE(marshalled("l\0\0\0\x80"sv), "");        // 2^31 digits
    EXPECT_NE(marshalled("{"sv), "");                  // no end
    EXPECT_NE(marshalled(std::string(100, ')') + std::string(1, '\1')), "");
    std::string nested;
    for (int i = 0; i < 200; ++i) nested += ")\x01"sv;
    EXPECT_NE(marshalled(nested + "N"), "");
}

TEST(Marshal, ReferencesThatDoubleAreRefused) {
    // Each tuple holds the one before twice: 2^18 objects from 300 bytes, which the limit of depth allows.
    std::string bytes("\xa9\x02NN", 4);
    for (int i = 0; i < 18; ++i) bytes = std::string("\xa9\x02", 2) + bytes + "r" + std::string(4, '\0');
    EXPECT_NE(marshalled(bytes), "");
}

/// Files that Marey writes and reads.
class WrittenProfiles : public ::testing::TestWithParam<const char*> {
  protected:
    Trace again(const Trace& trace) {
        const fs::path path = fs::path(::testing::TempDir()) / (std::string("marey_profile") + GetParam());
        export_trace(trace, path.string());
        Trace read = open_trace(path.string());
        fs::remove(path);
        return read;
    }
};

/// Self time of each name, of calls on threads. Ranges that cross others may have negative self times; folded
/// stacks leave out stacks, of all threads or (`by_thread`) of one, whose time is not positive.
std::map<std::string, std::int64_t> host_self_times(const Trace& trace, bool by_thread) {
    StackOptions options;
    options.by_thread = by_thread;
    std::map<std::string, std::int64_t> times;
    for (const FoldedStack& stack : fold_stacks(trace, options)) {
        const std::size_t last = stack.stack.rfind(';');
        times[last == std::string::npos ? stack.stack : stack.stack.substr(last + 1)] += stack.value;
    }
    return times;
}

/// The same, where only a name as a whole is left out.
std::map<std::string, std::int64_t> host_self_times_of_names(const Trace& trace) {
    std::map<std::string, std::int64_t> times;
    for (const TrackInfo& track : trace.tracks()) {
        const bool is_host = track.device.type == DeviceType::Cpu && track.kind != TrackKind::Async;
        for (Row row = track.first_range; is_host && row < track.first_range + track.range_count; ++row)
            times[std::string(trace.range_name(row))] += trace.ranges().self_ns[row];
    }
    std::erase_if(times, [](const auto& time) { return time.second <= 0; });
    return times;
}

TEST_P(WrittenProfiles, KeepTheSelfTimesOfRandomTraces) {
    const std::string suffix = GetParam();
    for (unsigned seed = 0; seed < 30; ++seed) {
        SCOPED_TRACE(seed);
        const Trace trace = testing::random_training_trace(seed);
        const Trace read = again(trace);
        if (suffix == ".prof") {
            EXPECT_EQ(host_self_times_of_names(read), host_self_times_of_names(trace));
        } else {
            const bool by_thread = suffix == ".pb.gz";
            EXPECT_EQ(host_self_times(read, by_thread), host_self_times(trace, by_thread));
        }
        EXPECT_TRUE(has_problem(read, suffix == ".prof" ? "estimated_paths" : "sampled"));
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, WrittenProfiles, ::testing::Values(".folded", ".prof", ".pb.gz"));

}  // namespace
}  // namespace marey
