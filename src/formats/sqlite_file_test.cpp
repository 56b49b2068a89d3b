// sqlite_file_test.cpp: databases in any state: valid, of other programs, damaged, hostile.
#include "formats/sqlite_file.h"

#if MAREY_HAVE_SQLITE

#include <random>

#include "formats/sqlite_fixture.h"

namespace marey {
namespace {

std::string failure_to_open(const std::string& path) {
    try {
        const SqliteFile file(path);
        for (const std::string& table : file.tables()) (void)file.row_count(table);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(SqliteFile, ReadsTablesAndColumnsByNameWithoutRegardToCase) {
    SqliteSample sample;
    sample.run(
        "CREATE TABLE \"a\"\"b\"(X INT, y TEXT, z REAL); INSERT INTO \"a\"\"b\" VALUES (1, 'one', 1.5),"
        "(NULL, x'00ff00', -7)");
    const SqliteFile file(sample.path());
    EXPECT_TRUE(file.has_table("A\"B"));
    EXPECT_TRUE(file.has_column("a\"b", "Y"));
    EXPECT_FALSE(file.has_column("a\"b", "missing"));
    EXPECT_EQ(file.columns("a\"b"), (std::vector<std::string>{"X", "y", "z"}));
    TableRows rows = file.rows("a\"b", {"x", "y", "missing", "z"});
    ASSERT_TRUE(rows.next());
    EXPECT_EQ(rows.integer(0), 1);
    EXPECT_EQ(rows.text(1), "one");
    EXPECT_TRUE(rows.is_null(2));
    EXPECT_EQ(rows.real(3), 1.5);
    ASSERT_TRUE(rows.next());
    EXPECT_TRUE(rows.is_null(0));
    EXPECT_EQ(rows.integer(0), 0);
    EXPECT_EQ(rows.text(1), std::string_view("\0\xff\0", 3));
    EXPECT_FALSE(rows.next());
    EXPECT_EQ(file.row_count("a\"b"), 2u);
    EXPECT_FALSE(file.rows("no such table", {"x"}).next());
    EXPECT_EQ(file.row_count("no such table"), 0u);
}

TEST(SqliteFile, ViewsVirtualTablesAndGeneratedColumnsAreIgnored) {
    SqliteSample sample;
    sample.run(
        "CREATE TABLE t(a INT, b AS (a * 2)); CREATE VIEW v AS SELECT a FROM t;"
        "CREATE VIRTUAL TABLE f USING fts4(x); CREATE TABLE s(id INTEGER PRIMARY KEY AUTOINCREMENT)");
    const SqliteFile file(sample.path());
    EXPECT_TRUE(file.has_table("t"));
    EXPECT_FALSE(file.has_table("v"));
    EXPECT_FALSE(file.has_table("f"));
    EXPECT_FALSE(file.has_table("sqlite_sequence"));
    EXPECT_FALSE(file.has_column("t", "b"));
}

TEST(SqliteFile, TheWriteAheadLogIsReadAndNothingIsWritten) {
    SqliteSample sample;
    sample.run(
        "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a);"
        "INSERT INTO t VALUES (1), (2), (3)");
    ASSERT_GT(std::filesystem::file_size(sample.path() + "-wal"), 0u);
    // As a crashed writer leaves them: the log without its index.
    const std::string copy = sample.path() + ".copy";
    std::filesystem::copy_file(sample.path(), copy);
    std::filesystem::copy_file(sample.path() + "-wal", copy + "-wal");
    const std::string before = bytes_of(copy), log_before = bytes_of(copy + "-wal");
    {
        const SqliteFile file(copy);
        EXPECT_EQ(file.row_count("t"), 3u);
    }
    EXPECT_EQ(bytes_of(copy), before);
    EXPECT_EQ(bytes_of(copy + "-wal"), log_before);
    EXPECT_FALSE(std::filesystem::exists(copy + "-shm"));
    std::filesystem::remove(copy);
    std::filesystem::remove(copy + "-wal");
}

TEST(SqliteFile, AFileInWalModeWithoutItsLogIsRead) {
    SqliteSample sample;
    sample.run("PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1)");
    sample.close();
    ASSERT_FALSE(std::filesystem::exists(sample.path() + "-wal"));
    EXPECT_EQ(SqliteFile(sample.path()).row_count("t"), 1u);
    EXPECT_FALSE(std::filesystem::exists(sample.path() + "-shm"));
}

TEST(SqliteFile, ALeftoverJournalIsReported) {
    SqliteSample sample;
    sample.run("CREATE TABLE t(a)");
    EXPECT_TRUE(SqliteFile(sample.path()).is_settled());
    std::ofstream(sample.path() + "-journal") << "something";
    EXPECT_FALSE(SqliteFile(sample.path()).is_settled());
}

TEST(SqliteFile, PathsMayContainAnyCharacter) {
    SqliteSample sample;
    sample.run("CREATE TABLE t(a); INSERT INTO t VALUES (1)");
    const std::string path = sample.path() + " ?#%20&mode=rw\xff+.sqlite";
    std::filesystem::copy_file(sample.path(), path);
    EXPECT_EQ(SqliteFile(path).row_count("t"), 1u);
    std::filesystem::remove(path);
    EXPECT_EQ(SqliteFile("/" + sample.path()).row_count("t"), 1u) << "two slashes at the front";
}

TEST(SqliteFile, FailuresNameTheFileAndTheCause) {
    EXPECT_EQ(failure_to_open("/no/such.sqlite"), "/no/such.sqlite: No such file or directory");
    SqliteSample sample;
    const std::string& path = sample.path();
    std::ofstream(path) << "no database at all, only text";
    EXPECT_EQ(failure_to_open(path), path + ": not a SQLite database");
    std::ofstream(path, std::ios::trunc) << "\x1f\x8b\x08 compressed";
    EXPECT_EQ(failure_to_open(path), path + ": the file is compressed; decompress it first (gunzip)");
    std::ofstream(path, std::ios::trunc) << std::string("SQLite format 3\0 and nothing of it", 34);
    EXPECT_EQ(failure_to_open(path), path + ": file is not a database");
    std::ofstream(path, std::ios::trunc).flush();
    EXPECT_EQ(failure_to_open(path), path + ": not a SQLite database");
    EXPECT_NE(failure_to_open("/tmp").find("/tmp: "), std::string::npos);
}

TEST(SqliteFile, ATruncatedFileIsRejectedUnlessNoRowIsMissing) {
    SqliteSample sample;
    sample.run_file("nvprof_schema").run_file("nvprof_rows");
    sample.close();
    const std::string whole = bytes_of(sample.path());
    const std::string text = profile_text(sample.read());
    int refused = 0;
    for (std::size_t size = 0; size < whole.size(); size += 1000) {
        std::ofstream(sample.path(), std::ios::binary | std::ios::trunc) << whole.substr(0, size);
        try {
            EXPECT_EQ(profile_text(sample.read()), text) << size << " bytes";  // only an index is truncated
        } catch (const Error& error) {
            EXPECT_TRUE(std::string(error.what()).starts_with(sample.path() + ": ")) << error.what();
            ++refused;
        }
    }
    EXPECT_GT(refused, 40);
}

TEST(SqliteFile, RandomDamageNeverCrashesAndFailsWithItsPath) {
    SqliteSample sample;
    sample.run_file("nsight_schema").run_file("nsight_rows");
    sample.close();
    const std::string whole = bytes_of(sample.path());
    std::mt19937 random(4);
    for (int round = 0; round < 300; ++round) {
        std::string damaged = whole;
        for (int i = 0; i < 8; ++i)
            damaged[16 + random() % (damaged.size() - 16)] = static_cast<char>(random());
        std::ofstream(sample.path(), std::ios::binary | std::ios::trunc) << damaged;
        const std::string failure = sample.failure();
        EXPECT_TRUE(failure.empty() || failure.starts_with(sample.path() + ": ")) << failure;
    }
}

TEST(SqliteFile, EveryDatabaseOfTheCorpusIsReadOrRejectedByName) {
    int databases = 0;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(MAREY_SOURCE_DIR) /
                                                                 "tests/data/corpus/sqlite")) {
        const std::string path = entry.path().string();
        if (!path.ends_with(".sqlite")) continue;
        ++databases;
        try {
            EXPECT_GT(open_trace(path).ranges().size(), 0u) << path;
        } catch (const Error& error) {
            EXPECT_EQ(entry.path().filename(), "other.sqlite") << error.what();
        }
    }
    EXPECT_EQ(databases, 5);
}

TEST(SqliteFile, ATableThatContainsItselfEnds) {
    // An interior page in which every cell points to the page below: an unlimited number of rows in a small
    // file.
    SqliteSample sample;
    sample.run("PRAGMA page_size=512; VACUUM; CREATE TABLE t(a)");
    for (int i = 0; i < 4000; ++i) sample.run("INSERT INTO t VALUES ('some text that fills a page')");
    const int root = std::stoi(sample.query("SELECT rootpage FROM sqlite_master").at(0));
    sample.close();
    std::string bytes = bytes_of(sample.path());
    const auto u16 = [&](std::size_t at) {
        return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])) * 256 +
               static_cast<unsigned char>(bytes[at + 1]);
    };
    std::vector<std::size_t> interior;  // pages
    for (std::size_t page = 1; page * 512 < bytes.size(); ++page) {
        if (bytes[page * 512] == 5) interior.push_back(page);
    }
    ASSERT_GT(interior.size(), 2u);
    // A chain: every cell of an interior page points to the next one, and the last page to leaves.
    std::swap(interior[0], *std::find(interior.begin(), interior.end(), static_cast<std::size_t>(root - 1)));
    for (std::size_t level = 0; level + 1 < std::min<std::size_t>(interior.size(), 12); ++level) {
        const std::size_t start = interior[level] * 512;
        const auto set_page = [&](std::size_t at) {
            const std::size_t next = interior[level + 1] + 1;
            for (int i = 0; i < 4; ++i)
                bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(next >> (24 - 8 * i));
        };
        set_page(start + 8);
        for (std::size_t cell = 0; cell < u16(start + 3); ++cell)
            set_page(start + u16(start + 12 + 2 * cell));
    }
    std::ofstream(sample.path(), std::ios::binary | std::ios::trunc) << bytes;
    EXPECT_NE(failure_to_open(sample.path()).find("damaged: "), std::string::npos)
        << failure_to_open(sample.path());
}

TEST(SqliteFile, RecognizesTheProducerByItsTables) {
    SqliteSample nvprof, nsight, other;
    EXPECT_EQ(nvprof.run_file("nvprof_schema").read().clock().source, "nvprof");
    EXPECT_EQ(nsight.run_file("nsight_schema").read().clock().source, "nsight");
    EXPECT_EQ(other.run("CREATE TABLE t(a)").failure(),
              other.path() + ": not an nvprof or Nsight Systems database: none of their tables was found");
}

TEST(SqliteFile, IsRecognizedByItsHeaderAndEitherFormatNameReadsEither) {
    SqliteSample nvprof, nsight;
    nvprof.run_file("nvprof_schema").run_file("nvprof_rows");
    nsight.run_file("nsight_schema").run_file("nsight_rows");
    EXPECT_EQ(open_trace(nvprof.path(), "nsight").ranges().size(), nvprof.read().ranges().size());
    EXPECT_EQ(open_trace(nsight.path(), "nvprof").ranges().size(), nsight.read().ranges().size());
    EXPECT_THROW(open_trace(nsight.path(), "marey"), Error);
}

}  // namespace
}  // namespace marey

#endif
