// packed_capture.cpp: a RawLog as one compressed table of facts and the compressed columns of its records.
#include "collect/packed_capture.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <marey/error.h>

#include "base/compress.h"
#include "base/work_meter.h"
#include "collect/log_codec.h"
#include "collect/log_records.h"

namespace marey {

using namespace detail;

namespace {

struct PackedHeader {
    char magic[8];
    std::uint32_t version;
    std::uint32_t byte_order;
    std::uint32_t header_bytes;
    std::uint32_t block_bytes;  ///< kPackedBlockBytes
    std::uint32_t packed_version;
    std::uint32_t reserved;
    std::uint64_t facts_bytes;   ///< unpacked
    std::uint64_t facts_stored;  ///< packed, after this header
};
static_assert(sizeof(PackedHeader) == 48);
static_assert(offsetof(PackedHeader, block_bytes) == offsetof(FileHeader, block_bytes));

constexpr std::uint32_t kPackedVersion = 1;

// Upper bound of the expansion: a reader need not trust stated sizes, and a writer pads to stay within it.
constexpr std::uint64_t kFreeExpansion = 64 * 1024;
constexpr std::uint64_t kMaxExpansion = 64;

constexpr std::size_t kInlineColumnBytes = 512;  // shorter columns are kept among the facts

bool is_size_plausible(std::uint64_t bytes, std::uint64_t stored) {
    return bytes <= kFreeExpansion || (bytes - kFreeExpansion) / kMaxExpansion <= stored;
}

int level_for(std::size_t bytes, PackFor purpose) {
    if (purpose == PackFor::Speed) return bytes <= std::size_t{256} << 10 ? 9 : 1;
    if (bytes <= std::size_t{4} << 20) return 19;
    return bytes <= std::size_t{64} << 20 ? 9 : 5;
}

std::vector<std::byte> pack(std::span<const std::byte> bytes, int level) {
    std::vector<std::byte> frame = compress(bytes, level);
    if (!is_size_plausible(bytes.size(), frame.size())) {
        // A skippable frame of zeros, up to the size that the bound requires.
        const std::size_t size = (bytes.size() - kFreeExpansion) / kMaxExpansion;
        const std::uint32_t head[2] = {0x184D2A50, static_cast<std::uint32_t>(size - frame.size())};
        const auto* const first = reinterpret_cast<const std::byte*>(head);
        frame.insert(frame.end(), first, first + sizeof head);
        frame.resize(frame.size() + head[1]);
    }
    return frame;
}

class FactsWriter {
  public:
    template <class T>
    void put(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        put_raw(&value, sizeof value);
    }
    void put_bytes(std::span<const std::byte> bytes) {
        put(static_cast<std::uint64_t>(bytes.size()));
        put_raw(bytes.data(), bytes.size());
    }
    void put_text(const std::string& text) { put_bytes(std::as_bytes(std::span(text))); }
    void put_raw(const void* data, std::size_t count) {
        const auto* const first = static_cast<const std::byte*>(data);
        bytes_.insert(bytes_.end(), first, first + count);
    }
    const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

class FactsReader {
  public:
    explicit FactsReader(std::span<const std::byte> bytes) : rest_(bytes) {}
    template <class T>
    T get() {
        return read_as<T>(get_raw(sizeof(T)).data());
    }
    std::span<const std::byte> get_bytes() { return get_raw(get<std::uint64_t>()); }
    std::string get_text() {
        const auto bytes = get_bytes();
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    std::span<const std::byte> get_raw(std::uint64_t count) {
        if (count > rest_.size()) throw Error("truncated: its facts end early");
        const auto taken = rest_.first(count);
        rest_ = rest_.subspan(count);
        return taken;
    }

  private:
    std::span<const std::byte> rest_;
};

struct ColumnEntry {
    std::uint64_t bytes;
    std::uint64_t stored;  ///< 0: among the facts
};

struct SpanEntry {
    std::uint64_t bytes;
    std::uint64_t sequence;
    std::uint64_t base_ticks;
    ClockPair pair;
    std::uint32_t thread;
    std::uint32_t reserved;
};
static_assert(sizeof(SpanEntry) == 64);

struct OpenEntry {
    std::uint64_t start;
    std::uint32_t thread;
    std::uint32_t depth;
    std::uint32_t site;
    std::uint32_t flags;
};

std::vector<const LogSpan*> spans_by_sequence(const RawLog& log) {
    std::vector<const LogSpan*> spans;
    for (const LogSpan& span : log.spans) spans.push_back(&span);
    std::stable_sort(spans.begin(), spans.end(),
                     [](const LogSpan* a, const LogSpan* b) { return a->sequence < b->sequence; });
    return spans;
}

void put_facts(FactsWriter& facts, const RawLog& log, const std::vector<const LogSpan*>& spans) {
    facts.put(log.pid);
    facts.put(static_cast<std::int64_t>(log.node));
    facts.put(static_cast<std::uint64_t>(log.clock_source));
    facts.put(log.ticks_per_second);
    facts.put(log.end_ticks);
    facts.put(static_cast<std::uint64_t>(log.finished));
    facts.put_text(log.host);
    facts.put_text(log.executable);
    facts.put_text(log.command_line);
    facts.put_bytes(log.names);
    facts.put_bytes(log.journal);
    facts.put(static_cast<std::uint64_t>(log.open.size()));
    for (const OpenRange& open : log.open) {
        facts.put(OpenEntry{open.start, open.thread, open.depth, open.site, open.flags});
        facts.put_bytes(open.payload);
    }
    facts.put(static_cast<std::uint64_t>(log.problems.size()));
    for (const RawProblem& problem : log.problems) {
        facts.put_text(problem.code);
        facts.put_text(problem.text);
        facts.put(problem.count);
    }
    facts.put(static_cast<std::uint64_t>(spans.size()));
    for (const LogSpan* span : spans) {
        facts.put(SpanEntry{span->bytes, span->sequence, span->base_ticks, span->pair, span->thread, 0});
    }
}

std::vector<SpanEntry> get_facts(FactsReader& facts, RawLog& log) {
    log.pid = facts.get<std::int64_t>();
    log.node = static_cast<std::int32_t>(facts.get<std::int64_t>());
    log.clock_source = static_cast<ClockSource>(facts.get<std::uint64_t>());
    log.ticks_per_second = facts.get<std::uint64_t>();
    log.end_ticks = facts.get<std::uint64_t>();
    log.finished = facts.get<std::uint64_t>() != 0;
    log.host = facts.get_text();
    log.executable = facts.get_text();
    log.command_line = facts.get_text();
    const auto names = facts.get_bytes();
    log.names.assign(names.begin(), names.end());
    const auto journal = facts.get_bytes();
    log.journal.assign(journal.begin(), journal.end());
    for (std::uint64_t left = facts.get<std::uint64_t>(); left != 0; --left) {
        const auto entry = facts.get<OpenEntry>();
        const auto payload = facts.get_bytes();
        log.open.push_back({entry.thread,
                            entry.depth,
                            entry.start,
                            entry.site,
                            static_cast<std::uint8_t>(entry.flags),
                            {payload.begin(), payload.end()}});
    }
    for (std::uint64_t left = facts.get<std::uint64_t>(); left != 0; --left) {
        RawProblem problem;
        problem.code = facts.get_text();
        problem.text = facts.get_text();
        problem.count = facts.get<std::uint64_t>();
        log.problems.push_back(std::move(problem));
    }
    std::vector<SpanEntry> spans;
    for (std::uint64_t left = facts.get<std::uint64_t>(); left != 0; --left) {
        spans.push_back(facts.get<SpanEntry>());
    }
    return spans;
}

RawLog unpack_sections(std::span<const std::byte> bytes, bool with_records) {
    if (bytes.size() < sizeof(PackedHeader)) throw Error("truncated in its header");
    const auto header = read_as<PackedHeader>(bytes.data());
    if (header.packed_version != kPackedVersion) {
        throw Error("packed by a newer Marey (packing " + std::to_string(header.packed_version) + ")");
    }
    if (header.header_bytes < sizeof header || header.header_bytes > bytes.size())
        throw Error("damaged header");
    std::span<const std::byte> rest = bytes.subspan(header.header_bytes);
    const auto next = [&](std::uint64_t size, std::uint64_t stored) {
        if (stored > rest.size()) throw Error("truncated");
        if (!is_size_plausible(size, stored))
            throw Error("corrupt: its stated sizes are too large for the file");
        std::vector<std::byte> unpacked = decompress(rest.first(stored), size);
        rest = rest.subspan(stored);
        return unpacked;
    };
    const std::vector<std::byte> fact_bytes = next(header.facts_bytes, header.facts_stored);
    FactsReader facts(fact_bytes);
    RawLog log;
    const std::vector<SpanEntry> entries = get_facts(facts, log);
    if (!with_records) {
        for (const SpanEntry& entry : entries)
            log.spans.push_back({nullptr, 0, entry.thread, entry.sequence, entry.base_ticks, entry.pair});
        return log;
    }
    LogColumns columns;
    const auto column_count = facts.get<std::uint64_t>();
    if (column_count != kLogColumns) throw Error("unsupported set of columns");
    std::array<ColumnEntry, kLogColumns> directory;
    for (ColumnEntry& entry : directory) entry = facts.get<ColumnEntry>();
    for (std::size_t i = 0; i < kLogColumns; ++i) {
        if (directory[i].stored != 0) {
            columns[i] = next(directory[i].bytes, directory[i].stored);
        } else {
            const auto inlined = facts.get_raw(directory[i].bytes);
            columns[i].assign(inlined.begin(), inlined.end());
        }
    }
    auto memory = std::make_shared<std::vector<std::vector<std::byte>>>();
    memory->reserve(entries.size());
    LogDecoder decoder(columns);
    for (const SpanEntry& entry : entries) {
        memory->push_back(decoder.decode(entry.thread, entry.base_ticks, entry.bytes));
        log.spans.push_back({memory->back().data(), memory->back().size(), entry.thread, entry.sequence,
                             entry.base_ticks, entry.pair});
    }
    log.keep_alive = std::move(memory);
    return log;
}

}  // namespace

std::vector<std::byte> pack_capture(const RawLog& log, PackFor purpose) {
    const std::vector<const LogSpan*> spans = spans_by_sequence(log);
    std::uint64_t log_bytes = 0;
    for (const LogSpan* span : spans) log_bytes += span->bytes;
    WorkMeter meter(2 * log_bytes);  // encoding, then compressing
    LogEncoder encoder;
    for (const LogSpan* span : spans) {
        encoder.encode({span->data, span->bytes}, span->thread, span->base_ticks);
        meter.add(span->bytes);
    }
    LogColumns& columns = encoder.columns();

    std::size_t total = 0;
    for (const auto& column : columns) total += column.size();
    const int level = level_for(total, purpose);
    FactsWriter facts;
    put_facts(facts, log, spans);
    facts.put(static_cast<std::uint64_t>(kLogColumns));
    std::vector<std::byte> sections;
    for (const std::vector<std::byte>& column : columns) {
        ColumnEntry entry{column.size(), 0};
        if (column.size() > kInlineColumnBytes) {
            const std::vector<std::byte> packed = pack(column, level);
            entry.stored = packed.size();
            sections.insert(sections.end(), packed.begin(), packed.end());
        }
        facts.put(entry);
        if (total != 0)
            meter.add(static_cast<std::uint64_t>(static_cast<double>(log_bytes) *
                                                 static_cast<double>(column.size()) /
                                                 static_cast<double>(total)));
    }
    for (const std::vector<std::byte>& column : columns) {
        if (column.size() <= kInlineColumnBytes) facts.put_raw(column.data(), column.size());
    }
    const std::vector<std::byte> packed_facts = pack(facts.bytes(), level_for(facts.bytes().size(), purpose));

    PackedHeader header{};
    std::memcpy(header.magic, kFileMagic, sizeof header.magic);
    header.version = kFormatVersion;
    header.byte_order = kByteOrderMark;
    header.header_bytes = sizeof header;
    header.block_bytes = kPackedBlockBytes;
    header.packed_version = kPackedVersion;
    header.facts_bytes = facts.bytes().size();
    header.facts_stored = packed_facts.size();
    std::vector<std::byte> file(sizeof header);
    std::memcpy(file.data(), &header, sizeof header);
    file.insert(file.end(), packed_facts.begin(), packed_facts.end());
    file.insert(file.end(), sections.begin(), sections.end());
    return file;
}

RawLog unpack_capture(std::span<const std::byte> bytes, const std::string& name, bool with_records) {
    try {
        return unpack_sections(bytes, with_records);
    } catch (const Error& error) {
        throw Error(name + ": " + error.what());
    }
}

}  // namespace marey
