// column_codec.cpp: varints, planes, texts. Input is checked before it is used.
#include "trace/column_codec.h"

#include <algorithm>
#include <array>

#include <marey/error.h>

#include "base/byte_planes.h"
#include "base/checksum.h"
#include "base/compress.h"

namespace marey {
namespace {

constexpr std::size_t kMaxVarintBytes = 10;
constexpr std::size_t kMinPackedBytes = 512;  // shorter ones gain little and take as long

std::uint64_t to_zigzag(std::uint64_t number) noexcept {
    return (number << 1) ^ (0 - (number >> 63));
}
std::uint64_t from_zigzag(std::uint64_t number) noexcept {
    return (number >> 1) ^ (0 - (number & 1));
}

std::byte* put_varint(std::byte* at, std::uint64_t number) noexcept {
    for (; number >= 0x80; number >>= 7) *at++ = static_cast<std::byte>(number | 0x80);
    *at++ = static_cast<std::byte>(number);
    return at;
}

void append_varint(std::vector<std::byte>& bytes, std::uint64_t number) {
    std::byte room[kMaxVarintBytes];
    bytes.insert(bytes.end(), room, put_varint(room, number));
}

std::uint64_t take_varint(std::span<const std::byte> bytes, std::size_t& at) {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (at == bytes.size()) throw Error("a column ends early");
        const auto byte = std::to_integer<std::uint8_t>(bytes[at++]);
        number |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return number;
    }
    throw Error("a number is too long");
}

std::vector<std::byte> varints_of(std::span<const std::uint64_t> numbers) {
    std::vector<std::byte> bytes(numbers.size() + kMaxVarintBytes);
    std::size_t used = 0;
    for (const std::uint64_t number : numbers) {
        if (bytes.size() - used < kMaxVarintBytes) bytes.resize(bytes.size() + bytes.size() / 2 + 64);
        used = static_cast<std::size_t>(put_varint(bytes.data() + used, to_zigzag(number)) - bytes.data());
    }
    bytes.resize(used);
    return bytes;
}

PackedColumn finish(ColumnEntry entry, std::vector<std::byte> bytes, int level) {
    entry.bytes = bytes.size();
    PackedColumn column{entry, pack_bytes(std::move(bytes), level)};
    column.entry.packed = column.bytes.size() < entry.bytes;
    column.entry.stored = column.bytes.size();
    column.entry.checksum = checksum64(column.bytes);
    return column;
}

// Each plane: its length and its stored length, then the bytes of all planes.
std::vector<std::byte> pack_planes(std::span<const std::uint64_t> numbers, int level) {
    BytePlanes planes = split_into_planes(numbers);
    std::vector<std::byte> bytes;
    std::vector<std::byte> data;
    for (std::vector<std::byte>& plane : planes) {
        append_varint(bytes, plane.size());
        const std::vector<std::byte> packed = pack_bytes(std::move(plane), level);
        append_varint(bytes, packed.size());
        data.insert(data.end(), packed.begin(), packed.end());
    }
    bytes.insert(bytes.end(), data.begin(), data.end());
    return bytes;
}

std::vector<std::uint64_t> unpack_planes(std::span<const std::byte> bytes, std::uint64_t rows) {
    struct Sizes {
        std::uint64_t bytes, stored;
    };
    std::array<Sizes, kBytePlanes> sizes{};
    std::size_t at = 0;
    for (Sizes& size : sizes) {
        size.bytes = take_varint(bytes, at);
        size.stored = take_varint(bytes, at);
    }
    if (sizes[0].bytes != rows) throw Error("a column does not have the stated length");
    std::array<std::vector<std::byte>, kBytePlanes> unpacked;
    std::array<std::span<const std::byte>, kBytePlanes> planes;
    for (std::size_t plane = 0; plane < kBytePlanes; ++plane) {
        const Sizes size = sizes[plane];
        if (size.stored > bytes.size() - at) throw Error("a column ends early");
        if (size.stored > size.bytes || size.bytes / sizeof(std::uint64_t) > rows)
            throw Error("a column states inconsistent sizes");
        planes[plane] = bytes.subspan(at, size.stored);
        at += size.stored;
        if (size.stored == size.bytes) continue;
        unpacked[plane] = decompress(planes[plane], size.bytes);
        planes[plane] = unpacked[plane];
    }
    if (at != bytes.size()) throw Error("unexpected bytes after a column's numbers");
    return join_planes(planes);
}

// The column's bytes; `room` holds them if they were packed.
std::span<const std::byte> unpack_bytes(const ColumnEntry& entry, std::span<const std::byte> stored,
                                        std::vector<std::byte>& room) {
    if (entry.packed == 0) {
        if (stored.size() != entry.bytes) throw Error("a column does not have the stated size");
        return stored;
    }
    room = decompress(stored, entry.bytes);
    return room;
}

}  // namespace

