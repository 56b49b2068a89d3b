// native_symbols.h: functions, files and lines of addresses in ELF files, including inlined calls.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace marey {

/// A function at an address. Several share one where calls were inlined.
struct NativeSymbol {
    std::string function;  ///< demangled; empty: unknown
    std::string file;      ///< of the source, empty: unknown
    int line = 0;          ///< 0: unknown
    bool inlined = false;  ///< into the one that follows
    bool exact = false;    ///< the name is the linker's, with scopes and parameters
};

/// Whether the library was built with elfutils, which provides files, lines and inlined calls. Without it
/// there are only names of functions.
bool can_read_lines() noexcept;

/// The functions at each of the offsets (addresses in the file) of an ELF file, innermost first; at least one
/// entry for each, which is empty where nothing is known. `build_id` finds the separate file with debug
/// information; if it is not empty, a file with another build id is not used. Files stay open and results are
/// cached, so requests may be made at once or one by one. Nothing is downloaded.
///
/// Throws Error if the file cannot be read or has another build id. Any thread.
std::vector<std::vector<NativeSymbol>> symbols_at(const std::string& path, const std::string& build_id,
                                                  std::span<const std::uint64_t> offsets);

/// The file with this build id below `folder` (.build-id/ab/cdef.debug or without the extension), or nothing.
std::string file_with_build_id(const std::string& folder, const std::string& build_id);

}  // namespace marey
