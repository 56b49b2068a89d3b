// native_symbols_test.cpp: functions, files and lines of addresses in ELF files.
#include "native/native_symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <marey/error.h>

#include "native/loaded_modules.h"

namespace marey {
namespace {

__attribute__((noinline, used)) int named_function(int number) {
    return number * 3;
}

TEST(NativeSymbols, FindTheFunctionOfAnAddressOfThisProgram) {
    const auto address = reinterpret_cast<std::uintptr_t>(&named_function);
    const auto modules = loaded_modules();
    const LoadedModule* own = modules->find(address);
    ASSERT_NE(own, nullptr);
    const std::array<std::uint64_t, 2> offsets{address - own->bias, 1};
    const auto symbols = symbols_at(own->path, own->build_id, offsets);
    ASSERT_EQ(symbols.size(), 2U);
    EXPECT_EQ(symbols[0].back().function, "marey::(anonymous namespace)::named_function(int)");
    ASSERT_EQ(symbols[1].size(), 1U);
    EXPECT_EQ(symbols[1][0].function, "");
}

// A separate library with debug information, so that the build type of the tests does not matter.
TEST(NativeSymbols, FindLinesAndInlinedCalls) {
    if (!can_read_lines()) GTEST_SKIP() << "built without elfutils, which provides lines";
    const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "marey_native_symbols";
    std::filesystem::create_directories(folder);
    const std::string source = folder / "inlined.cpp";
    std::ofstream(source) << "namespace shop {\n"
                             "volatile int sold;\n"
                             "static inline __attribute__((always_inline)) void sell(int count) {\n"
                             "    sold = count;\n"  // line 4
                             "}\n"
                             "static inline __attribute__((always_inline)) void sell_two() {\n"
                             "    sell(2);\n"  // line 7
                             "}\n"
                             "}\n"
                             "extern \"C\" void open_shop() {\n"
                             "    shop::sell_two();\n"  // line 11
                             "}\n";
    const std::string library = folder / "inlined.so";
    const std::string command = "c++ -g -O2 -shared -fPIC -o '" + library + "' '" + source + "'";
    if (std::system(command.c_str()) != 0)  // NOLINT(cert-env33-c)
        GTEST_SKIP() << "there is no compiler to build a library";
    void* handle = dlopen(library.c_str(), RTLD_NOW);
    ASSERT_NE(handle, nullptr);
    const auto begin = reinterpret_cast<std::uintptr_t>(dlsym(handle, "open_shop"));
    const auto modules = loaded_modules();
    const LoadedModule* module = modules->find(begin);
    ASSERT_NE(module, nullptr);
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < 24; ++i) offsets.push_back(begin - module->bias + i);
    bool seen = false;
    for (const auto& symbols : symbols_at(module->path, module->build_id, offsets)) {
        if (symbols.size() != 3) continue;
        seen = true;
        EXPECT_EQ(symbols[0].function, "shop::sell");
        EXPECT_EQ(symbols[0].file, source);
        EXPECT_EQ(symbols[0].line, 4);
        EXPECT_TRUE(symbols[0].inlined);
        EXPECT_EQ(symbols[1].function, "shop::sell_two");
        EXPECT_EQ(symbols[1].line, 7);
        EXPECT_EQ(symbols[2].function, "open_shop");
        EXPECT_EQ(symbols[2].line, 11);
        EXPECT_FALSE(symbols[2].inlined);
        break;
    }
    EXPECT_TRUE(seen);
    dlclose(handle);
    std::filesystem::remove_all(folder);
}

TEST(NativeSymbols, AMissingOrWrongFileIsNamed) {
    const std::array<std::uint64_t, 1> offsets{16};
    const auto text_of = [&](const std::string& path, const std::string& build_id) {
        try {
            symbols_at(path, build_id, offsets);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(text_of("/nowhere/lib.so", ""), "/nowhere/lib.so: No such file or directory");
    EXPECT_EQ(text_of("/etc/passwd", ""), "/etc/passwd: not an ELF file");
    const auto modules = loaded_modules();
    const LoadedModule* own = modules->find(reinterpret_cast<std::uintptr_t>(&named_function));
    EXPECT_NE(text_of(own->path, "0123456789").find("not 0123456789"), std::string::npos);
}

TEST(BuildIds, LeadToFiles) {
    const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "marey_build_ids";
    std::filesystem::create_directories(folder / ".build-id" / "ab");
    std::ofstream(folder / ".build-id" / "ab" / "cdef.debug") << "x";
    EXPECT_EQ(file_with_build_id(folder, "abcdef"), folder / ".build-id" / "ab" / "cdef.debug");
    EXPECT_EQ(file_with_build_id(folder, "abcdee"), "");
    EXPECT_EQ(file_with_build_id(folder, ""), "");
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace marey
