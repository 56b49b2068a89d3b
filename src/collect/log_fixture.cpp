// log_fixture.cpp: the records of handwritten logs, and the capture file that they make up.
#include "collect/log_fixture.h"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"

namespace marey::testing {

void Values::header(std::string_view key, int kind, bool truncated, std::size_t count) {
    list_.add(detail::ValueHeader{
        log_->string(key), static_cast<std::uint8_t>(kind),
        static_cast<std::uint8_t>(next_flags_ | (truncated ? detail::kValueTruncated : 0)),
        static_cast<std::uint16_t>(count)});
    next_flags_ = 0;
}

Chunk& ThreadLog::chunk() {
    if (chunk_ == nullptr) next_chunk();
    return *chunk_;
}
ThreadLog& ThreadLog::next_chunk(std::uint64_t base_ticks, detail::ClockPair pair) {
    log_->chunks_.push_back({id_, log_->chunks_.size() + 10, base_ticks, pair, {}});
    chunk_ = &log_->chunks_.back();
    return *this;
}
ThreadLog& ThreadLog::put(detail::RecordKind kind, int flags, std::uint32_t site, std::uint64_t time,
                          std::uint64_t word2, std::uint32_t depth, const std::vector<std::byte>& payload) {
    const std::size_t units = (sizeof(detail::LongRecord) + payload.size() + 15) / 16;
    ByteList& records = chunk().records;
    records.add(detail::LongRecord{static_cast<std::uint8_t>(kind), static_cast<std::uint8_t>(flags),
                                   static_cast<std::uint16_t>(units), site, time, word2, depth,
                                   static_cast<std::uint32_t>(payload.size())});
    records.add_bytes(payload.data(), payload.size());
    records.pad(16);
    return *this;
}
ThreadLog& ThreadLog::compact(std::uint8_t kind, std::uint32_t site, std::uint64_t start, std::uint64_t end,
                              std::uint32_t depth) {
    const std::uint64_t delta = end - chunk().base_ticks;
    chunk().records.add(detail::CompactRecord{kind | std::uint64_t{depth} << 8 | delta << 16,
                                              site | (end - start) << detail::kSiteBits});
    return *this;
}
ThreadLog& ThreadLog::part(std::uint64_t start, std::uint64_t call, int flags) {
    chunk().records.add(detail::CompactRecord{static_cast<std::uint64_t>(detail::RecordKind::Part) |
                                                  static_cast<std::uint64_t>(flags) << 8 |
                                                  start << detail::kPartStartShift,
                                              call});
    return *this;
}
ThreadLog& ThreadLog::resumed(std::uint64_t start, std::uint64_t end, std::uint32_t depth, std::size_t place,
                              bool is_last) {
    return compact(static_cast<std::uint8_t>(detail::RecordKind::Resumed),
                   static_cast<std::uint32_t>(place << 1 | (is_last ? 1 : 0)), start, end, depth);
}
ThreadLog& ThreadLog::range(std::string_view name, std::uint64_t start, std::uint64_t end,
                            std::uint32_t depth, Scope scope) {
    const bool fits = depth < 256 && end >= start && (end - start) >> detail::kDurationBits == 0 &&
                      end >= chunk().base_ticks && (end - chunk().base_ticks) >> detail::kDeltaBits == 0;
    if (!fits) return long_range(name, start, end, depth, 0, {}, scope);
    return compact(static_cast<std::uint8_t>(detail::RecordKind::Range), log_->site(name, scope), start, end,
                   depth);
}
ThreadLog& ThreadLog::long_range(std::string_view name, std::uint64_t start, std::uint64_t end,
                                 std::uint32_t depth, int flags, const std::vector<std::byte>& payload,
                                 Scope scope) {
    return put(detail::RecordKind::LongRange, flags, log_->site(name, scope), start, end, depth, payload);
}
ThreadLog& ThreadLog::sequenced_range(std::string_view name, std::uint64_t start, std::uint64_t end,
                                      std::uint32_t depth, std::uint32_t sequence,
                                      std::uint32_t forward_thread, Scope scope) {
    return put(detail::RecordKind::SequencedRange, static_cast<int>(depth), log_->site(name, scope), start,
               (end - start) | std::uint64_t{sequence} << 32, forward_thread);
}
ThreadLog& ThreadLog::instant(std::string_view name, std::uint64_t time) {
    return compact(static_cast<std::uint8_t>(detail::RecordKind::Instant), log_->site(name), time, time, 0);
}
ThreadLog& ThreadLog::long_instant(std::string_view name, std::uint64_t time,
                                   const std::vector<std::byte>& payload) {
    return put(detail::RecordKind::LongInstant, 0, log_->site(name), time, 0, 0, payload);
}
ThreadLog& ThreadLog::counter(std::string_view name, std::uint64_t time, double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return put(detail::RecordKind::Counter, 0, log_->site(name), time, bits, 0);
}
ThreadLog& ThreadLog::integer_counter(std::string_view name, std::uint64_t time, std::int64_t value) {
    return put(detail::RecordKind::Counter, detail::kRecordInteger, log_->site(name), time,
               static_cast<std::uint64_t>(value), 0);
}
ThreadLog& ThreadLog::memory(std::uint64_t time, std::uint64_t address, std::int64_t bytes,
                             std::int64_t total_allocated, std::int64_t total_reserved, Device device,
                             bool out_of_memory) {
    ByteList payload;
    payload.add(detail::MemoryPayload{bytes, total_allocated, total_reserved, device.index,
                                      static_cast<std::uint8_t>(device.type),
                                      static_cast<std::uint8_t>(out_of_memory ? 1 : 0), 0});
    return put(detail::RecordKind::Memory, 0, 0, time, address, 0, payload.bytes());
}
ThreadLog& ThreadLog::async_begin(std::uint64_t id, std::string_view name, std::uint64_t time,
                                  std::uint32_t depth, const std::vector<std::byte>& payload) {
    return put(detail::RecordKind::AsyncBegin, 0, log_->site(name), time, id, depth, payload);
}
ThreadLog& ThreadLog::step_begin(std::uint64_t id, std::string_view name, std::uint64_t time,
                                 std::uint32_t depth) {
    return put(detail::RecordKind::AsyncBegin, detail::kRecordCrosses, log_->site(name), time, id, depth);
}
ThreadLog& ThreadLog::async_end(std::uint64_t id, std::uint64_t time, std::uint32_t depth) {
    return put(detail::RecordKind::AsyncEnd, 0, 0, time, id, depth);
}
ThreadLog& ThreadLog::async_end_of(std::uint64_t id, std::string_view name, std::uint64_t start,
                                   std::uint64_t time, std::uint32_t depth) {
    std::vector<std::byte> payload(sizeof start);
    std::memcpy(payload.data(), &start, sizeof start);
    return put(detail::RecordKind::AsyncEnd, 0, log_->site(name), time, id, depth, payload);
}
ThreadLog& ThreadLog::open(std::string_view name, std::uint64_t start, std::uint32_t depth,
                           const std::vector<std::byte>& payload) {
    log_->open_.push_back({id_, depth, start, log_->site(name), 0, payload});
    return *this;
}

std::vector<std::byte> LogWriter::file() const {
    using namespace detail;
    std::vector<std::byte> file(kBlockBytes);
    FileHeader header{};
    std::memcpy(header.magic, kFileMagic, sizeof header.magic);
    header.version = kFormatVersion;
    header.byte_order = kByteOrderMark;
    header.header_bytes = sizeof header;
    header.block_bytes = kBlockBytes;
    header.clock_source = static_cast<std::uint32_t>(clock_source);
    header.finished = finished ? 1 : 0;
    header.ticks_per_second = ticks_per_second;
    header.pid = 42;
    header.node = -1;
    host.copy(header.host, sizeof header.host - 1);
    std::strcpy(header.executable, "/bin/program");
    std::memcpy(header.command_line, "program\0--fast", 15);
    header.command_line_bytes = 15;
    std::memcpy(file.data(), &header, sizeof header);

    std::uint64_t sequence = 1;
    const auto add_run = [&](BlockHeader block, const std::vector<std::byte>& data) {
        const std::size_t blocks = (sizeof block + data.size() + kBlockBytes - 1) / kBlockBytes;
        const std::size_t at = file.size();
        file.resize(at + blocks * kBlockBytes);
        block.magic = kBlockMagic;
        block.blocks = static_cast<std::uint16_t>(blocks);
        block.generation = 1;
        std::memcpy(file.data() + at, &block, sizeof block);
        if (!data.empty()) std::memcpy(file.data() + at + sizeof block, data.data(), data.size());
    };
    const auto add_stream = [&](BlockKind kind, const std::vector<std::byte>& stream) {
        BlockHeader block;
        block.kind = static_cast<std::uint16_t>(kind);
        block.sequence = sequence++;
        block.committed = stream.size();
        add_run(block, stream);
    };
    add_stream(BlockKind::Names, names_.bytes());
    add_stream(BlockKind::Journal, journal_.bytes());
    for (const Chunk& chunk : chunks_) {
        BlockHeader block;
        block.kind = static_cast<std::uint16_t>(BlockKind::Log);
        block.thread = chunk.thread;
        block.sequence = chunk.sequence;
        block.base_ticks = chunk.base_ticks;
        block.pair = chunk.pair;
        block.committed = chunk.records.size();
        add_run(block, chunk.records.bytes());
    }

    std::map<std::uint32_t, std::unique_ptr<ThreadState>> states;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::byte>> segments;
    std::map<std::uint32_t, std::vector<std::byte>> sides;
    for (const OpenRange& open : open_) {
        std::unique_ptr<ThreadState>& state = states[open.thread];
        if (state == nullptr) state = std::make_unique<ThreadState>();
        state->depth = std::max(state->depth, open.depth + 1);
        std::uint64_t side = 0;
        if (!open.payload.empty()) {
            std::vector<std::byte>& stack = sides[open.thread];
            // An entry never crosses the end of the side stack in the thread block.
            const std::size_t bytes = (sizeof(SideEntry) + open.payload.size() + 7) / 8 * 8;
            if (stack.size() < kSideBytes && stack.size() + bytes > kSideBytes) stack.resize(kSideBytes);
            side = stack.size() / 8 + 1;
            const SideEntry entry{static_cast<std::uint32_t>(open.payload.size()), open.depth};
            const std::size_t at = stack.size();
            stack.resize(at + bytes);
            std::memcpy(stack.data() + at, &entry, sizeof entry);
            std::memcpy(stack.data() + at + sizeof entry, open.payload.data(), open.payload.size());
        }
        const OpenSlot slot{open.start, open.site | std::uint64_t{open.flags} << kSiteBits | side << 32};
        if (open.depth < kOpenSlots) {
            state->slots[open.depth] = slot;
        } else {
            const std::size_t index = open.depth - kOpenSlots;
            auto& segment = segments[{open.thread, static_cast<std::uint32_t>(index / kSlotsPerSegment)}];
            segment.resize(kSlotsPerSegment * sizeof(OpenSlot));
            std::memcpy(segment.data() + index % kSlotsPerSegment * sizeof(OpenSlot), &slot, sizeof slot);
        }
    }
    for (const auto& [thread, state] : states) {
        const std::vector<std::byte>& side = sides[thread];
        if (!side.empty()) std::memcpy(state->side, side.data(), std::min(side.size(), kSideBytes));
        BlockHeader block;
        block.kind = static_cast<std::uint16_t>(BlockKind::Thread);
        block.thread = thread;
        block.sequence = sequence++;
        std::vector<std::byte> data(kBlockBytes - sizeof block);
        std::memcpy(data.data(), reinterpret_cast<const std::byte*>(state.get()) + sizeof block, data.size());
        add_run(block, data);
        if (side.size() > kSideBytes) {
            block.kind = static_cast<std::uint16_t>(BlockKind::SideSegment);
            std::vector<std::byte> rest(side.begin() + kSideBytes, side.end());
            rest.resize(kLargeBlocks * kBlockBytes - sizeof block);
            add_run(block, rest);
        }
    }
    for (const auto& [place, slots] : segments) {
        BlockHeader block;
        block.kind = static_cast<std::uint16_t>(BlockKind::OpenSegment);
        block.thread = place.first;
        block.segment = place.second;
        block.sequence = sequence++;
        add_run(block, slots);
    }
    header.blocks = finished ? static_cast<std::uint32_t>(file.size() / kBlockBytes) : 0;
    std::memcpy(file.data(), &header, sizeof header);
    return file;
}

Trace build(const LogWriter& log, std::uint64_t session) {
    ViewRequest request;
    request.session = session;
    Trace trace = build_trace(log.raw(), request);
    if (const std::string fault = find_fault(trace); !fault.empty()) throw std::runtime_error(fault);
    return trace;
}

}  // namespace marey::testing
