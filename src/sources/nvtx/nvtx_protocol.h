// nvtx_protocol.h: the interface between NVTX 3 and its listener: fixed layouts and numbers, declared here so
// that Marey can listen even if it was built without the NVTX headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace marey::nvtx_protocol {

/// Tables returned by the function that NVTX passes to its listener.
inline constexpr std::uint32_t kCallbacksTable = 1;

/// Each slot leads to the pointer through which NVTX calls; the listener writes there. Slot 0 is unused.
using Function = void (*)();
using FunctionTable = Function**;

struct CallbacksTable {
    std::size_t bytes;
    /// Returns 1 and fills in the table of a module and its number of slots.
    int (*module_functions)(int module, FunctionTable* table, unsigned* slots);
};

enum Module : int { kCore = 1, kCore2 = 5 };

/// Slots of kCore.
enum CoreSlot : unsigned {
    kMarkEx = 1,
    kMarkA,
    kMarkW,
    kRangeStartEx,
    kRangeStartA,
    kRangeStartW,
    kRangeEnd,
    kRangePushEx,
    kRangePushA,
    kRangePushW,
    kRangePop,
    kNameCategoryA,
    kNameCategoryW,
    kNameOsThreadA,
    kNameOsThreadW,
};

/// Slots of kCore2: functions with a domain. Marey does not listen to resources (6, 7).
enum Core2Slot : unsigned {
    kDomainMarkEx = 1,
    kDomainRangeStartEx,
    kDomainRangeEnd,
    kDomainRangePushEx,
    kDomainRangePop,
    kDomainNameCategoryA = 8,
    kDomainNameCategoryW,
    kDomainRegisterStringA,
    kDomainRegisterStringW,
    kDomainCreateA,
    kDomainCreateW,
    kDomainDestroy,
};

/// Returned instead of a depth.
inline constexpr int kError = -1;       ///< a pop without a push, or no memory
inline constexpr int kNotTracked = -2;  ///< not recorded by the listener

enum ColorType : std::int32_t { kColorArgb = 1 };
enum MessageType : std::int32_t { kMessageAscii = 1, kMessageWide = 2, kMessageRegistered = 3 };
enum PayloadType : std::int32_t {
    kPayloadUnsigned64 = 1,
    kPayloadSigned64 = 2,
    kPayloadDouble = 3,
    kPayloadUnsigned32 = 4,
    kPayloadSigned32 = 5,
    kPayloadFloat = 6,
};

/// The argument of the Ex functions. `bytes` is the size that the caller was compiled with: members beyond it
/// do not exist.
struct EventAttributes {
    std::uint16_t version;
    std::uint16_t bytes;
    std::uint32_t category;  ///< 0: none
    std::int32_t color_type;
    std::uint32_t color;
    std::int32_t payload_type;
    std::int32_t reserved;
    union {
        std::uint64_t unsigned64;
        std::int64_t signed64;
        double real64;
        std::uint32_t unsigned32;
        std::int32_t signed32;
        float real32;
    } payload;
    std::int32_t message_type;
    union {
        const char* ascii;
        const wchar_t* wide;
        const void* registered;  ///< the handle that the listener returned when it was registered
    } message;
};
static_assert(sizeof(void*) != 8 || sizeof(EventAttributes) == 48);

}  // namespace marey::nvtx_protocol
