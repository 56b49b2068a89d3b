// marshal.cpp: reads Python's marshal format, versions 0 to 4.
#include "formats/pstats/marshal.h"

#include <bit>
#include <charconv>
#include <optional>

namespace marey {
namespace {

class MarshalReader {
  public:
    explicit MarshalReader(std::string_view bytes) : rest_(bytes), budget_(64 + 100 * bytes.size()) {}

    std::string read(MarshalObject& object) {
        return read_object(object, 0) ? "" : error_ + " at byte " + std::to_string(at());
    }

  private:
    static constexpr int kMaxDepth = 20;
    static constexpr char kReferenceFlag = static_cast<char>(0x80);
    using Kind = MarshalObject::Kind;

    std::size_t at() const { return taken_; }
    bool fail(const char* what) {
        error_ = what;
        return false;
    }
    bool take(std::size_t size, std::string_view& bytes) {
        if (size > rest_.size()) return fail("a length beyond the end");
        bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        taken_ += size;
        return true;
    }
    bool take_number(std::size_t size, std::uint64_t& value) {
        std::string_view bytes;
        if (!take(size, bytes)) return false;
        value = 0;
        for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
        return true;
    }

    bool read_object(MarshalObject& object, int depth) {
        std::string_view type;
        if (depth > kMaxDepth) return fail("objects nested too deeply");
        if (budget_-- == 0) return fail("references that expand without limit");
        if (!take(1, type)) return false;
        const char kind = static_cast<char>(type[0] & 0x7f);
        // An object takes its number before its parts; until it is complete, it cannot be referred to.
        std::optional<std::size_t> number;
        if ((type[0] & kReferenceFlag) != 0 && kind != 'r') {
            number = known_.size();
            known_.emplace_back();
        }
        if (!read_kind(kind, object, depth)) return false;
        if (number) known_[*number] = object;
        return true;
    }

    bool read_kind(char kind, MarshalObject& object, int depth) {
        std::uint64_t size = 0;
        switch (kind) {
            case 'N':
                return true;
            case 'T':
            case 'F':
                object.kind = Kind::Integer;
                object.integer = kind == 'T' ? 1 : 0;
                return true;
            case 'i':
                object.kind = Kind::Integer;
                if (!take_number(4, size)) return false;
                object.integer = static_cast<std::int32_t>(size);
                return true;
            case 'l':
                return read_long(object);
            case 'g':
                object.kind = Kind::Real;
                if (!take_number(8, size)) return false;
                object.real = std::bit_cast<double>(size);
                return true;
            case 'f':
                return read_float_text(object);
            case 's':
            case 't':
            case 'u':
            case 'a':
            case 'A':
                return take_number(4, size) && read_text(object, size);
            case 'z':
            case 'Z':
                return take_number(1, size) && read_text(object, size);
            case '(':
                return take_number(4, size) && read_tuple(object, size, depth);
            case ')':
                return take_number(1, size) && read_tuple(object, size, depth);
            case '{':
                return read_dictionary(object, depth);
            case 'r':
                if (!take_number(4, size)) return false;
                if (size >= known_.size() || !known_[size]) return fail("a reference to an unknown object");
                if (weight_of(*known_[size]) > budget_) return fail("references that expand without limit");
                budget_ -= weight_of(*known_[size]);
                object = *known_[size];
                return true;
            default:
                return fail("an object of an unexpected type");
        }
    }

    static std::uint64_t weight_of(const MarshalObject& object) {
        std::uint64_t weight = 1 + object.text.size() / 16;
        for (const MarshalObject& item : object.items) weight += weight_of(item);
        return weight;
    }

    bool read_text(MarshalObject& object, std::uint64_t size) {
        std::string_view bytes;
        if (!take(size, bytes)) return false;
        object.kind = Kind::Text;
        object.text = bytes;
        return true;
    }
    bool read_float_text(MarshalObject& object) {
        std::uint64_t size = 0;
        std::string_view bytes;
        if (!take_number(1, size) || !take(size, bytes)) return false;
        object.kind = Kind::Real;
        const auto result = std::from_chars(bytes.data(), bytes.data() + bytes.size(), object.real);
        return result.ec == std::errc() || fail("a number that is none");
    }
    /// Digits of 15 bits, lowest first; the sign is that of their count. Larger numbers are clamped.
    bool read_long(MarshalObject& object) {
        std::uint64_t size = 0;
        if (!take_number(4, size)) return false;
        const auto count = static_cast<std::int32_t>(size);
        const std::uint64_t digits =
            count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
        if (digits > rest_.size() / 2) return fail("a length beyond the end");
        std::uint64_t value = 0;
        for (std::uint64_t i = 0; i < digits; ++i) {
            std::uint64_t digit = 0;
            take_number(2, digit);
            if (i < 4) value |= (digit & 0x7fff) << (15 * i);
            if (i >= 4 && digit != 0) value = std::uint64_t{1} << 61;
        }
        object.kind = Kind::Integer;
        object.integer = count < 0 ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
        return true;
    }
    bool read_tuple(MarshalObject& object, std::uint64_t size, int depth) {
        if (size > rest_.size()) return fail("a length beyond the end");
        object.kind = Kind::Tuple;
        object.items.resize(size);
        for (MarshalObject& item : object.items) {
            if (!read_object(item, depth + 1)) return false;
        }
        return true;
    }
    bool read_dictionary(MarshalObject& object, int depth) {
        object.kind = Kind::Dictionary;
        while (true) {
            if (rest_.empty()) return fail("a dictionary without an end");
            if (rest_[0] == '0') {
                std::string_view end;
                return take(1, end);
            }
            for (int part = 0; part < 2; ++part) {
                if (!read_object(object.items.emplace_back(), depth + 1)) return false;
            }
        }
    }

    std::string_view rest_;
    std::size_t taken_ = 0;
    std::uint64_t budget_;                             ///< objects that may still be made
    std::vector<std::optional<MarshalObject>> known_;  ///< by their numbers; absent: not complete yet
    std::string error_;
};

}  // namespace

std::string read_marshal(std::string_view bytes, MarshalObject& object) {
    return MarshalReader(bytes).read(object);
}

}  // namespace marey
