// journal_test.cpp: reading the names stream.
#include "collect/journal.h"

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

}  // namespace
}  // namespace marey
