// output_file.h: a buffered output file that appears complete or not at all, plain or gzip.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "base/output_buffer.h"

namespace marey {

/// The file that an output to `path` replaces or creates, with its links followed; empty if the output is
/// written in place: to a pipe or a device, or to what is already open (/dev/stdout, /dev/fd/3). Throws
/// marey::Error if it cannot be written, or if a link on the way belongs to another user (not to root), who
/// could lead the output anywhere.
std::string resolve_output(const std::string& path);

/// Writes beside the target and renames on commit(), so that an incomplete file is never visible; without a
/// commit the target is unchanged. A path that ends in ".gz" is compressed. See resolve_output() for what is
/// written in place. Every failure is a marey::Error that names the target.
class OutputFile : public OutputBuffer {
  public:
    /// Stays in the second-level cache between being filled and being copied by the kernel: a third faster
    /// than 1 MiB.
    static constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

    /// A new file gets `permissions`, less the umask; an existing one keeps its own.
    explicit OutputFile(std::string path, unsigned permissions = 0666);
    /// Writes to a stream instead, which must outlive this and receives the bytes as they come.
    explicit OutputFile(std::ostream& stream);
    ~OutputFile() override;

    /// Pieces larger than the buffer bypass it.
    void write(std::string_view bytes) override;

    /// Flushes, closes and renames into place. Call once; nothing may be written afterwards.
    void commit();

  private:
    class Compressor;
    static constexpr std::size_t kPieceBytes = std::size_t{1} << 16;

    void open_beside();
    void link_name();
    void make_room(std::size_t bytes) override;
    void append(std::string_view bytes);
    void flush(bool all);
    void write_out(const char* bytes, std::size_t size);
    void write_to_disk(const char* bytes, std::size_t size);
    [[noreturn]] void fail(const char* what, int error) const;
    void abandon() noexcept;

    std::string path_;       ///< as given, for messages
    std::string target_;     ///< resolve_output()
    std::string temporary_;  ///< the file beside the target; empty while it has no name
    bool nameless_ = false;  ///< the file beside the target gets its name in commit()
    int file_ = -1;
    std::ostream* stream_ = nullptr;  ///< null: a file
    std::unique_ptr<Compressor> compressor_;
};

}  // namespace marey
