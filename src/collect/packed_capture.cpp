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
using namespace log_codec;

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

/// Both archives have the same functions, so that the facts are listed once, in visit_facts().
class FactsWriter {
  public:
    /// A number, stored as a Stored.
    template <class Stored, class T>
    void number(const T& value) {
        put(static_cast<Stored>(value));
    }
    template <class T>
    void put(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        put_raw(&value, sizeof value);
    }
    /// A text, or bytes.
    template <class T>
    void bytes(const T& bytes) {
        put(static_cast<std::uint64_t>(bytes.size()));
        put_raw(bytes.data(), bytes.size());
    }
    template <class List, class Visit>
    void list(List& items, Visit visit) {
        put(static_cast<std::uint64_t>(items.size()));
        for (auto& item : items) visit(item);
    }
    void put_raw(const void* data, std::size_t count) {
        const auto* const first = static_cast<const std::byte*>(data);
        bytes_.insert(bytes_.end(), first, first + count);
    }
    const std::vector<std::byte>& written() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

class FactsReader {
  public:
    explicit FactsReader(std::span<const std::byte> bytes) : rest_(bytes) {}
    template <class Stored, class T>
    void number(T& value) {
        value = static_cast<T>(get<Stored>());
    }
    template <class T>
    void put(T& value) {
        value = get<T>();
    }
    template <class T>
    T get() {
        return read_as<T>(get_raw(sizeof(T)).data());
    }
    template <class T>
    void bytes(T& bytes) {
        const auto taken = get_raw(get<std::uint64_t>());
        const auto* const first = reinterpret_cast<const typename T::value_type*>(taken.data());
        bytes.assign(first, first + taken.size());
    }
    template <class List, class Visit>
    void list(List& items, Visit visit) {
        for (auto left = get<std::uint64_t>(); left != 0; --left) visit(items.emplace_back());
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

std::vector<const LogSpan*> spans_by_sequence(const RawLog& log) {
    std::vector<const LogSpan*> spans;
    for (const LogSpan& span : log.spans) spans.push_back(&span);
    std::stable_sort(spans.begin(), spans.end(),
                     [](const LogSpan* a, const LogSpan* b) { return a->sequence < b->sequence; });
    return spans;
}

/// Everything except the records, in the order of the file.
template <class Archive, class Log, class Spans>
void visit_facts(Archive& facts, Log& log, Spans& spans) {
    using U32 = std::uint32_t;
    using U64 = std::uint64_t;
    facts.template number<std::int64_t>(log.pid);
    facts.template number<std::int64_t>(log.node);
    facts.template number<U64>(log.clock_source);
    facts.template number<U64>(log.ticks_per_second);
    facts.template number<U64>(log.end_ticks);
    facts.template number<U64>(log.finished);
    for (auto* const text : {&log.host, &log.executable, &log.command_line}) facts.bytes(*text);
    for (auto* const stream : {&log.names, &log.journal}) facts.bytes(*stream);
    facts.list(log.open, [&](auto& open) {
        facts.template number<U64>(open.start);
        facts.template number<U32>(open.thread);
        facts.template number<U32>(open.depth);
        facts.template number<U32>(open.site);
        facts.template number<U32>(open.flags);
        facts.bytes(open.payload);
    });
    facts.list(log.problems, [&](auto& problem) {
        facts.bytes(problem.code);
        facts.bytes(problem.text);
        facts.template number<U64>(problem.count);
    });
    facts.list(spans, [&](auto& span) { facts.put(span); });
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
    std::vector<SpanEntry> entries;
    visit_facts(facts, log, entries);
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
    std::vector<SpanEntry> entries;
    entries.reserve(spans.size());
    for (const LogSpan* span : spans)
        entries.push_back({span->bytes, span->sequence, span->base_ticks, span->pair, span->thread, 0});
    visit_facts(facts, log, entries);
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
    const std::vector<std::byte> packed_facts =
        pack(facts.written(), level_for(facts.written().size(), purpose));

    PackedHeader header{};
    std::memcpy(header.magic, kFileMagic, sizeof header.magic);
    header.version = kFormatVersion;
    header.byte_order = kByteOrderMark;
    header.header_bytes = sizeof header;
    header.block_bytes = kPackedBlockBytes;
    header.packed_version = kPackedVersion;
    header.facts_bytes = facts.written().size();
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
