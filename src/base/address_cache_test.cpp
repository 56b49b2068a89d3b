// address_cache_test.cpp: the guarantees of the address cache.
#include "base/address_cache.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace marey {
namespace {

using Cache = AddressCache<16>;

const void* address(std::size_t number) {
    return reinterpret_cast<const void*>(0x7f0000001000 + number * 32);  // as definitions lie in an array
}

int held_objects[4096];  // objects that are held

TEST(AddressCacheTest, only_the_last_number_of_an_address_is_found) {
    static Cache cache;
    EXPECT_EQ(cache.find(address(0)), nullptr);
    EXPECT_EQ(cache.put(address(0), 7, nullptr), nullptr);
    ASSERT_NE(cache.find(address(0)), nullptr);
    EXPECT_EQ(cache.find(address(0))->number, 7u);
    EXPECT_EQ(cache.put(address(0), 8, nullptr), nullptr);
    EXPECT_EQ(cache.find(address(0))->number, 8u);
    EXPECT_EQ(cache.find(address(1)), nullptr);
}

TEST(AddressCacheTest, all_four_that_collide_stay) {
    static Cache cache;
    // Each insertion leaves at least four of those that share its set.
    for (std::size_t i = 0; i < 1000; ++i) {
        (void)cache.put(address(i), static_cast<std::uint32_t>(i + 1), nullptr);
        for (std::size_t back = 0; back < Cache::kWays && back <= i; ++back) {
            const Cache::Entry* const entry = cache.find(address(i - back));
            ASSERT_NE(entry, nullptr) << i << " " << back;
            ASSERT_EQ(entry->number, i - back + 1);
        }
    }
}

TEST(AddressCacheTest, neighbours_spread_over_all_of_it) {
    static AddressCache<1024> cache;
    std::size_t found = 0;
    for (std::size_t i = 0; i < 2048; ++i) (void)cache.put(address(i), 1, nullptr);
    for (std::size_t i = 0; i < 2048; ++i) found += cache.find(address(i)) != nullptr ? 1 : 0;
    EXPECT_GE(found, 1940u);  // half full: few sets have more than four
}

TEST(AddressCacheTest, every_object_is_returned_once) {
    static Cache cache;
    std::mt19937 random(3);
    std::map<void*, int> held;
    for (int i = 0; i < 3000; ++i) {
        void* const object = random() % 3 == 0 ? nullptr : &held_objects[i];
        if (object != nullptr) ++held[object];
        if (void* const before = cache.put(address(random() % 200), 1, object)) --held[before];
    }
    cache.drop_held([&](void* object) { --held[object]; });
    for (const auto& [object, count] : held) EXPECT_EQ(count, 0);
    cache.drop_held([](void*) { ADD_FAILURE(); });
}

TEST(AddressCacheTest, entries_without_objects_stay_when_the_rest_is_dropped) {
    static AddressCache<2> cache;
    for (std::size_t i = 0; i < 4; ++i)
        (void)cache.put(address(i), static_cast<std::uint32_t>(i), i % 2 == 0 ? &held_objects[i] : nullptr);
    std::vector<void*> dropped;
    cache.drop_held([&](void* object) { dropped.push_back(object); });
    EXPECT_EQ(dropped.size(), 2u);
    for (std::size_t i = 0; i < 4; ++i) {
        const auto* const entry = cache.find(address(i));
        EXPECT_EQ(entry == nullptr, i % 2 == 0) << i;
        EXPECT_EQ(entry != nullptr ? entry->number : i, i);
    }
    cache.clear();
    EXPECT_EQ(cache.find(address(1)), nullptr);
}

}  // namespace
}  // namespace marey
