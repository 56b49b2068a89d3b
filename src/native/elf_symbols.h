// elf_symbols.h: the functions in the symbol tables of an ELF file. Needs no library; has no line numbers.
#pragma once

#include <algorithm>

#include "base/hexadecimal.h"
#include "native/elf_file.h"
#include "native/function_name.h"

namespace marey {

/// The build id in a section or segment of notes, in hexadecimal; empty: none. Checks every length.
inline std::string build_id_in(std::span<const std::byte> notes) {
    constexpr auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        std::memcpy(&note, notes.data(), sizeof note);
        const std::size_t whole = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
        if (whole > notes.size()) return {};
        const std::span<const std::byte> name = notes.subspan(sizeof note);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name.data(), "GNU", 4) == 0)
            return hexadecimal(name.subspan(4, note.n_descsz));
        notes = notes.subspan(whole);
    }
    return {};
}

/// A file's functions: those of its symbol table, or of the dynamic symbol table if it has no other.
class ElfSymbols {
  public:
    /// Throws Error as ElfFile does.
    explicit ElfSymbols(const std::string& path) : file_(path) {
        read();
        std::stable_sort(functions_.begin(), functions_.end(), [](const Function& a, const Function& b) {
            return a.begin != b.begin ? a.begin < b.begin : a.rank > b.rank;
        });
        const auto is_same = [](const Function& a, const Function& b) { return a.begin == b.begin; };
        functions_.erase(std::unique(functions_.begin(), functions_.end(), is_same), functions_.end());
    }

    const std::string& build_id() const noexcept { return build_id_; }  ///< in hexadecimal; empty: none
    bool has_full_table() const noexcept { return has_full_table_; }
    /// The demangled name of the function around an address of the file; empty: unknown.
    std::string function_at(std::uint64_t address) const {
        const auto after =
            std::upper_bound(functions_.begin(), functions_.end(), address,
                             [](std::uint64_t at, const Function& function) { return at < function.begin; });
        if (after == functions_.begin()) return {};
        const Function& function = *std::prev(after);
        const bool is_last = after == functions_.end();
        const std::uint64_t size = function.size == 0 && is_last ? kLastFunction : function.size;
        if (size != 0 && address - function.begin >= size) return {};
        return demangle(function.name).value_or(function.name);
    }

  private:
    static constexpr std::uint64_t kLastFunction = 4096;  // the extent of the last function if it has no size

    struct Function {
        std::uint64_t begin;
        std::uint64_t size;  ///< 0: to the next
        const char* name;
        int rank;  ///< the higher, the better a name for this address
    };
    void read() {
        const std::span<const Elf64_Shdr> sections = file_.sections();
        for (const std::uint32_t wanted : {SHT_SYMTAB, SHT_DYNSYM}) {
            if (!functions_.empty()) break;
            for (const Elf64_Shdr& table : sections) {
                if (table.sh_type != wanted || table.sh_link >= sections.size()) continue;
                const Elf64_Shdr& texts = sections[table.sh_link];
                if (texts.sh_type == SHT_NOBITS) continue;
                read_functions(table.sh_offset, table.sh_size, texts.sh_offset, texts.sh_size);
            }
            has_full_table_ = wanted == SHT_SYMTAB && !functions_.empty();
        }
        for (const Elf64_Shdr& notes : sections) {
            if (build_id_.empty() && notes.sh_type == SHT_NOTE && file_.holds(notes.sh_offset, notes.sh_size))
                build_id_ = build_id_in(file_.bytes().subspan(notes.sh_offset, notes.sh_size));
        }
    }
    void read_functions(std::uint64_t table, std::uint64_t bytes, std::uint64_t texts,
                        std::uint64_t text_bytes) {
        if (!file_.holds(table, bytes) || !file_.holds(texts, text_bytes) || text_bytes == 0) return;
        const char* const names = reinterpret_cast<const char*>(file_.bytes().data() + texts);
        if (names[text_bytes - 1] != '\0') return;  // every name must end within the table
        functions_.reserve(functions_.size() + bytes / sizeof(Elf64_Sym));
        for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= bytes; at += sizeof(Elf64_Sym)) {
            const auto symbol = file_.read_at<Elf64_Sym>(table + at);
            const unsigned type = ELF64_ST_TYPE(symbol.st_info);
            if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC)) continue;
            if (symbol.st_name >= text_bytes || names[symbol.st_name] == '\0') continue;
            const unsigned binding = ELF64_ST_BIND(symbol.st_info);
            const int rank = binding == STB_GLOBAL ? 2 : binding == STB_WEAK ? 1 : 0;
            functions_.push_back({symbol.st_value, symbol.st_size, names + symbol.st_name, rank});
        }
    }

    ElfFile file_;
    std::string build_id_;
    bool has_full_table_ = false;
    std::vector<Function> functions_;  ///< in order of address
};

}  // namespace marey
