// spool_test.cpp: names of captures, streams across blocks, finishing, cutting out.
#include "record/spool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <marey/error.h>

namespace marey {
namespace {

using detail::BlockHeader;
using detail::FileHeader;
using detail::kBlockBytes;

class SpoolTest : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/marey-spool-XXXXXX";
        folder_ = mkdtemp(name);
        pid_ = std::to_string(getpid());
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string path(const std::string& name = "a.marey") const { return folder_ + "/" + name; }
    std::size_t files() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
    }
    FileHeader header_of(const std::string& file) const {
        FileHeader header{};
        std::ifstream(file).read(reinterpret_cast<char*>(&header), sizeof header);
        return header;
    }
    std::string folder_;
    std::string pid_;
};

// Stream records of the given total size, distinguished by a number.
std::vector<std::byte> records(std::size_t count, std::uint32_t bytes, std::uint64_t first = 0) {
    std::vector<std::byte> stream(count * bytes);
    for (std::size_t i = 0; i < count; ++i) {
        const detail::StreamRecord head{77, 0, bytes};
        const std::uint64_t number = first + i;
        std::memcpy(stream.data() + i * bytes, &head, sizeof head);
        std::memcpy(stream.data() + i * bytes + sizeof head, &number, sizeof number);
    }
    return stream;
}

std::vector<std::byte> bytes_of(const std::string& file) {
    std::vector<std::byte> bytes(std::filesystem::file_size(file));
    std::ifstream(file).read(reinterpret_cast<char*>(bytes.data()),
                             static_cast<std::streamsize>(bytes.size()));
    return bytes;
}

// The blocks of one kind, in the file's order, as headers and the committed bytes after them.
struct FoundBlock {
    BlockHeader header;
    std::vector<std::byte> committed;
};
std::vector<FoundBlock> blocks_of(const std::string& file, detail::BlockKind kind) {
    const std::vector<std::byte> bytes = bytes_of(file);
    std::vector<FoundBlock> found;
    for (std::size_t at = kBlockBytes; at < bytes.size();) {
        FoundBlock block;
        std::memcpy(&block.header, bytes.data() + at, sizeof block.header);
        if (block.header.magic == detail::kBlockMagic &&
            block.header.kind == static_cast<std::uint16_t>(kind)) {
            const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at + sizeof block.header);
            block.committed.assign(begin, begin + static_cast<std::ptrdiff_t>(block.header.committed));
            found.push_back(block);
        }
        at += std::max<std::size_t>(block.header.blocks, 1) * kBlockBytes;
    }
    return found;
}

// A stream, assembled by the numbers of its blocks.
std::vector<std::byte> stream_of(const std::string& file, detail::BlockKind kind) {
    std::vector<FoundBlock> blocks = blocks_of(file, kind);
    std::sort(blocks.begin(), blocks.end(),
              [](const auto& a, const auto& b) { return a.header.sequence < b.header.sequence; });
    std::vector<std::byte> stream;
    for (const FoundBlock& block : blocks) {
        stream.insert(stream.end(), block.committed.begin(), block.committed.end());
    }
    return stream;
}
std::vector<std::byte> names_of(const std::string& file) {
    return stream_of(file, detail::BlockKind::Names);
}
std::vector<std::byte> journal_of(const std::string& file) {
    return stream_of(file, detail::BlockKind::Journal);
}

TEST_F(SpoolTest, FindsAlternativeNames) {
    EXPECT_EQ(alternative_path("/x/app.marey", 0), "/x/app.marey");
    EXPECT_EQ(alternative_path("/x/app.marey", 1), "/x/app." + pid_ + ".marey");
    EXPECT_EQ(alternative_path("/x/app.marey", 2), "/x/app." + pid_ + ".2.marey");
    EXPECT_EQ(alternative_path("app", 1), "app." + pid_);
    EXPECT_EQ(alternative_path("/x.y/app", 1), "/x.y/app." + pid_);
    EXPECT_EQ(alternative_path("/x/.hidden", 1), "/x/.hidden." + pid_);
    EXPECT_EQ(alternative_path(".hidden", 1), ".hidden." + pid_);
    EXPECT_EQ(alternative_path("a.b.marey", 1), "a.b." + pid_ + ".marey");
}

