// nvtx_injection.h: the state shared by sessions, emitters and the NVTX listener.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace marey {

/// The variable that NVTX reads to find its listener.
inline constexpr const char* kNvtxVariable = "NVTX_INJECTION64_PATH";

/// Set once some library's NVTX has found the listener.
extern std::atomic<bool> nvtx_attached;

/// Why NVTX ranges will not be recorded in this process; empty: they are, or will be.
std::string nvtx_inactive_reason();

/// Called by NVTX in the library that it has loaded.
using NvtxGetTable = const void* (*)(std::uint32_t table);
using NvtxEntry = int (*)(NvtxGetTable get_table);
/// In a second copy of Marey, which records nothing: the entry of the copy that records. Set when the library
/// is loaded.
extern NvtxEntry entry_of_first_copy;
extern bool is_second_copy;

/// While it lives, the calling thread forwards ranges to a tool. If that tool is Marey itself, it must not
/// record them again.
class EmitterCall {
  public:
    EmitterCall() noexcept : was_inside_(is_inside) { is_inside = true; }
    ~EmitterCall() { is_inside = was_inside_; }
    EmitterCall(const EmitterCall&) = delete;
    EmitterCall& operator=(const EmitterCall&) = delete;

    static constinit thread_local bool is_inside __attribute__((tls_model("initial-exec")));

  private:
    bool was_inside_;
};

}  // namespace marey
