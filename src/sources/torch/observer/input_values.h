// input_values.h: inputs and outputs of operators as Marey values: metadata of tensors, scalars, lists.
#pragma once

#include <ATen/core/TensorBase.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <marey/observe.h>
#include <marey/value.h>

#include "tensor_objects.h"

namespace marey::torch {

/// Element types by the number that PyTorch gives them; those that it does not have are Other.
template <class Torch>
constexpr std::array<DType, 64> make_dtypes() {
    constexpr std::pair<Torch, DType> kKnown[] = {
        {Torch::Byte, DType::UInt8},
        {Torch::Char, DType::Int8},
        {Torch::Short, DType::Int16},
        {Torch::Int, DType::Int32},
        {Torch::Long, DType::Int64},
        {Torch::UInt16, DType::UInt16},
        {Torch::UInt32, DType::UInt32},
        {Torch::UInt64, DType::UInt64},
        {Torch::Half, DType::Float16},
        {Torch::BFloat16, DType::BFloat16},
        {Torch::Float, DType::Float32},
        {Torch::Double, DType::Float64},
        {Torch::ComplexHalf, DType::Complex32},
        {Torch::ComplexFloat, DType::Complex64},
        {Torch::ComplexDouble, DType::Complex128},
        {Torch::Bool, DType::Bool},
        {Torch::QInt8, DType::QInt8},
        {Torch::QUInt8, DType::QUInt8},
        {Torch::QInt32, DType::QInt32},
        {Torch::Float8_e4m3fn, DType::Float8E4M3},
        {Torch::Float8_e5m2, DType::Float8E5M2},
        {Torch::Float8_e4m3fnuz, DType::Float8E4M3FNUZ},
        {Torch::Float8_e5m2fnuz, DType::Float8E5M2FNUZ},
        {Torch::Float8_e8m0fnu, DType::Float8E8M0FNU},
        {Torch::Float4_e2m1fn_x2, DType::Float4E2M1X2},
        {Torch::QUInt4x2, DType::QUInt4X2},
        {Torch::QUInt2x4, DType::QUInt2X4},
        {Torch::Bits1x8, DType::Bits1X8},
        {Torch::Bits2x4, DType::Bits2X4},
        {Torch::Bits4x2, DType::Bits4X2},
        {Torch::Bits8, DType::Bits8},
        {Torch::Bits16, DType::Bits16},
    };
    std::array<DType, 64> types{};
    for (const auto& [torch, type] : kKnown) types[int(torch)] = type;
    // Integers of one to seven bits are numbered in the same order here.
    static_assert(int(Torch::Int7) - int(Torch::UInt1) == int(DType::Int7) - int(DType::UInt1));
    for (int i = 0; i <= int(Torch::Int7) - int(Torch::UInt1); ++i)
        types[int(Torch::UInt1) + i] = static_cast<DType>(int(DType::UInt1) + i);
    if constexpr (requires { Torch::BComplex32; }) types[int(Torch::BComplex32)] = DType::BComplex32;  // 2.14
    return types;
}
inline constexpr std::array kDTypes = make_dtypes<c10::ScalarType>();

inline DType dtype_of(c10::ScalarType type) noexcept {
    const auto number = static_cast<std::size_t>(type);
    return number < kDTypes.size() ? kDTypes[number] : DType::Other;
}

inline Layout layout_of(c10::Layout layout) noexcept {
    switch (layout) {
        case c10::kStrided:
            return Layout::Strided;
        case c10::kSparse:
            return Layout::Sparse;
        case c10::kSparseCsr:
            return Layout::SparseCsr;
        case c10::kMkldnn:
            return Layout::Blocked;
        case c10::kJagged:
            return Layout::Jagged;
        default:
            return Layout::Other;
    }
}

/// PyTorch and Marey use the same device numbers.
inline Device device_of(c10::Device device) noexcept {
    return {static_cast<DeviceType>(device.type()), device.index()};
}

/// The values of one operator, stored in place without allocation. Values that do not fit are left out.
class InputValues {
  public:
    /// Refers to the arguments, which must outlive this object.
    void add(c10::ArrayRef<const c10::IValue> arguments) {
        for (const c10::IValue& argument : arguments) {
            if (count_ == kMaxValues) return;
            new (&values_[count_]) Value(value_of(argument, 0));
            ++count_;
        }
    }
    /// The same, with the identity of tensors and the operator's access to them: one bit for each argument
    /// that it writes to, if this is known.
    void add_identified(c10::ArrayRef<const c10::IValue> arguments, std::optional<std::uint64_t> written) {
        for (std::size_t i = 0; i < arguments.size() && count_ != kMaxValues; ++i) {
            identify(written ? access_of(*written, i) : ArrayAccess::Unknown);
            new (&values_[count_++]) Value(value_of(arguments[i], 0));
        }
    }
    static ArrayAccess access_of(std::uint64_t written, std::size_t argument) noexcept {
        return argument < 64 && (written >> argument & 1) != 0 ? ArrayAccess::Write : ArrayAccess::Read;
    }
    /// From now on, tensors get their identity and this access.
    void identify(ArrayAccess access) noexcept {
        is_identified_ = true;
        access_ = access;
    }
    /// From now on, storages without an address get a number, for observers of operators. The number may be
    /// reused later.
    void name_storages() noexcept { names_storages_ = true; }
    /// Adds a value that has a key. Both must outlive this object.
    Value add_keyed(const c10::IValue& argument) { return value_of(argument, 0); }
    std::span<const Value> values() const noexcept {
        return {std::launder(reinterpret_cast<const Value*>(values_.data())), count_};
    }

