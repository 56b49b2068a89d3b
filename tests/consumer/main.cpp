// main.cpp: a user's program: marks ranges, records a session, and checks that the trace contains them.
#include <cstdio>
#include <map>
#include <string>
#include <thread>

#include <marey/marey.h>
#include <marey/session.h>

#include "parser.h"

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "consumer: check failed: %s\n", what);
    ++failures;
}

void work() {
    MAREY_THREAD_NAME("consumer worker");
    MAREY_RANGE("work");
    for (int i = 0; i < 10; ++i) {
        parse(i);
        MAREY_COUNTER("parsed", i);
    }
    MAREY_INSTANT("done", "count", 10);
}

/// The number of ranges of a trace by name.
std::map<std::string, int> count_by_name(const marey::Trace& trace) {
    std::map<std::string, int> counts;
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) ++counts[std::string(trace.range_name(row))];
    return counts;
}

}  // namespace

int main() {
    parse(1);  // before the session, so not in its trace

    marey::Session session;
    session.start({.name = "consumer"});
    work();
    std::thread(work).join();
    lex(7);  // the same inline function, compiled as C++20
    const marey::Trace trace = session.stop();

    parse(1);  // after the session, so not in its trace

    auto counts = count_by_name(trace);
#ifdef MAREY_DISABLE
    expect(trace.ranges().size() == 0, "no macro recorded a range");
    expect(trace.instants().size() == 0 && trace.counters().size() == 0,
           "no macro recorded an instant or a counter");
#else
    expect(parser_standard() < __cplusplus, "the program consists of C++17 and C++20 files");
    expect(counts["work"] == 2, "2 ranges 'work'");
    expect(counts["parse"] == 20, "20 ranges 'parse', named after their function");
    expect(counts["lex"] == 21, "21 ranges 'lex', from files of both standards");
    expect(counts["second range of one block"] == 20, "two macros in one block do not collide");
    expect(counts.size() == 4, "no other names");
    expect(trace.instants().size() == 2, "2 instants");
    expect(trace.counters().size() == 20, "20 counter values");

    const marey::RangeColumns ranges = trace.ranges();
    for (marey::Row row = 0; row < ranges.size(); ++row) {
        if (trace.range_name(row) != "lex") continue;
        const marey::Row parent = ranges.parent[row];
        expect(parent == marey::kNoRow || trace.range_name(parent) == "second range of one block",
               "'lex' is inside 'second range of one block'");
        expect(trace.range_arguments(row).size() == 2, "'lex' has two values");
    }
    bool named = false;
    for (const marey::ThreadInfo& thread : trace.threads())
        named |= trace.string(thread.name) == "consumer worker";
    expect(named, "a thread is named 'consumer worker'");
#endif
    if (failures == 0) std::printf("consumer: %zu ranges, all as expected\n", trace.ranges().size());
    return failures == 0 ? 0 : 1;
}
