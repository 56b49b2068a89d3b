// cuda_libraries.cpp: finds the libraries and their symbols.
#include "sources/cuda/cuda_libraries.h"

#include <dirent.h>
#include <dlfcn.h>

#include <cstring>
#include <utility>
#include <vector>

#include <marey/detail/thread_safety.h>
#include <marey/nvtx.h>

#include "base/environment.h"

namespace marey::cuda {
namespace {

constexpr const char* kCuptiNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

std::string path_of(const void* function) {
    Dl_info info{};
    return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

/// The folders of NVIDIA's pip packages (nvidia/cu13/lib, nvidia/cuda_cupti/lib), if Marey is installed next
/// to them.
void add_package_folders(std::vector<std::string>& libraries) {
    std::string folder = path_of(reinterpret_cast<const void*>(&find_cupti));
    folder.resize(folder.rfind('/') + 1);
    folder += "../nvidia/";
    DIR* const packages = opendir(folder.c_str());
    if (packages == nullptr) return;
    while (const dirent* const entry = readdir(packages)) {
        if (entry->d_name[0] != '.') libraries.push_back(folder + entry->d_name + "/lib/");
    }
    closedir(packages);
}

/// The folders to search, in this order: Python packages, the loader's search path (no folder), CUDA's
/// installation.
std::vector<std::string> cupti_folders() {
    std::vector<std::string> libraries;
    add_package_folders(libraries);
    libraries.emplace_back();
    std::vector<std::string> folders;
    for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"}) {
        if (std::string home = environment_text(variable); !home.empty()) folders.push_back(std::move(home));
    }
    folders.emplace_back("/usr/local/cuda");
    for (const std::string& folder : folders) {
        for (const char* const below : {"/extras/CUPTI/lib64/", "/lib64/", "/lib/"})
            libraries.push_back(folder + below);
    }
    return libraries;
}

/// A CUPTI that the program has already loaded (PyTorch contains one) comes first: two would conflict.
void* open_cupti() {
    if (const std::string chosen = environment_text("MAREY_CUPTI"); !chosen.empty())
        return dlopen(chosen.c_str(), RTLD_NOW | RTLD_LOCAL);
    for (const char* const name : kCuptiNames) {
        if (void* const library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
    }
    for (const std::string& folder : cupti_folders()) {
        for (const char* const name : kCuptiNames) {
            if (void* const library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
        }
    }
    return nullptr;
}

/// Reads the driver's device files: without initialising CUDA, there is no other way to find out.
bool has_gpu() {
    DIR* const folder = opendir("/dev");
    if (folder == nullptr) return false;
    bool found = false;
    while (const dirent* const entry = readdir(folder)) {
        const char* const name = entry->d_name;
        if (std::strncmp(name, "nvidia", 6) == 0 && name[6] >= '0' && name[6] <= '9') found = true;
        if (std::strncmp(name, "nvhost-gpu", 10) == 0) found = true;  // Jetson
    }
    closedir(folder);
    return found;
}

void load_cupti(Libraries& loaded) {
    void* const library = open_cupti();
    if (library == nullptr) {
        const char* const why = dlerror();
        loaded.cupti_trouble = "cannot record GPU work: CUPTI not found (" +
                               std::string(why != nullptr ? why : "unknown reason") +
                               "). Install it (pip install nvidia-cuda-cupti, or the CUDA toolkit), or set "
                               "MAREY_CUPTI to its path.";
        return;
    }
    loaded.cupti = {Symbols(library)};
    if (const char* const missing = loaded.cupti.symbols.missing()) {
        loaded.cupti_trouble =
            std::string("CUPTI is too old: it lacks ") + missing + ". CUDA 12 or later is required.";
        return;
    }
    loaded.cupti_trouble.clear();
    loaded.cupti_path = path_of(reinterpret_cast<const void*>(loaded.cupti.version));
    loaded.cupti.version(&loaded.cupti_version);
    loaded.has_cupti = true;
}

Libraries load() {
    Libraries loaded;
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr) {
        loaded.trouble =
            "NVIDIA's driver is not installed: libcuda.so.1 not found. Install it, or run this on a "
            "machine with an NVIDIA GPU (in a container: with the NVIDIA container toolkit, --gpus all).";
        return loaded;
    }
    loaded.driver = {Symbols(driver)};
    if (const char* const missing = loaded.driver.symbols.missing()) {
        loaded.trouble = std::string("NVIDIA's driver is too old: it lacks ") + missing +
                         ". A driver for CUDA 12 or later is required.";
        return loaded;
    }
    loaded.has_driver = true;
    if (!has_gpu()) {
        loaded.trouble =
            "NVIDIA's driver is installed, but there is no GPU: no device file such as /dev/nvidia0. In a "
            "container, use --gpus all.";
        return loaded;
    }
    return loaded;
}

Mutex cupti_mutex;  ///< separate, because CUPTI may be found long after the driver

Libraries& loaded_libraries() {
    static auto& loaded = *new Libraries(load());
    return loaded;
}

}  // namespace

Symbols::Symbol Symbols::operator[](const char* name) {
    const Symbol found = optional(name);
    if (found.address == nullptr && missing_ == nullptr) missing_ = name;
    return found;
}

Symbols::Symbol Symbols::optional(const char* name) const {
    return {library_ != nullptr ? dlsym(library_, name) : nullptr};
}

const Libraries& libraries() {
    return loaded_libraries();
}

void replace_libraries(const Libraries& others) {
    loaded_libraries() = others;
}

bool find_cupti() {
    const ScopedLock lock(cupti_mutex);
    Libraries& loaded = loaded_libraries();
    if (!loaded.has_cupti && loaded.trouble.empty()) load_cupti(loaded);
    return loaded.has_cupti;
}

std::uint32_t cupti_version() {
    const ScopedLock lock(cupti_mutex);
    return libraries().cupti_version;
}

bool will_begin() {
    int count = 0;
    return nvtx::is_library(environment_text("CUDA_INJECTION64_PATH")) && libraries().has_driver &&
           libraries().driver.device_count(&count) == kCudaNotInitialized;
}

int runtime_version() {
    for (const char* const name : {"libcudart.so.13", "libcudart.so.12"}) {
        void* const library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
        if (library == nullptr) continue;
        CudaResult (*const get_version)(int* version) = Symbols(library).optional("cudaRuntimeGetVersion");
        int version = 0;
        const bool has_version = get_version != nullptr && get_version(&version) == kCudaSuccess;
        dlclose(library);  // the program still has it loaded
        if (has_version) return version;
    }
    return 0;
}

std::string cuda_error(CudaResult result) {
    const char* name = nullptr;
    if (libraries().has_driver) libraries().driver.error_name(result, &name);
    return std::string(name != nullptr ? name : "CUDA error") + " (" + std::to_string(result) + ")";
}

std::string cupti_error(CuptiResult result) {
    const char* text = nullptr;
    if (libraries().has_cupti) libraries().cupti.result_string(result, &text);
    return std::string(text != nullptr ? text : "CUPTI error") + " (" + std::to_string(result) + ")";
}

}  // namespace marey::cuda
