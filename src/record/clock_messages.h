// clock_messages.h: the messages of a clock exchange. Both have a fixed size and are little-endian.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace marey {

inline constexpr std::uint32_t kClockMagic = 0x3158434d;  // "MCX1"

struct ClockRequest {
    std::uint32_t magic = kClockMagic;
    std::uint32_t left = 0;  ///< requests that follow this one
};
struct ClockAnswer {
    std::uint32_t magic = kClockMagic;
    std::uint32_t left = 0;  ///< as in the request
    std::int64_t arrived_ns = 0;
    std::int64_t answered_ns = 0;
    char host[104] = {};  ///< padded with NUL
};
static_assert(sizeof(ClockRequest) == 8 && sizeof(ClockAnswer) == 128);

/// The name in an answer.
inline std::string_view host_in(const ClockAnswer& answer) {
    return {answer.host, strnlen(answer.host, sizeof answer.host)};
}

/// A message from the bytes of a stream; empty if it is something else.
template <class Message>
std::optional<Message> read_message(std::span<const std::byte> bytes) {
    Message message;
    if (bytes.size() != sizeof message) return {};
    std::memcpy(&message, bytes.data(), sizeof message);
    if (message.magic != kClockMagic) return {};
    return message;
}

}  // namespace marey
