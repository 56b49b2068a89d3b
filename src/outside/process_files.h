// process_files.h: /proc/PID of one process, and its memory, for as long as it runs the same program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace marey {

/// The facts that decide whether one process may read another.
struct AccessFacts {
    std::int64_t own_user = 0;
    std::int64_t target_user = 0;
    bool may_trace = false;  ///< this process has CAP_SYS_PTRACE
    int yama_scope = 0;      ///< kernel.yama.ptrace_scope; 0 without Yama
};
/// Why access is denied, and what would help: a part of a sentence.
std::string denial_text(const AccessFacts& facts);

/// The value of "Name:" in a file like /proc/PID/status; "" if there is none.
std::string_view status_value(std::string_view status, std::string_view name);

/// A process. It is held by its folder in /proc, so another one that gets its number is never taken for it,
/// and by its memory, which is empty as soon as it has ended or executed another program. The process is not
/// stopped, and nothing in it changes. Any thread.
class ProcessFiles {
  public:
    /// Throws Error, which says why and what would help, if there is no such process, or if its memory may
    /// not be read.
    explicit ProcessFiles(std::int64_t pid);
    ProcessFiles(const ProcessFiles&) = delete;
    ProcessFiles& operator=(const ProcessFiles&) = delete;
    ~ProcessFiles();

    std::int64_t pid() const noexcept { return pid_; }
    /// A path of a file in its folder in /proc.
    std::string path(std::string_view name) const;
    /// The contents of such a file; "" if it cannot be read.
    std::string text(std::string_view name, std::size_t most_bytes = std::size_t{64} << 10) const;

    /// Reads as many bytes as there are, up to the first page that is not mapped. Returns their number.
    std::size_t read_some(std::uintptr_t at, void* out, std::size_t bytes) const noexcept;
    bool read(std::uintptr_t at, void* out, std::size_t bytes) const noexcept {
        return read_some(at, out, bytes) == bytes;
    }
    template <class T>
    std::optional<T> read(std::uintptr_t at) const noexcept {
        T value;
        return read(at, &value, sizeof value) ? std::optional<T>(value) : std::nullopt;
    }

  private:
    void open_memory(const std::string& name);

    std::int64_t pid_;
    int folder_ = -1;
    int memory_ = -1;
};

/// Copies of pieces of a process's memory, and the memory itself for everything else.
class CopiedMemory {
  public:
    explicit CopiedMemory(const ProcessFiles& process) : process_(&process) {}

    /// Copies a piece, or the first part of it; later reads there see the copy. Returns the size of the copy.
    std::size_t copy(std::uintptr_t at, std::size_t bytes);
    /// The copied bytes from there on; null if they are not all copied.
    const std::byte* find(std::uintptr_t at, std::size_t bytes) const noexcept;

    template <class T>
    std::optional<T> read(std::uintptr_t at) const noexcept {
        T value;
        if (const std::byte* const bytes = find(at, sizeof value)) {
            std::memcpy(&value, bytes, sizeof value);
            return value;
        }
        return process_->read<T>(at);
    }

  private:
    struct Piece {
        std::uintptr_t begin;
        std::vector<std::byte> bytes;
    };
    const ProcessFiles* process_;
    std::vector<Piece> pieces_;
    mutable std::size_t last_ = 0;  ///< the piece that find() found last: the next is often the same
};

}  // namespace marey
