// sqlite_file.cpp: reads databases with libsqlite3, if available, with every feature disabled through which a
// database could run code.
#include "formats/sqlite_file.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <utility>

#include <marey/error.h>

namespace marey {

constexpr std::string_view kSqliteMagic("SQLite format 3\0", 16);

bool is_sqlite_profile(std::span<const std::byte> head) noexcept {
    return head.size() >= kSqliteMagic.size() &&
           std::memcmp(head.data(), kSqliteMagic.data(), kSqliteMagic.size()) == 0;
}

}  // namespace marey

#if MAREY_HAVE_SQLITE

#include <sqlite3.h>

namespace marey {
namespace {

bool is_same_name(std::string_view a, std::string_view b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char left, unsigned char right) {
        return std::tolower(left) == std::tolower(right);
    });
}

// Reading a table of a valid database takes a few SQLite VM steps per byte of the file, and every row takes
// some bytes. A damaged database may have tables that contain themselves.
constexpr std::uint64_t kStepsPerByte = 8;
constexpr std::uint64_t kStepsForTheSchema = 1'000'000;
constexpr int kStepsPerCheck = 10'000;
constexpr std::uint64_t kMinBytesPerRow = 4;
constexpr int kLongestValue = 64 << 20;

std::string quoted_name(std::string_view name) {
    std::string text = "\"";
    for (const char c : name) text.append(c == '"' ? 2 : 1, c);
    return text + "\"";
}

std::string uri_of(const std::string& path, const char* parameters) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    std::string uri = "file:";
    if (path.starts_with("//")) uri += "//";  // else what follows would be the name of a host
    for (const char c : path) {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("/._-~", c) != nullptr) {
            uri += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            uri += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
        }
    }
    return uri + parameters;
}

std::uint64_t file_bytes(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

void check_head(const std::string& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Error(path + ": " + std::generic_category().message(errno != 0 ? errno : EIO));
    char head[16] = {};
    file.read(head, sizeof head);
    const std::string_view bytes(head, static_cast<std::size_t>(file.gcount()));
    if (bytes == kSqliteMagic) return;
    if (bytes.starts_with("\x1f\x8b"))
        throw Error(path + ": the file is compressed; decompress it first (gunzip)");
    throw Error(path + ": not a SQLite database");
}

}  // namespace

bool SqliteFile::has_table(std::string_view table) const noexcept {
    return std::ranges::any_of(tables_, [&](const std::string& known) { return is_same_name(known, table); });
}

bool SqliteFile::has_column(const std::string& table, std::string_view column) const {
    const std::vector<std::string> known = columns(table);
    return std::ranges::any_of(known, [&](const std::string& name) { return is_same_name(name, column); });
}

TableRows SqliteFile::rows(const std::string& table, std::initializer_list<const char*> columns) const {
    return rows(table, std::vector<std::string>(columns.begin(), columns.end()));
}

struct SqliteConnection {
    sqlite3* database = nullptr;
    std::string path;
    std::uint64_t bytes = 0;
    std::uint64_t steps_left = 0;

    ~SqliteConnection() { sqlite3_close_v2(database); }

    [[noreturn]] void fail(int code) const {
        std::string cause = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code);
        if (code == SQLITE_INTERRUPT) cause = "damaged: a table does not end";
        throw Error(path + ": " + cause);
    }

    static int on_progress(void* self) {
        std::uint64_t& left = static_cast<SqliteConnection*>(self)->steps_left;
        if (left < kStepsPerCheck) return 1;
        left -= kStepsPerCheck;
        return 0;
    }

    void open(const char* parameters) {
        const std::string uri = uri_of(path, parameters);
        const int code = sqlite3_open_v2(
            uri.c_str(), &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
        if (code != SQLITE_OK) fail(code);
        sqlite3_extended_result_codes(database, 0);
        sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLongestValue);
        sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
        for (const auto& [option, value] :
             {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1}, std::pair{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
              std::pair{SQLITE_DBCONFIG_ENABLE_VIEW, 0}, std::pair{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
              std::pair{SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1}}) {
            sqlite3_db_config(database, option, value, nullptr);
        }
        steps_left = kStepsForTheSchema + bytes * kStepsPerByte;
        sqlite3_progress_handler(database, kStepsPerCheck, on_progress, this);
    }
};

/// Of an empty text: without rows.
struct SqliteStatement {
    const SqliteConnection& connection;
    sqlite3_stmt* handle = nullptr;
    std::uint64_t rows_left;

    SqliteStatement(const SqliteConnection& its, const std::string& sql)
        : connection(its), rows_left(its.bytes / kMinBytesPerRow) {
        const int code =
            sqlite3_prepare_v2(its.database, sql.data(), static_cast<int>(sql.size()), &handle, nullptr);
        if (code != SQLITE_OK) its.fail(code);
    }
    SqliteStatement(const SqliteStatement&) = delete;
    SqliteStatement& operator=(const SqliteStatement&) = delete;
    ~SqliteStatement() { sqlite3_finalize(handle); }
};

