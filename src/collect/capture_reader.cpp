// capture_reader.cpp: walks the blocks of a capture and reads only what their headers commit to; finds
// the ranges that were open when the program died.
#include "collect/capture_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <marey/detail/log_format.h>
#include <marey/detail/thread_state.h>
#include <marey/error.h>

#include "base/mapped_file.h"
#include "collect/log_records.h"
#include "collect/packed_capture.h"
#include "record/stack_numbers.h"

namespace marey {
namespace {

/// How many of the bytes are complete records, starting from the first.
std::size_t whole_log_bytes(std::span<const std::byte> log) noexcept {
    std::size_t at = 0;
    while (at < log.size()) {
        const std::size_t bytes = record_bytes(log.data() + at, log.size() - at);
        if (bytes == 0) break;
        at += bytes;
    }
    return at;
}

/// The Thread, OpenSegment and SideSegment blocks of a capture, by thread. The newest (by sequence) wins
/// where two claim the same place. The bytes belong to the capture and must outlive this.
class ThreadBlocks {
  public:
    /// `data` starts after the header and goes as far as the file does.
    void add(const detail::BlockHeader& header, std::span<const std::byte> data);

  private:
    struct Part {
        std::uint64_t sequence = 0;
        std::span<const std::byte> data;
    };
    friend void read_thread_blocks(const ThreadBlocks& blocks, RawLog& log);
    static void put(Part& place, std::uint64_t sequence, std::span<const std::byte> data);

