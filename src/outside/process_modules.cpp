// process_modules.cpp: reads /proc/PID/maps and the files in it.
#include "outside/process_modules.h"

#include <sys/stat.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <sstream>

#include <marey/error.h>

namespace marey {
namespace {

constexpr std::size_t kMostMapBytes = std::size_t{64} << 20;
constexpr std::uintptr_t kPage = 4096;

/// Whether a path leads to the file that is mapped, which may have been replaced since.
bool is_mapped_file(const std::string& path, std::uint64_t inode) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode;
}

/// Address in memory minus address in the file.
std::optional<std::uintptr_t> bias_of(const ProcessModule& module) {
    for (const Elf64_Phdr& segment : module.file->segments()) {
        if (segment.p_type != PT_LOAD) continue;
        for (const auto& [begin, offset] : module.parts) {
            if (offset == (segment.p_offset & ~(kPage - 1))) return begin - (segment.p_vaddr & ~(kPage - 1));
        }
    }
    return std::nullopt;
}

}  // namespace

ProcessModules::ProcessModules(const ProcessFiles& process) : process_(process) {
    std::istringstream maps(process.text("maps", kMostMapBytes));
    for (std::string line; std::getline(maps, line);) {  // "BEGIN-END ACCESS OFFSET DEVICE INODE   PATH"
        std::uintptr_t begin = 0, end = 0;
        std::uint64_t offset = 0, inode = 0;
        int path_at = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNx64 " %*s %" SCNu64 " %n", &begin,
                        &end, &offset, &inode, &path_at) != 4 ||
            begin >= end)
            continue;
        mappings_.emplace_back(begin, end);
        if (inode == 0 || path_at == 0) continue;
        std::string name = line.substr(static_cast<std::size_t>(path_at));
        if (modules_.empty() || modules_.back().inode != inode || modules_.back().name != name)
            modules_.push_back({.begin = begin, .first_end = end, .inode = inode, .name = std::move(name)});
        modules_.back().end = end;
        modules_.back().parts.emplace_back(begin, offset);
    }
}

bool ProcessModules::open(ProcessModule& module) const {
    if (module.is_opened) return module.file != nullptr;
    module.is_opened = true;
    // A container has other files than this process, a folder that is a program's root has the same, and
    // those that were replaced since are found by their place in memory, by those who may.
    constexpr std::string_view kDeleted = " (deleted)";
    std::string name = module.name;
    if (name.ends_with(kDeleted)) name.resize(name.size() - kDeleted.size());
    char place[64];
    std::snprintf(place, sizeof place, "map_files/%" PRIxPTR "-%" PRIxPTR, module.begin, module.first_end);
    for (const std::string& path : {process_.path("root") + name, name, process_.path(place)}) {
        if (!is_mapped_file(path, module.inode)) continue;
        try {
            module.file = std::make_shared<const ElfFile>(path);
        } catch (const Error&) {  // data, such as an archive of locales
            return false;
        }
        const std::optional<std::uintptr_t> bias = bias_of(module);
        if (!bias) module.file.reset();
        module.bias = bias.value_or(0);
        module.file_path = path;
        return bias.has_value();
    }
    return false;
}

const ProcessModule* ProcessModules::find(std::uintptr_t address) {
    const auto after = std::ranges::upper_bound(modules_, address, {}, &ProcessModule::begin);
    if (after == modules_.begin()) return nullptr;
    ProcessModule& module = *std::prev(after);
    return address < module.end && open(module) ? &module : nullptr;
}

FrameRule ProcessModules::rule_at(std::uintptr_t pc) {
    const auto [known, is_new] = rules_.try_emplace(pc);
    const ProcessModule* const module = is_new ? find(pc) : nullptr;
    if (module == nullptr) return known->second;
    for (const Elf64_Phdr& segment : module->file->segments()) {
        if (segment.p_type != PT_GNU_EH_FRAME || !module->file->holds(segment.p_offset, segment.p_filesz))
            continue;
        // The tables count from their own places, so the address is moved to where it would be beside them.
        const auto begin = reinterpret_cast<std::uintptr_t>(module->file->bytes().data());
        const std::uintptr_t header = begin + segment.p_offset;
        known->second = read_frame_rule(header, header + (pc - module->bias - segment.p_vaddr),
                                        {begin, begin + module->file->bytes().size()});
    }
    return known->second;
}

std::string ProcessModules::function_at(std::uintptr_t pc) {
    const ProcessModule* const module = find(pc);
    if (module == nullptr) return {};
    try {
        std::unique_ptr<ElfSymbols>& symbols = symbols_[module->file_path];
        if (!symbols) symbols = std::make_unique<ElfSymbols>(module->file_path);
        return symbols->function_at(pc - module->bias);
    } catch (const Error&) {  // the file has gone meanwhile
        return {};
    }
}

std::uintptr_t ProcessModules::mapping_end(std::uintptr_t address) const noexcept {
    const auto after =
        std::ranges::upper_bound(mappings_, address, {}, [](const auto& each) { return each.first; });
    if (after == mappings_.begin()) return address;
    return std::max(std::prev(after)->second, address);
}

}  // namespace marey