TEST_F(SpoolTest, FindsAFreeUnclaimedName) {
    const std::vector<std::string> claimed = {path("a." + pid_ + ".marey")};
    EXPECT_EQ(free_path(path(), claimed), path());
    std::ofstream(path()) << "taken";
    EXPECT_EQ(free_path(path(), claimed), path("a." + pid_ + ".2.marey"));
    EXPECT_EQ(free_path(path(), {}), path("a." + pid_ + ".marey"));
    EXPECT_EQ(files(), 1u);
    EXPECT_THROW(free_path(path("missing/a.marey"), {}), Error);
}

TEST_F(SpoolTest, AppearsWithAValidHeader) {
    const std::shared_ptr<Spool> spool = Spool::create(path());
    EXPECT_EQ(spool->path(), path());
    EXPECT_EQ(files(), 1u);
    const FileHeader header = header_of(path());
    EXPECT_EQ(std::memcmp(header.magic, detail::kFileMagic, sizeof header.magic), 0);
    EXPECT_EQ(header.version, detail::kFormatVersion);
    EXPECT_EQ(header.pid, getpid());
    EXPECT_EQ(header.finished, 0u);
    EXPECT_TRUE(std::string(header.executable).find("record_test") != std::string::npos);
    EXPECT_GT(header.ticks_per_second, 0u);
    EXPECT_EQ(std::filesystem::file_size(path()) % kBlockBytes, 0u);
}

TEST_F(SpoolTest, NeverUsesAnExistingName) {
    std::ofstream(path()) << "precious";
    EXPECT_EQ(Spool::create(path())->path(), path("a." + pid_ + ".marey"));
    EXPECT_EQ(Spool::create(path())->path(), path("a." + pid_ + ".2.marey"));
    std::string text;
    std::ifstream(path()) >> text;
    EXPECT_EQ(text, "precious");
}

TEST_F(SpoolTest, ReportsWhyItCannotBeCreated) {
    const auto error = [](const std::string& where) -> std::string {
        try {
            Spool::create(where);
        } catch (const Error& failure) {
            return failure.what();
        }
        return "";
    };
    EXPECT_EQ(error(path("missing/a.marey")),
              path("missing/a.marey") + ": cannot create the capture: No such file or directory");
    EXPECT_EQ(error(folder_), folder_ + ": cannot create the capture: Is a directory");
    EXPECT_EQ(error(folder_ + "/"), folder_ + "/: cannot create the capture: Is a directory");
    EXPECT_EQ(files(), 0u);
}

TEST_F(SpoolTest, ContinuesStreamsAcrossBlocksWithoutSplittingRecords) {
    const std::shared_ptr<Spool> spool = Spool::create(path());
    // Sizes that do not divide a block, both streams in turn.
    for (std::uint64_t i = 0; i < 200; ++i) {
        ASSERT_TRUE(spool->append_names(records(10, 1000, 10 * i)));
        ASSERT_TRUE(spool->append_journal(records(1, 24, i)));
    }
    EXPECT_EQ(names_of(path()), records(2000, 1000));  // while it is being written
    EXPECT_EQ(journal_of(path()), records(200, 24));
    for (const FoundBlock& block : blocks_of(path(), detail::BlockKind::Names)) {
        EXPECT_EQ(block.header.committed % 1000, 0u);
    }
}

TEST_F(SpoolTest, AcceptsNamesUpToABlockAndRejectsLargerOnes) {
    const std::shared_ptr<Spool> spool = Spool::create(path());
    const auto most = static_cast<std::uint32_t>(kBlockBytes - sizeof(BlockHeader));
    EXPECT_TRUE(spool->append_names(records(3, most)));
    EXPECT_FALSE(spool->append_names(records(1, most + 8)));
    EXPECT_EQ(names_of(path()), records(3, most));
}

