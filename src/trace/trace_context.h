// trace_context.h: the header `traceparent` of W3C Trace Context, and the values of ranges that hold its
// parts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace marey {

/// The key of a value with the header that a request came with.
inline constexpr std::string_view kTraceParentKey = "traceparent";
/// The key of a value with a trace id: 32 hexadecimal digits.
inline constexpr std::string_view kTraceIdKey = "trace_id";
/// The key of a value with the span id that was sent to others: 16 hexadecimal digits.
inline constexpr std::string_view kSpanIdKey = "span_id";

struct TraceContext {
    std::array<std::uint64_t, 2> trace_id{};  ///< high half first; not 0
    std::uint64_t span_id = 0;
};

/// Exactly 16 lower-case hexadecimal digits that are not all 0.
inline std::optional<std::uint64_t> parse_hex64(std::string_view text) noexcept {
    if (text.size() != 16) return std::nullopt;
    std::uint64_t number = 0;
    for (const char c : text) {
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return std::nullopt;
        number = number << 4 | static_cast<std::uint64_t>(digit);
    }
    if (number == 0) return std::nullopt;
    return number;
}

/// Exactly 32 lower-case hexadecimal digits that are not all 0; the high half comes first.
inline std::optional<std::array<std::uint64_t, 2>> parse_trace_id(std::string_view text) noexcept {
    constexpr std::string_view kZeros = "0000000000000000";
    if (text.size() != 32) return std::nullopt;
    std::array<std::uint64_t, 2> id{};
    for (std::size_t half = 0; half < 2; ++half) {
        const std::string_view digits = text.substr(16 * half, 16);
        const auto number = parse_hex64(digits);
        if (!number && digits != kZeros) return std::nullopt;
        id[half] = number.value_or(0);
    }
    if (id[0] == 0 && id[1] == 0) return std::nullopt;
    return id;
}

/// Reads "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01". Versions after 00 may be longer.
inline std::optional<TraceContext> parse_traceparent(std::string_view text) noexcept {
    constexpr std::size_t kSize = 55, kTrace = 3, kSpan = 36, kFlags = 53;
    if (text.size() < kSize || text[2] != '-' || text[kSpan - 1] != '-' || text[kFlags - 1] != '-')
        return std::nullopt;
    if (text.substr(0, 2) == "ff" || (text.substr(0, 2) == "00" && text.size() != kSize)) return std::nullopt;
    if (text.size() > kSize && text[kSize] != '-') return std::nullopt;
    for (const std::size_t at : {std::size_t{0}, std::size_t{1}, kFlags, kFlags + 1}) {
        const char c = text[at];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return std::nullopt;
    }
    const auto trace_id = parse_trace_id(text.substr(kTrace, 32));
    const auto span_id = parse_hex64(text.substr(kSpan, 16));
    if (!trace_id || !span_id) return std::nullopt;
    return TraceContext{*trace_id, *span_id};
}

}  // namespace marey
