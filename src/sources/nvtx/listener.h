// listener.h: Marey as the listener of a library's NVTX.
#pragma once

#include "record/nvtx_injection.h"

namespace marey {

/// Has the NVTX that gives these tables call Marey from now on. False: it cannot be understood.
bool attach_nvtx(NvtxGetTable get_table) noexcept;

}  // namespace marey
