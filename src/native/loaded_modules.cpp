// loaded_modules.cpp: the program and the shared libraries that are mapped into this process.
#include "native/loaded_modules.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstring>

#include <marey/detail/thread_safety.h>

#include "native/elf_symbols.h"

#ifdef DLFO_STRUCT_HAS_EH_DBASE
#pragma weak _dl_find_object  // glibc 2.35
#endif

namespace marey {
namespace {

/// The modules' frame tables for readers that may not lock. `version` is odd while the list changes.
struct FrameTableList {
    struct Entry {
        std::atomic<std::uintptr_t> begin, end, header;
    };
    std::array<Entry, 2048> entries;
    std::atomic<std::size_t> count;
    std::atomic<std::uint32_t> version;

    void publish(const std::vector<LoadedModule>& modules) noexcept;
};
constinit FrameTableList listed{};

void FrameTableList::publish(const std::vector<LoadedModule>& modules) noexcept {
    version.fetch_add(1, std::memory_order_seq_cst);
    const std::size_t size = std::min(modules.size(), entries.size());
    for (std::size_t i = 0; i < size; ++i) {
        entries[i].begin.store(modules[i].begin, std::memory_order_relaxed);
        entries[i].end.store(modules[i].end, std::memory_order_relaxed);
        entries[i].header.store(modules[i].frame_header, std::memory_order_relaxed);
    }
    count.store(size, std::memory_order_relaxed);
    version.fetch_add(1, std::memory_order_seq_cst);
}

/// By the first bytes of the file, which contain its build id.
std::uint64_t identity_of(const FrameTable& table) noexcept {
    constexpr std::uint64_t kPrime = 0x100000001b3;
    std::uint64_t identity = (table.end ^ kPrime) * kPrime ^ table.header;
    std::array<std::uint64_t, 128> first;
    std::memcpy(first.data(),
                reinterpret_cast<const void*>(table.begin),  // NOLINT(performance-no-int-to-ptr)
                sizeof first);
    for (const std::uint64_t word : first) identity = (identity ^ word) * kPrime;
    return identity;
}

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

constexpr const char* kKernelModule = "[vdso]";

/// The kernel's module, which _dl_find_object() does not know, if it holds `address`.
std::optional<FrameTable> kernel_table_at(std::uintptr_t address) noexcept {
    const std::uintptr_t begin = getauxval(AT_SYSINFO_EHDR);
    if (begin == 0 || address < begin) return {};
    const auto* const header =
        reinterpret_cast<const ElfW(Ehdr)*>(begin);  // NOLINT(performance-no-int-to-ptr)
    const auto* const segments =
        reinterpret_cast<const ElfW(Phdr)*>(begin + header->e_phoff);  // NOLINT(performance-no-int-to-ptr)
    FrameTable table{begin, begin, 0, 0};
    for (int i = 0; i < header->e_phnum; ++i) {
        if (segments[i].p_type == PT_LOAD)  // one, at 0
            table.end = begin + segments[i].p_vaddr + segments[i].p_memsz;
        else if (segments[i].p_type == PT_GNU_EH_FRAME)
            table.header = begin + segments[i].p_vaddr;
    }
    if (address >= table.end) return {};
    table.identity = identity_of(table);
    return table;
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
    else if (module.begin == getauxval(AT_SYSINFO_EHDR))
        module.path = kKernelModule;
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
        listed.publish(list->modules);
    }
    return list;
}

std::optional<FrameTable> listed_frame_table_at(std::uintptr_t address) noexcept {
    const std::uint32_t version = listed.version.load(std::memory_order_acquire);
    std::optional<FrameTable> found;
    for (std::size_t i = 0; i < listed.count.load(std::memory_order_relaxed) && !found; ++i) {
        const FrameTable table{listed.entries[i].begin.load(std::memory_order_relaxed),
                               listed.entries[i].end.load(std::memory_order_relaxed),
                               listed.entries[i].header.load(std::memory_order_relaxed), 0};
        if (address >= table.begin && address < table.end) found = table;
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (version % 2 != 0 || listed.version.load(std::memory_order_relaxed) != version) return {};
    if (found) found->identity = identity_of(*found);
    return found;
}

std::optional<FrameTable> frame_table_at(std::uintptr_t address, bool may_lock) noexcept {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    if (_dl_find_object != nullptr) {
        dl_find_object found{};
        void* const place = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
        if (_dl_find_object(place, &found) != 0) return kernel_table_at(address);
        FrameTable table{reinterpret_cast<std::uintptr_t>(found.dlfo_map_start),
                         reinterpret_cast<std::uintptr_t>(found.dlfo_map_end),
                         reinterpret_cast<std::uintptr_t>(found.dlfo_eh_frame), 0};
        table.identity = identity_of(table);
        return table;
    }
#endif
    const std::optional<FrameTable> table = listed_frame_table_at(address);
    if (table || !may_lock) return table;
    try {
        loaded_modules();
    } catch (...) {  // no memory for the list
    }
    return listed_frame_table_at(address);
}

}  // namespace marey
