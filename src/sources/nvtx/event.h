// event.h: what a call of NVTX says of its range or mark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sources/nvtx/nvtx_protocol.h"

namespace marey {

/// Longer texts are cut, as names of ranges are.
inline constexpr std::size_t kMaxNvtxBytes = 8192;

/// Null is no text.
std::string_view nvtx_text(const char* text) noexcept;

/// A wide text as UTF-8. Large: for functions of their own, since NVTX may be called on small stacks.
class NvtxWideText {
  public:
    explicit NvtxWideText(const wchar_t* text) noexcept;
    NvtxWideText(const NvtxWideText&) = delete;
    NvtxWideText& operator=(const NvtxWideText&) = delete;
    std::string_view view() const noexcept { return {text_, length_}; }

  private:
    std::size_t length_ = 0;
    char text_[kMaxNvtxBytes];
};

struct NvtxPayload {
    enum class Kind : std::uint8_t { None, Unsigned, Signed, Real };
    Kind kind = Kind::None;
    union {
        std::uint64_t unsigned_number;
        std::int64_t signed_number = 0;
        double real_number;
    };
};

/// One call. Refers to what the caller gave.
struct NvtxEvent {
    std::string_view text;
    const wchar_t* wide_text = nullptr;  ///< instead of `text`, if set
    std::uintptr_t registered = 0;       ///< the handle of its text, instead of both, if not 0
    std::uint32_t category = 0;          ///< 0: none
    bool has_color = false;
    std::uint32_t color = 0;  ///< ARGB
    NvtxPayload payload;

    explicit NvtxEvent(const char* message) noexcept : text(nvtx_text(message)) {}
    explicit NvtxEvent(const wchar_t* message) noexcept : wide_text(message) {}
    /// Null, short structures and kinds that are not known give what is left.
    explicit NvtxEvent(const nvtx_protocol::EventAttributes* attributes) noexcept;

    bool has_values() const noexcept {
        return category != 0 || has_color || payload.kind != NvtxPayload::Kind::None;
    }

  private:
    void read(const nvtx_protocol::EventAttributes& whole) noexcept;
};

}  // namespace marey
