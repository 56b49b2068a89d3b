// demangle_test.cpp: symbols become readable, everything else is unchanged.
#include "native/function_name.h"

#include <gtest/gtest.h>

namespace marey {
namespace {

TEST(Demangle, CppSymbolsBecomeReadable) {
    EXPECT_EQ(demangle("_Z3addii"), "add(int, int)");
    EXPECT_EQ(demangle("_ZN2at6native6kernelIfEEvPT_i"), "void at::native::kernel<float>(float*, int)");
}

TEST(Demangle, OtherTextsAreLeftAlone) {
    for (const std::string_view name :
         {"", "i", "f", "_", "_Z", "main", "aten::add", "_RNvC6_123foo3bar", "_Znot a symbol", "Z3addii"})
        EXPECT_EQ(demangle(name), std::nullopt) << name;
    EXPECT_EQ(demangle(std::string_view("_Z3addii\0x", 10)), std::nullopt);
}

TEST(Demangle, ANameThatWouldExplodeIsLeftAlone) {
    std::string name = "_Z1f1AIiiE";
    for (int level = 0; level < 30; ++level) {
        const std::string number(1, static_cast<char>(level < 10 ? '0' + level : 'A' + level - 10));
        name += "1AIS" + number + "_S" + number + "_E";
    }
    EXPECT_EQ(demangle(name), std::nullopt);
}

}  // namespace
}  // namespace marey
