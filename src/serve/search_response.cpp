// search_response.cpp: /api/search and /api/next: ranges by name.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <marey/detail/thread_safety.h>

#include "base/parallel.h"
#include "serve/api.h"
#include "serve/name_filter.h"
#include "serve/trace_names.h"

namespace marey::serve {
namespace {

constexpr Row kRowsPerPiece = Row{1} << 21;  ///< searched by one thread at a time
constexpr std::size_t kMaxSites = 10'000;
constexpr std::int64_t kMaxHits = 10'000;

/// Rows of one track to search.
struct Piece {
    Row begin = 0, end = 0;
    std::uint64_t count = 0;
    std::vector<Row> hits;  ///< the first ones
};

/// The rows of the selected tracks that start in the selected time, or are open when it begins.
std::vector<Piece> pieces_of(const Request& request, const Selection& selection) {
    const RangeColumns ranges = request.trace().ranges();
    std::vector<Piece> pieces;
    for (Row number = 0; number < request.loaded.recorded().tracks().size(); ++number) {
        const TrackInfo& track = request.trace().tracks()[number];
        if (!selection.tracks.empty() &&
            !std::binary_search(selection.tracks.begin(), selection.tracks.end(), number))
            continue;
        const auto first = ranges.start_ns.begin() + track.first_range;
        const auto last = first + track.range_count;
        const auto row_of = [&](auto at) { return static_cast<Row>(at - ranges.start_ns.begin()); };
        const Row begin = row_of(std::lower_bound(first, last, selection.begin_ns));
        const Row end = std::max(begin, row_of(std::lower_bound(first, last, selection.end_ns)));
        std::vector<Piece> open;
        if (begin > track.first_range) {
            for (Row row = begin - 1;; row = ranges.parent[row]) {
                if (request.end_of(row) > selection.begin_ns) open.push_back({row, row + 1, 0, {}});
                if (ranges.depth[row] == 0) break;
            }
        }
        pieces.insert(pieces.end(), open.rbegin(), open.rend());
        for (Row at = begin; at < end; at += std::min(kRowsPerPiece, end - at))
            pieces.push_back({at, at + std::min(kRowsPerPiece, end - at), 0, {}});
    }
    return pieces;
}

/// Counts the hits by the pixel of their starts.
class HitMarks {
  public:
    HitMarks(const Selection& span, std::uint32_t pixels)
        : begin_(span.begin_ns),
          scale_(static_cast<double>(pixels) /
                 std::max(1.0, static_cast<double>(span.end_ns) - static_cast<double>(span.begin_ns))),
          counts_(pixels) {}

    void add(std::int64_t start_ns) noexcept {
        if (counts_.empty()) return;
        const double place = (static_cast<double>(start_ns) - static_cast<double>(begin_)) * scale_;
        const auto pixel = place <= 0 ? 0 : std::min(static_cast<std::size_t>(place), counts_.size() - 1);
        ++counts_[pixel];
    }
    void add(const HitMarks& other) noexcept {
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    }
    void write(JsonWriter& json) const {
        json.key("marks").begin_array();
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i] > 0) json.value(std::uint64_t{i}).value(counts_[i]);
        }
        json.end_array();
    }

  private:
    std::int64_t begin_;
    double scale_;
    std::vector<std::uint64_t> counts_;
};

void search_piece(const RangeColumns& ranges, const std::vector<std::uint8_t>& wanted, std::size_t limit,
                  Piece& piece, HitMarks& marks) {
    for (Row row = piece.begin; row < piece.end; ++row) {
        if (wanted[ranges.site[row]] == 0) continue;
        ++piece.count;
        if (piece.hits.size() < limit) piece.hits.push_back(row);
        marks.add(ranges.start_ns[row]);
    }
}

/// Finds the first hits only. Returns whether all of them were found.
bool search_quickly(const RangeColumns& ranges, const std::vector<std::uint8_t>& wanted, std::size_t limit,
                    std::vector<Piece>& pieces) {
    std::size_t found = 0;
    for (Piece& piece : pieces) {
        for (Row row = piece.begin; row < piece.end; ++row) {
            if (wanted[ranges.site[row]] == 0) continue;
            if (found == limit) return false;
            ++found;
            ++piece.count;
            piece.hits.push_back(row);
        }
    }
    return true;
}

/// Searches on all cores; each thread marks into counts of its own.
void search_all(const RangeColumns& ranges, const std::vector<std::uint8_t>& wanted, std::size_t limit,
                std::vector<Piece>& pieces, HitMarks& marks) {
    Mutex mutex;
    const HitMarks none = marks;
    parallel_for(pieces.size(), [&](std::size_t i) {
        HitMarks own = none;
        search_piece(ranges, wanted, limit, pieces[i], own);
        const ScopedLock lock(mutex);
        marks.add(own);
    });
}

