// running_capture.cpp: copies the blocks of a capture in the order that keeps the copy consistent. It is read
// and not mapped, because the program may truncate the file at any time.
#include "collect/running_capture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <marey/detail/thread_state.h>

#include "base/small_file.h"
#include "collect/live/shared_mappings.h"
#include "collect/log_records.h"
#include "collect/log_scan.h"
#include "record/clocks/clock.h"

namespace marey {

using namespace detail;

namespace {

bool is_this_boot(const FileHeader& header) {
    const std::string boot = read_small_file("/proc/sys/kernel/random/boot_id");
    const std::size_t length = strnlen(header.boot_id, sizeof header.boot_id);
    return length != 0 && boot.compare(0, length, header.boot_id, length) == 0;
}

bool maps_for_writing(std::int64_t pid, const struct stat& file) {
    struct stat process {};
    // Mappings of other users cannot be seen. Then it is enough that a process of the file's owner has the
    // id.
    if (geteuid() != 0 && geteuid() != file.st_uid)
        return stat(("/proc/" + std::to_string(pid)).c_str(), &process) == 0 && process.st_uid == file.st_uid;
    return std::ranges::any_of(
        shared_mappings(pid), [&file](const SharedMapping& mapping) { return mapping.inode == file.st_ino; });
}

/// With a limit, of the log.
constexpr std::size_t kMostLookedAt = std::size_t{64} << 20;

struct UsedBlock {
    std::size_t at;
    BlockHeader header;
};

/// The records of one thread in a chunk. A chunk belongs to one thread until that ends.
struct Piece {
    std::size_t begin = 0;
    std::uint32_t thread = 0;
    std::size_t end = 0;                ///< of those that ended in time
    std::size_t last = 0;               ///< where the last one of those begins
    std::vector<std::size_t> places{};  ///< where some of them begin, from the first one on
};

bool is_part(const std::byte* record) {
    return std::to_integer<std::uint8_t>(*record) == static_cast<std::uint8_t>(RecordKind::Part);
}

/// When the first of these records ended; the greatest number if it has no such time.
std::uint64_t end_of(const BlockHeader& header, std::span<const std::byte> records) {
    if (is_part(records.data())) {  // of the range that follows
        records = records.subspan(kRecordUnit);
        if (record_bytes(records.data(), records.size()) == 0 || is_part(records.data()))
            return ~std::uint64_t{0};
    }
    if (is_long_record(records.data())) {
        const auto head = read_as<LongRecord>(records.data());
        return std::max(head.time, head.word2);  // which may not be a time
    }
    return header.base_ticks + unpack(read_as<CompactRecord>(records.data())).delta;
}

std::vector<Piece> pieces_of(const BlockHeader& header, std::span<const std::byte> records,
                             std::uint64_t until) {
    constexpr std::size_t kStride = 4096;  // records cannot be read backwards
    std::vector<Piece> pieces{{0, header.thread, 0, 0, {0}}};
    const std::size_t units_end = records.size() / kRecordUnit * kRecordUnit;
    for (std::size_t at = 0; at < units_end;) {
        const std::size_t next_place = pieces.back().places.back() + kStride;
        const std::size_t stop = std::min(next_place, units_end);
        while (at < stop && !is_long_record(records.data() + at)) at += kRecordUnit;  // most of them
        pieces.back().end = at;
        if (at == units_end) break;
        const std::byte* const record = records.data() + at;
        const std::size_t bytes = record_bytes(record, records.size() - at);
        if (bytes == 0) break;
        if (is_long_record(record)) {
            const auto head = read_as<LongRecord>(record);
            if (static_cast<RecordKind>(head.kind) == RecordKind::ThreadSwitch)
                pieces.push_back({at, static_cast<std::uint32_t>(head.word2), at, at, {at}});
        }
        if (at - pieces.back().places.back() >= kStride) pieces.back().places.push_back(at);
        at += bytes;
        pieces.back().end = at;
    }
    for (Piece& piece : pieces) {
        auto place = piece.places.end() - 1;
        while (place != piece.places.begin() && end_of(header, records.subspan(*place)) > until) --place;
        const std::size_t end = std::exchange(piece.end, *place);
        for (std::size_t at = *place; at < end;) {
            const std::size_t next = at + record_bytes(records.data() + at, records.size() - at);
            if (end_of(header, records.subspan(at)) <= until) {
                piece.last = at;
                piece.end = next;
            }
            at = next;
        }
    }
    return pieces;
}

/// The first record of a piece that ended at `since` or later and with which at most so many bytes are left.
std::size_t first_wanted(const BlockHeader& header, std::span<const std::byte> records, const Piece& piece,
                         std::size_t most_bytes, std::uint64_t since) {
    const auto after = std::ranges::upper_bound(piece.places, piece.end - std::min(piece.end, most_bytes));
    std::size_t at = since != 0 || after == piece.places.begin() ? piece.begin : *(after - 1);
    while (at < piece.end &&
           (piece.end - at > most_bytes || (since != 0 && end_of(header, records.subspan(at)) < since)))
        at += record_bytes(records.data() + at, records.size() - at);
    // The last one says whether the innermost open range has just ended.
    return at == piece.end && most_bytes >= piece.end - piece.last ? piece.last : at;
}

/// Whether a record names a place in its chunk.
bool refers_back(std::span<const std::byte> records) {
    for (std::size_t at = 0; at < records.size();) {
        const std::size_t bytes = record_bytes(records.data() + at, records.size() - at);
        if (bytes == 0) break;
        if (std::to_integer<std::uint8_t>(records[at]) == static_cast<std::uint8_t>(RecordKind::Resumed))
            return true;
        at += bytes;
    }
    return false;
}

/// Bytes that are 0 until they are written, and take no memory until then.
class ZeroedBytes {
  public:
    ZeroedBytes() = default;
    ~ZeroedBytes() {
        if (data_ != nullptr) munmap(data_, mapped_);
    }
    ZeroedBytes(ZeroedBytes&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(other.size_), mapped_(other.mapped_) {}
    ZeroedBytes& operator=(ZeroedBytes&&) = delete;

    std::byte* data() { return data_; }
    const std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }

