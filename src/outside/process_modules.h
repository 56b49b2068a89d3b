// process_modules.h: the program and the libraries that another process has mapped, and its stacks' bounds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "native/elf_symbols.h"
#include "native/frame_rule.h"
#include "outside/process_files.h"

namespace marey {

/// A file in the memory of a process.
struct ProcessModule {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uintptr_t first_end = 0;  ///< of its first part
    std::uint64_t inode = 0;
    std::string name;                                               ///< its path, as the process sees it
    std::vector<std::pair<std::uintptr_t, std::uint64_t>> parts{};  ///< begin, and place in the file
    // Read when they are asked for.
    bool is_opened = false;
    std::shared_ptr<const ElfFile> file{};  ///< null: it cannot be read
    std::string file_path{};                ///< by which it can be opened
    std::uintptr_t bias = 0;                ///< address in memory minus address in the file
};

/// Not thread-safe.
class ProcessModules {
  public:
    explicit ProcessModules(const ProcessFiles& process);

    /// All of them in order of address.
    std::vector<ProcessModule>& all() noexcept { return modules_; }
    /// The one at an address, opened; null: there is none, or it cannot be read.
    const ProcessModule* find(std::uintptr_t address);
    /// Opens it. False: it cannot be read.
    bool open(ProcessModule& module) const;
    /// The rule by which a frame's caller is found.
    FrameRule rule_at(std::uintptr_t pc);
    /// The demangled name of the function at an address; "" if it is not known.
    std::string function_at(std::uintptr_t pc);
    /// The end of the mapping that holds an address; the address itself: there is none.
    std::uintptr_t mapping_end(std::uintptr_t address) const noexcept;

  private:
    const ProcessFiles& process_;
    std::vector<ProcessModule> modules_;
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> mappings_;
    std::unordered_map<std::uintptr_t, FrameRule> rules_;
    std::map<std::string, std::unique_ptr<ElfSymbols>> symbols_;
};

}  // namespace marey
