// tile_response.cpp: /api/picture, /api/overview, /api/counter and /api/instants: tracks, values and marks by
// pixels.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "serve/api.h"

namespace marey::serve {
namespace {

constexpr std::uint32_t kTileMagic = 0x31434950;      // "PIC1"
constexpr std::uint32_t kOverviewMagic = 0x3156564f;  // "OVV1"
constexpr std::uint32_t kUnitsPerPixel = 8;           // kMaxPixels * 8 fits in 16 bits

TimelineView view_of(const Request& request) {
    const Selection span = request.span();
    return TimelineView{
        .begin_ns = span.begin_ns,
        .end_ns = span.end_ns,
        .pixels = static_cast<std::uint32_t>(request.query.integer("pixels", 1, kMaxPixels)),
        .levels = static_cast<std::uint32_t>(request.query.integer("levels", 1, kMaxLevels, 40))};
}

/// The boxes of a tile in columns, six bytes per box. Rows are not included: the page asks /api/at for the
/// one under the pointer.
class TileColumns {
  public:
    TileColumns(const RangeColumns& ranges, std::uint32_t levels) : ranges_(ranges), by_level_(levels) {}

    std::string pack(const std::vector<TimelineBox>& boxes) {
        for (const TimelineBox& box : boxes) add(box);
        while (!by_level_.empty() && by_level_.back().empty()) by_level_.pop_back();
        std::string bytes;
        const bool is_wide = sites_.size() > 0x7fff;
        std::size_t count = 0;
        for (const std::vector<PackedBox>& level : by_level_) count += level.size();
        bytes.reserve(count * 8 + sites_.size() * 4 + 2048);
        for (const std::size_t number : {std::size_t{kTileMagic}, by_level_.size(), count, sites_.size(),
                                         std::size_t{kUnitsPerPixel}, std::size_t{is_wide ? 4u : 2u}})
            append_number(bytes, static_cast<std::uint32_t>(number));
        std::uint32_t first = 0;
        append_number(bytes, first);
        for (const std::vector<PackedBox>& level : by_level_)
            append_number(bytes, first += static_cast<std::uint32_t>(level.size()));
        append_column(bytes, std::span<const std::uint32_t>(sites_));
        if (is_wide)
            append_field<std::uint32_t>(bytes,
                                        [](const PackedBox& box) { return box.site | box.merged << 31; });
        append_field<std::uint16_t>(bytes, [](const PackedBox& box) { return box.begin; });
        append_field<std::uint16_t>(bytes, [](const PackedBox& box) { return box.end - box.begin; });
        if (!is_wide)
            append_field<std::uint16_t>(bytes,
                                        [](const PackedBox& box) { return box.site | box.merged << 15; });
        return bytes;
    }

  private:
    struct PackedBox {
        std::uint32_t begin, end;  ///< in units
        std::uint32_t site;        ///< index into sites_
        std::uint32_t merged;      ///< 1: stands for several ranges
    };

    void add(const TimelineBox& box) {
        const auto units = [](float pixels) {
            return static_cast<std::uint32_t>(std::lround(pixels * kUnitsPerPixel));
        };
        const PackedBox packed{units(box.begin), units(box.end), number_of(ranges_.site[box.row]),
                               box.merged > 1 ? 1u : 0u};
        std::vector<PackedBox>& level = by_level_[box.depth];
        if (!level.empty() && packed.merged == 1 && level.back().merged == 1 &&
            level.back().site == packed.site && level.back().end >= packed.begin) {
            level.back().end = std::max(level.back().end, packed.end);
        } else {
            level.push_back(packed);
        }
    }

    std::uint32_t number_of(std::uint32_t site) {
        const auto [found, is_new] = numbers_.emplace(site, static_cast<std::uint32_t>(sites_.size()));
        if (is_new) sites_.push_back(site);
        return found->second;
    }

    template <class T, class Field>
    void append_field(std::string& bytes, const Field& field) const {
        for (const std::vector<PackedBox>& level : by_level_) {
            for (const PackedBox& box : level) append_number(bytes, static_cast<T>(field(box)));
        }
    }

