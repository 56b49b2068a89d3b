// event_test.cpp: texts and attributes of NVTX calls of every size and kind.
#include "sources/nvtx/event.h"

#include <cstddef>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "sources/nvtx/nvtx_fixture.h"

namespace marey {
namespace {

using nvtx_protocol::EventAttributes;

TEST(NvtxEvent, IsEmptyWithoutAttributesOrText) {
    for (const NvtxEvent& event :
         {NvtxEvent(static_cast<const EventAttributes*>(nullptr)),
          NvtxEvent(static_cast<const char*>(nullptr)), NvtxEvent(static_cast<const wchar_t*>(nullptr))}) {
        EXPECT_EQ(event.text, "");
        EXPECT_EQ(event.wide_text, nullptr);
        EXPECT_FALSE(event.has_values());
    }
    EventAttributes none = attributes();
    none.message_type = nvtx_protocol::kMessageAscii;  // but no text
    EXPECT_EQ(NvtxEvent(&none).text, "");
}

TEST(NvtxEvent, ContainsTheAttributes) {
    EventAttributes all = attributes("text");
    all.category = 7;
    all.color_type = nvtx_protocol::kColorArgb;
    all.color = 0x80ff0001;
    all.payload_type = nvtx_protocol::kPayloadSigned64;
    all.payload.signed64 = -5;
    const NvtxEvent event(&all);
    EXPECT_EQ(event.text, "text");
    EXPECT_EQ(event.category, 7u);
    EXPECT_TRUE(event.has_color);
    EXPECT_EQ(event.color, 0x80ff0001u);
    EXPECT_EQ(event.payload, NvtxPayload(std::int64_t{-5}));
}

TEST(NvtxEvent, ReadsEveryKindOfPayload) {
    EventAttributes event = attributes();
    event.payload.unsigned64 = ~std::uint64_t{0};
    event.payload_type = nvtx_protocol::kPayloadUnsigned64;
    EXPECT_EQ(NvtxEvent(&event).payload, NvtxPayload(~std::uint64_t{0}));
    event.payload_type = nvtx_protocol::kPayloadUnsigned32;  // the upper half is not part of it
    EXPECT_EQ(NvtxEvent(&event).payload, NvtxPayload(std::uint64_t{~std::uint32_t{0}}));
    event.payload_type = nvtx_protocol::kPayloadSigned32;
    EXPECT_EQ(NvtxEvent(&event).payload, NvtxPayload(std::int64_t{-1}));
    event.payload.real64 = 2.5;
    event.payload_type = nvtx_protocol::kPayloadDouble;
    EXPECT_EQ(NvtxEvent(&event).payload, NvtxPayload(2.5));
    event.payload.real32 = 0.25f;
    event.payload_type = nvtx_protocol::kPayloadFloat;
    EXPECT_EQ(NvtxEvent(&event).payload, NvtxPayload(0.25));
}

TEST(NvtxEvent, IgnoresUnknownKinds) {
    EventAttributes event = attributes("text");
    event.message_type = 99;
    event.color_type = 2;
    event.payload_type = static_cast<std::int32_t>(0xdfbd0009);  // extended payloads
    event.payload.unsigned64 = 0x1234;
    const NvtxEvent decoded(&event);
    EXPECT_EQ(decoded.text, "");
    EXPECT_EQ(decoded.registered, 0u);
    EXPECT_FALSE(decoded.has_values());
}

// A shorter structure is at the very end of its memory, so that reading beyond it is detected.
TEST(NvtxEvent, OfAShorterStructureHasOnlyItsMembers) {
    EventAttributes whole = attributes("text");
    whole.category = 7;
    whole.color_type = nvtx_protocol::kColorArgb;
    whole.payload_type = nvtx_protocol::kPayloadSigned64;
    whole.payload.signed64 = 5;
    for (std::size_t bytes = 4; bytes <= sizeof whole; ++bytes) {
        whole.bytes = static_cast<std::uint16_t>(bytes);
        auto* const cut = static_cast<std::byte*>(::operator new(bytes));  // the sanitizer checks its end
        std::memcpy(cut, &whole, bytes);
        const NvtxEvent event(reinterpret_cast<const EventAttributes*>(cut));
        EXPECT_EQ(event.category, bytes >= 8 ? 7u : 0u) << bytes;
        EXPECT_EQ(event.has_color, bytes >= 16) << bytes;
        EXPECT_EQ(event.payload.index() != 0, bytes >= 32) << bytes;
        EXPECT_EQ(event.text, bytes >= 48 ? "text" : "") << bytes;
        ::operator delete(cut);
    }
    whole.bytes = 200;  // a later version: its new members are ignored
    EXPECT_EQ(NvtxEvent(&whole).text, "text");
    whole.bytes = 0;
    EXPECT_FALSE(NvtxEvent(&whole).has_values());
}

TEST(NvtxText, OfWideCharactersIsUtf8) {
    EXPECT_EQ(NvtxWideText(L"a\u00e4\u20ac\U0001f600").view(), "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    EXPECT_EQ(NvtxWideText(nullptr).view(), "");
    const wchar_t none[] = {static_cast<wchar_t>(0xd800), static_cast<wchar_t>(0x110000), 0};
    EXPECT_EQ(NvtxWideText(none).view(), "\xef\xbf\xbd\xef\xbf\xbd");  // no characters
}

TEST(NvtxText, ThatIsVeryLongIsTruncated) {
    EXPECT_EQ(nvtx_text(std::string(100'000, 'x').c_str()).size(), kMaxNvtxBytes);
    const std::wstring wide(100'000, L'\U0001f600');
    const NvtxWideText text(wide.c_str());
    EXPECT_EQ(text.view().size(), kMaxNvtxBytes);
    EXPECT_EQ(text.view().substr(kMaxNvtxBytes - 4), "\xf0\x9f\x98\x80");  // between characters
}

}  // namespace
}  // namespace marey