void write_sites(JsonWriter& json, const std::vector<std::uint8_t>& wanted) {
    std::uint64_t names = 0;
    json.key("sites").begin_array();
    for (std::uint32_t site = 0; site < wanted.size(); ++site) {
        if (wanted[site] != 0 && names++ < kMaxSites) json.value(site);
    }
    json.end_array().member("names", names);
}

/// A place in the order of time: a start and a row.
using Place = std::pair<std::int64_t, Row>;

/// The nearest wanted range of a track after (before) a place.
std::optional<Place> nearest(const RangeColumns& ranges, const TrackInfo& track,
                             const std::vector<std::uint8_t>& wanted, const Place& from, bool is_forward) {
    const auto first = ranges.start_ns.begin() + track.first_range;
    const auto last = first + track.range_count;
    if (is_forward) {
        for (auto at = std::lower_bound(first, last, from.first); at != last; ++at) {
            const Place place{*at, static_cast<Row>(at - ranges.start_ns.begin())};
            if (place > from && wanted[ranges.site[place.second]] != 0) return place;
        }
    } else {
        for (auto at = std::upper_bound(first, last, from.first); at != first;) {
            --at;
            const Place place{*at, static_cast<Row>(at - ranges.start_ns.begin())};
            if (place < from && wanted[ranges.site[place.second]] != 0) return place;
        }
    }
    return {};
}

}  // namespace

Response search_response(const Request& request) {
    const auto begin = std::chrono::steady_clock::now();
    const RangeColumns ranges = request.trace().ranges();
    const auto limit = static_cast<std::size_t>(request.query.integer("limit", 0, kMaxHits, 100));
    const auto pixels = static_cast<std::uint32_t>(request.query.integer("pixels", 0, kMaxPixels, 0));
    const NameFilter filter(request.query);
    if (filter.is_empty()) throw RequestError(400, "parameter 'text': nothing to search for");
    const std::vector<std::uint8_t> wanted = filter.sites(request.trace());
    const Selection selection = request.selection();
    std::vector<Piece> pieces = pieces_of(request, selection);
    HitMarks marks(selection, pixels);
    bool is_exact = true;
    if (request.query.flag("quick")) {
        is_exact = search_quickly(ranges, wanted, limit, pieces);
    } else {
        search_all(ranges, wanted, limit, pieces, marks);
    }
    std::uint64_t count = 0;
    std::vector<Row> hits;
    for (const Piece& piece : pieces) {
        count += piece.count;
        hits.insert(hits.end(), piece.hits.begin(), piece.hits.end());
    }
    hits.resize(std::min(hits.size(), limit));
    return json_response([&](JsonWriter& json) {
        json.list("hits", hits, [&](Row row) { write_range(json, request, row); });
        json.member("count", count).member("exact", is_exact);
        write_sites(json, wanted);
        marks.write(json);
        const auto spent = std::chrono::steady_clock::now() - begin;
        json.member("elapsed_ms", std::chrono::duration<double, std::milli>(spent).count());
    });
}

Response next_response(const Request& request) {
    const Trace& trace = request.trace();
    const RangeColumns ranges = trace.ranges();
    const bool is_forward = request.query.integer("direction", -1, 1, 1) >= 0;
    const bool has_row = request.query.find("row").has_value();
    const Row row = has_row ? request.row("row", ranges.size()) : kNoRow;
    const NameFilter filter(request.query);
    std::vector<std::uint8_t> wanted;
    if (!filter.is_empty()) {
        wanted = filter.sites(trace);
    } else if (has_row) {
        const StringId name = trace.sites()[ranges.site[row]].name;
        for (const SiteInfo& site : trace.sites()) wanted.push_back(site.name == name ? 1 : 0);
    } else {
        throw RequestError(400, "expected the parameter 'row' or 'text'");
    }
    Place from{};
    if (has_row) {
        from = {ranges.start_ns[row], row};
    } else {
        constexpr std::int64_t kFarAway = std::int64_t{1} << 61;
        const std::int64_t time = request.query.integer("time", -kFarAway, kFarAway);
        from = {request.absolute(is_forward ? time - 1 : time), is_forward ? kNoRow : 0};
    }
    const bool is_one_track = has_row && request.query.text("within") != "all";
    const Row only = is_one_track ? trace.track_of(row) : kNoRow;
    std::optional<Place> best;
    for (Row number = 0; number < trace.tracks().size(); ++number) {
        if (only != kNoRow && number != only) continue;
        const auto found = nearest(ranges, trace.tracks()[number], wanted, from, is_forward);
        if (found && (!best || (is_forward ? *found < *best : *found > *best))) best = found;
    }
    return json_response([&](JsonWriter& json) {
        best ? write_range(json, request, best->second) : void(json.key("row").null());
    });
}

}  // namespace marey::serve
