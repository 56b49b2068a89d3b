// nvtx_injection.cpp: whether this process's NVTX calls reach Marey.
#include "record/nvtx_injection.h"

#include <dlfcn.h>

#include <filesystem>

#include <marey/nvtx.h>

#include "base/environment.h"

namespace marey {

std::atomic<bool> nvtx_attached{false};
NvtxEntry entry_of_first_copy = nullptr;
bool is_second_copy = false;
constinit thread_local bool EmitterCall::is_inside = false;

namespace {

// Another copy of libmarey forwards to this one.
bool is_marey(const std::string& path) {
    return std::filesystem::path(path).filename().string().starts_with("libmarey.so") ||
           nvtx::is_library(path);
}

}  // namespace

std::string nvtx_inactive_reason() {
    if (nvtx_attached.load(std::memory_order_relaxed)) return {};
    const std::string path = environment_text(kNvtxVariable);
    if (path.empty())
        return std::string(
                   "NVTX ranges are not recorded: NVTX looks for its listener at a library's first call, "
                   "and ") +
               kNvtxVariable + " was not set then; start the program with 'marey run --nvtx'";
    if (is_marey(path)) return {};
    return std::string("NVTX ranges are not recorded: ") + kNvtxVariable +
           " is set to another tool's library, " + path;
}

namespace nvtx {

bool is_listening() {
    return nvtx_inactive_reason().empty();
}

std::string library_path() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&nvtx_attached), &info) == 0 || info.dli_fname == nullptr)
        return {};
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(info.dli_fname, error);
    return error ? info.dli_fname : path.string();
}

bool is_library(const std::string& path) {
    std::error_code error;
    return std::filesystem::equivalent(path, library_path(), error);
}

}  // namespace nvtx
}  // namespace marey