std::vector<std::byte> pack_bytes(std::vector<std::byte> bytes, int level) {
    if (!can_compress() || level == kNotCompressed || bytes.size() < kMinPackedBytes) return bytes;
    std::vector<std::byte> packed = compress(bytes, level);
    return packed.size() < bytes.size() ? packed : bytes;
}

PackedColumn pack_numbers(std::uint32_t id, std::vector<std::uint64_t> numbers, NumberStyle style,
                          int level) {
    ColumnEntry entry;
    entry.id = id;
    entry.rows = numbers.size();
    if (std::ranges::all_of(numbers, [](std::uint64_t number) { return number == 0; })) return {entry, {}};
    entry.form = static_cast<std::uint8_t>(style.form);
    if (style.differences) {
        entry.differences = 1;
        std::uint64_t last = 0;
        for (std::uint64_t& number : numbers) last += number -= last;
    }
    if (style.form == ColumnForm::Planes) {
        const std::vector<std::byte> bytes = pack_planes(numbers, level);
        entry.bytes = entry.stored = bytes.size();
        entry.checksum = checksum64(bytes);
        return {entry, bytes};
    }
    return finish(entry, varints_of(numbers), level);
}

PackedColumn pack_texts(std::uint32_t id, std::span<const std::string_view> texts, int level) {
    ColumnEntry entry;
    entry.id = id;
    entry.rows = texts.size();
    entry.form = static_cast<std::uint8_t>(ColumnForm::Texts);
    std::vector<std::byte> bytes;
    for (const std::string_view text : texts) append_varint(bytes, text.size());
    for (const std::string_view text : texts) {
        const auto* const first = reinterpret_cast<const std::byte*>(text.data());
        bytes.insert(bytes.end(), first, first + text.size());
    }
    return finish(entry, std::move(bytes), level);
}

std::vector<std::uint64_t> unpack_numbers(const ColumnEntry& entry, std::span<const std::byte> stored) {
    std::vector<std::uint64_t> numbers;
    std::vector<std::byte> room;
    switch (static_cast<ColumnForm>(entry.form)) {
        case ColumnForm::Zeros:
            numbers.resize(entry.rows);
            break;
        case ColumnForm::Varints: {
            if (entry.rows > entry.bytes || entry.bytes / kMaxVarintBytes > entry.rows)
                throw Error("a column states inconsistent sizes");
            const std::span<const std::byte> bytes = unpack_bytes(entry, stored, room);
            numbers.resize(entry.rows);
            std::size_t at = 0;
            for (std::uint64_t& number : numbers) {
                const bool is_short = at != bytes.size() && std::to_integer<std::uint8_t>(bytes[at]) < 0x80;
                number = from_zigzag(is_short ? std::to_integer<std::uint64_t>(bytes[at++])
                                              : take_varint(bytes, at));
            }
            if (at != bytes.size()) throw Error("unexpected bytes after a column's numbers");
            break;
        }
        case ColumnForm::Planes:
            if (entry.packed != 0) throw Error("a column is packed twice");
            numbers = unpack_planes(unpack_bytes(entry, stored, room), entry.rows);
            break;
        default:
            throw Error("a column of numbers has an unknown encoding");
    }
    if (entry.differences != 0) {
        std::uint64_t last = 0;
        for (std::uint64_t& number : numbers) number = last += number;
    }
    return numbers;
}

UnpackedTexts unpack_texts(const ColumnEntry& entry, std::span<const std::byte> stored) {
    if (entry.form != static_cast<std::uint8_t>(ColumnForm::Texts))
        throw Error("a column of texts has an unknown encoding");
    if (entry.rows > entry.bytes) throw Error("a column states inconsistent sizes");
    UnpackedTexts texts;
    const std::span<const std::byte> bytes = unpack_bytes(entry, stored, texts.payload);
    texts.lengths.resize(entry.rows);
    std::uint64_t sum = 0;
    for (std::uint64_t& length : texts.lengths) {
        length = take_varint(bytes, texts.first);
        if (length > bytes.size() - sum) throw Error("a text is longer than its column");
        sum += length;
    }
    if (sum != bytes.size() - texts.first) throw Error("a column's texts do not fill it");
    if (entry.packed == 0) texts.payload.assign(bytes.begin(), bytes.end());
    return texts;
}

}  // namespace marey
