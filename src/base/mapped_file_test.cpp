// mapped_file_test.cpp: files as bytes.
#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <marey/error.h>

namespace marey {
namespace {

std::string temporary(const std::string& name) {
    return (std::filesystem::temp_directory_path() / (name + std::to_string(getpid()))).string();
}

TEST(MappedFile, HoldsTheBytesOfAFileEvenWhenItIsRemoved) {
    const std::string path = temporary("marey-mapped-");
    std::ofstream(path) << "some bytes";
    const auto file = MappedFile::open(path);
    std::filesystem::remove(path);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()),
              "some bytes");
}

TEST(MappedFile, ADeviceIsRefusedBecauseItMayNeverEnd) {
    for (const char* const device : {"/dev/null", "/dev/zero"}) {
        try {
            MappedFile::open(device);
            ADD_FAILURE() << device;
        } catch (const Error& error) {
            EXPECT_EQ(error.what(), std::string(device) + ": is a device, not a file");
        }
    }
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
    const std::string path = temporary("marey-empty-");
    std::ofstream(path).flush();
    EXPECT_TRUE(MappedFile::open(path)->bytes().empty());
    std::filesystem::remove(path);
}

TEST(MappedFile, HolesAreZerosBetweenTheDataEvenOnAFullDisk) {
    const std::string folder = temporary("marey-holes-");
    std::filesystem::create_directory(folder);
    const bool is_small = mount("marey-test", folder.c_str(), "tmpfs", 0, "size=128k") == 0;
    const std::string path = folder + "/sparse";
    constexpr std::size_t kFar = 1 << 20;
    std::ofstream(path) << "before";
    std::filesystem::resize_file(path, kFar);
    std::ofstream(path, std::ios::app) << "after";
    std::filesystem::resize_file(path, 2 * kFar);
    std::ofstream(folder + "/filler") << std::string(kFar, 'x') << std::flush;  // what still fits
    const auto file = MappedFile::open(path);
    const std::span bytes = file->bytes();
    ASSERT_EQ(bytes.size(), 2 * kFar);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_EQ(text.substr(0, 6), "before");
    EXPECT_EQ(text.substr(kFar, 5), "after");
    EXPECT_EQ(std::count(text.begin(), text.end(), '\0'), static_cast<std::ptrdiff_t>(2 * kFar - 11));
    if (is_small) umount2(folder.c_str(), MNT_DETACH);
    std::filesystem::remove_all(folder);
}

TEST(MappedFile, AFileThatCannotBeMappedIsCopied) {
    EXPECT_FALSE(MappedFile::open("/proc/self/status")->bytes().empty());
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(write(ends[1], "piped", 5), 5);
    close(ends[1]);
    const auto file = MappedFile::open("/dev/fd/" + std::to_string(ends[0]));
    close(ends[0]);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()),
              "piped");
}

TEST(MappedFile, ErrorsNameThePathAndTheReason) {
    try {
        MappedFile::open("/no/such/file");
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "/no/such/file: No such file or directory");
    }
    EXPECT_THROW(MappedFile::open("/"), Error);
}

}  // namespace
}  // namespace marey