    std::map<std::uint32_t, Part> states_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Part> open_segments_;  // (thread, segment)
    std::map<std::uint32_t, Part> side_segments_;
};

using namespace detail;

void ThreadBlocks::put(Part& place, std::uint64_t sequence, std::span<const std::byte> data) {
    if (place.data.data() == nullptr || sequence >= place.sequence) place = {sequence, data};
}

void ThreadBlocks::add(const BlockHeader& header, std::span<const std::byte> data) {
    if (header.thread == 0) return;
    switch (static_cast<BlockKind>(header.kind)) {
        case BlockKind::Thread:
            put(states_[header.thread], header.sequence, data);
            break;
        case BlockKind::OpenSegment:
            put(open_segments_[{header.thread, header.segment}], header.sequence, data);
            break;
        case BlockKind::SideSegment:
            put(side_segments_[header.thread], header.sequence, data);
            break;
        default:
            break;
    }
}

// Fields of ThreadState, by offset after its BlockHeader; empty when the file ends before.
template <class T>
T field(std::span<const std::byte> data, std::size_t offset) {
    offset -= sizeof(BlockHeader);
    if (offset + sizeof(T) > data.size()) return T{};
    return read_as<T>(data.data() + offset);
}

// The values of an open range: `side` is 1 + the 8-byte unit of the side stack where they are. Entries are in
// the order of their ranges: none may begin before `used`, so that no byte is returned twice.
std::span<const std::byte> side_payload(std::span<const std::byte> state, std::span<const std::byte> segment,
                                        std::uint32_t side, std::size_t& used) {
    if (side == 0) return {};
    std::size_t offset = std::size_t{side - 1} * 8;
    if (offset < used) return {};
    const std::size_t position = offset;
    std::span<const std::byte> stack;
    if (offset < kSideBytes) {
        const std::size_t start = offsetof(ThreadState, side) - sizeof(BlockHeader);
        if (start > state.size()) return {};
        stack = state.subspan(start, std::min(kSideBytes, state.size() - start));
    } else {
        offset -= kSideBytes;
        stack = segment;
    }
    if (offset + sizeof(SideEntry) > stack.size()) return {};
    const auto entry = read_as<SideEntry>(stack.data() + offset);
    if (entry.bytes > kMaxPayloadBytes || entry.bytes > stack.size() - offset - sizeof entry) return {};
    used = position + sizeof entry + entry.bytes;
    return stack.subspan(offset + sizeof entry, entry.bytes);
}

/// Adds the open ranges to `log.open`, and each thread's counters to `log.journal` as Losses records where
/// they exceed those of the journal.
void read_thread_blocks(const ThreadBlocks& blocks, RawLog& log) {
    for (const auto& [thread, part] : blocks.states_) {
        const std::span<const std::byte> state = part.data;
        LossesRecord losses{};  // its totals may be ahead of the journal's
        losses.head = {static_cast<std::uint16_t>(JournalKind::Losses), 0, sizeof losses};
        losses.thread = thread;
        losses.dropped = field<std::uint64_t>(state, offsetof(ThreadState, dropped));
        losses.resyncs = field<std::uint64_t>(state, offsetof(ThreadState, resyncs));
        losses.clamped = field<std::uint64_t>(state, offsetof(ThreadState, clamped));
        if ((losses.dropped | losses.resyncs | losses.clamped) != 0) {
            const auto* const bytes = reinterpret_cast<const std::byte*>(&losses);
            log.journal.insert(log.journal.end(), bytes, bytes + sizeof losses);
        }

        std::span<const std::byte> side;
        if (const auto found = blocks.side_segments_.find(thread); found != blocks.side_segments_.end()) {
            side = found->second.data;
        }
        const std::uint32_t depth = field<std::uint32_t>(state, offsetof(ThreadState, depth));
        std::span<const std::byte> slots;
        std::uint32_t first_slot = 0;  // of `slots`
        std::size_t side_used = 0;
        const std::size_t start = offsetof(ThreadState, slots) - sizeof(BlockHeader);
        if (start < state.size()) {
            slots = state.subspan(start, std::min(kOpenSlots * sizeof(OpenSlot), state.size() - start));
        }
        for (std::uint32_t segment = 0;; ++segment) {
            for (std::size_t i = 0; (i + 1) * sizeof(OpenSlot) <= slots.size(); ++i) {
                const std::uint32_t index = first_slot + static_cast<std::uint32_t>(i);
                if (index >= depth) break;
                const auto slot = read_as<OpenSlot>(slots.data() + i * sizeof(OpenSlot));
                if (slot.start == 0) continue;  // being filled, or just closed
                if ((slot.what & (kMaxSites - 1)) == 0)
                    continue;  // counts a begin made while nothing recorded
                OpenRange range{.thread = thread,
                                .depth = index,
                                .start = slot.start,
                                .site = static_cast<std::uint32_t>(slot.what & (kMaxSites - 1)),
                                .flags = static_cast<std::uint8_t>(slot.what >> kSiteBits &
                                                                   ~std::uint64_t{kSlotObjectless})};
                const auto payload =
                    side_payload(state, side, static_cast<std::uint32_t>(slot.what >> 32), side_used);
                range.payload.assign(payload.begin(), payload.end());
                log.open.push_back(std::move(range));
            }
            first_slot = static_cast<std::uint32_t>(kOpenSlots + std::size_t{segment} * kSlotsPerSegment);
            if (first_slot >= depth) break;
            const auto found = blocks.open_segments_.find({thread, segment});
            if (found == blocks.open_segments_.end()) break;
            slots = found->second.data.first(
                std::min(found->second.data.size(), kSlotsPerSegment * sizeof(OpenSlot)));
        }
    }
}

}  // namespace

using namespace detail;

namespace {

constexpr std::uint32_t kMaxStackBlocks = 1 << 20;
constexpr std::size_t kMinHeaderBytes = offsetof(FileHeader, clock_source);

/// A run of blocks with a plausible header. `data` starts after the header, `committed` is already cut to the
/// file.
struct Run {
    BlockHeader header;
    std::span<const std::byte> data;  ///< all of the run, as far as the file goes
    std::span<const std::byte> committed;
};

template <std::size_t N>
std::string fixed_text(const char (&text)[N]) {
    return {text, strnlen(text, N)};
}

// A block whose header is valid except for its magic: distinguishes damaged blocks from blocks never used,
// whose bytes are old records or zeros.
bool is_broken_header(const BlockHeader& header) {
    if (header.kind == 0 || header.kind > static_cast<std::uint16_t>(BlockKind::Stacks)) return false;
    if (header.blocks != 1 && header.blocks != kLargeBlocks) return false;
    return header.sequence != 0 && header.committed <= header.blocks * kBlockBytes && header.reserved0 == 0 &&
           std::all_of(std::begin(header.reserved), std::end(header.reserved),
                       [](auto word) { return word == 0; });
}

class CaptureParser {
  public:
    CaptureParser(std::span<const std::byte> bytes, RawLog& log, bool with_records)
        : bytes_(bytes), log_(log), with_records_(with_records) {}

    void parse(const FileHeader& header) {
        take_facts(header);
        walk();
        if (is_shorter_than_stated(header)) truncated_ = true;
        join(names_, log_.names, "names");
        join(journal_, log_.journal, "journal");
        for (const auto& [number, run] : stacks_) add_stacks(number, run);
        if (header.finished == 0) {
            read_thread_blocks(threads_, log_);
        } else {
            log_.finished = true;
        }
        if (truncated_) problem("truncated", "The capture is truncated; the rest of it is lost.", 1);
        if (damaged_ != 0) {
            problem("damaged_chunk", "Parts of the capture are damaged and have been left out.", damaged_);
        }
        if (names_.empty() && journal_.empty() && log_.spans.empty() && log_.open.empty()) {
            problem("empty", "The capture holds no records.", 1);
        }
    }

  private:
    void problem(const char* code, const char* text, std::uint64_t count) {
        log_.problems.push_back({code, text, count});
    }