TEST_F(SpoolTest, AJournalRecordMaySpanSeveralBlocks) {
    const std::shared_ptr<Spool> spool = Spool::create(path());
    const std::vector<std::byte> small = records(3, 64);
    const std::vector<std::byte> large = records(1, 3 * kBlockBytes);
    std::vector<std::byte> all;
    for (const auto* part : {&small, &large, &small, &large, &small}) {
        EXPECT_TRUE(spool->append_journal(*part));
        all.insert(all.end(), part->begin(), part->end());
        EXPECT_EQ(journal_of(path()), all);
    }
    const std::string cut = write_cut(path(), {}, all, {});
    EXPECT_EQ(journal_of(cut), all);
}

TEST_F(SpoolTest, IsCutToItsLengthWhenFinished) {
    const std::shared_ptr<Spool> spool = Spool::create(path());
    EXPECT_TRUE(spool->append_names(records(10, 64)));
    EXPECT_TRUE(spool->append_journal(records(20, 64)));
    const auto before = std::filesystem::file_size(path());
    spool->finish();
    EXPECT_TRUE(spool->is_finished());
    EXPECT_EQ(header_of(path()).finished, 1u);
    EXPECT_LT(std::filesystem::file_size(path()), before);
    EXPECT_EQ(std::filesystem::file_size(path()), header_of(path()).blocks * kBlockBytes);
    EXPECT_EQ(names_of(path()), records(10, 64));
    EXPECT_EQ(journal_of(path()), records(20, 64));
}

TEST_F(SpoolTest, DetectsThatItsNameIsGone) {
    const std::shared_ptr<Spool> spool = Spool::create(path());
    EXPECT_TRUE(spool->is_in_place());
    std::filesystem::remove(path());
    EXPECT_FALSE(spool->is_in_place());
    std::ofstream(path()) << "another";
    EXPECT_FALSE(spool->is_in_place());
    spool->finish();
    EXPECT_TRUE(std::filesystem::exists(path()));
}

// The numbers under which this process has the file open.
std::vector<int> descriptors_of(const std::string& file) {
    std::vector<int> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        if (std::filesystem::read_symlink(entry.path(), error) == file)
            found.push_back(std::stoi(entry.path().filename()));
    }
    return found;
}

TEST_F(SpoolTest, KeepsAHighDescriptorThatProgramsDoNotInherit) {
    const std::shared_ptr<Spool> spool = Spool::create(path());
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const std::vector<int> open = descriptors_of(path());
    ASSERT_EQ(open.size(), 1u);
    EXPECT_GE(open[0], static_cast<int>(std::min<rlim_t>(512, limit.rlim_cur / 2)));
    EXPECT_EQ(fcntl(open[0], F_GETFD), FD_CLOEXEC);
}

