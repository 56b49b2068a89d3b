// loaded_modules.cpp: the program and the shared libraries that are mapped into this process.
#include "native/loaded_modules.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include <marey/detail/thread_safety.h>

#include "native/elf_symbols.h"

namespace marey {
namespace {

struct Counts {
    unsigned long long loaded = 0;
    unsigned long long unloaded = 0;
};

int read_counts(dl_phdr_info* info, std::size_t /*size*/, void* out) {
    *static_cast<Counts*>(out) = {info->dlpi_adds, info->dlpi_subs};
    return 1;  // the first entry is enough
}

std::string path_of_program() {
    std::array<char, PATH_MAX> path{};
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
    return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

int add_module(dl_phdr_info* info, std::size_t /*size*/, void* out) {
    auto& list = *static_cast<LoadedModules*>(out);
    list.loaded = info->dlpi_adds;
    list.unloaded = info->dlpi_subs;
    LoadedModule module{UINTPTR_MAX, 0, info->dlpi_addr, 0, {}, {}};
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = info->dlpi_phdr[i];
        const std::uintptr_t address = info->dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD) {
            module.begin = std::min(module.begin, address);
            module.end = std::max(module.end, address + segment.p_memsz);
        } else if (segment.p_type == PT_GNU_EH_FRAME) {
            module.frame_header = address;
        } else if (segment.p_type == PT_NOTE && module.build_id.empty()) {
            // NOLINTNEXTLINE(performance-no-int-to-ptr)
            module.build_id = build_id_in({reinterpret_cast<const std::byte*>(address), segment.p_memsz});
        }
    }
    if (module.begin >= module.end) return 0;
    if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/')
        module.path = info->dlpi_name;
    else if (list.modules.empty())  // the loader lists the program first, without a name
        module.path = path_of_program();
    list.modules.push_back(std::move(module));
    return 0;
}

struct Current {
    Mutex mutex;  ///< only tried, never waited for: another thread may have held it at a fork
    std::shared_ptr<const LoadedModules> list MAREY_GUARDED_BY(mutex);
};

Current& current() {
    static auto& only = *new Current;  // never destroyed: threads may outlive main
    return only;
}

}  // namespace

const LoadedModule* LoadedModules::find(std::uintptr_t address) const noexcept {
    const auto after =
        std::upper_bound(modules.begin(), modules.end(), address,
                         [](std::uintptr_t at, const LoadedModule& module) { return at < module.begin; });
    if (after == modules.begin()) return nullptr;
    const LoadedModule& module = *(after - 1);
    return address < module.end ? &module : nullptr;
}

std::shared_ptr<const LoadedModules> loaded_modules() {
    Counts now;
    dl_iterate_phdr(read_counts, &now);
    Current& kept = current();
    if (kept.mutex.try_lock()) {
        const ScopedLock lock(kept.mutex, std::adopt_lock);
        if (kept.list && kept.list->loaded == now.loaded && kept.list->unloaded == now.unloaded)
            return kept.list;
    }
    auto list = std::make_shared<LoadedModules>();
    dl_iterate_phdr(add_module, list.get());
    std::sort(list->modules.begin(), list->modules.end(),
              [](const LoadedModule& a, const LoadedModule& b) { return a.begin < b.begin; });
    if (kept.mutex.try_lock()) {
        const ScopedLock lock(kept.mutex, std::adopt_lock);
        kept.list = list;
    }
    return list;
}

}  // namespace marey
