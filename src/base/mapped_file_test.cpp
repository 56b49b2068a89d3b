// mapped_file_test.cpp: files as bytes.
#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <kymo/error.h>

namespace kymo {
namespace {

std::string temporary(const std::string& name) {
    return (std::filesystem::temp_directory_path() / (name + std::to_string(getpid()))).string();
}

TEST(MappedFile, HoldsTheBytesOfAFileEvenWhenItIsRemoved) {
    const std::string path = temporary("kymo-mapped-");
    std::ofstream(path) << "some bytes";
    const auto file = MappedFile::open(path);
    std::filesystem::remove(path);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()),
              "some bytes");
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
    EXPECT_TRUE(MappedFile::open("/dev/null")->bytes().empty());
    const std::string path = temporary("kymo-empty-");
    std::ofstream(path).flush();
    EXPECT_TRUE(MappedFile::open(path)->bytes().empty());
    std::filesystem::remove(path);
}

TEST(MappedFile, WhatCannotBeMappedIsCopied) {
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
}  // namespace kymo