    void resize(std::size_t size) {
        if (size > mapped_) {
            const std::size_t wanted = std::max(size, 2 * mapped_);
            void* const place = mapped_ == 0 ? mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                             : mremap(data_, mapped_, wanted, MREMAP_MAYMOVE);
            if (place == MAP_FAILED) throw std::bad_alloc();
            data_ = static_cast<std::byte*>(place);
            mapped_ = wanted;
        }
        if (size < size_) std::memset(data_ + size, 0, size_ - size);
        size_ = size;
    }

  private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t mapped_ = 0;
};

class Copier {
  public:
    Copier(int file, const CopyLimits& limits, bool has_ended)
        : file_(file), limits_(limits), has_ended_(has_ended) {}

    std::optional<RunningCapture> copy() {
        FileHeader header{};
        if (!read_header(header) || (!has_ended_ && !is_written(header))) return std::nullopt;
        RunningCapture result;
        if (!has_ended_ && Clock::source() == static_cast<ClockSource>(header.clock_source))
            result.end_ticks = until_ticks_ = Clock::now();
        // The open ranges before the log: a range that ends in between is then in both, never in neither.
        const std::vector<UsedBlock> first = wanted_places(header);
        std::vector<State> states = read_states(first);
        // In a recorder, a chunk with a lower number was put into use earlier. So every chunk up to the last
        // one of this list is in the next list, wherever in the file it is, and nothing is missing in
        // between.
        std::uint64_t last = 0;
        for (const UsedBlock& place : first) {
            if (is(place.header, BlockKind::Log)) last = std::max(last, place.header.sequence);
        }
        std::vector<UsedBlock> log = wanted_places(header, last);
        std::erase_if(log, [last](const UsedBlock& place) {
            return !is(place.header, BlockKind::Log) || place.header.sequence > last;
        });
        // The newest chunks first, because a ring overwrites the oldest ones: those are lost in order.
        std::sort(log.begin(), log.end(), [](const UsedBlock& a, const UsedBlock& b) {
            return a.header.sequence > b.header.sequence;
        });
        // A thread that began meanwhile may continue in the chunk of one that has ended.
        log.erase(std::unique(log.begin(), log.end(),
                              [](const UsedBlock& a, const UsedBlock& b) { return a.at == b.at; }),
                  log.end());
        add(UsedBlock{0, {}}, kBlockBytes);
        if (limits_.last_ns > 0) {
            const std::uint64_t end = result.end_ticks != 0 ? result.end_ticks : latest_ticks(log);
            const double ticks =
                static_cast<double>(limits_.last_ns) / 1e9 * static_cast<double>(header.ticks_per_second);
            result.since_ticks = since_ticks_ =
                ticks < static_cast<double>(end) ? end - static_cast<std::uint64_t>(ticks) : 0;
        }
        copy_log(log, shares(header, states, log), result);
        // Everything that the log refers to was written before it.
        for (const UsedBlock& place : wanted_places(header, 0)) {
            if (is(place.header, BlockKind::Names) || is(place.header, BlockKind::Journal) ||
                is(place.header, BlockKind::Stacks))
                copy_block(place);
        }
        for (const State& state : states) {  // unless something else has taken its place since
            if (!is_unchanged(state.place)) continue;
            const std::size_t at = bytes_.size();
            bytes_.resize(at + state.place.header.blocks * kBlockBytes);
            std::memcpy(bytes_.data() + at, state.bytes.data(), state.bytes.size());
        }
        if (!read_header(header)) return std::nullopt;  // by now it is complete
        if (header.finished != 0) {                     // then it states its size
            header.blocks = static_cast<std::uint32_t>(bytes_.size() / kBlockBytes);
            std::memcpy(bytes_.data(), &header, sizeof header);
        }
        const auto owner = std::make_shared<const ZeroedBytes>(std::move(bytes_));
        result.bytes = {owner->data(), owner->size()};
        result.owner = owner;
        return result;
    }

