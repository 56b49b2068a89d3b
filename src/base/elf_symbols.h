// elf_symbols.h: the functions that an ELF file's symbol tables name. Needs no library, and knows no lines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace marey {

/// A file's functions: those of its symbol table, or of the table for the loader where it has no other. Files
/// of 64 bits and this machine's byte order. Nothing in the file is believed before it is checked.
class ElfSymbols {
  public:
    /// Throws Error where it cannot be read or is no such file.
    explicit ElfSymbols(const std::string& path);

    const std::string& build_id() const noexcept { return build_id_; }  ///< in hexadecimal; empty: none
    bool has_full_table() const noexcept { return has_full_table_; }
    /// The function around an address as the file counts it, as people read it; empty: not known.
    std::string function_at(std::uint64_t address) const;

  private:
    struct Function {
        std::uint64_t begin;
        std::uint64_t size;  ///< 0: to the next
        const char* name;
        int rank;  ///< the higher, the better a name for this address
    };
    void read(const std::string& path);
    void read_functions(std::uint64_t table, std::uint64_t bytes, std::uint64_t texts,
                        std::uint64_t text_bytes);
    void read_notes(std::uint64_t at, std::uint64_t bytes);
    bool holds(std::uint64_t at, std::uint64_t bytes) const noexcept;

    std::shared_ptr<const MappedFile> file_;
    std::string build_id_;
    bool has_full_table_ = false;
    std::vector<Function> functions_;  ///< in order of address
};

}  // namespace marey
