// array_identity_test.cpp: identifying arrays by their memory.
#include "emitters/array_identity.h"

#include <gtest/gtest.h>

namespace marey {
namespace {

TEST(StorageKey, IsTheLibrarysNumberOrElseTheAddress) {
    const int memory = 0;
    const ArrayView numbered{.storage = &memory, .storage_id = 5};
    const ArrayView placed{.storage = &memory};
    const ArrayView unknown{};
    EXPECT_EQ(StorageKey::of(numbered), (StorageKey{5, false}));
    EXPECT_EQ(StorageKey::of(placed), (StorageKey{reinterpret_cast<std::uintptr_t>(&memory), true}));
    EXPECT_FALSE(StorageKey::of(unknown).is_known());
    EXPECT_NE((StorageKey{5, false}), (StorageKey{5, true}));
}

// L15
TEST(StorageMap, ForgetsTheOldestAndFreedMemory) {
    StorageMap<int> map(3);
    for (std::uint64_t i = 1; i <= 4; ++i) map.set({i, true}, static_cast<int>(i));
    EXPECT_EQ(map.find({1, true}), nullptr);
    ASSERT_NE(map.find({2, true}), nullptr);
    map.set({2, true}, 20);
    EXPECT_EQ(*map.find({2, true}), 20);
    map.forget({2, true});
    EXPECT_EQ(map.find({2, true}), nullptr);
    EXPECT_EQ(map.size(), 2u);
    for (std::uint64_t i = 0; i < 1000; ++i) {
        map.set({7, true}, 1);
        map.forget({7, true});
    }
    map.set({8, true}, 8);
    EXPECT_NE(map.find({8, true}), nullptr);
    EXPECT_LE(map.size(), 3u);
    map.clear();
    EXPECT_EQ(map.size(), 0u);
}

TEST(StorageMap, KeepsAReaddedEntryWhenItsOldPlaceIsRemoved) {
    StorageMap<int> map(3);
    for (std::uint64_t i = 1; i <= 3; ++i) map.set({i, true}, static_cast<int>(i));
    map.forget({1, true});
    int* const again = map.set({1, true}, 10);  // its place as the oldest is removed, the entry stays
    ASSERT_NE(map.find({1, true}), nullptr);
    EXPECT_EQ(map.find({1, true}), again);
    EXPECT_EQ(*again, 10);
    EXPECT_EQ(map.size(), 3u);
}

}  // namespace
}  // namespace marey
