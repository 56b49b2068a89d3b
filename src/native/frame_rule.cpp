// frame_rule.cpp: how to get from a frame to its caller at one program counter, read from .eh_frame.
#include "native/frame_rule.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace marey {
namespace {

#if defined(__aarch64__)
constexpr std::uint64_t kStackPointer = 31;
constexpr std::uint64_t kFramePointer = 29;
#elif defined(__x86_64__)
constexpr std::uint64_t kStackPointer = 7;
constexpr std::uint64_t kFramePointer = 6;
#else
constexpr std::uint64_t kStackPointer = 1000;  // no rule is ever found
constexpr std::uint64_t kFramePointer = 1001;
#endif

using Byte = unsigned char;

/// Reads DWARF encodings. Reading past the end gives zeros and clears `good`.
class Cursor {
  public:
    Cursor(const Byte* at, const Byte* end) noexcept : at_(at), end_(end) {}

    const Byte* at() const noexcept { return at_; }
    const Byte* end() const noexcept { return end_; }
    bool more() const noexcept { return at_ < end_; }
    bool good() const noexcept { return good_; }

    template <class T>
    T fixed() noexcept {
        T value{};
        if (static_cast<std::size_t>(end_ - at_) < sizeof(T)) {
            fail();
            return value;
        }
        std::memcpy(&value, at_, sizeof(T));
        at_ += sizeof(T);
        return value;
    }
    std::uint64_t unsigned_number() noexcept {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto byte = fixed<Byte>();
            if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
            if ((byte & 0x80) == 0) return value;
        }
    }
    std::int64_t signed_number() noexcept {
        std::uint64_t value = 0;
        unsigned shift = 0;
        Byte byte = 0;
        do {
            byte = fixed<Byte>();
            if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
            shift += 7;
        } while ((byte & 0x80) != 0);
        if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
        return static_cast<std::int64_t>(value);
    }
    void skip(std::uint64_t count) noexcept {
        if (count > static_cast<std::uint64_t>(end_ - at_))
            fail();
        else
            at_ += count;
    }
    /// A text that ends with a zero; "" if it does not.
    const char* text() noexcept {
        const auto* const begin = reinterpret_cast<const char*>(at_);
        const auto room = static_cast<std::size_t>(end_ - at_);
        const std::size_t length = strnlen(begin, room);
        skip(length + 1);
        return length < room ? begin : "";
    }
    /// A pointer in one of the encodings of .eh_frame. `data_base` is what data-relative ones count from.
    std::uintptr_t pointer(std::uint8_t encoding, std::uintptr_t data_base) noexcept {
        if (encoding == 0xff) return 0;
        const auto here = reinterpret_cast<std::uintptr_t>(at_);
        std::uintptr_t value = 0;
        switch (encoding & 0x0f) {
            case 0x00:
                value = fixed<std::uintptr_t>();
                break;
            case 0x01:
                value = unsigned_number();
                break;
            case 0x02:
                value = fixed<std::uint16_t>();
                break;
            case 0x03:
                value = fixed<std::uint32_t>();
                break;
            case 0x04:
                value = fixed<std::uint64_t>();
                break;
            case 0x09:
                value = static_cast<std::uintptr_t>(signed_number());
                break;
            case 0x0a:
                value = static_cast<std::uintptr_t>(std::int64_t{fixed<std::int16_t>()});
                break;
            case 0x0b:
                value = static_cast<std::uintptr_t>(std::int64_t{fixed<std::int32_t>()});
                break;
            case 0x0c:
                value = static_cast<std::uintptr_t>(fixed<std::int64_t>());
                break;
            default:
                fail();
                return 0;
        }
        if (value == 0) return 0;
        switch (encoding & 0x70) {
            case 0x00:
                break;
            case 0x10:
                value += here;
                break;
            case 0x30:
                value += data_base;
                break;
            default:
                fail();
                return 0;
        }
        if ((encoding & 0x80) != 0) fail();  // only those of personalities are indirect
        return value;
    }

  private:
    void fail() noexcept {
        good_ = false;
        at_ = end_;
    }

    const Byte* at_;
    const Byte* end_;
    bool good_ = true;
};

/// Where the registers of the caller are, while the instructions run.
struct Row {
    enum class Place : std::uint8_t { same, in_memory, undefined, elsewhere };
    struct Register {
        Place place = Place::same;
        std::int64_t offset = 0;
    };
    std::uint64_t cfa_register = 0;
    std::int64_t cfa_offset = 0;
    bool cfa_known = false;
    Register return_address;
    Register frame_pointer;
};

