// checksum.h: a 64-bit checksum of bytes: detects errors of transport and storage, not forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace marey {

/// The same on every machine. Two inputs of equal length that differ in a single aligned run of 8 bytes never
/// have the same checksum; others do with a chance of 2^-64. Part of the formats that store it: never
/// changes.
std::uint64_t checksum64(std::span<const std::byte> bytes) noexcept;

}  // namespace marey
