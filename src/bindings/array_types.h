// array_types.h: element types and devices of arrays by the names that Python libraries give them.
#pragma once

#include <cstddef>
#include <string_view>

#include <marey/value.h>

namespace marey::bindings {

/// The DType of a NumPy type string: byte order, kind, bytes ("<f4").
DType from_typestr(std::string_view text) noexcept;
/// The DType of a type name: "float32", "torch.float32", "<dtype: 'float32'>".
DType from_dtype_name(std::string_view text) noexcept;
/// The DType of a struct-module format ("f", "<l"); null: bytes.
DType from_format(const char* format, std::ptrdiff_t item_bytes) noexcept;
/// DLPack's device numbers.
DeviceType from_dlpack_device(long type) noexcept;

}  // namespace marey::bindings
