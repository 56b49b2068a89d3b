// sqlite_fixture.h: for tests: databases created from SQL, and traces as readable lines.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <marey/error.h>
#include <marey/import.h>
#include <marey/trace.h>

namespace marey {

/// A database in a temporary file, which is removed with this object.
class SqliteSample {
  public:
    SqliteSample() {
        static int number = 0;
        path_ = (std::filesystem::temp_directory_path() /
                 ("marey-sample-" + std::to_string(getpid()) + "-" + std::to_string(++number) + ".sqlite"))
                    .string();
        remove();
        EXPECT_EQ(sqlite3_open(path_.c_str(), &database_), SQLITE_OK);
        run("PRAGMA synchronous=OFF");
    }
    SqliteSample(const SqliteSample&) = delete;
    SqliteSample& operator=(const SqliteSample&) = delete;
    ~SqliteSample() {
        close();
        remove();
    }

    SqliteSample& run(const std::string& sql) {
        char* message = nullptr;
        EXPECT_EQ(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
            << (message != nullptr ? message : "") << " in " << sql.substr(0, 200);
        sqlite3_free(message);
        return *this;
    }
    /// tests/data/samples/`name`.sql
    SqliteSample& run_file(const std::string& name) {
        std::ifstream file(std::filesystem::path(MAREY_SOURCE_DIR) / "tests" / "data" / "samples" /
                           (name + ".sql"));
        EXPECT_TRUE(file.good()) << name;
        return run({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    }
    /// The rows returned by a query, with columns joined by '|'.
    std::vector<std::string> query(const std::string& sql) {
        std::vector<std::string> rows;
        const auto add = [](void* list, int count, char** texts, char**) {
            std::string row;
            for (int i = 0; i < count; ++i)
                row += (i > 0 ? "|" : "") + std::string(texts[i] != nullptr ? texts[i] : "NULL");
            static_cast<std::vector<std::string>*>(list)->push_back(row);
            return 0;
        };
        EXPECT_EQ(sqlite3_exec(database_, sql.c_str(), add, &rows, nullptr), SQLITE_OK) << sql;
        return rows;
    }
    void close() {
        sqlite3_close(database_);
        database_ = nullptr;
    }
    sqlite3* database() { return database_; }
    const std::string& path() const { return path_; }
    Trace read() const { return open_trace(path_); }
    /// The error when reading it; "" if it succeeds.
    std::string failure() const {
        try {
            (void)read();
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

  private:
    void remove() const {
        for (const char* suffix : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(path_ + suffix);
    }

    std::string path_;
    sqlite3* database_ = nullptr;
};

/// Reads a database with that schema and those rows.
inline Trace profile_of(const char* schema, const char* rows) {
    SqliteSample sample;
    return sample.run(schema).run(rows).read();
}

inline std::string value_text(const Trace& trace, const Argument& value) {
    std::string text;
    if (value.key != 0) text = std::string(trace.string(value.key)) + "=";
    switch (value.kind) {
        case ValueKind::Int:
            return text + std::to_string(value.integer);
        case ValueKind::Double:
            return text + std::to_string(value.real);
        case ValueKind::String:
            return text + std::string(trace.string(value.string));
        case ValueKind::List:
            text += "[";
            for (std::uint32_t i = 0; i < value.list.count; ++i)
                text += (i > 0 ? " " : "") + value_text(trace, trace.list_items()[value.list.first + i]);
            return text + "]";
        default:
            return text + "?";
    }
}

/// One line per track, followed by one per range, for review by a person.
inline std::string profile_text(const Trace& trace) {
    std::string text;
    const RangeColumns ranges = trace.ranges();
    for (const ProcessInfo& process : trace.processes()) {
        text += "process " + std::to_string(process.pid) + " '" + std::string(trace.string(process.name)) +
                "' on '" + std::string(trace.string(process.host)) + "'\n";
    }
    for (const TrackInfo& track : trace.tracks()) {
        const ThreadInfo& thread = trace.threads()[track.thread];
        const char* const kinds[] = {"thread", "async", "device", "overlap"};
        text += std::string(kinds[static_cast<int>(track.kind)]) + " '" +
                std::string(trace.string(track.name)) + "' of process " +
                std::to_string(trace.processes()[thread.process].pid) + ", os tid " +
                std::to_string(thread.os_tid);
        if (track.device.type == DeviceType::Cuda)
            text +=
                ", device " + std::to_string(track.device.index) + " stream " + std::to_string(track.stream);
        text += "\n";
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const SiteInfo& site = trace.sites()[ranges.site[row]];
            text += std::string(2 + 2 * ranges.depth[row], ' ') + std::string(trace.range_name(row)) + " " +
                    std::to_string(ranges.start_ns[row]) + "+" + std::to_string(ranges.duration_ns[row]) +
                    " (" + scope_name(site.scope);
            if (site.category != 0) text += ", " + std::string(trace.string(site.category));
            if (site.raw_name != 0) text += ", " + std::string(trace.string(site.raw_name));
            text += (ranges.flags[row] & kUnfinished) != 0 ? ", unfinished)" : ")";
            for (const Argument& value : trace.range_arguments(row)) text += " " + value_text(trace, value);
            text += "\n";
        }
    }
    for (const LinkInfo& link : trace.links()) {
        text += "link " + std::to_string(static_cast<int>(link.kind)) + " " +
                std::string(trace.string(link.name)) + ": " + std::string(trace.range_name(link.from)) + " " +
                std::to_string(ranges.start_ns[link.from]) + " -> " + std::string(trace.range_name(link.to)) +
                " " + std::to_string(ranges.start_ns[link.to]) + "\n";
    }
    const InstantColumns instants = trace.instants();
    for (Row row = 0; row < instants.size(); ++row) {
        text += "instant " + std::string(trace.string(trace.sites()[instants.site[row]].name)) + " " +
                std::to_string(instants.time_ns[row]) + "\n";
    }
    const MemoryColumns memory = trace.memory();
    for (Row row = 0; row < memory.size(); ++row) {
        text += "memory " + std::to_string(memory.time_ns[row]) + " on thread " +
                std::to_string(trace.threads()[memory.thread[row]].os_tid) + ": " +
                std::to_string(memory.bytes[row]) + " of " + device_type_name(memory.device[row].type) +
                ", total " + std::to_string(memory.total_allocated[row]) + "\n";
    }
    for (const MetadataInfo& fact : trace.metadata()) text += fact.key + ": " + fact.json + "\n";
    for (const ProblemInfo& problem : trace.problems())
        text += problem.code + "=" + std::to_string(problem.count) + ": " + problem.text + "\n";
    return text;
}

/// The count of a problem.
inline std::uint64_t problem_count(const Trace& trace, std::string_view code) {
    std::uint64_t count = 0;
    for (const ProblemInfo& problem : trace.problems()) count += problem.code == code ? problem.count : 0;
    return count;
}

}  // namespace marey