bool TableRows::next() {
    if (statement_->handle == nullptr) return false;
    const int code = sqlite3_step(statement_->handle);
    if (code == SQLITE_DONE) return false;
    if (code != SQLITE_ROW) statement_->connection.fail(code);
    if (statement_->rows_left == 0)
        throw Error(statement_->connection.path + ": damaged: a table has more rows than fit into the file");
    --statement_->rows_left;
    return true;
}

bool TableRows::is_null(int column) const noexcept {
    return sqlite3_column_type(statement_->handle, column) == SQLITE_NULL;
}

bool TableRows::is_number(int column) const noexcept {
    const int type = sqlite3_column_type(statement_->handle, column);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

bool TableRows::is_whole_number(int column) const noexcept {
    return sqlite3_column_type(statement_->handle, column) == SQLITE_INTEGER;
}

std::int64_t TableRows::integer(int column) const noexcept {
    return sqlite3_column_int64(statement_->handle, column);
}

double TableRows::real(int column) const noexcept {
    return sqlite3_column_double(statement_->handle, column);
}

std::string_view TableRows::text(int column) const noexcept {
    const void* bytes = sqlite3_column_type(statement_->handle, column) == SQLITE_BLOB
                            ? sqlite3_column_blob(statement_->handle, column)
                            : sqlite3_column_text(statement_->handle, column);
    if (bytes == nullptr) return {};
    const int count = sqlite3_column_bytes(statement_->handle, column);
    return {static_cast<const char*>(bytes), static_cast<std::size_t>(count)};
}

SqliteFile::SqliteFile(const std::string& path)
    : path_(path), connection_(std::make_unique<SqliteConnection>()) {
    check_head(path);
    connection_->path = path;
    const std::uint64_t log_bytes = file_bytes(path + "-wal");
    connection_->bytes = file_bytes(path) + log_bytes;
    is_settled_ = file_bytes(path + "-journal") == 0;
    if (log_bytes == 0) {
        connection_->open("?mode=ro&immutable=1");
    } else {
        // An exclusive connection keeps the write-ahead log index in its own memory; without locking, none is
        // requested on a file that may not be writable.
        connection_->open("?mode=ro&vfs=unix-none");
        sqlite3_exec(connection_->database, "PRAGMA locking_mode=EXCLUSIVE", nullptr, nullptr, nullptr);
    }
    // Ordinary tables have a root page; views and virtual tables do not.
    TableRows tables = query("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0");
    while (tables.next()) {
        const std::string_view name = tables.text(0);
        if (!name.empty() && !name.starts_with("sqlite_")) tables_.emplace_back(name);
    }
}

SqliteFile::~SqliteFile() = default;

std::vector<std::string> SqliteFile::columns(const std::string& table) const {
    std::vector<std::string> names;
    TableRows rows = query("PRAGMA table_info(" + quoted_name(table) + ")");
    while (rows.next()) names.emplace_back(rows.text(1));
    return names;
}

TableRows SqliteFile::query(const std::string& sql) const {
    return TableRows(std::make_shared<SqliteStatement>(*connection_, sql));
}

TableRows SqliteFile::rows(const std::string& table, std::span<const std::string> columns) const {
    if (!has_table(table)) return query("");
    const std::vector<std::string> known = this->columns(table);
    std::string sql = "SELECT ";
    for (const std::string& column : columns) {
        const bool is_known =
            std::ranges::any_of(known, [&](const std::string& name) { return is_same_name(name, column); });
        if (sql.size() > 7) sql += ",";
        sql += is_known ? quoted_name(column) : "NULL";
    }
    if (columns.empty()) sql += "NULL";
    return query(sql + " FROM " + quoted_name(table) + " NOT INDEXED");
}

std::uint64_t SqliteFile::row_count(const std::string& table) const {
    TableRows all = rows(table, std::span<const std::string>());
    std::uint64_t count = 0;
    while (all.next()) ++count;
    return count;
}

Trace read_sqlite_profile(const std::string& path) {
    const SqliteFile file(path);
    const auto has_any = [&](std::initializer_list<const char*> tables) {
        return std::ranges::any_of(tables, [&](const char* table) { return file.has_table(table); });
    };
    if (has_any({"StringIds", "NVTX_EVENTS", "ANALYSIS_DETAILS", "META_DATA_EXPORT",
                 "TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_SYSTEM_ENV"}))
        return read_nsight(file);
    if (has_any({"StringTable", "CUPTI_ACTIVITY_KIND_MARKER", "CUPTI_ACTIVITY_KIND_RUNTIME",
                 "CUPTI_ACTIVITY_KIND_DRIVER", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"}))
        return read_nvprof(file);
    throw Error(path + ": not an nvprof or Nsight Systems database: none of their tables was found");
}

}  // namespace marey

#else

namespace marey {

Trace read_sqlite_profile(const std::string& path) {
    throw Error(path + ": cannot read SQLite databases: this Marey was built without SQLite");
}

}  // namespace marey

#endif
