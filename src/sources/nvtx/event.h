// event.h: the attributes of an NVTX range or mark, from the call's arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/utf8.h"
#include "sources/nvtx/nvtx_protocol.h"

namespace marey {

/// Longer texts are truncated, as range names are.
inline constexpr std::size_t kMaxNvtxBytes = 8192;

/// Null gives an empty text.
inline std::string_view nvtx_text(const char* text) noexcept {
    return text != nullptr ? std::string_view(text, strnlen(text, kMaxNvtxBytes)) : std::string_view();
}

/// A wide text as UTF-8. The object is large: use it in a separate function, since NVTX may be called on
/// small stacks.
class NvtxWideText {
  public:
    explicit NvtxWideText(const wchar_t* text) noexcept {
        static_assert(sizeof(wchar_t) == 4, "a wide character is a code point");
        if (text == nullptr) return;
        for (; *text != 0 && length_ + 4 <= kMaxNvtxBytes; ++text)
            length_ += encode_utf8(valid_point(static_cast<std::uint32_t>(*text)), text_ + length_);
    }
    NvtxWideText(const NvtxWideText&) = delete;
    NvtxWideText& operator=(const NvtxWideText&) = delete;
    std::string_view view() const noexcept { return {text_, length_}; }

  private:
    static std::uint32_t valid_point(std::uint32_t point) noexcept {
        return point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? 0xfffd : point;
    }

    std::size_t length_ = 0;
    char text_[kMaxNvtxBytes];
};

using NvtxPayload = std::variant<std::monostate, std::uint64_t, std::int64_t, double>;

/// One call. Refers to the caller's arguments.
struct NvtxEvent {
    std::string_view text;
    const wchar_t* wide_text = nullptr;  ///< instead of `text`, if set
    std::uintptr_t registered = 0;       ///< the handle of a registered text, instead of both, if not 0
    std::uint32_t category = 0;          ///< 0: none
    bool has_color = false;
    std::uint32_t color = 0;  ///< ARGB
    NvtxPayload payload;

    explicit NvtxEvent(const char* message) noexcept : text(nvtx_text(message)) {}
    explicit NvtxEvent(const wchar_t* message) noexcept : wide_text(message) {}
    /// Accepts null and short structures. Missing members and unknown kinds are left empty.
    explicit NvtxEvent(const nvtx_protocol::EventAttributes* attributes) noexcept {
        if (attributes == nullptr) return;
        if (attributes->bytes >= sizeof *attributes) {
            read(*attributes);
            return;
        }
        // Only whole members are copied; missing ones are 0, which means "none" everywhere.
        static_assert(std::is_trivially_copyable_v<nvtx_protocol::EventAttributes>);
        nvtx_protocol::EventAttributes whole{};
        constexpr std::size_t kEnds[] = {offsetof(nvtx_protocol::EventAttributes, color_type),
                                         offsetof(nvtx_protocol::EventAttributes, payload_type),
                                         offsetof(nvtx_protocol::EventAttributes, message_type)};
        std::size_t bytes = 0;
        for (const std::size_t end : kEnds) {
            if (end <= attributes->bytes) bytes = end;
        }
        std::memcpy(&whole, attributes, bytes);
        read(whole);
    }

    bool has_values() const noexcept { return category != 0 || has_color || payload.index() != 0; }

  private:
    static NvtxPayload payload_of(const nvtx_protocol::EventAttributes& attributes) noexcept {
        switch (attributes.payload_type) {
            case nvtx_protocol::kPayloadUnsigned64:
                return attributes.payload.unsigned64;
            case nvtx_protocol::kPayloadUnsigned32:
                return std::uint64_t{attributes.payload.unsigned32};
            case nvtx_protocol::kPayloadSigned64:
                return attributes.payload.signed64;
            case nvtx_protocol::kPayloadSigned32:
                return std::int64_t{attributes.payload.signed32};
            case nvtx_protocol::kPayloadDouble:
                return attributes.payload.real64;
            case nvtx_protocol::kPayloadFloat:
                return static_cast<double>(attributes.payload.real32);
            default:
                return {};
        }
    }
    void read(const nvtx_protocol::EventAttributes& whole) noexcept {
        category = whole.category;
        has_color = whole.color_type == nvtx_protocol::kColorArgb;
        color = whole.color;
        if (whole.payload_type != 0) payload = payload_of(whole);
        switch (whole.message_type) {
            case nvtx_protocol::kMessageAscii:
                text = nvtx_text(whole.message.ascii);
                break;
            case nvtx_protocol::kMessageWide:
                wide_text = whole.message.wide;
                break;
            case nvtx_protocol::kMessageRegistered:
                registered = reinterpret_cast<std::uintptr_t>(whole.message.registered);
                break;
            default:
                break;
        }
    }
};

}  // namespace marey
