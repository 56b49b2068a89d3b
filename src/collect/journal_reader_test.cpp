// journal_reader_test.cpp: reading the names stream.
#include "collect/journal_reader.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "collect/log_fixture.h"

namespace marey {
namespace {

using testing::LogWriter;

TEST(Names, SitesHaveTheirGivenCategory) {
    LogWriter log;
    const std::uint32_t plain = log.site("name");
    const std::uint32_t of_library = log.categorised_site("name", "library");
    const RawLog raw = log.raw();
    const NameTables names = read_names(raw.names);
    EXPECT_EQ(names.sites[plain - 1].category, 0u);
    EXPECT_EQ(names.strings[names.sites[of_library - 1].category], "library");
    EXPECT_EQ(names.strings[names.sites[of_library - 1].name], "name");
}

TEST(Names, SitesOfRunTimeNamesFollowTheOthersWhateverTheirIds) {
    LogWriter log;
    const std::uint32_t first = log.run_time_site(detail::kMaxSites - 1, "last id");
    const std::uint32_t plain = log.site("name", Scope::Function);
    const std::uint32_t second =
        log.run_time_site(detail::kFirstRunTimeSite + 5000, "sixth", Scope::Step, "library");
    log.run_time_site(first, "last id");
    log.run_time_site(plain, "not a number of a run-time name");
    log.run_time_site(detail::kMaxSites, "not a number of a site");
    const NameTables names = read_names(log.raw().names);
    ASSERT_EQ(names.sites.size(), 3u);
    EXPECT_EQ(names.site_flags.size(), 3u);
    const auto info = [&](std::uint32_t id) { return names.sites.at(names.site_rows.row(id)); };
    EXPECT_EQ(names.strings[info(plain).name], "name");
    EXPECT_EQ(names.strings[info(first).name], "last id");
    EXPECT_EQ(info(first).scope, Scope::User);
    EXPECT_EQ(names.strings[info(second).name], "sixth");
    EXPECT_EQ(info(second).scope, Scope::Step);
    EXPECT_EQ(names.strings[info(second).category], "library");
    for (const std::uint32_t unknown :
         {0u, plain + 1, detail::kFirstRunTimeSite, second + 1, detail::kMaxSites, ~0u})
        EXPECT_EQ(names.site_rows.row(unknown), 3u) << unknown;
}

TEST(Names, ACategoryThatIsNotAStringIsIgnored) {
    detail::SiteRecord record{};
    const detail::SiteCategory category{77, 0};
    record.head = {static_cast<std::uint16_t>(detail::NameKind::Site), 0, sizeof record + sizeof category};
    record.id = 1;
    std::vector<std::byte> stream(sizeof record + sizeof category);
    std::memcpy(stream.data(), &record, sizeof record);
    std::memcpy(stream.data() + sizeof record, &category, sizeof category);
    ASSERT_EQ(read_names(stream).sites.size(), 1u);
    EXPECT_EQ(read_names(stream).sites[0].category, 0u);
}

TEST(Journal, ClockExchangesHaveTheNameOfTheOtherHost) {
    const std::string peer = "node17";
    detail::ClockExchangeRecord record{};
    record.head = {static_cast<std::uint16_t>(detail::JournalKind::ClockExchange), 0, sizeof record + 8};
    record.sent_ns = -1;
    record.received_ns = 5;
    record.peer_bytes = static_cast<std::uint32_t>(peer.size());
    std::vector<std::byte> stream(sizeof record + 8);
    std::memcpy(stream.data(), &record, sizeof record);
    std::memcpy(stream.data() + sizeof record, peer.data(), peer.size());
    const Journal journal = read_journal(stream, 0);
    ASSERT_EQ(journal.exchanges.size(), 1u);
    EXPECT_EQ(journal.exchanges[0].peer, peer);
    EXPECT_EQ(journal.exchanges[0].record.received_ns, 5);
    // A name that is longer than its record, and a record that is too short.
    record.peer_bytes = 1000;
    std::memcpy(stream.data(), &record, sizeof record);
    for (const JournalExchange& each : read_journal(stream, 0).exchanges) EXPECT_LE(each.peer.size(), 8u);
    EXPECT_TRUE(read_journal(std::span(stream).first(sizeof record - 8), 0).exchanges.empty());
}

}  // namespace
}  // namespace marey