class Machine {
  public:
    explicit Machine(const FrameTables& tables) noexcept : tables_(tables) {}

    FrameRule run(std::uintptr_t pc) noexcept {
        place_ = 0;
        pc_ = pc;
        if (!instructions(tables_.common, tables_.common_end, pc, false)) return {};
        initial_ = row_;
        place_ = tables_.function_begin;
        if (!instructions(tables_.own, tables_.own_end, pc, true)) return {};
        return rule();
    }

  private:
    Row::Register* named(std::uint64_t number) noexcept {
        if (number == tables_.return_register) return &row_.return_address;
        return number == kFramePointer ? &row_.frame_pointer : nullptr;
    }
    void set(std::uint64_t number, Row::Place place, std::int64_t offset = 0) noexcept {
        if (Row::Register* entry = named(number)) *entry = {place, offset};
    }
    void restore(std::uint64_t number) noexcept {
        if (number == tables_.return_register)
            row_.return_address = initial_.return_address;
        else if (number == kFramePointer)
            row_.frame_pointer = initial_.frame_pointer;
    }
    std::int64_t scaled(std::uint64_t number) const noexcept {
        return static_cast<std::int64_t>(number) * tables_.data_factor;
    }

    /// Runs until the instructions end or are past `pc`. False: they cannot be followed.
    bool instructions(const Byte* at, const Byte* end, std::uintptr_t pc, bool placed) noexcept {
        Cursor in(at, end);
        while (in.more()) {
            const auto op = in.fixed<Byte>();
            const std::uint64_t low = op & 0x3fU;
            std::uint64_t advance = 0;
            switch (op & 0xc0) {
                case 0x40:
                    advance = low;
                    break;
                case 0x80:
                    set(low, Row::Place::in_memory, scaled(in.unsigned_number()));
                    continue;
                case 0xc0:
                    restore(low);
                    continue;
                default:
                    if (!extended(op, in, advance)) return false;
            }
            if (advance != 0 && placed) {
                place_ += advance * tables_.code_factor;
                if (place_ > pc) return in.good();
            }
        }
        return in.good();
    }

    /// Linkers describe the entries of x86-64's .plt, which push one word, by sp + 8 + ((pc & 15) >= n ? 8 :
    /// 0).
    bool set_plt_cfa(const Byte* expression, std::uint64_t size) noexcept {
        constexpr std::array<Byte, 11> kWritten{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30, 0x2a, 0x33, 0x24, 0x22};
        constexpr std::size_t kNumber = 6;  // the operation that pushes n, from 0 to 15
        const auto is_as_written = [&](std::size_t i) {
            return i == kNumber ? (expression[i] & 0xf0) == kWritten[i] : expression[i] == kWritten[i];
        };
        if (size != kWritten.size()) return false;
        for (std::size_t i = 0; i < size; ++i) {
            if (!is_as_written(i)) return false;
        }
        row_.cfa_register = kStackPointer;
        row_.cfa_offset = (pc_ & 15U) >= (expression[kNumber] & 15U) ? 16 : 8;
        return true;
    }

