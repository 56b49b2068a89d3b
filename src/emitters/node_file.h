// node_file.h: the file of an execution trace, which is whole JSON whenever somebody looks.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "record/file_handle.h"

namespace marey {

/// A JSON object with a list of nodes that grows. Behind the nodes always stands what closes it; the next
/// nodes are written over that. Used by one thread at a time. Failures are remembered, and thrown by
/// finish(). The program may close the descriptor.
class NodeFile {
  public:
    /// Throws marey::Error when the file cannot be made.
    explicit NodeFile(const std::string& path);
    NodeFile(const NodeFile&) = delete;
    NodeFile& operator=(const NodeFile&) = delete;

    /// Takes a node as JSON. Written at once when the last time was a second ago or much has come together.
    void append(std::string_view node) noexcept;
    void flush() noexcept;
    /// Completes the file, and compresses it if its name asks for that. Once.
    void finish();

  private:
    bool write_at(std::string_view bytes, std::int64_t offset) noexcept;
    void compress();

    std::string path_;
    std::string written_;  ///< what is written: the path, or a file beside it
    FileHandle file_;
    std::int64_t end_ = 0;  ///< of the nodes in the file
    std::string pending_;
    bool has_nodes_ = false;
    int failure_ = 0;  ///< errno of the first write that failed; nothing is written any more
    std::chrono::steady_clock::time_point flushed_;
};

}  // namespace marey
