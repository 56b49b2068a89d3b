// elf_file.h: the headers of an ELF file. Everything in the file is checked before it is used.
#pragma once

#include <elf.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/error.h>

#include "base/mapped_file.h"

namespace marey {

/// Supports 64-bit files with this machine's byte order.
class ElfFile {
  public:
    /// Throws Error if it cannot be read or is not such a file.
    explicit ElfFile(const std::string& path) : file_(MappedFile::open(path)) {
        constexpr int kByteOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
        if (!holds(0, sizeof(Elf64_Ehdr)) || std::memcmp(bytes().data(), ELFMAG, SELFMAG) != 0)
            throw Error(path + ": not an ELF file");
        const auto header = read_at<Elf64_Ehdr>(0);
        if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kByteOrder)
            throw Error(path + ": an ELF file for a different kind of machine");
        if (header.e_shentsize == sizeof(Elf64_Shdr))
            sections_ = entries<Elf64_Shdr>(header.e_shoff, header.e_shnum);
        if (header.e_phentsize == sizeof(Elf64_Phdr))
            segments_ = entries<Elf64_Phdr>(header.e_phoff, header.e_phnum);
        if (header.e_shstrndx < sections_.size()) section_names_ = sections_[header.e_shstrndx];
    }

    std::span<const std::byte> bytes() const noexcept { return file_->bytes(); }
    std::span<const Elf64_Shdr> sections() const noexcept { return sections_; }
    std::span<const Elf64_Phdr> segments() const noexcept { return segments_; }

    bool holds(std::uint64_t at, std::uint64_t size) const noexcept {
        const std::uint64_t all = bytes().size();
        return at <= all && size <= all - at;
    }
    /// Reads where holds() allows it.
    template <class T>
    T read_at(std::uint64_t at) const {
        T value;
        std::memcpy(&value, bytes().data() + at, sizeof value);
        return value;
    }
    /// The text at a place in a table of texts; nothing if it does not end there.
    std::string_view text(const Elf64_Shdr& table, std::uint64_t at) const noexcept {
        if (table.sh_type == SHT_NOBITS || !holds(table.sh_offset, table.sh_size) || at >= table.sh_size)
            return {};
        const auto* const begin = reinterpret_cast<const char*>(bytes().data() + table.sh_offset + at);
        const std::size_t room = table.sh_size - at;
        const std::size_t length = strnlen(begin, room);
        return length < room ? std::string_view(begin, length) : std::string_view();
    }
    std::string_view name(const Elf64_Shdr& section) const noexcept {
        return text(section_names_, section.sh_name);
    }
    /// The address of a symbol that is defined in the file.
    std::optional<std::uint64_t> symbol(std::string_view wanted) const {
        for (const Elf64_Shdr& table : sections_) {
            if ((table.sh_type != SHT_DYNSYM && table.sh_type != SHT_SYMTAB) ||
                table.sh_link >= sections_.size() || !holds(table.sh_offset, table.sh_size))
                continue;
            const Elf64_Shdr& texts = sections_[table.sh_link];
            if (texts.sh_type == SHT_NOBITS || !holds(texts.sh_offset, texts.sh_size)) continue;
            const auto* const names = reinterpret_cast<const char*>(bytes().data() + texts.sh_offset);
            for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
                const auto symbol = read_at<Elf64_Sym>(table.sh_offset + at);
                if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < texts.sh_size &&
                    wanted.size() < texts.sh_size - symbol.st_name &&
                    wanted == std::string_view(names + symbol.st_name, wanted.size()) &&
                    names[symbol.st_name + wanted.size()] == 0)
                    return symbol.st_value;
            }
        }
        return std::nullopt;
    }

  private:
    template <class T>
    std::vector<T> entries(std::uint64_t at, std::uint64_t count) const {
        std::vector<T> found;
        if (!holds(at, count * sizeof(T))) return found;
        found.resize(count);
        if (count != 0) std::memcpy(found.data(), bytes().data() + at, count * sizeof(T));
        return found;
    }

    std::shared_ptr<const MappedFile> file_;
    std::vector<Elf64_Shdr> sections_;
    std::vector<Elf64_Phdr> segments_;
    Elf64_Shdr section_names_{};
};

}  // namespace marey