TEST_F(SpoolTest, IsFinishedWhenItsDescriptorWasClosed) {
    std::shared_ptr<Spool> spool = Spool::create(path());
    const int fd = descriptors_of(path()).at(0);
    std::ofstream(path("victim")) << "hello";
    const int victim = open(path("victim").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(dup2(victim, fd), fd);
    close(victim);
    EXPECT_TRUE(spool->is_in_place());
    // Until it has grown, with the descriptor closed once more in between.
    for (std::uint64_t i = 0; i < 4000; ++i) {
        ASSERT_TRUE(spool->append_names(records(1, 1000, i)));
        if (i == 2000) close(descriptors_of(path()).at(0));
    }
    close(descriptors_of(path()).at(0));
    const auto before = std::filesystem::file_size(path());
    spool->finish();
    EXPECT_LT(std::filesystem::file_size(path()), before);
    EXPECT_EQ(std::filesystem::file_size(path()), header_of(path()).blocks * kBlockBytes);
    EXPECT_EQ(header_of(path()).finished, 1u);
    EXPECT_EQ(names_of(path()), records(4000, 1000));
    spool.reset();
    EXPECT_TRUE(descriptors_of(path()).empty());
    EXPECT_EQ(descriptors_of(path("victim")), std::vector<int>{fd});
    EXPECT_EQ(std::filesystem::file_size(path("victim")), 5u);
    close(fd);
}

TEST_F(SpoolTest, MovedAsideIsReopenedThere) {
    const std::shared_ptr<Spool> spool = Spool::create(path());
    spool->move_aside();
    std::ofstream(path()) << "another";
    close(descriptors_of(spool->path()).at(0));
    EXPECT_TRUE(spool->append_names(records(4000, 1000)));
    EXPECT_EQ(names_of(spool->path()), records(4000, 1000));
    EXPECT_EQ(std::filesystem::file_size(path()), 7u);
}

TEST_F(SpoolTest, MovesAsideAndIsRemovedWhenFinished) {
    const std::shared_ptr<Spool> spool = Spool::create(path());
    spool->move_aside();
    EXPECT_TRUE(spool->is_temporary());
    EXPECT_FALSE(std::filesystem::exists(path()));
    EXPECT_TRUE(spool->append_names(records(10, 64)));
    EXPECT_EQ(files(), 1u);
    spool->finish();
    EXPECT_EQ(files(), 0u);
}

TEST_F(SpoolTest, MovesBackUnlessTheNameIsTaken) {
    const std::shared_ptr<Spool> spool = Spool::create(path());
    spool->move_aside();
    std::ofstream(path()) << "taken";
    spool->move_back(path());
    EXPECT_TRUE(spool->is_temporary());
    std::filesystem::remove(path());
    spool->move_back(path());
    EXPECT_FALSE(spool->is_temporary());
    EXPECT_EQ(spool->path(), path());
    spool->finish();
    EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(SpoolTest, AbandonedIsNotTouched) {
    std::shared_ptr<Spool> spool = Spool::create(path());
    spool->move_aside();
    const std::string aside = spool->path();
    const auto before = std::filesystem::file_size(aside);
    spool->abandon();
    spool.reset();
    EXPECT_EQ(std::filesystem::file_size(aside), before);
}

TEST_F(SpoolTest, CutsACaptureOutOfStreamsAndChunks) {
    const std::shared_ptr<Spool> spool = Spool::create(path());
    Block* const chunk = spool->store().take(detail::kLargeBlocks);
    chunk->header->kind = static_cast<std::uint16_t>(detail::BlockKind::Log);
    chunk->header->thread = 5;
    chunk->header->sequence = 9;
    chunk->header->base_ticks = 1000;
    const std::size_t bytes = 3 * kBlockBytes;
    for (std::size_t at = 0; at < bytes; at += detail::kRecordUnit) {
        const detail::CompactRecord record{static_cast<std::uint64_t>(detail::RecordKind::Range) | at << 16,
                                           1};
        std::memcpy(chunk->data() + at, &record, sizeof record);
    }
    chunk->header->committed = bytes + detail::kRecordUnit;  // its owner has continued since
    std::ofstream(path("b.marey")) << "taken";
    const LogSpan cut{chunk->data(), bytes, 5, 9, 1000, {}};
    const std::string made = write_cut(path("b.marey"), records(2000, 40), records(10, 80), {&cut, 1});
    EXPECT_EQ(made, path("b." + pid_ + ".marey"));
    EXPECT_EQ(header_of(made).finished, 1u);
    EXPECT_EQ(std::filesystem::file_size(made), header_of(made).blocks * kBlockBytes);
    EXPECT_EQ(names_of(made), records(2000, 40));
    EXPECT_EQ(journal_of(made), records(10, 80));
    const std::vector<FoundBlock> logs = blocks_of(made, detail::BlockKind::Log);
    ASSERT_EQ(logs.size(), 1u);
    EXPECT_EQ(logs[0].header.blocks, 4u);
    EXPECT_EQ(logs[0].header.thread, 5u);
    EXPECT_EQ(logs[0].header.sequence, 9u);
    EXPECT_EQ(logs[0].header.base_ticks, 1000u);
    ASSERT_EQ(logs[0].committed.size(), bytes);
    EXPECT_EQ(std::memcmp(logs[0].committed.data(), chunk->data(), bytes), 0);
    EXPECT_EQ(files(), 3u);
}

}  // namespace
}  // namespace marey
