// listener.h: Marey as an NVTX listener.
#pragma once

#include "record/nvtx_injection.h"

namespace marey {

/// Makes the NVTX that provides these tables call Marey from now on. False: the tables are not supported.
bool attach_nvtx(NvtxGetTable get_table) noexcept;

}  // namespace marey
