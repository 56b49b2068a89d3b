// sampled_code.h: provides samples with Python frames, and names the code in them.
#pragma once

namespace marey::python {

/// Offers that to libmarey until Python ends. Needs the GIL.
void offer_python_sampling() noexcept;

}  // namespace marey::python