    void take_facts(const FileHeader& header) {
        log_.pid = header.pid;
        log_.node = static_cast<std::int32_t>(std::clamp<std::int64_t>(header.node, -1, 0x7fffffff));
        log_.host = fixed_text(header.host);
        log_.executable = fixed_text(header.executable);
        const std::size_t bytes =
            std::min<std::size_t>(header.command_line_bytes, sizeof header.command_line);
        log_.command_line.assign(header.command_line, bytes);
        while (!log_.command_line.empty() && log_.command_line.back() == '\0') log_.command_line.pop_back();
        std::replace(log_.command_line.begin(), log_.command_line.end(), '\0', ' ');
        log_.clock_source = static_cast<ClockSource>(header.clock_source);
        log_.ticks_per_second = header.ticks_per_second;
    }

    // A finished file consists of complete blocks and states how many. If a cut goes through no block in use,
    // nothing else shows that there was more.
    bool is_shorter_than_stated(const FileHeader& header) const {
        if (header.finished == 0) return false;
        return bytes_.size() % kBlockBytes != 0 || bytes_.size() / kBlockBytes < header.blocks;
    }

    void walk() {
        std::size_t free_until = 0;  // inside a free run old bytes are not damage
        for (std::size_t at = kBlockBytes; at < bytes_.size();) {
            const std::size_t left = bytes_.size() - at;
            if (left < sizeof(BlockHeader)) {
                truncated_ = true;
                break;
            }
            Run run{read_as<BlockHeader>(bytes_.data() + at), {}, {}};
            const BlockHeader& header = run.header;
            if (header.magic != kBlockMagic) {
                if (at >= free_until && is_broken_header(header)) ++damaged_;
                at += kBlockBytes;
                continue;
            }
            if (header.kind == static_cast<std::uint16_t>(BlockKind::Free)) {
                free_until = std::max(free_until, at + header.blocks * kBlockBytes);
                at += kBlockBytes;
                continue;
            }
            const std::size_t run_bytes = header.blocks * kBlockBytes;
            if (header.blocks == 0 || header.committed > run_bytes - sizeof(BlockHeader)) {
                ++damaged_;
                at += kBlockBytes;
                continue;
            }
            if (run_bytes > left) truncated_ = true;
            const std::size_t room = std::min(run_bytes, left) - sizeof(BlockHeader);
            run.data = bytes_.subspan(at + sizeof(BlockHeader), room);
            run.committed = run.data.first(std::min<std::size_t>(header.committed, room));
            take_run(run);
            at += run_bytes;
        }
    }

    void take_run(const Run& run) {
        switch (static_cast<BlockKind>(run.header.kind)) {
            case BlockKind::Names:
                names_.push_back(run);
                break;
            case BlockKind::Journal:
                journal_.push_back(run);
                break;
            case BlockKind::Log:
                take_log(run);
                break;
            case BlockKind::Thread:
            case BlockKind::OpenSegment:
            case BlockKind::SideSegment:
                threads_.add(run.header, run.data);
                break;
            case BlockKind::Stacks:
                stacks_[run.header.segment] = run;
                break;
            default:
                break;  // a kind written by a later version
        }
    }

    void take_log(const Run& run) {
        const std::size_t whole = with_records_ ? whole_log_bytes(run.committed) : run.committed.size();
        if (whole != run.committed.size() && run.committed.size() == run.header.committed) ++damaged_;
        if (whole == 0) return;
        LogSpan span{.data = run.committed.data(),
                     .bytes = whole,
                     .thread = run.header.thread,
                     .sequence = run.header.sequence,
                     .base_ticks = run.header.base_ticks,
                     .pair = run.header.pair};
        log_.spans.push_back(span);
    }

    // The blocks of a stream in order of sequence. After a damaged record, reading continues with the next
    // block.
    void join(std::vector<Run>& runs, std::vector<std::byte>& stream, const char* what) {
        std::stable_sort(runs.begin(), runs.end(),
                         [](const Run& a, const Run& b) { return a.header.sequence < b.header.sequence; });
        std::size_t whole = 0;
        bool damaged = false;
        std::size_t all = 0;
        for (const Run& run : runs) all += run.committed.size();
        for (const Run& run : runs) {
            stream.insert(stream.end(), run.committed.begin(), run.committed.end());
            StreamCursor at{std::span<const std::byte>(stream).subspan(whole)};
            while (at.next()) {
            }
            whole = stream.size() - at.rest_bytes();
            if (!at.ended_early()) continue;
            // A record may continue in the next block. One that cannot be a record at all is dropped with its
            // block. Only messages are large enough to span many blocks.
            const auto rest = std::span(stream).subspan(whole);
            bool can_go_on = rest.size() < sizeof(StreamRecord);
            if (!can_go_on) {
                const auto head = read_as<StreamRecord>(rest.data());
                const bool is_message = head.kind == static_cast<std::uint16_t>(JournalKind::RemoteEvents);
                can_go_on = head.bytes % 8 == 0 && head.bytes > rest.size() &&
                            head.bytes <= (is_message ? all - whole : kBlockBytes * kLargeBlocks);
            }
            if (!can_go_on) {
                stream.resize(whole);
                damaged = true;
            }
        }
        if (whole != stream.size()) damaged = true;
        stream.resize(whole);
        if (damaged) {
            log_.problems.push_back({"damaged_chunk",
                                     std::string("Part of the capture's ") + what + " is damaged or missing.",
                                     1});
        }
    }

