// token.h: follows a message from the process or thread that sends it to the one that receives it.
#pragma once

#include <cstdint>

#include <marey/detail/export.h>

namespace marey {

/// Identifies a message. Plain bytes (24): send them with the message, in any way.
struct Token {
    std::uint64_t sender = 0;  ///< random number of the sending process; 0: nothing was recorded
    std::uint64_t number = 0;  ///< of the message in that process
    std::uint64_t ticks = 0;   ///< when it was sent, on the sender's counter
};
static_assert(sizeof(Token) == 24, "part of the capture format");

/// Records that this thread sends a message now, and returns the token to send with it. Traces that contain
/// both ends have a link from the range around this call to the range around receive_token(). Returns an
/// empty token if nothing records this thread.
MAREY_API Token send_token() noexcept;

/// Records that this thread has received the message. Ignores an empty token.
MAREY_API void receive_token(const Token& token) noexcept;

}  // namespace marey
