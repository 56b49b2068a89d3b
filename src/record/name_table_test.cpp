// name_table_test.cpp: interning, and looking up run-time names without a lock.
#include "record/name_table.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <marey/detail/log_format.h>

namespace marey {
namespace {

/// Interns a run-time name so that lookups find it.
std::uint32_t use_name(NameTable& names, std::string_view name, Scope scope, std::uint32_t category = 0) {
    const std::uint32_t site = names.intern_dynamic(name, scope, category);
    names.show();
    return site;
}

/// The run-time names of a stream, with their ids.
std::vector<std::pair<std::uint32_t, std::string>> run_time_names(const std::vector<std::byte>& stream) {
    std::vector<std::pair<std::uint32_t, std::string>> found;
    for (std::size_t at = 0; at < stream.size();) {
        detail::RunTimeSiteRecord record;
        std::memcpy(&record, stream.data() + at, sizeof record);
        EXPECT_EQ(record.head.kind, static_cast<std::uint16_t>(detail::NameKind::RunTimeSite));
        EXPECT_EQ(record.head.bytes, (sizeof record + record.length + 7) / 8 * 8);
        found.emplace_back(
            record.id,
            std::string(reinterpret_cast<const char*>(stream.data()) + at + sizeof record, record.length));
        at += record.head.bytes;
    }
    return found;
}

TEST(NameTable, GivesEqualTextsEqualIdsFromOneOn) {
    NameTable names;
    EXPECT_EQ(names.intern(""), 0u);
    EXPECT_EQ(names.intern("a"), 1u);
    EXPECT_EQ(names.intern("b"), 2u);
    EXPECT_EQ(names.intern(std::string("a")), 1u);
    EXPECT_EQ(names.intern(std::string_view("a\0b", 3)), 3u);
    EXPECT_EQ(names.string_count(), 3u);
}

TEST(NameTable, DistinguishesSitesByEveryField) {
    NameTable names;
    const std::uint32_t site = names.intern_site("f", "a.cpp", 1, Scope::User);
    EXPECT_EQ(site, 1u);
    EXPECT_EQ(names.intern_site("f", "a.cpp", 1, Scope::User), site);
    const std::set<std::uint32_t> others = {
        names.intern_site("g", "a.cpp", 1, Scope::User), names.intern_site("f", "b.cpp", 1, Scope::User),
        names.intern_site("f", "a.cpp", 2, Scope::User), names.intern_site("f", "a.cpp", 1, Scope::Function)};
    EXPECT_EQ(others, (std::set<std::uint32_t>{2, 3, 4, 5}));
}

TEST(NameTable, DistinguishesModulesByPathBuildAndPlace) {
    NameTable table;
    EXPECT_EQ(table.intern_module("/lib/a.so", "ab", 1), 1u);
    EXPECT_EQ(table.intern_module("/lib/a.so", "cd", 1), 2u);
    EXPECT_EQ(table.intern_module("/lib/a.so", "ab", 2), 3u);
    EXPECT_EQ(table.intern_module("/lib/b.so", "", 1), 4u);
    const std::size_t bytes = table.stream().size();
    EXPECT_EQ(table.intern_module("/lib/a.so", "ab", 1), 1u);
    EXPECT_EQ(table.stream().size(), bytes);
}

TEST(NameTable, FindsRunTimeNamesOnlyOnceInterned) {
    NameTable names;
    EXPECT_EQ(names.find_dynamic("later", Scope::User), 0u);
    const std::uint32_t user = use_name(names, "later", Scope::User);
    EXPECT_EQ(names.find_dynamic("later", Scope::User), user);
    EXPECT_EQ(names.find_dynamic("later", Scope::Step), 0u);
    const std::uint32_t step = use_name(names, "later", Scope::Step);
    EXPECT_NE(step, user);
    EXPECT_EQ(names.find_dynamic("later", Scope::Step), step);
    EXPECT_EQ(names.find_dynamic("later", Scope::User), user);
    EXPECT_EQ(use_name(names, "later", Scope::User), user);
    const std::uint32_t empty = use_name(names, "", Scope::User);
    EXPECT_NE(empty, 0u);
    EXPECT_EQ(names.find_dynamic({}, Scope::User), empty);
}

TEST(NameTable, DistinguishesNamesOfEveryLengthByEveryByte) {
    NameTable names;
    for (std::size_t length = 1; length <= 70; ++length) {
        const std::string plain(length, 'x');
        const std::uint32_t site = use_name(names, plain, Scope::User);
        for (std::size_t at = 0; at < length; ++at) {
            std::string other = plain;
            other[at] = 'y';
            ASSERT_EQ(names.find_dynamic(other, Scope::User), 0u) << length << " " << at;
        }
        ASSERT_EQ(names.find_dynamic(plain, Scope::User), site);
    }
}

TEST(NameTable, CutsVeryLongNames) {
    NameTable names;
    const std::string huge(100'000, 'x');
    const std::uint32_t site = use_name(names, huge, Scope::User);
    EXPECT_EQ(names.find_dynamic(huge, Scope::User), site);
    EXPECT_EQ(names.find_dynamic(huge.substr(0, NameTable::kMaxTextBytes), Scope::User), site);
    std::vector<std::byte> stream;
    names.append_run_time_site(stream, site);
    EXPECT_LT(stream.size(), NameTable::kMaxTextBytes + 200);
}

TEST(NameTable, FindsANameOnlyOnceItIsShown) {
    NameTable names;
    const std::uint32_t site = names.intern_dynamic("later", Scope::User);
    EXPECT_EQ(names.find_dynamic("later", Scope::User), 0u);
    EXPECT_EQ(names.intern_key("key"), 1u);
    EXPECT_EQ(names.find_key("key"), 0u);
    names.show();
    EXPECT_EQ(names.find_dynamic("later", Scope::User), site);
    EXPECT_EQ(names.find_key("key"), 1u);
    EXPECT_EQ(names.find_dynamic("key", Scope::User), 0u);
}

TEST(NameTable, ANewCaptureBeginsWithoutRunTimeNamesAndGivesThemTheirIdsAgain) {
    NameTable names;
    const std::uint32_t one = use_name(names, "one", Scope::User);
    const std::uint32_t two = use_name(names, "two", Scope::Step);
    const std::uint32_t key = names.intern_key("key");
    const std::uint32_t permanent = names.intern_site("one", "", 0, Scope::User);
    names.show();
    EXPECT_TRUE(names.is_shown(one) && names.is_shown(permanent));
    names.begin_capture();
    EXPECT_EQ(names.find_dynamic("one", Scope::User), 0u);
    EXPECT_FALSE(names.is_shown(one));
    EXPECT_EQ(names.site(one).name, "one");
    EXPECT_EQ(names.site(two).scope, Scope::Step);
    EXPECT_EQ(names.find_key("key"), key);
    EXPECT_TRUE(names.is_shown(permanent));
    EXPECT_EQ(names.site(permanent).name, "one");

    EXPECT_EQ(names.intern_dynamic("two", Scope::Step), two);
    for (int i = 0; i < 3; ++i) names.use(one);
    names.use(permanent);
    const std::vector<std::pair<std::uint32_t, std::string>> both{{two, "two"}, {one, "one"}};
    EXPECT_EQ(run_time_names(names.queued_stream()), both);
    names.show();
    EXPECT_EQ(names.find_dynamic("one", Scope::User), one);
    EXPECT_EQ(names.intern_dynamic("two", Scope::Step), two);
    names.use(one);
    EXPECT_TRUE(names.queued_stream().empty());
    std::vector<std::byte> stream;
    for (const std::uint32_t site : {two, permanent, one, one + 100})
        names.append_run_time_site(stream, site);
    EXPECT_EQ(run_time_names(stream), both);
}

TEST(NameTable, WritesPermanentNamesIntoItsStreamInOrder) {
    NameTable names;
    names.intern_site("name", "file.cpp", 12, Scope::Step);
    names.intern_site("name", "", 0, Scope::Step);
    const std::vector<std::byte>& stream = names.stream();
    std::vector<std::string> strings{""};
    std::vector<std::string> sites;
    for (std::size_t at = 0; at < stream.size();) {
        detail::StreamRecord head;
        std::memcpy(&head, stream.data() + at, sizeof head);
        ASSERT_EQ(head.bytes % 8, 0u);
        ASSERT_LE(at + head.bytes, stream.size());
        if (head.kind == static_cast<std::uint16_t>(detail::NameKind::String)) {
            detail::StringRecord record;
            std::memcpy(&record, stream.data() + at, sizeof record);
            EXPECT_EQ(record.id, strings.size());
            strings.emplace_back(reinterpret_cast<const char*>(stream.data()) + at + sizeof record,
                                 record.length);
        } else {
            detail::SiteRecord record;
            std::memcpy(&record, stream.data() + at, sizeof record);
            EXPECT_EQ(record.id, sites.size() + 1);
            sites.push_back(strings.at(record.name) + "@" + strings.at(record.file) + ":" +
                            std::to_string(record.line) + "/" + std::to_string(record.scope));
        }
        at += head.bytes;
    }
    EXPECT_EQ(sites, (std::vector<std::string>{"name@file.cpp:12/15", "name@:0/15"}));
}

TEST(NameTable, DistinguishesCategoriesOfOneName) {
    NameTable names;
    const std::uint32_t one = names.intern("one"), two = names.intern("two");
    const std::uint32_t plain = use_name(names, "name", Scope::User);
    const std::uint32_t of_one = use_name(names, "name", Scope::User, one);
    const std::uint32_t of_two = use_name(names, "name", Scope::User, two);
    EXPECT_EQ((std::set<std::uint32_t>{plain, of_one, of_two}).size(), 3u);
    EXPECT_EQ(names.find_dynamic("name", Scope::User), plain);
    EXPECT_EQ(names.find_dynamic("name", Scope::User, one), of_one);
    EXPECT_EQ(names.find_dynamic("name", Scope::User, two), of_two);
    EXPECT_EQ(names.find_dynamic("name", Scope::Step, one), 0u);
    EXPECT_EQ(use_name(names, "name", Scope::User, two), of_two);
}

TEST(NameTable, KeepsAHundredThousandNames) {
    NameTable names;
    std::vector<std::uint32_t> sites;
    for (int i = 0; i < 100'000; ++i) {
        sites.push_back(use_name(names, "request number " + std::to_string(i), Scope::User));
    }
    EXPECT_EQ(std::set<std::uint32_t>(sites.begin(), sites.end()).size(), sites.size());
    for (int i = 0; i < 100'000; ++i) {
        ASSERT_EQ(names.find_dynamic("request number " + std::to_string(i), Scope::User),
                  sites[static_cast<std::size_t>(i)]);
    }
    EXPECT_EQ(names.find_dynamic("request number 100000", Scope::User), 0u);
}

std::uint64_t hash_of(std::string_view text) {
    return hash_text(text, words_of(text));
}

// How the hashes of similar names spread over a table of twice their number, as lookups use them.
std::size_t most_in_one_place(const std::vector<std::string>& texts) {
    std::size_t size = 1;
    while (size < texts.size() * 2) size *= 2;
    std::vector<std::size_t> places(size);
    for (const std::string& text : texts) ++places[hash_of(text) & (size - 1)];
    return *std::max_element(places.begin(), places.end());
}

std::vector<std::string> similar(const std::string& front, const std::string& back) {
    std::vector<std::string> texts;
    for (int i = 0; i < 20'000; ++i) texts.push_back(front + std::to_string(i) + back);
    return texts;
}

TEST(NameHash, SpreadsSimilarNames) {
    // A perfectly random hash puts about 7 of 20,000 into the fullest of 65,536 places.
    for (const auto& [front, back] :
         {std::pair("", ""), std::pair("f", ""), std::pair("step ", ""), std::pair("request number ", ""),
          std::pair("layer.", ".weight"), std::pair("model.encoder.block.", ".attention.self.query"),
          std::pair("at::native::add_kernel_number_", "_of_a_very_long_name_that_goes_on_and_on_and_on")}) {
        const std::vector<std::string> texts = similar(front, back);
        EXPECT_LE(most_in_one_place(texts), 12u) << front << "N" << back;
        std::unordered_set<std::uint64_t> hashes;
        for (const std::string& text : texts) hashes.insert(hash_of(text));
        EXPECT_EQ(hashes.size(), texts.size()) << front << "N" << back;
    }
}

TEST(NameHash, DistinguishesSwappedParts) {
    std::unordered_set<std::uint64_t> hashes;
    const std::string parts[] = {"aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd"};
    int order[] = {0, 1, 2, 3};
    int texts = 0;
    do {
        std::string text;
        for (const int part : order) text += parts[part];
        hashes.insert(hash_of(text));
        hashes.insert(hash_of(text + parts[order[0]]));
        texts += 2;
    } while (std::next_permutation(std::begin(order), std::end(order)));
    for (std::size_t length = 0; length < 64; ++length, ++texts)
        hashes.insert(hash_of(std::string(length, '\0')));
    EXPECT_EQ(hashes.size(), static_cast<std::size_t>(texts));
}

TEST(NameTable, CanBeSearchedWhileItGrows) {
    NameTable names;
    constexpr int kNames = 20'000;
    std::atomic<int> interned{0};
    std::atomic<int> wrong{0};
    std::vector<std::uint32_t> sites(kNames);
    std::vector<std::thread> readers;
    for (int reader = 0; reader < 2; ++reader) {
        readers.emplace_back([&, reader] {
            for (unsigned at = static_cast<unsigned>(reader);
                 interned.load(std::memory_order_acquire) < kNames;) {
                const int known = interned.load(std::memory_order_acquire);
                at = at * 1664525 + 1013904223;
                const int pick = static_cast<int>(at >> 8) % kNames;
                const std::uint32_t found = names.find_dynamic("name " + std::to_string(pick), Scope::User);
                // Known names are found; new ones are found complete or not at all.
                if (pick < known && found != sites[static_cast<std::size_t>(pick)]) wrong.fetch_add(1);
                if (pick >= known && found != 0 &&
                    found != static_cast<std::uint32_t>(pick) + detail::kFirstRunTimeSite)
                    wrong.fetch_add(1);
            }
        });
    }
    for (int i = 0; i < kNames; ++i) {
        sites[static_cast<std::size_t>(i)] = use_name(names, "name " + std::to_string(i), Scope::User);
        interned.store(i + 1, std::memory_order_release);
    }
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace marey