  private:
    static bool is(const BlockHeader& header, BlockKind kind) {
        return header.kind == static_cast<std::uint16_t>(kind);
    }

    std::size_t read_into(std::size_t at, void* place, std::size_t bytes) const {
        const ssize_t count = pread(file_, place, bytes, static_cast<off_t>(at));
        return count > 0 ? static_cast<std::size_t>(count) : 0;
    }

    std::size_t file_size() const {
        struct stat status {};
        return fstat(file_, &status) == 0 && status.st_size > 0 ? static_cast<std::size_t>(status.st_size)
                                                                : 0;
    }

    /// Whether it is a capture as recorded and, unless its program has ended, not complete.
    bool read_header(FileHeader& header) const {
        return read_into(0, &header, sizeof header) == sizeof header &&
               std::memcmp(header.magic, kFileMagic, sizeof header.magic) == 0 &&
               header.byte_order == kByteOrderMark && header.block_bytes == kBlockBytes &&
               (has_ended_ || header.finished == 0);
    }

    bool is_written(const FileHeader& header) const {
        struct stat status {};
        return fstat(file_, &status) == 0 && is_this_boot(header) && maps_for_writing(header.pid, status);
    }

    /// The run of blocks that begins there, if it is in use now.
    std::optional<UsedBlock> used_block(std::size_t at, std::size_t end) const {
        UsedBlock place{at, {}};
        if (at < end && read_into(at, &place.header, sizeof place.header) == sizeof place.header &&
            place.header.magic == kBlockMagic && !is(place.header, BlockKind::Free) &&
            place.header.blocks != 0 && place.header.blocks * kBlockBytes <= end - at &&
            place.header.committed <= place.header.blocks * kBlockBytes - sizeof(BlockHeader))
            return place;
        return std::nullopt;
    }

    std::vector<UsedBlock> places() const {
        std::vector<UsedBlock> found;
        const std::size_t end = file_size();
        for (std::size_t at = kBlockBytes; at < end;) {
            const std::optional<UsedBlock> place = used_block(at, end);
            at += place ? place->header.blocks * kBlockBytes : kBlockBytes;
            if (place) found.push_back(*place);
        }
        return found;
    }

