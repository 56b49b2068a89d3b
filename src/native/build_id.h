// build_id.h: the build id among the notes of an ELF file.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "base/hexadecimal.h"

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

}  // namespace marey
