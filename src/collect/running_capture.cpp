// running_capture.cpp: copies the blocks of a capture in the order that keeps the copy consistent. It is read
// and not mapped, because the program may truncate the file at any time.
#include "collect/running_capture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>
#include <vector>

#include <marey/detail/thread_state.h>

#include "base/small_file.h"
#include "record/clocks/clock.h"

namespace marey {

using namespace detail;

namespace {

constexpr std::size_t kMostMapsBytes = std::size_t{64} << 20;

bool is_this_boot(const FileHeader& header) {
    const std::string boot = read_small_file("/proc/sys/kernel/random/boot_id");
    const std::size_t length = strnlen(header.boot_id, sizeof header.boot_id);
    return length != 0 && boot.compare(0, length, header.boot_id, length) == 0;
}

bool maps_for_writing(std::int64_t pid, std::uint64_t inode) {
    std::istringstream maps(
        read_small_file(("/proc/" + std::to_string(pid) + "/maps").c_str(), kMostMapsBytes));
    for (std::string line; std::getline(maps, line);) {
        char access[5] = {};
        std::uint64_t mapped = 0;
        if (std::sscanf(line.c_str(), "%*s %4s %*s %*s %" SCNu64, access, &mapped) == 2 && mapped == inode &&
            std::strcmp(access, "rw-s") == 0)
            return true;
    }
    return false;
}

struct UsedBlock {
    std::size_t at;
    BlockHeader header;
};

class Copier {
  public:
    explicit Copier(int file) : file_(file) {}