    /// If the bytes of the log are limited and the program runs, the blocks that are not log and the newest
    /// chunks of each thread that lives: their number does not follow from the size of the file. (The blocks
    /// that say how a program has ended are in no map.) No chunk comes after `last`.
    std::vector<UsedBlock> wanted_places(const FileHeader& header,
                                         std::uint64_t last = ~std::uint64_t{0}) const {
        const std::size_t end = file_size();
        std::vector<std::uint8_t> map(std::min<std::size_t>(header.map_bytes, kBlockBytes));
        if (!limits_bytes() || limits_.last_ns != 0 || has_ended_ || map.size() * 8 < end / kBlockBytes ||
            read_into(header.map_at, map.data(), map.size()) != map.size())
            return places();
        std::vector<UsedBlock> found;
        for (std::size_t block = 1; block < end / kBlockBytes; ++block) {
            if ((map[block / 8] >> block % 8 & 1) == 0) continue;
            const std::optional<UsedBlock> place = used_block(block * kBlockBytes, end);
            if (place && !is(place->header, BlockKind::Log)) found.push_back(*place);
        }
        if (last == 0) return found;
        const std::size_t count = found.size();
        const auto threads = static_cast<std::size_t>(std::ranges::count_if(
            found, [](const UsedBlock& place) { return is(place.header, BlockKind::Thread); }));
        for (std::size_t i = 0; i < count; ++i) {
            if (is(found[i].header, BlockKind::Thread))
                add_newest_chunks(found[i], limits_.log_bytes / threads, last, found);
        }
        return found;
    }

    void add_newest_chunks(const UsedBlock& thread, std::size_t bytes, std::uint64_t last,
                           std::vector<UsedBlock>& found) const {
        ChunkName name = 0;
        read_into(thread.at + offsetof(ThreadState, newest_chunk), &name, sizeof name);
        const std::size_t end = file_size();            // it may have grown
        std::uint64_t newer_ticks = ~std::uint64_t{0};  // when the chunk after it was begun
        for (std::size_t have = 0; name != 0 && have <= bytes;) {
            const std::optional<UsedBlock> chunk = used_block(chunk_block(name) * kBlockBytes, end);
            if (!chunk || !is(chunk->header, BlockKind::Log) ||
                chunk_name(chunk->header.sequence, chunk_block(name)) != name)
                return;
            if (chunk->header.sequence <= last) {
                found.push_back(*chunk);
                if (newer_ticks < until_ticks_) have += chunk->header.committed;  // all of it ended in time
            }
            newer_ticks = chunk->header.base_ticks;
            if (chunk->header.previous >= name) return;
            name = chunk->header.previous;
        }
    }

    bool is_unchanged(const UsedBlock& place) const {
        BlockHeader now;
        return read_into(place.at, &now, sizeof now) == sizeof now && now.kind == place.header.kind &&
               now.generation == place.header.generation && now.sequence == place.header.sequence &&
               now.thread == place.header.thread;
    }

    static std::size_t whole_blocks(std::size_t bytes) {
        return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    }

    /// Appends these bytes of the file, in whole blocks. False, and nothing is appended: they are not there.
    bool add(const UsedBlock& place, std::size_t bytes) {
        const std::size_t at = bytes_.size();
        bytes_.resize(at + whole_blocks(bytes));
        if (read_into(place.at, bytes_.data() + at, bytes) == bytes) return true;
        bytes_.resize(at);
        return false;
    }

    /// Sets the header of what was appended last.
    void set_header(std::size_t at, BlockHeader header) {
        header.blocks = static_cast<std::uint16_t>((bytes_.size() - at) / kBlockBytes);
        std::memcpy(bytes_.data() + at, &header, sizeof header);
    }

    /// The header as it was when the block was found, with the bytes that were committed then.
    void copy_block(const UsedBlock& place) {
        const std::size_t at = bytes_.size();
        if (add(place, sizeof(BlockHeader) + place.header.committed)) set_header(at, place.header);
    }

    /// The time of the last record. `log` begins with the newest chunk.
    std::uint64_t latest_ticks(const std::vector<UsedBlock>& log) const {
        std::uint64_t latest = 0;
        std::set<std::uint32_t> threads;
        std::vector<std::byte> records;
        for (const UsedBlock& place : log) {
            if (place.header.committed == 0 || !threads.insert(place.header.thread).second) continue;
            records.resize(place.header.committed);
            if (read_into(place.at + sizeof(BlockHeader), records.data(), records.size()) != records.size())
                continue;
            const LogSpan span{
                records.data(), records.size(), place.header.thread, 0, place.header.base_ticks, {}};
            latest = std::max(latest, scan_span(span, {}).latest);
        }
        return latest;
    }