    // Stacks become names, as in captures that are not blocks of a file.
    void add_stacks(std::uint32_t number, const Run& run) {
        std::vector<StackNode> nodes(std::min(run.committed.size() / sizeof(StackNode), kStackNodes));
        if (nodes.empty() || number > kMaxStackBlocks) return;
        std::memcpy(nodes.data(), run.committed.data(), nodes.size() * sizeof(StackNode));
        while (!nodes.empty() && nodes.back().is_complete == 0) nodes.pop_back();
        append_stack_nodes(log_.names, static_cast<std::uint32_t>(number * kStackNodes + 1), nodes);
    }

    std::span<const std::byte> bytes_;
    RawLog& log_;
    std::map<std::uint32_t, Run> stacks_;
    std::vector<Run> names_;
    std::vector<Run> journal_;
    ThreadBlocks threads_;
    bool truncated_ = false;
    const bool with_records_;
    std::uint64_t damaged_ = 0;
};

}  // namespace

RawLog read_capture_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> keep_alive,
                          const std::string& name, bool with_records) {
    if (bytes.empty()) throw Error(name + ": empty file, not a Marey capture");
    if (bytes.size() < sizeof kFileMagic || std::memcmp(bytes.data(), kFileMagic, sizeof kFileMagic) != 0) {
        throw Error(name + ": not a Marey capture");
    }
    if (bytes.size() < kMinHeaderBytes) throw Error(name + ": truncated in its header");
    FileHeader header{};
    std::memcpy(static_cast<void*>(&header), bytes.data(), std::min(sizeof header, bytes.size()));
    if (header.byte_order != kByteOrderMark) {
        const bool swapped = header.byte_order == __builtin_bswap32(kByteOrderMark);
        throw Error(name +
                    (swapped ? ": written on a machine with a different byte order" : ": damaged header"));
    }
    if (header.version > kFormatVersion) {
        throw Error(name + ": written by a newer Marey (format " + std::to_string(header.version) + ")");
    }
    if (header.version == 0) throw Error(name + ": damaged header");
    if (header.block_bytes == kPackedBlockBytes) return unpack_capture(bytes, name, with_records);
    if (header.block_bytes != kBlockBytes) {
        throw Error(name + ": unsupported block size: " + std::to_string(header.block_bytes) + " bytes");
    }
    if (bytes.size() < sizeof header) throw Error(name + ": truncated in its header");
    RawLog log;
    log.keep_alive = std::move(keep_alive);
    CaptureParser(bytes, log, with_records).parse(header);
    return log;
}

namespace {

RawLog read_copy(const RunningCapture& copy, const std::string& path) {
    RawLog log = read_capture_bytes(copy.bytes, copy.owner, path);
    log.end_ticks = copy.end_ticks;
    log.since_ticks = copy.since_ticks;
    return log;
}

RawLog read_running(const RunningCapture& copy, const std::string& path) {
    RawLog log = read_copy(copy, path);
    log.is_running = true;
    log.problems.push_back({"running", "The program is still running: this is its capture so far.", 1});
    return log;
}

}  // namespace

RawLog read_capture(std::shared_ptr<const MappedFile> file, const std::string& path, bool with_records) {
    const auto is_unfinished = [&file] {
        return file->bytes().size() >= sizeof(FileHeader) &&
               read_as<std::uint32_t>(file->bytes().data() + offsetof(FileHeader, finished)) == 0;
    };
    if (!is_unfinished()) return read_capture_bytes(file->bytes(), file, path, with_records);
    if (const std::optional<RunningCapture> copy = copy_running_capture(path))
        return read_running(*copy, path);
    if (!is_unfinished()) file = MappedFile::open(path);  // it has just been finished, and has another size
    return read_capture_bytes(file->bytes(), file, path, with_records);
}

RawLog read_newest(const std::string& path, const CopyLimits& limits) {
    if (const std::optional<RunningCapture> copy = copy_running_capture(path, limits))
        return read_running(*copy, path);
    if (const std::optional<RunningCapture> copy = copy_ended_capture(path, limits))
        return read_copy(*copy, path);
    return read_capture(path);
}

RawLog read_capture(const std::string& path) {
    return read_capture(MappedFile::open(path), path);
}

}  // namespace marey
