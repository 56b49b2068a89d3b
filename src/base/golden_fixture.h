// golden_fixture.h: reference texts beside the tests, reviewed once by a person and compared from then on.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace marey {

inline std::filesystem::path golden_path(std::string_view name) {
    return std::filesystem::path(MAREY_SOURCE_DIR) / "tests" / "data" / "golden" / name;
}

inline std::string read_golden(std::string_view name) {
    std::ifstream file(golden_path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Fails unless `text` equals tests/data/golden/`name` byte for byte. With MAREY_WRITE_GOLDENS set the file
/// is written instead: review the difference before committing it.
inline void expect_golden(std::string_view text, std::string_view name) {
    if (std::getenv("MAREY_WRITE_GOLDENS") != nullptr) {
        std::filesystem::create_directories(golden_path(name).parent_path());
        std::ofstream(golden_path(name), std::ios::binary) << text;
        return;
    }
    ASSERT_TRUE(std::filesystem::exists(golden_path(name)))
        << golden_path(name) << " is missing; run again with MAREY_WRITE_GOLDENS=1 and look at it";
    EXPECT_EQ(text, read_golden(name)) << "differs from tests/data/golden/" << name;
}

}  // namespace marey
