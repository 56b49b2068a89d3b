// node_file.h: the file of an execution trace, which is valid JSON at any time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "record/file_handle.h"

namespace marey {

/// A JSON object with a growing list of nodes. The closing text always follows the nodes, and the next nodes
/// overwrite it. Used by one thread at a time. Failures are remembered and thrown by finish(). The program
/// may close the descriptor.
class NodeFile {
  public:
    /// Throws marey::Error if the file cannot be created.
    explicit NodeFile(const std::string& path);
    NodeFile(const NodeFile&) = delete;
    NodeFile& operator=(const NodeFile&) = delete;

    /// Adds a node, given as JSON. Writes to the file if the last write was a second ago or much is pending.
    void append(std::string_view node) noexcept;
    void flush() noexcept;
    /// Completes the file, and compresses it if its name ends in .gz. Call once.
    void finish();

  private:
    bool write_at(std::string_view bytes, std::int64_t offset) noexcept;
    void compress();

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
