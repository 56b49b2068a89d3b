// function_names.cpp: the names that MAREY_FUNCTION gives to ranges.
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <marey/all.h>

namespace {

struct Reader {
    void get() { MAREY_FUNCTION(); }
    void get(int) { MAREY_FUNCTION(); }
};
struct Writer {
    void get() { MAREY_FUNCTION("bytes", 3); }
};
template <class T>
void convert(T) {
    MAREY_FUNCTION();
}

TEST(FunctionNames, AreQualifiedAndHaveAPlaceWhereTheyAreEqual) {
    marey::Session session(marey::SessionOptions{});
    Writer().get();
    convert(1);
    convert(1.5);
    Reader().get();
    Reader().get(1);
    const auto first = [] { MAREY_FUNCTION(); };
    const auto second = [] { MAREY_FUNCTION(); };
    first();
    second();
    const marey::Trace trace = session.stop();
    std::multiset<std::string> found;
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) found.emplace(trace.range_name(row));
    EXPECT_EQ(found.count("Writer::get"), 1U);
    EXPECT_EQ(found.count("convert<int>"), 1U);
    EXPECT_EQ(found.count("convert<double>"), 1U);
    const auto count_with_place = [&](const std::string& name) {
        std::set<std::string> different;
        for (const std::string& each : found) {
            if (each.find(name + " (function_names.cpp:") != std::string::npos) different.insert(each);
        }
        return different.size();
    };
    EXPECT_EQ(count_with_place("Reader::get"), 2U) << ::testing::PrintToString(found);
    EXPECT_EQ(count_with_place("TestBody::<lambda>"), 2U) << ::testing::PrintToString(found);
    EXPECT_EQ(std::set(found.begin(), found.end()).size(), 7U);
}

}  // namespace