    RangeColumns ranges_;
    std::vector<std::vector<PackedBox>> by_level_;
    std::vector<std::uint32_t> sites_;
    std::unordered_map<std::uint32_t, std::uint32_t> numbers_;
};

/// Adds to each pixel the part of it that boxes cover.
void add_cover(const std::vector<TimelineBox>& boxes, std::vector<float>& pixels) {
    float covered = 0;  // up to here: boxes of merged ranges may overlap the next
    for (const TimelineBox& box : boxes) {
        float at = std::max(box.begin, covered);
        covered = std::max(covered, box.end);
        while (at < box.end) {
            const auto pixel = std::min(static_cast<std::size_t>(at), pixels.size() - 1);
            const float end = std::min(box.end, static_cast<float>(pixel + 1));
            pixels[pixel] += end - at;
            if (end <= at) break;
            at = end;
        }
    }
}

constexpr std::uint32_t kCounterMagic = 0x31544e43;   // "CNT1"
constexpr std::uint32_t kInstantsMagic = 0x31534e49;  // "INS1"

std::uint32_t asked_pixels(const Request& request) {
    return static_cast<std::uint32_t>(request.query.integer("pixels", 1, kMaxPixels));
}

}  // namespace

Response tile_response(const Request& request) {
    const Row track = request.row("track", request.trace().tracks().size());
    const TimelineView view = view_of(request);
    if (view.end_ns <= view.begin_ns) throw RequestError(400, "parameter 'end': the span is empty");
    return {200, kBinary,
            TileColumns(request.trace().ranges(), view.levels)
                .pack(request.loaded.timeline().picture(track, view))};
}

Response overview_response(const Request& request) {
    TimelineView view = view_of(request);
    view.levels = 1;
    const std::vector<Row> chosen = request.selection().tracks;
    std::vector<float> host(view.pixels), device(view.pixels);
    for (Row row = 0; row < request.loaded.recorded().tracks().size(); ++row) {
        const TrackInfo& track = request.trace().tracks()[row];
        if (track.kind == TrackKind::Async) continue;  // spans the work of others
        if (!chosen.empty() && !std::binary_search(chosen.begin(), chosen.end(), row)) continue;
        const bool is_device = track.device.type != DeviceType::Cpu;
        add_cover(request.loaded.timeline().picture(row, view), is_device ? device : host);
    }
    Response response{200, kBinary, {}};
    append_number(response.body, kOverviewMagic);
    append_number(response.body, view.pixels);
    append_column(response.body, std::span<const float>(host));
    append_column(response.body, std::span<const float>(device));
    return response;
}

Response counter_response(const Request& request) {
    const Row counter = request.row("counter", request.loaded.counters().size());
    const Selection span = request.span();
    const std::uint32_t pixels = asked_pixels(request);
    const CounterSeries::Tile tile =
        request.loaded.counters()[counter].tile(span.begin_ns, span.end_ns, pixels);
    Response response{200, kBinary, {}};
    append_number(response.body, kCounterMagic);
    append_number(response.body, pixels);
    append_column(response.body, std::span<const double>(tile.least));
    append_column(response.body, std::span<const double>(tile.greatest));
    append_column(response.body, std::span<const double>(tile.last));
    return response;
}

Response instants_response(const Request& request) {
    const Row thread = request.row("thread", request.trace().threads().size());
    const Selection span = request.span();
    const std::uint32_t pixels = asked_pixels(request);
    const double scale = static_cast<double>(pixels) /
                         std::max(1.0, static_cast<double>(span.end_ns) - static_cast<double>(span.begin_ns));
    struct Mark {
        Row instant;
        std::uint32_t count;
    };
    std::map<std::uint32_t, Mark> marks;  // by pixel
    const InstantColumns instants = request.trace().instants();
    for (Row row = 0; row < instants.size(); ++row) {
        const std::int64_t time_ns = instants.time_ns[row];
        if (instants.thread[row] != thread || time_ns < span.begin_ns || time_ns > span.end_ns) continue;
        const double place = static_cast<double>(time_ns - span.begin_ns) * scale;
        const auto pixel = std::min(static_cast<std::uint32_t>(place), pixels - 1);
        ++marks.emplace(pixel, Mark{row, 0}).first->second.count;
    }
    Response response{200, kBinary, {}};
    append_number(response.body, kInstantsMagic);
    append_number(response.body, static_cast<std::uint32_t>(marks.size()));
    for (const auto& [pixel, mark] : marks) append_number(response.body, pixel);
    for (const auto& [pixel, mark] : marks) append_number(response.body, instants.site[mark.instant]);
    for (const auto& [pixel, mark] : marks) append_number(response.body, mark.instant);
    for (const auto& [pixel, mark] : marks) append_number(response.body, mark.count);
    return response;
}

}  // namespace marey::serve