  private:
    static constexpr std::size_t kMaxValues = 64;
    static constexpr std::size_t kMaxItems = 512;
    static constexpr std::size_t kMaxArrays = 256;
    static constexpr std::size_t kMaxInList = 31;  // one more than is kept, so that truncation is visible
    static constexpr int kMaxNesting = 3;
    template <class T>
    struct alignas(T) Place {
        std::byte bytes[sizeof(T)];
    };

    Value value_of(const c10::IValue& argument, int nesting) {
        if (argument.isTensor()) return array_of(argument.toTensor());
        if (argument.isInt()) return argument.toInt();
        if (argument.isDouble()) return argument.toDouble();
        if (argument.isBool()) return argument.toBool();
        if (argument.isString()) return std::string_view(argument.toStringRef());
        if (argument.isTensorList() && argument.toListRef().empty()) return Value::no_arrays();
        if (argument.isList())
            return nesting < kMaxNesting ? list_of(argument.toListRef(), nesting + 1) : Value();
        return argument.isNone() ? Value() : other_of(argument);
    }

    [[gnu::noinline]] Value other_of(const c10::IValue& argument) {
        if (argument.isComplexDouble()) {
            const c10::complex<double> number = argument.toComplexDouble();
            std::string text = real_text(number.real());
            text += number.imag() >= 0 ? '+' : '-';
            text += real_text(std::abs(number.imag())) + 'j';
            return Value::scalar_text(ValueKind::Double, keep(text));
        }
        if (argument.isSymInt())
            return Value::scalar_text(ValueKind::Int,
                                      symbol_text([&] { return argument.toSymInt().toSymNode(); }));
        if (argument.isSymFloat())
            return Value::scalar_text(ValueKind::Double,
                                      symbol_text([&] { return argument.toSymFloat().toSymNodeImpl(); }));
        if (argument.isSymBool())
            return Value::scalar_text(ValueKind::Bool,
                                      symbol_text([&] { return argument.toSymBool().toSymNodeImpl(); }));
        if (argument.isDevice()) return Value::shown_as(keep(argument.toDevice().str()));
        return Value::shown_as(keep('<' + argument.tagKind() + '>'));
    }
    /// The expression of a symbol comes from code of the program, usually Python, which is not recorded.
    template <class GetNode>
    std::string_view symbol_text(const GetNode& node) {
        static constexpr std::string_view kUnknown = "<symbol>";
        static constinit thread_local bool is_asking = false;
        if (is_asking) return kUnknown;
        is_asking = true;
        std::string_view text = kUnknown;
        try {
            const EnableGuard silence(false);
            const at::DisableRecordFunctionGuard no_operators;
            text = keep(node()->str());
        } catch (...) {  // it has no text, or its code failed
        }
        is_asking = false;
        return text;
    }
    /// Formats a number as PyTorch does within a complex number.
    static std::string real_text(double number) {
        char text[32];
        const bool is_whole =
            std::abs(number) <= std::numeric_limits<int>::max() && number == std::trunc(number);
        std::snprintf(text, sizeof text, is_whole ? "%.0f." : "%.17g", is_whole ? number + 0.0 : number);
        return text;
    }
    std::string_view keep(std::string_view text) {
        if (text.size() > texts_.size() - text_bytes_) return "...";
        char* const place = texts_.data() + text_bytes_;
        std::copy(text.begin(), text.end(), place);
        text_bytes_ += text.size();
        return {place, text.size()};
    }

    Value list_of(c10::ArrayRef<c10::IValue> items, int nesting) {
        const std::size_t count = std::min(items.size(), kMaxInList);
        if (item_count_ + count > kMaxItems) return {};
        Place<Value>* const first = &items_[item_count_];
        item_count_ += count;
        for (std::size_t i = 0; i < count; ++i) new (&first[i]) Value(value_of(items[i], nesting));
        return std::span<const Value>(std::launder(reinterpret_cast<const Value*>(first)), count);
    }

    /// Nested tensors and those with symbolic sizes have no metadata that can be read without running code.
    Value array_of(const at::TensorBase& tensor) {
        if (array_count_ == kMaxArrays) return {};
        auto* const array = new (&arrays_[array_count_++]) ArrayView;
        const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
        if (!tensor.defined() || tensor.is_nested() || impl->has_symbolic_sizes_strides()) {
            array->is_defined = false;
            return *array;
        }
        array->dtype = dtype_of(tensor.scalar_type());
        array->layout = layout_of(tensor.layout());
        array->device = device_of(tensor.device());
        const c10::IntArrayRef sizes = tensor.sizes();
        array->sizes = {sizes.data(), sizes.size()};
        if (array->layout == Layout::Strided) {
            const c10::IntArrayRef strides = tensor.strides();
            array->strides = {strides.data(), strides.size()};
        }
        if (tensor.has_storage()) {
            const c10::Storage& storage = impl->unsafe_storage();
            array->storage = storage.data();
            // Storages of the device `meta` have no address but can be shared.
            if (array->storage == nullptr && names_storages_)
                array->storage_id = reinterpret_cast<std::uintptr_t>(storage.unsafeGetStorageImpl());
        }
        if (is_identified_) {
            array->object = TensorObjects::find(tensor);
            array->access = access_;
        }
        return *array;
    }

    bool is_identified_ = false;
    bool names_storages_ = false;
    ArrayAccess access_ = ArrayAccess::Unknown;
    std::size_t count_ = 0;
    std::size_t item_count_ = 0;
    std::size_t array_count_ = 0;
    std::size_t text_bytes_ = 0;
    std::array<Place<Value>, kMaxValues> values_;
    std::array<Place<ArrayView>, kMaxArrays>
        arrays_;  // separate from the values, so that the usual case fits in one page
    std::array<Place<Value>, kMaxItems> items_;
    std::array<char, 2048> texts_;
};

}  // namespace marey::torch