    /// A block of a thread's open ranges.
    struct State {
        UsedBlock place;
        std::vector<std::byte> bytes;
    };

    using Shares = std::map<std::uint32_t, std::size_t>;  // bytes of the log, by thread

    bool limits_bytes() const { return limits_.log_bytes != CopyLimits().log_bytes; }

    /// Equal ones for the threads that live; if none does, for those whose chunks are there.
    Shares shares(const FileHeader& header, const std::vector<State>& states,
                  const std::vector<UsedBlock>& log) const {
        Shares shares;
        for (const State& state : states) {
            if (header.finished == 0 && is(state.place.header, BlockKind::Thread))
                shares[state.place.header.thread] = 0;
        }
        if (shares.empty()) {
            for (const UsedBlock& place : log) shares[place.header.thread] = 0;
        }
        for (auto& [thread, bytes] : shares) bytes = limits_.log_bytes / shares.size();
        return shares;
    }

    void copy_log(const std::vector<UsedBlock>& log, Shares left, RunningCapture& result) {
        std::set<std::uint32_t> cut;  // threads that have no more records in older chunks
        std::size_t looked_at = 0;
        for (UsedBlock place : log) {
            // A chunk of a thread that has ended may have been filled up by one that lives.
            if (cut.contains(place.header.thread) || (limits_bytes() && looked_at > kMostLookedAt)) continue;
            looked_at += place.header.committed;
            BlockHeader now;  // its chunk may have grown since
            if (read_into(place.at, &now, sizeof now) == sizeof now &&
                now.sequence == place.header.sequence &&
                now.committed <= place.header.blocks * kBlockBytes - sizeof(BlockHeader))
                place.header.committed = std::max(now.committed, place.header.committed);
            // If this process had to wait, a whole ring may have been written after the window's end.
            const bool is_in_time = result.end_ticks == 0 || place.header.base_ticks < result.end_ticks;
            const bool is_copied = copy_chunk(place, left, cut);
            (is_copied && is_in_time ? result.log_bytes : result.lost_bytes) += place.header.committed;
        }
    }

    /// Appends a chunk without the records that are not wanted. False: it was overwritten.
    bool copy_chunk(UsedBlock place, Shares& left, std::set<std::uint32_t>& cut_threads) {
        const std::size_t at = bytes_.size();
        if (!limits_.has_limit()) {
            if (!add(place, sizeof(BlockHeader) + place.header.committed)) return false;
            if (!is_unchanged(place)) {
                bytes_.resize(at);
                return false;
            }
            set_header(at, place.header);
            return true;
        }
        // Most of it may be unwanted, so it is read to a place where memory is already in use.
        chunk_.resize(std::max<std::size_t>(chunk_.size(), place.header.committed));
        std::span<std::byte> records = std::span(chunk_).first(place.header.committed);
        if (read_into(place.at + sizeof(BlockHeader), records.data(), records.size()) != records.size() ||
            !is_unchanged(place))
            return false;
        const std::vector<Piece> pieces = pieces_of(place.header, records, until_ticks_);
        std::size_t cut = 0;
        for (std::size_t i = pieces.size(); i-- != 0;) {
            std::size_t& most =
                left.try_emplace(pieces[i].thread, limits_bytes() ? 0 : limits_.log_bytes).first->second;
            const std::size_t from = first_wanted(place.header, records, pieces[i], most, since_ticks_);
            most -= pieces[i].end - from;
            if (from == pieces[i].begin) continue;
            cut = from;
            place.header.thread = pieces[i].thread;
            // Older records of these threads are missing, in this chunk and in older ones.
            for (std::size_t k = 0; k <= i; ++k) cut_threads.insert(pieces[k].thread);
            break;
        }
        if (cut == records.size()) return true;
        if (cut >= sizeof(LongRecord) && refers_back(records.subspan(cut))) {
            // One record takes the place of those left out, so that the others find each other.
            LongRecord gap{};
            gap.kind = static_cast<std::uint8_t>(RecordKind::Dropped);
            gap.units = static_cast<std::uint16_t>(cut / kRecordUnit);
            gap.time = place.header.base_ticks;
            std::memcpy(records.data(), &gap, sizeof gap);
        } else {
            records = records.subspan(cut);
        }
        place.header.committed = records.size();
        bytes_.resize(at + whole_blocks(sizeof(BlockHeader) + records.size()));
        std::memcpy(bytes_.data() + at + sizeof(BlockHeader), records.data(), records.size());
        set_header(at, place.header);
        return true;
    }

