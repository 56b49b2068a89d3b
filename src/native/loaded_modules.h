// loaded_modules.h: the program and the shared libraries that are mapped into this process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace marey {

/// One ELF file in memory.
struct LoadedModule {
    std::uintptr_t begin;         ///< of its segments, as mapped
    std::uintptr_t end;           ///< one past the last
    std::uintptr_t bias;          ///< address in memory minus address in the file
    std::uintptr_t frame_header;  ///< of .eh_frame_hdr in memory, 0: none
    std::string path;             ///< "[vdso]": the kernel's; empty: not known
    std::string build_id;         ///< in hexadecimal, empty: none
};

/// All of them in order of address, immutable.
struct LoadedModules {
    std::vector<LoadedModule> modules;
    unsigned long long loaded;  ///< the loader's counts of loaded and unloaded modules when the list was made
    unsigned long long unloaded;

    /// The one that holds `address`, or null.
    const LoadedModule* find(std::uintptr_t address) const noexcept;
};

/// The current list: rebuilt only when the loader has loaded or unloaded something. Takes the loader's lock;
/// any thread. The build ids are read from memory, no file is opened.
std::shared_ptr<const LoadedModules> loaded_modules();

/// A module, for the unwinder.
struct FrameTable {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::uintptr_t header;   ///< of .eh_frame_hdr in memory, 0: none
    std::uint64_t identity;  ///< differs from that of other modules that were at the same addresses
};

/// That of the module at `address`. Lock-free and async-signal-safe: asks the loader. Before glibc 2.35 that
/// is not possible; then the list that loaded_modules() made last is used, and with `may_lock` renewed.
std::optional<FrameTable> frame_table_at(std::uintptr_t address, bool may_lock) noexcept;
/// For tests: from that list only.
std::optional<FrameTable> listed_frame_table_at(std::uintptr_t address) noexcept;

}  // namespace marey