    bool extended(Byte op, Cursor& in, std::uint64_t& advance) noexcept {
        switch (op) {
            case 0x00:
                break;  // nop
            case 0x01:
                return false;  // set_loc: no compiler writes it
            case 0x02:
                advance = in.fixed<std::uint8_t>();
                break;
            case 0x03:
                advance = in.fixed<std::uint16_t>();
                break;
            case 0x04:
                advance = in.fixed<std::uint32_t>();
                break;
            case 0x05: {  // offset_extended
                const std::uint64_t number = in.unsigned_number();
                set(number, Row::Place::in_memory, scaled(in.unsigned_number()));
                break;
            }
            case 0x06:
                restore(in.unsigned_number());
                break;
            case 0x07:
                set(in.unsigned_number(), Row::Place::undefined);
                break;
            case 0x08:
                set(in.unsigned_number(), Row::Place::same);
                break;
            case 0x09: {  // register
                const std::uint64_t number = in.unsigned_number();
                in.unsigned_number();
                set(number, Row::Place::elsewhere);
                break;
            }
            case 0x0a:  // remember_state
                if (depth_ == remembered_.size()) return false;
                remembered_[depth_++] = row_;
                break;
            case 0x0b:  // restore_state
                if (depth_ == 0) return false;
                row_ = remembered_[--depth_];
                break;
            case 0x0c:  // def_cfa
                row_.cfa_register = in.unsigned_number();
                row_.cfa_offset = static_cast<std::int64_t>(in.unsigned_number());
                row_.cfa_known = true;
                break;
            case 0x0d:
                row_.cfa_register = in.unsigned_number();
                break;
            case 0x0e:
                row_.cfa_offset = static_cast<std::int64_t>(in.unsigned_number());
                break;
            case 0x0f: {  // def_cfa_expression
                const std::uint64_t size = in.unsigned_number();
                const Byte* const expression = in.at();
                in.skip(size);
                row_.cfa_known = in.good() && set_plt_cfa(expression, size);
                break;
            }
            case 0x10:    // expression
            case 0x16: {  // val_expression
                set(in.unsigned_number(), Row::Place::elsewhere);
                in.skip(in.unsigned_number());
                break;
            }
            case 0x11: {  // offset_extended_sf
                const std::uint64_t number = in.unsigned_number();
                set(number, Row::Place::in_memory, in.signed_number() * tables_.data_factor);
                break;
            }
            case 0x12:  // def_cfa_sf
                row_.cfa_register = in.unsigned_number();
                row_.cfa_offset = in.signed_number() * tables_.data_factor;
                row_.cfa_known = true;
                break;
            case 0x13:
                row_.cfa_offset = in.signed_number() * tables_.data_factor;
                break;
            case 0x14:  // val_offset, val_offset_sf
            case 0x15:
                set(in.unsigned_number(), Row::Place::elsewhere);
                in.unsigned_number();
                break;
            case 0x2d:
                break;  // AArch64: return addresses are signed from here on; the walker strips what signs
                        // them
            case 0x2e:
                in.unsigned_number();
                break;    // GNU_args_size
            case 0x2f: {  // GNU_negative_offset_extended
                const std::uint64_t number = in.unsigned_number();
                set(number, Row::Place::in_memory, -scaled(in.unsigned_number()));
                break;
            }
            default:
                return false;
        }
        return true;
    }

    FrameRule rule() const noexcept {
        constexpr auto fits = [](std::int64_t offset) {
            return offset >= std::numeric_limits<std::int16_t>::min() &&
                   offset <= std::numeric_limits<std::int16_t>::max();
        };
        FrameRule rule;
        if (row_.return_address.place == Row::Place::undefined) {
            rule.kind = FrameRule::Kind::end;
            return rule;
        }
        if (!row_.cfa_known || row_.return_address.place == Row::Place::elsewhere ||
            row_.frame_pointer.place == Row::Place::elsewhere || !fits(row_.return_address.offset) ||
            !fits(row_.frame_pointer.offset) || row_.cfa_offset < 0 ||
            row_.cfa_offset > std::numeric_limits<std::int32_t>::max())
            return rule;
        if (row_.cfa_register == kStackPointer)
            rule.kind = FrameRule::Kind::stack_pointer;
        else if (row_.cfa_register == kFramePointer)
            rule.kind = FrameRule::Kind::frame_pointer;
        else
            return rule;
        rule.cfa_offset = static_cast<std::int32_t>(row_.cfa_offset);
        if (row_.return_address.place == Row::Place::in_memory) {
            rule.return_address = FrameRule::Saved::in_memory;
            rule.return_offset = static_cast<std::int16_t>(row_.return_address.offset);
        }
        if (row_.frame_pointer.place == Row::Place::in_memory) {
            rule.frame_pointer = FrameRule::Saved::in_memory;
            rule.frame_pointer_offset = static_cast<std::int16_t>(row_.frame_pointer.offset);
        }
        return rule;
    }

    const FrameTables& tables_;
    Row row_;
    Row initial_;
    std::array<Row, 16> remembered_{};
    std::size_t depth_ = 0;
    std::uintptr_t place_ = 0;
    std::uintptr_t pc_ = 0;
};

bool holds(const FrameBytes& within, std::uintptr_t at, std::uint64_t size) noexcept {
    return at >= within.begin && at <= within.end && size <= within.end - at;
}

const Byte* bytes_at(std::uintptr_t at) noexcept {
    return reinterpret_cast<const Byte*>(at);  // NOLINT(performance-no-int-to-ptr)
}

constexpr std::uintptr_t kUnbounded = std::uintptr_t{1} << 40;

