// range_text_test.cpp: the text of a range for other tools.
#include "emitters/pushed_ranges.h"

#include <gtest/gtest.h>
#include <marey/detail/hot_path.h>

#include "record/observer_snapshot.h"

namespace marey {
namespace {

ObserverFrame frame_of(const char* name, std::int64_t sequence = -1, std::uint64_t id = 0) {
    ObserverFrame frame;
    frame.set_range(detail::dynamic_site(name, Scope::Function), Scope::Function, 1);
    frame.set_facts(sequence, 0);
    frame.set_id(id);
    return frame;
}

TEST(RangeText, ContainsOnlyKnownParts) {
    EXPECT_EQ(range_text(frame_of("mm").range, {}, {}), "mm");
    EXPECT_EQ(range_text(frame_of("mm", 0).range, {}, {}), "mm, seq = 0");
    EXPECT_EQ(range_text(frame_of("mm", -1, 7).range, {}, {}), "mm, op_id = 7");
    EXPECT_EQ(range_text(frame_of("mm", 5, 7).range, {}, {}), "mm, seq = 5, op_id = 7");
}

// L14
TEST(RangeText, KeepsTheNameWithAnySequenceNumber) {
    const ArrayView* const none[] = {nullptr};
    EXPECT_EQ(range_text(frame_of("mm", -2, 7).range, none, {}), "mm, op_id = 7, sizes = [[]]");
}

TEST(RangeText, HasSizesForEachArrayAndEmptyOnesForTheRest) {
    const std::int64_t grid[] = {2, -3, 4};
    const ArrayView array{.sizes = grid};
    const ArrayView scalar{};
    const ArrayView undefined{.is_defined = false, .sizes = grid};
    const ArrayView* const arrays[] = {&array, nullptr, &scalar, &undefined, &array};
    EXPECT_EQ(range_text(frame_of("f").range, arrays, {}), "f, sizes = [[2, -3, 4], [], [], [], [2, -3, 4]]");
}

TEST(RangeText, NamesProducers) {
    const ArrayView* const arrays[] = {nullptr, nullptr};
    const Producer producers[] = {{3, 1}, {}};
    EXPECT_EQ(range_text(frame_of("f", 1, 9).range, arrays, producers),
              "f, seq = 1, op_id = 9, sizes = [[], []], input_op_ids = [(3,1), (0,-1)]");
}

TEST(ArraysOf, FlattensListsAndKeepsThePlacesOfTheRest) {
    const ArrayView a{}, b{};
    const Value inner[] = {Value(b), Value(5)};
    const Value outer[] = {Value(a), Value(std::span<const Value>(inner))};
    const Value numbers[] = {Value(1), Value(2)};
    const Value values[] = {Value("text"), Value(std::span<const Value>(outer)),
                            Value(std::span<const Value>(numbers)), Value(), Value(b)};
    EXPECT_EQ(arrays_of(values), (std::vector<const ArrayView*>{nullptr, &a, &b, nullptr, nullptr, &b}));
    EXPECT_TRUE(arrays_of({}).empty());
}

}  // namespace
}  // namespace marey
