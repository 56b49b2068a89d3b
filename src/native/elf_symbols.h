// elf_symbols.h: the functions in the symbol tables of an ELF file. Needs no library; has no line numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace marey {

/// A file's functions: those of its symbol table, or of the dynamic symbol table if it has no other. Supports
/// 64-bit files with this machine's byte order. Everything in the file is checked before it is used.
class ElfSymbols {
  public:
    /// Throws Error if it cannot be read or is not such a file.
    explicit ElfSymbols(const std::string& path);

    const std::string& build_id() const noexcept { return build_id_; }  ///< in hexadecimal; empty: none
    bool has_full_table() const noexcept { return has_full_table_; }
    /// The demangled name of the function around an address of the file; empty: unknown.
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
