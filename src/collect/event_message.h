// event_message.h: the layout of event messages. docs/formats/event_message.md documents it; this is the
// code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace marey::event_message {

inline constexpr char kMagic[8] = {'M', 'A', 'R', 'E', 'Y', 'E', 'V', 'T'};
inline constexpr std::uint16_t kVersion = 1;
/// magic, u16 version, u16 flags (0), u32 reserved (0), u64 bytes of the whole message.
inline constexpr std::size_t kHeaderBytes = 24;
inline constexpr std::size_t kChecksumBytes = 8;
/// Times further from 0 are refused, so that differences never overflow.
inline constexpr std::int64_t kLatestNs = std::int64_t{1} << 61;

/// A field begins with a number: tag << 3 | type.
enum class FieldType : std::uint8_t {
    Number = 0,  ///< 7 bits a byte, low first
    Signed = 1,  ///< the same, zigzag
    Real = 2,    ///< 8 bytes
    Text = 3,    ///< a number, then that many bytes
    Fields = 4,  ///< likewise; the bytes are fields
    List = 5,    ///< likewise; the bytes are Signed numbers
};

// Tags. Their meaning never changes; readers skip unknown tags.
enum class MessageField : std::uint32_t {
    BootId = 1,   // Text
    Start = 2,    // Signed
    End = 3,      // Signed, less the start
    Process = 4,  // Fields
    String = 5,   // Text; the first is string 1
    Thread = 6,   // Fields
    Event = 7,    // Fields
};
enum class ProcessField : std::uint32_t {
    Pid = 1,   // Signed
    Node = 2,  // Signed
    Host = 3,  // Text
    Name = 4,  // Text
};
enum class ThreadField : std::uint32_t {
    Process = 1,  // Number
    Id = 2,       // Number
    OsTid = 3,    // Signed
    Name = 4,     // Number
};
enum class EventField : std::uint32_t {
    Name = 1,             // Number; required, as are Thread and Start
    Thread = 2,           // Number
    Start = 3,            // Signed, less the start of the event before (of the message)
    Duration = 4,         // Number
    Kind = 5,             // Number; without it a range
    Scope = 6,            // Number; without it User
    Process = 7,          // Number
    Flags = 8,            // Number: EventFlags
    Id = 9,               // Number
    Caller = 10,          // Number, plus 1
    Sequence = 11,        // Number
    ForwardThread = 12,   // Number
    DeviceType = 13,      // Number
    DeviceIndex = 14,     // Signed
    DeviceTime = 15,      // Number
    CpuMemory = 16,       // Signed
    DeviceMemory = 17,    // Signed
    Address = 18,         // Number
    TotalAllocated = 19,  // Signed
    TotalReserved = 20,   // Signed
    Shape = 21,           // List, one for each input
    Stack = 22,           // List of strings
    Value = 23,           // Fields
};
enum class ValueField : std::uint32_t {
    Key = 1,      // Number; required, as is one of the others
    Boolean = 2,  // Number
    Integer = 3,  // Signed
    Real = 4,     // Real
    String = 5,   // Number
};
enum EventFlags : std::uint32_t { kFlagAsync = 1, kFlagUnfinished = 2, kFlagRefused = 4 };

}  // namespace marey::event_message