/// The address of the description with the last function that begins at or before `pc`, or 0.
std::uintptr_t description_before(std::uintptr_t header, std::uintptr_t pc,
                                  const FrameBytes& within) noexcept {
    if (!holds(within, header, 1)) return 0;
    Cursor in(bytes_at(header), bytes_at(header + std::min(within.end - header, kUnbounded)));
    const auto version = in.fixed<Byte>();
    const auto start_encoding = in.fixed<Byte>();
    const auto count_encoding = in.fixed<Byte>();
    const auto table_encoding = in.fixed<Byte>();
    // Linkers write one kind of table: pairs of 32-bit numbers that count from the header.
    if (version != 1 || table_encoding != 0x3b || count_encoding == 0xff) return 0;
    in.pointer(start_encoding, header);
    const std::uintptr_t count = in.pointer(count_encoding, header);
    const Byte* table = in.at();
    const auto begin_of = [&](std::uintptr_t i) {
        std::int32_t offset = 0;
        std::memcpy(&offset, table + i * 8, sizeof offset);
        return header + static_cast<std::uintptr_t>(std::int64_t{offset});
    };
    std::uintptr_t low = 0;
    std::uintptr_t high = std::min(count, static_cast<std::uintptr_t>(in.end() - table) / 8);
    while (low < high) {
        const std::uintptr_t middle = low + (high - low) / 2;
        if (begin_of(middle) <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return 0;
    std::int32_t offset = 0;
    std::memcpy(&offset, table + (low - 1) * 8 + 4, sizeof offset);
    return header + static_cast<std::uintptr_t>(std::int64_t{offset});
}

/// An entry of .eh_frame: a cursor over the bytes after its length, or an empty one.
Cursor entry_at(std::uintptr_t at, const FrameBytes& within) noexcept {
    std::uint32_t length = 0;
    if (holds(within, at, sizeof length)) std::memcpy(&length, bytes_at(at), sizeof length);
    if (length == 0xffffffff || !holds(within, at, sizeof length + length))
        length = 0;  // 64 bits: never used
    return {bytes_at(at + sizeof length), bytes_at(at + sizeof length + length)};
}

}  // namespace

FrameRule run_frame_tables(const FrameTables& tables, std::uintptr_t pc) noexcept {
    return Machine(tables).run(pc);
}

FrameRule read_frame_rule(std::uintptr_t frame_header, std::uintptr_t pc, const FrameBytes& within) noexcept {
    const std::uintptr_t found = description_before(frame_header, pc, within);
    if (found == 0) return {};
    Cursor own = entry_at(found, within);
    const auto back = reinterpret_cast<std::uintptr_t>(own.at());
    const auto distance = own.fixed<std::uint32_t>();
    if (!own.good() || distance == 0) return {};

    Cursor common = entry_at(back - distance, within);
    if (common.fixed<std::uint32_t>() != 0) return {};
    const auto version = common.fixed<Byte>();
    const char* const augmentation = common.text();
    FrameTables tables{};
    tables.code_factor = common.unsigned_number();
    tables.data_factor = common.signed_number();
    tables.return_register = version == 1 ? common.fixed<Byte>() : common.unsigned_number();
    tables.common_end = common.end();
    bool sized = false;
    bool signal_frame = false;
    const Byte* instructions = common.at();
    if (augmentation[0] == 'z') {
        const std::uint64_t size = common.unsigned_number();
        Cursor after = common;
        after.skip(size);
        instructions = after.at();
        sized = true;
        for (const char* letter = augmentation + 1; *letter != 0; ++letter) {
            if (*letter == 'R')
                tables.pointer_encoding = common.fixed<Byte>();
            else if (*letter == 'P')
                common.pointer(static_cast<std::uint8_t>(common.fixed<Byte>() & 0x7fU), 0);
            else if (*letter == 'L')
                common.fixed<Byte>();
            else if (*letter == 'S')
                signal_frame = true;
            else if (*letter != 'B')
                break;
        }
    } else if (augmentation[0] != 0) {
        return {};
    }
    tables.common = instructions;

    tables.function_begin = own.pointer(tables.pointer_encoding, 0);
    const std::uintptr_t size = own.pointer(tables.pointer_encoding & 0x0f, 0);
    if (pc < tables.function_begin || pc - tables.function_begin >= size) return {};
    if (signal_frame) return {.kind = FrameRule::Kind::signal};
    if (sized) own.skip(own.unsigned_number());
    if (!own.good() || !common.good()) return {};
    tables.own = own.at();
    tables.own_end = own.end();
    return run_frame_tables(tables, pc);
}

}  // namespace marey
