// value.h: one small type for inputs, outputs and keyword values. It views what the caller holds, and owns
// nothing.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include <marey/detail/export.h>

namespace marey {

/// The kinds of value. A number is part of the capture format: never reuse one.
enum class ValueKind : std::uint8_t {
    None = 0,
    Bool = 1,
    Int = 2,
    Double = 3,
    String = 4,
    List = 5,
    Array = 6,  ///< metadata of an array; its elements are never looked at
};

/// Element types of arrays. A number is part of the capture format.
enum class DType : std::uint8_t {
    Other = 0,
    Bool = 1,
    Int8 = 2,
    Int16 = 3,
    Int32 = 4,
    Int64 = 5,
    UInt8 = 6,
    UInt16 = 7,
    UInt32 = 8,
    UInt64 = 9,
    Float16 = 10,
    BFloat16 = 11,
    Float32 = 12,
    Float64 = 13,
    Complex32 = 14,
    Complex64 = 15,
    Complex128 = 16,
    Float8E4M3 = 17,
    Float8E5M2 = 18,
    QInt8 = 19,
    QUInt8 = 20,
    QInt32 = 21,
    Text = 22,
    Object = 23,
    DateTime = 24,
    Float8E4M3FNUZ = 25,
    Float8E5M2FNUZ = 26,
    Float8E8M0FNU = 27,
    Float4E2M1X2 = 28,
    QUInt4X2 = 29,
    QUInt2X4 = 30,
    Bits1X8 = 31,
    Bits2X4 = 32,
    Bits4X2 = 33,
    Bits8 = 34,
    Bits16 = 35,
    UInt1 = 36,
    UInt2 = 37,
    UInt3 = 38,
    UInt4 = 39,
    UInt5 = 40,
    UInt6 = 41,
    UInt7 = 42,
    Int1 = 43,
    Int2 = 44,
    Int3 = 45,
    Int4 = 46,
    Int5 = 47,
    Int6 = 48,
    Int7 = 49,
};
inline constexpr DType kLastDType = DType::Int7;
/// "float32", "int64", ...; "other" for unknown numbers. Never null.
MAREY_API const char* dtype_name(DType dtype) noexcept;
/// The name of the C++ type, as PyTorch's traces have it: "float", "long int", "c10::Half", ...; where there
/// is none, that of dtype_name(). Never null.
MAREY_API const char* dtype_cpp_name(DType dtype) noexcept;
/// Bytes of one element; 0 when the type does not say (Other, Text, Object).
MAREY_API std::uint32_t dtype_bytes(DType dtype) noexcept;

/// How an array's elements lie in memory. A number is part of the capture format.
enum class Layout : std::uint8_t {
    Strided = 0,
    Sparse = 1,
    SparseCsr = 2,
    Blocked = 3,
    Jagged = 4,
    Other = 5
};

/// Kinds of device. The first keep PyTorch's numbers; a number is part of the capture format.
enum class DeviceType : std::uint8_t {
    Cpu = 0,
    Cuda = 1,
    Hip = 6,
    Xpu = 12,
    Mps = 13,
    Meta = 14,
    Hpu = 15,
    Mtia = 19,
    Other = 20,
    None = 255
};
/// "cpu", "cuda", ...; "other" for unknown numbers. Never null.
MAREY_API const char* device_type_name(DeviceType type) noexcept;

struct Device {
    DeviceType type = DeviceType::Cpu;
    std::int32_t index = -1;  ///< -1: the only one, or unknown
    friend constexpr bool operator==(const Device&, const Device&) noexcept = default;
};

/// The device of a text such as "cpu", "cuda:1" or "hip". Throws marey::Error.
MAREY_API Device parse_device(std::string_view text);

/// What an operation does with an array that it takes. A number is part of saved traces.
enum class ArrayAccess : std::uint8_t { Unknown = 0, Read = 1, Write = 2 };

/// What is known of an array (a tensor, an ndarray, a buffer) without touching its elements.
struct ArrayView {
    DType dtype = DType::Other;
    Layout layout = Layout::Strided;
    Device device{};
    bool is_defined = true;  ///< false: a place for an array that holds none
    std::span<const std::int64_t> sizes{};
    std::span<const std::int64_t> strides{};  ///< in elements; empty: unknown, or the layout has none
    const void* storage = nullptr;            ///< address of its memory
    std::uint64_t storage_id = 0;             ///< the library's own number of that memory; 0: none
    /// The array itself, where there is no storage id: its address in the low 48 bits, and above them what
    /// tells it from others that were at that address before. 0: not known.
    std::uint64_t object = 0;
    ArrayAccess access = ArrayAccess::Unknown;  ///< by the operation whose input it is
};

/// The address in ArrayView::object.
inline constexpr std::uint64_t kObjectAddress = (std::uint64_t{1} << 48) - 1;

/// A value as it is handed over: valid as long as what it views.
class Value {
  public:
    constexpr Value() noexcept : integer_(0) {}
    constexpr Value(std::nullptr_t) noexcept : integer_(0) {}
    constexpr Value(bool value) noexcept : kind_(ValueKind::Bool), boolean_(value) {}
    template <std::integral T>
    constexpr Value(T value) noexcept : kind_(ValueKind::Int), integer_(static_cast<std::int64_t>(value)) {}
    template <std::floating_point T>
    constexpr Value(T value) noexcept : kind_(ValueKind::Double), real_(static_cast<double>(value)) {}
    constexpr Value(std::string_view value) noexcept : kind_(ValueKind::String), string_(value) {}
    constexpr Value(const char* value) noexcept
        : kind_(value != nullptr ? ValueKind::String : ValueKind::None),
          string_(value != nullptr ? std::string_view(value) : std::string_view()) {}
    constexpr Value(std::span<const Value> items) noexcept : kind_(ValueKind::List), list_(items) {}
    /// The array must outlive the value.
    constexpr Value(const ArrayView& array) noexcept : kind_(ValueKind::Array), array_(&array) {}
    Value(ArrayView&&) = delete;
    /// A scalar that is no number of ours, such as a complex one, as text. It counts as one of `kind`, which
    /// is Bool, Int or Double.
    static constexpr Value scalar_text(ValueKind kind, std::string_view text) noexcept {
        Value made(text);
        made.counts_as_ = kind;
        return made;
    }
    /// What has no value, a device for example, and yet a text for who shows it at once. It is kept as None.
    static constexpr Value shown_as(std::string_view text) noexcept {
        Value made(text);
        made.kind_ = ValueKind::None;
        made.counts_as_ = ValueKind::String;
        return made;
    }
    template <class T>
    requires(!std::same_as<std::remove_cv_t<T>, char>) Value(T*)
    = delete;  ///< no address is a boolean

    constexpr ValueKind kind() const noexcept { return kind_; }
    /// What scalar_text() was given, String for shown_as(), otherwise None.
    constexpr ValueKind counts_as() const noexcept { return counts_as_; }
    // Each may be called for its own kind only; string() for shown_as() too.
    constexpr bool boolean() const noexcept { return boolean_; }
    constexpr std::int64_t integer() const noexcept { return integer_; }
    constexpr double real() const noexcept { return real_; }
    constexpr std::string_view string() const noexcept { return string_; }
    constexpr std::span<const Value> list() const noexcept { return list_; }
    constexpr const ArrayView& array() const noexcept { return *array_; }

  private:
    ValueKind kind_ = ValueKind::None;
    ValueKind counts_as_ = ValueKind::None;
    union {
        bool boolean_;
        std::int64_t integer_;
        double real_;
        std::string_view string_;
        std::span<const Value> list_;
        const ArrayView* array_;
    };
};

/// A value with its name.
struct KeyedValue {
    std::string_view key;
    Value value;
};

}  // namespace marey
