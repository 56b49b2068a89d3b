// renderer.cpp: draws tiles, encodes the picture, writes the page.
#include "renderer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace {

float likeness(const Signature& a, const Signature& b) {
    float sum = 0;
    for (std::size_t i = 0; i < kDimensions; ++i) sum += a[i] * b[i];
    return sum;
}

void append_little_endian(std::string& bytes, std::uint32_t value, int count) {
    for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

std::string base64(std::string_view bytes) {
    MAREY_FUNCTION("bytes", bytes.size());
    static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t three = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            three = three << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
        }
        for (int j = 3; j >= 0; --j) text += kDigits[three >> (6 * j) & 63];
    }
    const std::size_t padding = (3 - bytes.size() % 3) % 3;
    text.replace(text.size() - padding, padding, padding, '=');
    return text;
}

}  // namespace

void Picture::draw_tile(std::uint32_t tile, std::span<const Signature* const> shown) {
    MAREY_FUNCTION("tile", tile);
    const std::uint32_t tiles_per_row = side_ / kTile;
    const std::uint32_t left = tile % tiles_per_row * kTile;
    const std::uint32_t top = tile / tiles_per_row * kTile;
    for (std::uint32_t y = top; y < top + kTile; ++y) {
        MAREY_RANGE("draw row");
        for (std::uint32_t x = left; x < left + kTile; ++x) {
            const float bright = std::clamp(likeness(*shown[x], *shown[y]), 0.0f, 1.0f);
            pixels_[std::size_t{y} * side_ + x] = static_cast<std::uint8_t>(255.0f * std::sqrt(bright));
        }
    }
}

std::string Picture::encode() const {
    MAREY_RANGE("encode picture", "side", side_);
    const std::uint32_t header_bytes = 14 + 40 + 256 * 4;
    std::string bytes = "BM";
    append_little_endian(bytes, header_bytes + side_ * side_, 4);
    append_little_endian(bytes, 0, 4);
    append_little_endian(bytes, header_bytes, 4);
    append_little_endian(bytes, 40, 4);
    append_little_endian(bytes, side_, 4);
    append_little_endian(bytes, side_, 4);
    append_little_endian(bytes, 1, 2);  // planes
    append_little_endian(bytes, 8, 2);  // bits per pixel
    for (int i = 0; i < 6; ++i) append_little_endian(bytes, 0, 4);
    for (std::uint32_t grey = 0; grey < 256; ++grey) append_little_endian(bytes, grey * 0x010101u, 4);
    bytes.append(pixels_.begin(), pixels_.end());  // a side is a multiple of 4: rows need no padding
    return bytes;
}

std::uint64_t Picture::checksum() const {
    std::uint64_t hash = 14695981039346656037ull;
    for (const std::uint8_t pixel : pixels_) hash = (hash ^ (pixel >> 2)) * 1099511628211ull;
    return hash;
}

std::string render_page(const Picture& picture, std::span<const QueryResult> results,
                        std::span<const std::string> titles) {
    MAREY_FUNCTION("results", results.size());
    std::string page =
        "<!doctype html><meta charset=utf-8><title>pipeline</title><style>body{font:14px "
        "sans-serif;margin:2em}"
        "td{padding:0 1em}</style><h1>How alike the documents are</h1><img alt='' "
        "src='data:image/bmp;base64,";
    page += base64(picture.encode());
    page += "'><h1>Queries</h1><table>";
    for (const QueryResult& result : results) {
        MAREY_RANGE("render result");
        page += "<tr><td><b>" + result.text + "</b>";
        for (const Hit& hit : result.hits) {
            char score[32];
            std::snprintf(score, sizeof score, "%.2f", static_cast<double>(hit.score));
            page += "<td>" + titles[hit.document] + " (" + score + ")";
        }
    }
    return page + "</table>\n";
}
