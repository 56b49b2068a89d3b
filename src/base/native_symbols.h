// native_symbols.h: functions, files and lines of addresses in ELF files, with what was inlined there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace marey {

/// A function at an address. Several share one where calls were inlined.
struct NativeSymbol {
    std::string function;  ///< as people read it; empty: not known
    std::string file;      ///< of the source, empty: not known
    int line = 0;          ///< 0: not known
    bool inlined = false;  ///< into the one that follows
    bool exact = false;    ///< the name is the linker's, with scopes and parameters
};

/// Whether the library was built with elfutils, which knows files, lines and what was inlined. Without it
/// there are names of functions only.
bool can_read_lines() noexcept;

/// What is at each of the offsets (addresses as the file counts them) of an ELF file, innermost first; at
/// least one entry for each, which is empty where nothing is known. `build_id` finds the separate file with
/// debug information, and where it is not empty, a file that has another is not used. Files stay open and
/// what was read is remembered: ask for many at once or in turn, as it suits. Nothing is downloaded.
///
/// Throws Error where the file cannot be read or has another build id. Any thread.
std::vector<std::vector<NativeSymbol>> symbols_at(const std::string& path, const std::string& build_id,
                                                  std::span<const std::uint64_t> offsets);

/// The file with this build id below `folder` (.build-id/ab/cdef.debug or without the ending), or nothing.
std::string file_with_build_id(const std::string& folder, const std::string& build_id);

}  // namespace marey
