// value.h: one small type for inputs, outputs and keyword values. It refers to the caller's data and owns
// nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include <marey/detail/export.h>
#include <marey/span.h>

namespace marey {

/// The kinds of value. The numbers are part of the capture format: never reuse one.
enum class ValueKind : std::uint8_t {
    None = 0,
    Bool = 1,
    Int = 2,
    Double = 3,
    String = 4,
    List = 5,
    Array = 6,  ///< metadata of an array; its elements are never read
};

/// Element types of arrays. The numbers are part of the capture format.
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
    BComplex32 = 50,
};
inline constexpr DType kLastDType = DType::BComplex32;
/// Returns "float32", "int64", ...; "other" for unknown numbers. Never null.
MAREY_API const char* dtype_name(DType dtype) noexcept;
/// Returns the name of the C++ type as in PyTorch's traces: "float", "long int", "c10::Half", ...; if there
/// is none, the result of dtype_name(). Never null.
MAREY_API const char* dtype_cpp_name(DType dtype) noexcept;
/// Returns the size of one element in bytes; 0 if the type has no fixed size (Other, Text, Object).
MAREY_API std::uint32_t dtype_bytes(DType dtype) noexcept;

/// The memory layout of an array. The numbers are part of the capture format.
enum class Layout : std::uint8_t {
    Strided = 0,
    Sparse = 1,
    SparseCsr = 2,
    Blocked = 3,
    Jagged = 4,
    Other = 5
};

/// Kinds of device. The first have PyTorch's numbers; the numbers are part of the capture format.
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
/// Returns "cpu", "cuda", ...; "other" for unknown numbers. Never null.
MAREY_API const char* device_type_name(DeviceType type) noexcept;

/// A device: its type and its number.
struct Device {
    DeviceType type = DeviceType::Cpu;
    std::int32_t index = -1;  ///< -1: the only device, or unknown
    friend constexpr bool operator==(const Device& left, const Device& right) noexcept {
        return left.type == right.type && left.index == right.index;
    }
};

/// Parses a device such as "cpu", "cuda:1" or "hip". Throws marey::Error.
MAREY_API Device parse_device(std::string_view text);

/// How an operation uses an input array. The numbers are part of saved traces.
enum class ArrayAccess : std::uint8_t { Unknown = 0, Read = 1, Write = 2 };

/// The metadata of an array (a tensor, an ndarray, a buffer), without its elements.
struct ArrayView {
    DType dtype = DType::Other;
    Layout layout = Layout::Strided;
    Device device{};
    bool is_defined = true;  ///< false: an undefined array, without data
    Span<const std::int64_t> sizes{};
    Span<const std::int64_t> strides{};  ///< in elements; empty: unknown, or the layout has none
    const void* storage = nullptr;       ///< address of its memory
    std::uint64_t storage_id = 0;        ///< the library's number for that memory; 0: none
    /// Identifies the array object if there is no storage id: its address in the low 48 bits, and above them
    /// bits that distinguish it from earlier arrays at the same address. 0: unknown.
    std::uint64_t object = 0;
    ArrayAccess access = ArrayAccess::Unknown;  ///< how the operation uses this input
};

/// Mask of the address bits in ArrayView::object.
inline constexpr std::uint64_t kObjectAddress = (std::uint64_t{1} << 48) - 1;

/// A value passed to Marey. Valid as long as the data that it refers to.
class Value {
  public:
    constexpr Value() noexcept : integer_(0) {}
    constexpr Value(std::nullptr_t) noexcept : integer_(0) {}
    constexpr Value(bool value) noexcept : kind_(ValueKind::Bool), boolean_(value) {}
    template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
    constexpr Value(T value) noexcept : kind_(ValueKind::Int), integer_(static_cast<std::int64_t>(value)) {}
    template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
    constexpr Value(T value) noexcept : kind_(ValueKind::Double), real_(static_cast<double>(value)) {}
    constexpr Value(std::string_view value) noexcept : kind_(ValueKind::String), string_(value) {}
    constexpr Value(const char* value) noexcept
        : kind_(value != nullptr ? ValueKind::String : ValueKind::None),
          string_(value != nullptr ? std::string_view(value) : std::string_view()) {}
    constexpr Value(Span<const Value> items) noexcept : kind_(ValueKind::List), list_(items) {}
    /// A std::span, std::vector or std::array of values.
    template <class List, std::enable_if_t<std::is_convertible_v<const List&, Span<const Value>>, int> = 0>
    constexpr Value(const List& items) noexcept : Value(Span<const Value>(items)) {}
    /// The array must outlive the value.
    constexpr Value(const ArrayView& array) noexcept : kind_(ValueKind::Array), array_(&array) {}
    Value(ArrayView&&) = delete;
    /// A scalar that Marey has no number type for, such as a complex number, as text. It counts as `kind`,
    /// which is Bool, Int or Double.
    static constexpr Value scalar_text(ValueKind kind, std::string_view text) noexcept {
        Value made(text);
        made.counts_as_ = kind;
        return made;
    }
    /// An object without a value, for example a device, with a text for immediate display. It is recorded as
    /// None.
    static constexpr Value shown_as(std::string_view text) noexcept {
        Value made(text);
        made.kind_ = ValueKind::None;
        made.counts_as_ = ValueKind::String;
        return made;
    }
    /// An empty list whose items would be arrays.
    static constexpr Value no_arrays() noexcept {
        Value made((Span<const Value>()));
        made.counts_as_ = ValueKind::Array;
        return made;
    }
    template <class T, class = std::enable_if_t<!std::is_same_v<std::remove_cv_t<T>, char>>>
    Value(T*) = delete;  ///< so that addresses do not convert to bool

    constexpr ValueKind kind() const noexcept { return kind_; }
    /// The kind passed to scalar_text(); String for shown_as(); Array for no_arrays(); otherwise None.
    constexpr ValueKind counts_as() const noexcept { return counts_as_; }
    // Call only the accessor of the value's kind; string() also for shown_as().
    constexpr bool boolean() const noexcept { return boolean_; }
    constexpr std::int64_t integer() const noexcept { return integer_; }
    constexpr double real() const noexcept { return real_; }
    constexpr std::string_view string() const noexcept { return string_; }
    constexpr Span<const Value> list() const noexcept { return list_; }
    constexpr const ArrayView& array() const noexcept { return *array_; }

  private:
    ValueKind kind_ = ValueKind::None;
    ValueKind counts_as_ = ValueKind::None;
    union {
        bool boolean_;
        std::int64_t integer_;
        double real_;
        std::string_view string_;
        Span<const Value> list_;
        const ArrayView* array_;
    };
};

/// A value with its key.
struct KeyedValue {
    std::string_view key;
    Value value;
};

}  // namespace marey
