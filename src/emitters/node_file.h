// node_file.h: the file of an execution trace, which is valid JSON at any time.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <marey/error.h>

#include "base/output_file.h"
#include "record/file_handle.h"

namespace marey {

/// A JSON object with a growing list of nodes. The closing text always follows the nodes, and the next nodes
/// overwrite it. Used by one thread at a time. Failures are remembered and thrown by finish(). The program
/// may close the descriptor.
class NodeFile {
  public:
    /// Throws marey::Error if the file cannot be created.
    explicit NodeFile(const std::string& path)
        : path_(path), written_(name_of_written(path)), file_(create(written_)) {
        std::error_code error;  // on error it cannot be opened again after the program closes it
        file_.set_path(std::filesystem::absolute(written_, error).string());
        pending_ = opening();
        flush();
        if (failure_ != 0) throw Error(written_ + ": " + strerror(failure_));
    }
    NodeFile(const NodeFile&) = delete;
    NodeFile& operator=(const NodeFile&) = delete;

    /// Adds a node, given as JSON. Writes to the file if the last write was a second ago or much is pending.
    void append(std::string_view node) noexcept {
        if (failure_ != 0) return;
        try {
            pending_ += has_nodes_ ? ",\n      " : "\n      ";
            pending_ += node;
            has_nodes_ = true;
        } catch (const std::bad_alloc&) {
            failure_ = ENOMEM;
            pending_.clear();
            return;
        }
        if (pending_.size() >= kMaxPending || std::chrono::steady_clock::now() - flushed_ >= kMaxPendingBytes)
            flush();
    }
    void flush() noexcept {
        if (failure_ != 0) return;
        flushed_ = std::chrono::steady_clock::now();
        const std::size_t nodes = pending_.size();
        try {
            pending_ += closing();
        } catch (const std::bad_alloc&) {
            failure_ = ENOMEM;
            return;
        }
        if (write_at(pending_, end_)) {
            end_ += static_cast<std::int64_t>(nodes);
        } else if (end_ != 0) {
            // The disk may be full: restore the closing text, for which there is space.
            const int why = failure_;
            const std::string tail = pending_.substr(nodes);
            const int file = file_.descriptor();
            if (write_at(tail, end_) && file >= 0)
                (void)!ftruncate(file, end_ + static_cast<std::int64_t>(tail.size()));
            failure_ = why;
        }
        pending_.clear();
    }
    /// Completes the file, and compresses it if its name ends in .gz. Call once.
    void finish() {
        flush();
        const int why = file_.close_file();
        if (failure_ == 0) failure_ = why;
        if (failure_ != 0) throw Error(written_ + ": not all nodes could be written: " + strerror(failure_));
        if (written_ != path_) compress();
    }

  private:
    static constexpr std::size_t kMaxPending = std::size_t{1} << 16;
    static constexpr std::chrono::seconds kMaxPendingBytes{1};

    static long long milliseconds() {
        return std::chrono::duration_cast<std::chrono::milliseconds>(
                   std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }

    // Always has the same length, so that the nodes that replace it overwrite all of it.
    static std::string closing() {
        char text[80];
        std::snprintf(text, sizeof text, "\n  ],\n  \"finish_ts\": %20lld\n}\n", milliseconds());
        return text;
    }

    static std::string opening() {
        const time_t now = time(nullptr);
        tm local{};
        localtime_r(&now, &local);
        char text[200], clock[40];
        strftime(clock, sizeof clock, "%Y-%m-%d %H:%M:%S", &local);
        std::snprintf(
            text, sizeof text,
            "{\n  \"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": %d, \"time\": \"%s\", \"start_ts\": %lld,\n"
            "  \"nodes\": [",
            static_cast<int>(getpid()), clock, milliseconds());
        return text;
    }

    static std::string name_of_written(const std::string& path) {
        if (!path.ends_with(".gz")) return path;
        const OutputFile probe(path);  // throws now if it cannot be created
        return path + ".tmp." + std::to_string(getpid());
    }

    static int create(const std::string& path) {
        const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (file < 0) throw Error(path + ": " + strerror(errno));
        return avoid_standard_fds(file);
    }

    bool write_at(std::string_view bytes, std::int64_t offset) noexcept {
        const int file = file_.descriptor();
        if (file < 0) {
            failure_ = file_.reopen_error();
            return false;
        }
        while (!bytes.empty()) {
            const ssize_t done = pwrite(file, bytes.data(), bytes.size(), offset);
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0) {
                failure_ = done == 0 ? EIO : errno;
                return false;
            }
            bytes.remove_prefix(static_cast<std::size_t>(done));
            offset += done;
        }
        return true;
    }
    void compress() {
        OutputFile out(path_, 0600);
        const int in = open(written_.c_str(), O_RDONLY | O_CLOEXEC);
        if (in < 0) throw Error(written_ + ": " + strerror(errno));
        std::vector<char> piece(std::size_t{1} << 18);
        ssize_t got;
        while ((got = read(in, piece.data(), piece.size())) > 0)
            out.write({piece.data(), static_cast<std::size_t>(got)});
        const int why = errno;
        close(in);
        if (got < 0) throw Error(written_ + ": " + strerror(why));
        out.commit();
        unlink(written_.c_str());
    }

    std::string path_;
    std::string written_;  ///< the file being written: the path, or a file next to it
    FileHandle file_;
    std::int64_t end_ = 0;  ///< where the nodes in the file end
    std::string pending_;
    bool has_nodes_ = false;
    int failure_ = 0;  ///< errno of the first failed write; nothing is written after it
    std::chrono::steady_clock::time_point flushed_;
};

}  // namespace marey
