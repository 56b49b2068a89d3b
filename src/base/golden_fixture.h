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

inline std::string read_text(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline std::string read_golden(std::string_view name) {
    return read_text(golden_path(name));
}

/// Fails unless `text` equals the file byte for byte. With MAREY_WRITE_GOLDENS set the file is written
/// instead: review the difference before committing it.
inline void expect_file(std::string_view text, const std::filesystem::path& path) {
    if (std::getenv("MAREY_WRITE_GOLDENS") != nullptr) {
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << text;
        return;
    }
    ASSERT_TRUE(std::filesystem::exists(path))
        << path << " is missing; run again with MAREY_WRITE_GOLDENS=1 and look at it";
    EXPECT_EQ(text, read_text(path)) << "differs from " << path << "; MAREY_WRITE_GOLDENS=1 writes it";
}

/// The same for tests/data/golden/`name`.
inline void expect_golden(std::string_view text, std::string_view name) {
    expect_file(text, golden_path(name));
}

}  // namespace marey
