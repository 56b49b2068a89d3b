// listener.h: Marey as the listener of a library's NVTX.
#pragma once

#include "record/nvtx_hearing.h"

namespace marey {

/// Has the NVTX that gives these tables call Marey from now on. False: it cannot be understood.
bool listen_to_nvtx(NvtxGetTable get_table) noexcept;

}  // namespace marey