    std::vector<State> read_states(const std::vector<UsedBlock>& places) const {
        std::vector<State> states;
        for (const UsedBlock& place : places) {
            if (!is(place.header, BlockKind::Thread) && !is(place.header, BlockKind::OpenSegment) &&
                !is(place.header, BlockKind::SideSegment))
                continue;
            State state{place, {}};
            if (read_state(place, state.bytes)) states.push_back(std::move(state));
        }
        return states;
    }

    // Its owner writes to it: a slot counts if it is read twice equal, as in the recorder. Most of a thread's
    // block is unused.
    bool read_state(const UsedBlock& place, std::vector<std::byte>& state) const {
        constexpr std::size_t kSlots = offsetof(ThreadState, slots), kSide = offsetof(ThreadState, side);
        const bool is_thread = is(place.header, BlockKind::Thread);
        std::size_t used = place.header.blocks * kBlockBytes;
        if (is_thread) {
            std::uint32_t depth = 0;
            if (read_into(place.at + offsetof(ThreadState, depth), &depth, sizeof depth) != sizeof depth)
                return false;
            used = kSlots + std::min<std::size_t>(depth, kOpenSlots) * sizeof(OpenSlot);
        }
        state.resize(used);
        std::vector<std::byte> again(used);
        if (read_into(place.at, state.data(), used) != used ||
            read_into(place.at, again.data(), used) != used || !is_unchanged(place))
            return false;
        if (is(place.header, BlockKind::SideSegment)) return true;
        bool has_side = false;
        for (std::size_t at = is_thread ? kSlots : sizeof(BlockHeader); at + sizeof(OpenSlot) <= used;
             at += sizeof(OpenSlot)) {
            if (std::memcmp(state.data() + at, again.data() + at, sizeof(OpenSlot)) != 0)
                std::memset(state.data() + at, 0, sizeof(OpenSlot));
            has_side = has_side || read_as<OpenSlot>(state.data() + at).what >> 32 != 0;
        }
        if (!is_thread || !has_side) return true;
        state.resize(sizeof(ThreadState));
        return read_into(place.at + kSide, state.data() + kSide, kSideBytes) == kSideBytes;
    }

    int file_;
    CopyLimits limits_;
    bool has_ended_;
    std::uint64_t since_ticks_ = 0;
    std::uint64_t until_ticks_ = ~std::uint64_t{0};
    ZeroedBytes bytes_;
    std::vector<std::byte> chunk_;  // the last one that was read
};

/// A file that is not even opened unless it is a regular one; -1: it cannot be read.
int open_regular(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return -1;
    return open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

}  // namespace

std::optional<RunningCapture> copy_running_capture(const std::string& path, const CopyLimits& limits) {
    const int file = open_regular(path);
    if (file < 0) return std::nullopt;
    // A program that records at full speed may overwrite a whole ring while this process waits for a core.
    // After a pause, the system lets it run for longer.
    constexpr int kMostAttempts = 40;
    constexpr std::chrono::milliseconds kPause(10);
    std::optional<RunningCapture> best = Copier(file, limits, false).copy();
    for (int i = 1; best && best->lost_bytes > best->log_bytes && i < kMostAttempts; ++i) {
        std::this_thread::sleep_for(kPause);
        std::optional<RunningCapture> next = Copier(file, limits, false).copy();
        if (!next || next->log_bytes > best->log_bytes) best = std::move(next);
    }
    close(file);
    return best;
}

std::optional<RunningCapture> copy_ended_capture(const std::string& path, const CopyLimits& limits) {
    const int file = open_regular(path);
    if (file < 0) return std::nullopt;
    std::optional<RunningCapture> copy = Copier(file, limits, true).copy();
    close(file);
    return copy;
}

}  // namespace marey
