// mapped_file.h: an entire file as read-only bytes, mapped where possible.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace marey {

/// The bytes of a file, for as long as the object lives. Regular files are mapped; others (pipes) and files
/// that cannot be mapped are copied. Immutable, may be shared between threads. Known limitation: a file must
/// not be truncated by others while it is mapped.
class MappedFile {
  public:
    /// Throws marey::Error naming the path and the system's reason.
    static std::shared_ptr<const MappedFile> open(const std::string& path);
    ~MappedFile();

    std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

  private:
    MappedFile() = default;

    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    void* mapping_ = nullptr;  // null: copied_ holds the bytes
    std::unique_ptr<std::byte[]> copied_;
};

}  // namespace marey
