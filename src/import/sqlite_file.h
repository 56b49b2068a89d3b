// sqlite_file.h: a SQLite database of another tool, read table by table. The only file that knows SQLite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace marey {

struct SqliteConnection;  // libsqlite3's side

/// A file that begins like this is one.
bool is_sqlite_head(std::span<const std::byte> head) noexcept;

/// Who wrote a database, as its tables tell.
enum class SqliteProducer { Nvprof, Nsight, Unknown };

/// The rows of one table, one after the other. A column is named by its place in the list that was asked for;
/// one that the table lacks is NULL everywhere. Texts are valid until next().
class TableRows {
  public:
    TableRows(TableRows&&) noexcept;
    TableRows& operator=(TableRows&&) = delete;
    ~TableRows();

    /// Goes to the first row, then to the one after; false when there are no more. Throws marey::Error when
    /// the database is damaged.
    bool next();
    bool is_null(int column) const noexcept;
    std::int64_t integer(int column) const noexcept;  ///< 0 for NULL
    double real(int column) const noexcept;
    std::string_view text(int column) const noexcept;  ///< any bytes; a BLOB's as they are
    bool is_number(int column) const noexcept;
    bool is_whole_number(int column) const noexcept;

  private:
    friend class SqliteFile;
    struct State;
    explicit TableRows(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

/// Opened for reading only, without locks, and nothing is written beside it; what is in its write-ahead log
/// is read, too. Only ordinary tables and their stored columns are looked at. What a damaged or hostile
/// database can cost is bounded by its size: it ends in a marey::Error.
class SqliteFile {
  public:
    /// Throws marey::Error (path: cause) when there is no such file, it is no database, or it is compressed.
    explicit SqliteFile(const std::string& path);
    SqliteFile(const SqliteFile&) = delete;
    SqliteFile& operator=(const SqliteFile&) = delete;
    ~SqliteFile();

    const std::string& path() const noexcept { return path_; }
    SqliteProducer maker() const;
    /// False: a transaction was open when its writer died, so that rows may be half written.
    bool is_settled() const noexcept { return is_settled_; }

    /// In order of their making. Names compare without regard to case, as SQLite does it.
    const std::vector<std::string>& tables() const noexcept { return tables_; }
    bool has_table(std::string_view table) const noexcept;
    std::vector<std::string> columns(const std::string& table) const;
    bool has_column(const std::string& table, std::string_view column) const;
    /// No rows where there is no such table. The file must outlive them.
    TableRows rows(const std::string& table, std::span<const std::string> columns) const;
    TableRows rows(const std::string& table, std::initializer_list<const char*> columns) const;
    std::uint64_t row_count(const std::string& table) const;

  private:
    std::string path_;
    std::unique_ptr<SqliteConnection> connection_;
    std::vector<std::string> tables_;
    bool is_settled_ = true;
};

}  // namespace marey
