// event.h: the attributes of an NVTX range or mark, from the call's arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "sources/nvtx/nvtx_protocol.h"

namespace marey {

/// Longer texts are truncated, as range names are.
inline constexpr std::size_t kMaxNvtxBytes = 8192;

/// Null gives an empty text.
std::string_view nvtx_text(const char* text) noexcept;

/// A wide text as UTF-8. The object is large: use it in a separate function, since NVTX may be called on
/// small stacks.
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
    explicit NvtxEvent(const nvtx_protocol::EventAttributes* attributes) noexcept;

    bool has_values() const noexcept { return category != 0 || has_color || payload.index() != 0; }

  private:
    void read(const nvtx_protocol::EventAttributes& whole) noexcept;
};

}  // namespace marey
