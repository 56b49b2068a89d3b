// event.cpp: reads the texts and attributes of NVTX calls.
#include "sources/nvtx/event.h"

#include <cstring>
#include <type_traits>

#include "base/utf8.h"

namespace marey {

using nvtx_protocol::EventAttributes;

namespace {

std::uint32_t valid_point(std::uint32_t point) noexcept {
    return point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? 0xfffd : point;
}

NvtxPayload payload_of(const EventAttributes& attributes) noexcept {
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

}  // namespace

std::string_view nvtx_text(const char* text) noexcept {
    return text != nullptr ? std::string_view(text, strnlen(text, kMaxNvtxBytes)) : std::string_view();
}

NvtxWideText::NvtxWideText(const wchar_t* text) noexcept {
    static_assert(sizeof(wchar_t) == 4, "a wide character is a code point");
    if (text == nullptr) return;
    for (; *text != 0 && length_ + 4 <= kMaxNvtxBytes; ++text)
        length_ += encode_utf8(valid_point(static_cast<std::uint32_t>(*text)), text_ + length_);
}

NvtxEvent::NvtxEvent(const EventAttributes* attributes) noexcept {
    if (attributes == nullptr) return;
    if (attributes->bytes >= sizeof *attributes) {
        read(*attributes);
        return;
    }
    // Only whole members are copied; missing ones are 0, which means "none" everywhere.
    static_assert(std::is_trivially_copyable_v<EventAttributes>);
    EventAttributes whole{};
    constexpr std::size_t kEnds[] = {offsetof(EventAttributes, color_type),
                                     offsetof(EventAttributes, payload_type),
                                     offsetof(EventAttributes, message_type)};
    std::size_t bytes = 0;
    for (const std::size_t end : kEnds) {
        if (end <= attributes->bytes) bytes = end;
    }
    std::memcpy(&whole, attributes, bytes);
    read(whole);
}

void NvtxEvent::read(const EventAttributes& whole) noexcept {
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

}  // namespace marey
