// frame_rule.h: how to get from a frame to its caller at one program counter, read from .eh_frame.
#pragma once

#include <cstdint>

namespace marey {

/// How to find the caller's frame: 16 bytes. The canonical frame address (CFA) is the caller's stack pointer.
struct FrameRule {
    enum class Kind : std::uint8_t {
        unknown,        ///< no table covers it, or the rule is too complex: a frame pointer may help
        end,            ///< this is the outermost frame
        stack_pointer,  ///< CFA = stack pointer + cfa_offset
        frame_pointer,  ///< CFA = frame pointer + cfa_offset
        signal,  ///< where a signal handler returns to: the kernel put the caller's registers on the stack
    };
    enum class Saved : std::uint8_t {
        same,       ///< still in its register
        in_memory,  ///< at CFA + its offset
    };

    Kind kind = Kind::unknown;
    Saved return_address = Saved::same;
    Saved frame_pointer = Saved::same;
    std::int16_t return_offset = 0;
    std::int16_t frame_pointer_offset = 0;
    std::int32_t cfa_offset = 0;

    bool operator==(const FrameRule&) const = default;
};

/// The memory that tables may be read from.
struct FrameBytes {
    std::uintptr_t begin = 0;
    std::uintptr_t end = UINTPTR_MAX;
};

/// The rule at `pc`, from the .eh_frame_hdr at `frame_header` in memory, or unknown. Reads only the tables of
/// a loaded module; trusts them to be well formed, as exception handling does, unless `within` says where
/// they end: then they may contain anything.
FrameRule read_frame_rule(std::uintptr_t frame_header, std::uintptr_t pc,
                          const FrameBytes& within = {}) noexcept;

/// For tests: the rule of a frame description at `pc`, where the tables are these bytes.
struct FrameTables {
    const unsigned char* common;  ///< instructions of the common entry
    const unsigned char* common_end;
    const unsigned char* own;  ///< instructions of the function's entry
    const unsigned char* own_end;
    std::uint64_t code_factor;
    std::int64_t data_factor;
    std::uint64_t return_register;
    std::uint8_t pointer_encoding;
    std::uintptr_t function_begin;
};
FrameRule run_frame_tables(const FrameTables& tables, std::uintptr_t pc) noexcept;

}  // namespace marey
