// renderer.h: the report: a page with the query results and a picture of the similarity of documents.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "search_index.h"

/// Grey picture, one byte per pixel: pixel (x, y) shows the similarity of the x-th and the y-th shown
/// document.
class Picture {
  public:
    static constexpr std::uint32_t kTile = 16;
    explicit Picture(std::uint32_t side) : side_(side), pixels_(std::size_t{side} * side) {}

    std::uint32_t side() const { return side_; }
    std::uint32_t tiles() const { return (side_ / kTile) * (side_ / kTile); }
    /// Tiles may be drawn by different threads at once. `shown` has `side` signatures.
    void draw_tile(std::uint32_t tile, std::span<const Signature* const> shown);
    /// The picture as a BMP file.
    std::string encode() const;
    std::uint64_t checksum() const;

  private:
    std::uint32_t side_;
    std::vector<std::uint8_t> pixels_;
};

struct QueryResult {
    std::string text;
    std::vector<Hit> hits;
};

/// The page, with the picture in it.
std::string render_page(const Picture& picture, std::span<const QueryResult> results,
                        std::span<const std::string> titles);
