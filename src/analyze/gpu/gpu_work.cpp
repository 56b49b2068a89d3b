// gpu_work.cpp: one pass over the device tracks, one over the links.
#include "analyze/gpu/gpu_work.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "analyze/events/event_categories.h"
#include "analyze/gpu/device_time.h"
#include "analyze/name_slots.h"
#include "analyze/track_place.h"
#include "base/text_hash.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

GpuWorkKind kind_of(const Trace& trace, const SiteInfo& site) {
    if (!is_device_work(site)) return GpuWorkKind::None;
    const std::string_view category = chrome_category(trace, site, true);
    if (category == "kernel" || category == "Kernel") return GpuWorkKind::Kernel;
    if (category == "gpu_memcpy" || category == "Memcpy") return GpuWorkKind::Copy;
    if (category == "gpu_memset" || category == "Memset") return GpuWorkKind::Set;
    const bool is_none = category == "cuda_sync" || category == "cuda_event" || category == "overhead" ||
                         category == "gpu_user_annotation";
    return is_none ? GpuWorkKind::None : GpuWorkKind::Other;
}

struct ShapeHash {
    std::size_t operator()(const GpuShape& shape) const noexcept {
        std::uint64_t hash = 0;
        for (const auto& triple : {shape.grid, shape.block}) {
            for (int i = 0; i < 3; ++i) hash = mix_hash(hash, static_cast<std::uint64_t>(triple[i]));
        }
        hash = mix_hash(hash, static_cast<std::uint64_t>(shape.registers));
        return mix_hash(hash, static_cast<std::uint64_t>(shape.shared_bytes));
    }
};

/// Reads the values of pieces. Their ranges must come in ascending order, starting from the position set
/// last.
class PieceValues {
  public:
    explicit PieceValues(const Trace& trace) : trace_(trace), key_of_(trace.string_count(), Key::Unseen) {}

    void move_to(Row range) {
        const auto is_before = [](const ArgumentSlice& slice, Row row) { return slice.row < row; };
        next_ = std::lower_bound(slices_.begin(), slices_.end(), range, is_before);
    }
    void read(GpuPiece& piece) {
        while (next_ != slices_.end() && next_->row < piece.range) ++next_;
        GpuShape shape;
        if (next_ != slices_.end() && next_->row == piece.range) {
            const std::span<const Argument> all = trace_.data().arguments;
            for (const Argument& value : all.subspan(next_->first, next_->count)) read(value, piece, shape);
        }
        if (piece.kind != GpuWorkKind::Kernel) return;
        const auto [known, is_new] =
            shape_numbers_.try_emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
        if (is_new) shapes_.push_back(shape);
        piece.shape = known->second;
    }
    std::vector<GpuShape> take_shapes() { return std::move(shapes_); }

  private:
    enum class Key : std::uint8_t { Unseen, Other, Grid, Block, Registers, Shared, Bytes, MemoryKind };

    Key key(StringId id) {
        if (id >= key_of_.size()) return Key::Other;
        Key& known = key_of_[id];
        if (known != Key::Unseen) return known;
        const std::string_view text = trace_.string(id);
        known = text == "grid"                              ? Key::Grid
                : text == "block"                           ? Key::Block
                : text == "registers per thread"            ? Key::Registers
                : text == "shared memory"                   ? Key::Shared
                : text == "bytes"                           ? Key::Bytes
                : text == "source" || text == "destination" ? Key::MemoryKind
                                                            : Key::Other;
        return known;
    }

    void read(const Argument& value, GpuPiece& piece, GpuShape& shape) {
        const Key what = key(value.key);
        if (what == Key::MemoryKind) {
            if (value.kind == ValueKind::String && trace_.string(value.string) == "Pageable")
                piece.is_pageable = true;
        } else if (value.kind == ValueKind::List) {
            if (what == Key::Grid) read_triple(value.list, shape.grid);
            if (what == Key::Block) read_triple(value.list, shape.block);
        } else if (value.kind == ValueKind::Int) {
            if (what == Key::Registers) shape.registers = value.integer;
            if (what == Key::Shared) shape.shared_bytes = value.integer;
            if (what == Key::Bytes) piece.bytes = std::max<std::int64_t>(value.integer, -1);
        }
    }

    void read_triple(const ListItems& list, std::int64_t (&triple)[3]) const {
        const std::span<const Argument> items = trace_.list_items();
        if (list.count != 3 || list.first > items.size() || items.size() - list.first < 3) return;
        for (std::uint32_t i = 0; i < 3; ++i) {
            const Argument& item = items[list.first + i];
            if (item.kind == ValueKind::Int) triple[i] = item.integer;
        }
    }

    const Trace& trace_;
    const std::vector<ArgumentSlice>& slices_ = trace_.data().range_arguments;
    std::vector<ArgumentSlice>::const_iterator next_ = slices_.begin();
    std::vector<Key> key_of_;
    std::vector<GpuShape> shapes_;
    std::unordered_map<GpuShape, std::uint32_t, ShapeHash> shape_numbers_;
};

