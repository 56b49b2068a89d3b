// counter_response.cpp: /api/counter and /api/instants: values and marks by pixels.
#include <algorithm>
#include <map>

#include "serve/api.h"

namespace marey::serve {
namespace {

constexpr std::uint32_t kCounterMagic = 0x31544e43;   // "CNT1"
constexpr std::uint32_t kInstantsMagic = 0x31534e49;  // "INS1"

std::uint32_t asked_pixels(const Request& request) {
    return static_cast<std::uint32_t>(request.query.integer("pixels", 1, kMaxPixels));
}

}  // namespace

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
