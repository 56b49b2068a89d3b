// elf_symbols_test.cpp: functions of ELF files, complete and damaged.
#include "native/elf_symbols.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include <marey/error.h>

#include "native/loaded_modules.h"

namespace marey {
namespace {

__attribute__((noinline, used)) int function_with_a_name(int number) {
    return number * 5;
}

TEST(ElfSymbols, HaveTheFunctionsAndTheBuildIdOfThisProgram) {
    const auto address = reinterpret_cast<std::uintptr_t>(&function_with_a_name);
    const auto modules = loaded_modules();
    const LoadedModule* own = modules->find(address);
    ASSERT_NE(own, nullptr);
    const ElfSymbols symbols(own->path);
    EXPECT_TRUE(symbols.has_full_table());
    EXPECT_EQ(symbols.build_id(), own->build_id);
    EXPECT_EQ(symbols.function_at(address - own->bias),
              "marey::(anonymous namespace)::function_with_a_name(int)");
    EXPECT_EQ(symbols.function_at(0), "");
    EXPECT_EQ(symbols.function_at(~std::uint64_t{0}), "");
}

TEST(ElfSymbols, HaveTheDynamicTableOfAStrippedLibrary) {
    const auto modules = loaded_modules();
    const auto address = reinterpret_cast<std::uintptr_t>(&::getpid);
    const LoadedModule* library = modules->find(address);
    ASSERT_NE(library, nullptr);
    const ElfSymbols symbols(library->path);
    EXPECT_NE(symbols.function_at(address - library->bias).find("getpid"), std::string::npos);
}

TEST(ElfSymbols, SurviveFilesThatAreDamagedInAnyWay) {
    std::ifstream whole(std::filesystem::read_symlink("/proc/self/exe"), std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(whole)), {});
    // The ends of the file are where its headers are.
    const std::string path =
        std::filesystem::path(::testing::TempDir()) / ("marey_damaged." + std::to_string(getpid()));
    std::mt19937 random(7);
    for (int round = 0; round < 24; ++round) {
        std::string damaged = text;
        const bool is_cut = round % 3 == 0;
        if (is_cut) damaged.resize(random() % damaged.size());
        for (int i = 0; i < 12 && damaged.size() > 8192; ++i) {
            const std::size_t from_end = 1 + random() % 4096;
            damaged[damaged.size() - from_end] = static_cast<char>(random());
            if (i % 3 == 0) damaged[24 + random() % 40] = static_cast<char>(random());
        }
        std::ofstream(path, std::ios::binary) << damaged;
        try {
            const ElfSymbols symbols(path);
            for (int i = 0; i < 100; ++i) symbols.function_at(random());
        } catch (const Error&) {
        }
    }
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace marey