/// The call that launched each range of the trace; the first one if there are several.
std::vector<Row> launching_calls(const Trace& trace) {
    const std::size_t count = trace.ranges().size();
    std::vector<Row> call_of(count, kNoRow);
    for (const LinkInfo& link : trace.links()) {
        if (link.kind != LinkKind::Launch || link.from >= count || link.to >= count) continue;
        if (call_of[link.to] == kNoRow) call_of[link.to] = link.from;
    }
    return call_of;
}

/// Merges sorted runs (each track is sorted).
void sort_by_start(std::vector<GpuPiece>& pieces) {
    const auto is_before = [](const GpuPiece& a, const GpuPiece& b) { return a.start_ns < b.start_ns; };
    std::vector<std::vector<GpuPiece>::iterator> ends;  // ends of the runs
    for (auto run = pieces.begin(); run != pieces.end(); run = ends.back())
        ends.push_back(std::is_sorted_until(run, pieces.end(), is_before));
    while (ends.size() > 1) {
        std::vector<std::vector<GpuPiece>::iterator> merged;
        auto start = pieces.begin();
        for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
            std::inplace_merge(start, ends[i], ends[i + 1], is_before);
            merged.push_back(start = ends[i + 1]);
        }
        if (ends.size() % 2 == 1) merged.push_back(ends.back());
        ends = std::move(merged);
    }
}

/// Marks the first piece that each call launched. The pieces are sorted by start.
void mark_first(GpuDeviceWork& work, std::vector<bool>& has_launched) {
    for (GpuPiece& piece : work.pieces) {
        if (piece.call == kNoRow || has_launched[piece.call]) continue;
        has_launched[piece.call] = true;
        piece.is_first = true;
    }
}

/// Rows of the device tracks, grouped by process, device and stream.
std::vector<Row> device_tracks(const Trace& trace, std::optional<std::int32_t> device) {
    const std::span<const TrackInfo> tracks = trace.tracks();
    std::vector<Row> rows;
    for (Row row = 0; row < tracks.size(); ++row) {
        if (place_of(tracks[row]) == Place::Device && (!device || tracks[row].device.index == *device))
            rows.push_back(row);
    }
    const auto key = [&](Row row) {
        const TrackInfo& track = tracks[row];
        return std::tuple(trace.threads()[track.thread].process, track.device.type, track.device.index,
                          track.stream, row);
    };
    std::ranges::sort(rows, [&](Row a, Row b) { return key(a) < key(b); });
    return rows;
}

/// The device of a track, with the track's stream as its last stream. Reuses only the last device of the
/// list.
GpuDeviceWork& device_of(const Trace& trace, std::vector<GpuDeviceWork>& devices, const TrackInfo& track) {
    const ThreadInfo& thread = trace.threads()[track.thread];
    if (devices.empty() || devices.back().process != thread.process ||
        devices.back().device != track.device) {
        devices.emplace_back();
        devices.back().process = thread.process;
        devices.back().device = track.device;
    }
    std::vector<GpuQueue>& streams = devices.back().streams;
    if (streams.empty() || streams.back().stream != track.stream)
        streams.push_back({track.stream, thread.name});
    return devices.back();
}

}  // namespace

GpuWork collect_gpu_work(const Trace& trace, std::optional<std::int32_t> device) {
    const RangeColumns ranges = trace.ranges();
    const WindowClip clip(trace);
    std::vector<GpuWorkKind> kinds;
    for (const SiteInfo& site : trace.sites()) kinds.push_back(kind_of(trace, site));
    GpuWork work;
    PieceValues values(trace);
    std::vector<Row> call_of;
    for (const Row track_row : device_tracks(trace, device)) {
        const TrackInfo& track = trace.tracks()[track_row];
        if (call_of.empty()) call_of = launching_calls(trace);
        values.move_to(track.first_range);
        GpuDeviceWork* owner = nullptr;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            GpuPiece piece;
            piece.kind = kinds[ranges.site[row]];
            if (piece.kind == GpuWorkKind::None) continue;
            if (owner == nullptr) owner = &device_of(trace, work.devices, track);
            piece.range = row;
            piece.stream = static_cast<std::uint32_t>(owner->streams.size() - 1);
            piece.call = call_of[row];
            piece.start_ns = std::max(clip.start_ns, std::min(ranges.start_ns[row], clip.end_ns));
            piece.end_ns = piece.start_ns + clip.duration(ranges.start_ns[row], ranges.duration_ns[row]);
            piece.is_pageable = piece.kind == GpuWorkKind::Copy &&
                                trace.range_name(row).find("Pageable") != std::string_view::npos;
            values.read(piece);
            owner->pieces.push_back(piece);
        }
    }
    work.shapes = values.take_shapes();
    std::vector<bool> has_launched(ranges.size());
    for (GpuDeviceWork& one : work.devices) {
        sort_by_start(one.pieces);
        mark_first(one, has_launched);
    }
    return work;
}

}  // namespace marey
