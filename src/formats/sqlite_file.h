// sqlite_file.h: reads a SQLite database of another tool table by table. The only file that uses SQLite.
#pragma once

#include <initializer_list>
#include <memory>

#include <marey/trace.h>

namespace marey {

struct SqliteConnection;  // libsqlite3 handles
struct SqliteStatement;

/// The rows of one table, one by one. A column is identified by its position in the requested list; a column
/// that the table lacks is always NULL. Texts are valid until next().
class TableRows {
  public:
    explicit TableRows(std::shared_ptr<SqliteStatement> statement) noexcept
        : statement_(std::move(statement)) {}

    /// Moves to the first row, then to the next; returns false if there are no more. Throws marey::Error if
    /// the database is damaged.
    bool next();
    bool is_null(int column) const noexcept;
    std::int64_t integer(int column) const noexcept;  ///< 0 for NULL
    double real(int column) const noexcept;
    std::string_view text(int column) const noexcept;  ///< any bytes; a BLOB is returned unchanged
    bool is_number(int column) const noexcept;
    bool is_whole_number(int column) const noexcept;

  private:
    std::shared_ptr<SqliteStatement> statement_;
};

/// The database is opened read-only and without locks, and no files are created next to it; its write-ahead
/// log is read too. Only ordinary tables and their stored columns are read. The cost of a damaged or hostile
/// database is limited by its size: it ends with a marey::Error.
class SqliteFile {
  public:
    /// Throws marey::Error (path: cause) if the file does not exist, is not a database or is compressed.
    explicit SqliteFile(const std::string& path);
    ~SqliteFile();

    const std::string& path() const noexcept { return path_; }
    /// False if a transaction was open when its writer died, so rows may be incomplete.
    bool is_settled() const noexcept { return is_settled_; }

    /// In order of creation. Names are compared without regard to case, as in SQLite.
    const std::vector<std::string>& tables() const noexcept { return tables_; }
    bool has_table(std::string_view table) const noexcept;
    std::vector<std::string> columns(const std::string& table) const;
    bool has_column(const std::string& table, std::string_view column) const;
    /// Returns no rows if there is no such table. The file must outlive them.
    TableRows rows(const std::string& table, std::span<const std::string> columns) const;
    TableRows rows(const std::string& table, std::initializer_list<const char*> columns) const;
    std::uint64_t row_count(const std::string& table) const;

  private:
    TableRows query(const std::string& sql) const;

    std::string path_;
    std::unique_ptr<SqliteConnection> connection_;
    std::vector<std::string> tables_;
    bool is_settled_ = true;
};

/// nvprof and Nsight Systems databases have the same header: only their tables differ.
bool is_sqlite_profile(std::span<const std::byte> head) noexcept;
/// Reads a database of either. Throws marey::Error.
Trace read_sqlite_profile(const std::string& path);

/// Reads an nvprof database: markers, CUDA runtime and driver calls, kernels, copies. Throws marey::Error if
/// a marker is duplicated, or if a launch call inside a marker launched several kernels.
Trace read_nvprof(const SqliteFile& file);

/// Reads the output of `nsys export --type sqlite`.
Trace read_nsight(const SqliteFile& file);

}  // namespace marey