    std::optional<RunningCapture> copy() {
        FileHeader header{};
        if (!is_running(header)) return std::nullopt;
        RunningCapture result;
        if (Clock::source() == static_cast<ClockSource>(header.clock_source)) result.end_ticks = Clock::now();
        // The open ranges before the log: a range that ends in between is then in both, never in neither.
        const std::vector<State> states = read_states();
        // In a recorder, a chunk with a lower number was put into use earlier. So every chunk up to the last
        // one of this list is in the next list, wherever in the file it is, and nothing is missing in
        // between.
        std::uint64_t last = 0;
        for (const UsedBlock& place : places()) {
            if (is(place.header, BlockKind::Log)) last = std::max(last, place.header.sequence);
        }
        std::vector<UsedBlock> all = places();
        const std::size_t size = file_size();
        bytes_.reset(static_cast<std::byte*>(std::calloc(1, size)), &std::free);
        if (bytes_ == nullptr) return std::nullopt;
        room_ = size;
        read_at(0, kBlockBytes);
        for (const State& state : states) {  // what has taken the place of one since is copied over it
            if (state.at + state.bytes.size() <= room_)
                std::memcpy(bytes_.get() + state.at, state.bytes.data(), state.bytes.size());
        }
        // The newest chunks first, because a ring overwrites the oldest ones: those are lost in order.
        std::sort(all.begin(), all.end(), [](const UsedBlock& a, const UsedBlock& b) {
            return a.header.sequence > b.header.sequence;
        });
        for (const UsedBlock& place : all) {
            if (!is(place.header, BlockKind::Log) || place.header.sequence > last) continue;
            // If this process had to wait, a whole ring may have been written after the window's end.
            const bool is_in_time = result.end_ticks == 0 || place.header.base_ticks < result.end_ticks;
            (copy_log(place) && is_in_time ? result.log_bytes : result.lost_bytes) += place.header.committed;
        }
        // Everything that the log refers to was written before it.
        for (const UsedBlock& place : places()) {
            if (is(place.header, BlockKind::Names) || is(place.header, BlockKind::Journal)) copy_block(place);
        }
        if (!is_running(header)) return std::nullopt;  // by now it is complete
        result.bytes = {bytes_.get(), size};
        result.owner = bytes_;
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

    bool is_running(FileHeader& header) const {
        struct stat status {};
        return read_into(0, &header, sizeof header) == sizeof header &&
               std::memcmp(header.magic, kFileMagic, sizeof header.magic) == 0 &&
               header.byte_order == kByteOrderMark && header.block_bytes == kBlockBytes &&
               header.finished == 0 && fstat(file_, &status) == 0 && is_this_boot(header) &&
               maps_for_writing(header.pid, status.st_ino);
    }

    /// The blocks in use now.
    std::vector<UsedBlock> places() const {
        std::vector<UsedBlock> found;
        const std::size_t end = file_size();
        for (std::size_t at = kBlockBytes; at < end;) {
            UsedBlock place{at, {}};
            const bool is_used =
                read_into(at, &place.header, sizeof place.header) == sizeof place.header &&
                place.header.magic == kBlockMagic && !is(place.header, BlockKind::Free) &&
                place.header.blocks != 0 && place.header.blocks * kBlockBytes <= end - at &&
                place.header.committed <= place.header.blocks * kBlockBytes - sizeof(BlockHeader);
            at += is_used ? place.header.blocks * kBlockBytes : kBlockBytes;
            if (is_used) found.push_back(place);
        }
        return found;
    }

    bool read_at(std::size_t at, std::size_t bytes) {
        return at + bytes <= room_ && read_into(at, bytes_.get() + at, bytes) == bytes;
    }

    // Without the block: it was overwritten.
    void leave_out(const UsedBlock& place) {
        if (place.at < room_) std::memset(bytes_.get() + place.at, 0, sizeof(BlockHeader));
    }

    bool is_unchanged(const UsedBlock& place) const {
        BlockHeader now;
        return read_into(place.at, &now, sizeof now) == sizeof now && now.kind == place.header.kind &&
               now.generation == place.header.generation && now.sequence == place.header.sequence &&
               now.thread == place.header.thread;
    }

    /// The header as it was when the block was found, with the bytes that were committed then.
    bool copy_block(const UsedBlock& place) {
        if (!read_at(place.at, sizeof(BlockHeader) + place.header.committed)) return false;
        std::memcpy(bytes_.get() + place.at, &place.header, sizeof place.header);
        return true;
    }

    bool copy_log(UsedBlock place) {
        BlockHeader now;  // its chunk may have grown since
        if (read_into(place.at, &now, sizeof now) == sizeof now && now.sequence == place.header.sequence &&
            now.committed <= place.header.blocks * kBlockBytes - sizeof(BlockHeader))
            place.header.committed = std::max(now.committed, place.header.committed);
        if (copy_block(place) && is_unchanged(place)) return true;
        leave_out(place);
        return false;
    }

    /// A block of a thread's open ranges.
    struct State {
        std::size_t at;
        std::vector<std::byte> bytes;
    };

    std::vector<State> read_states() const {
        std::vector<State> states;
        for (const UsedBlock& place : places()) {
            if (!is(place.header, BlockKind::Thread) && !is(place.header, BlockKind::OpenSegment) &&
                !is(place.header, BlockKind::SideSegment))
                continue;
            State state{place.at, std::vector<std::byte>(place.header.blocks * kBlockBytes)};
            if (read_state(place, state.bytes)) states.push_back(std::move(state));
        }
        return states;
    }

    // Its owner writes to it: a slot counts if it is read twice equal, as in the recorder.
    bool read_state(const UsedBlock& place, std::span<std::byte> state) const {
        std::vector<std::byte> again(state.size());
        if (read_into(place.at, state.data(), state.size()) != state.size() ||
            read_into(place.at, again.data(), again.size()) != again.size() || !is_unchanged(place))
            return false;
        const bool is_thread = is(place.header, BlockKind::Thread);
        if (!is_thread && !is(place.header, BlockKind::OpenSegment)) return true;
        const std::size_t first = is_thread ? offsetof(ThreadState, slots) : sizeof(BlockHeader);
        const std::size_t count = is_thread ? kOpenSlots : kSlotsPerSegment;
        for (std::size_t at = first; at < first + count * sizeof(OpenSlot); at += sizeof(OpenSlot)) {
            if (std::memcmp(state.data() + at, again.data() + at, sizeof(OpenSlot)) != 0)
                std::memset(state.data() + at, 0, sizeof(OpenSlot));
        }
        return true;
    }

    int file_;
    std::shared_ptr<std::byte> bytes_;
    std::size_t room_ = 0;
};

}  // namespace

std::optional<RunningCapture> copy_running_capture(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;  // not even opened
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    // A program that records at full speed may overwrite a whole ring while this process waits for a core.
    // After a pause, the system lets it run for longer.
    constexpr int kMostAttempts = 40;
    constexpr std::chrono::milliseconds kPause(10);
    std::optional<RunningCapture> best = Copier(file).copy();
    for (int i = 1; best && best->lost_bytes > best->log_bytes && i < kMostAttempts; ++i) {
        std::this_thread::sleep_for(kPause);
        std::optional<RunningCapture> next = Copier(file).copy();
        if (!next || next->log_bytes > best->log_bytes) best = std::move(next);
    }
    close(file);
    return best;
}

}  // namespace marey
