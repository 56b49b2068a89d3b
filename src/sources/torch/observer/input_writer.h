// input_writer.h: writes the inputs of a usual operator directly to the memory that holds them until it ends.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/DispatchKeySet.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include <marey/detail/operator_path.h>
#include <marey/detail/value_encoder.h>
#include <marey/detail/values.h>

#include "input_values.h"
#include "operator_sites.h"

namespace marey::torch {

/// Opens a range with its facts and inputs.
class InputWriter {
  public:
    /// Opened::index is kNotOpen if the case is unusual; then nothing was done. If `is_identified`,
    /// tensors get their identity and the operator's access to them.
    static detail::Opened open(const OperatorSite& found, const detail::RangeProperties& facts,
                               c10::ArrayRef<const c10::IValue> arguments, bool is_identified) {
        constexpr detail::Opened kNothing{0, detail::kNotOpen};
        detail::ThreadState* const thread = detail::current_thread;
        if (!detail::may_open(thread, found.site)) [[unlikely]]
            return kNothing;
        Entry entry;
        if (!entry.room.is_inline) [[unlikely]]
            return kNothing;
        // From here on nothing may run that records, so only PyTorch's own code.
        const bool with_scalars = (detail::load_relaxed(thread->armed) & detail::kArmedConcrete) != 0;
        InputWriter writer(entry.room, {true, with_scalars});
        if (facts.sequence >= 0 || facts.forward_thread != 0) writer.encoder_.add_facts(facts);
        if (is_identified) writer.operator_ = &found;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            if (!writer.add(arguments[i], i)) [[unlikely]]
                return kNothing;
        }
        std::byte* const end = writer.encoder_.end();
        if (end == entry.room.place) [[unlikely]]  // no inputs
            return kNothing;
        detail::prefetch_log(thread, static_cast<std::size_t>(end - entry.room.place));
        return detail::open_valued(thread, found.site, entry.close(end));
    }

  private:
    /// Its place on the side stack; released if it is not closed.
    struct Entry {
        Entry() = default;
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;
        ~Entry() {
            if (room.is_inline && !is_closed) detail::drop_side_buffer();
        }
        std::uint32_t close(std::byte* end) noexcept {
            is_closed = true;
            return detail::close_side(room, end);
        }
        detail::SideBuffer room = detail::open_side();
        bool is_closed = false;
    };
    InputWriter(const detail::SideBuffer& room, detail::ValueNeeds needs) noexcept
        : encoder_(room.place, room.limit), needs_(needs) {}

    /// Whether the metadata of a tensor can be read from memory alone: its sizes are not computed by a
    /// program.
    static bool is_plain(const c10::TensorImpl* impl) noexcept {
        constexpr c10::DispatchKeySet kPlain =
            c10::DispatchKeySet({c10::DispatchKey::Dense, c10::DispatchKey::ADInplaceOrView,
                                 c10::DispatchKey::Conjugate, c10::DispatchKey::Negative}) |
            c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset |
            c10::DispatchKeySet({c10::BackendComponent::CPUBit, c10::BackendComponent::CUDABit});
        const c10::DispatchKeySet keys = impl->key_set();
        return (keys | kPlain) == kPlain && keys.has_any(c10::DispatchKeySet(c10::DispatchKey::Dense)) &&
               !impl->has_symbolic_sizes_strides();
    }
    /// The same for any value.
    static bool is_plain(const c10::IValue& value) {
        if (value.isTensor()) {
            const c10::TensorImpl* const impl = value.toTensor().unsafeGetTensorImpl();
            return !value.toTensor().defined() || is_plain(impl);
        }
        if (value.isSymInt() || value.isSymFloat() || value.isSymBool()) return false;
        if (!value.isList()) return true;
        const c10::ArrayRef<c10::IValue> items = value.toListRef();
        return std::all_of(items.begin(), items.end(),
                           [](const c10::IValue& item) { return is_plain(item); });
    }

    [[gnu::always_inline]] bool add(const c10::IValue& argument, std::size_t i) {
        constexpr std::uint8_t kInput = detail::kValueInput;
        if (argument.isTensor()) {
            const c10::TensorImpl* const impl = argument.toTensor().unsafeGetTensorImpl();
            if (is_plain(impl)) [[likely]] {
                ArrayView view = view_of(*impl);
                if (operator_ != nullptr) {
                    view.object = TensorObjects::find(argument.toTensor());
                    view.access = InputValues::access_of(operator_->written, i);
                }
                encoder_.add_array(0, kInput, view);
                return true;
            }
        } else if (needs_.concrete) {
            if (argument.isInt()) {
                encoder_.add_scalar(0, kInput, ValueKind::Int, static_cast<std::uint64_t>(argument.toInt()));
                return true;
            }
            if (argument.isDouble()) {
                encoder_.add_scalar(0, kInput, ValueKind::Double,
                                    std::bit_cast<std::uint64_t>(argument.toDouble()));
                return true;
            }
            if (argument.isBool()) {
                encoder_.add_scalar(0, kInput, ValueKind::Bool, argument.toBool() ? 1 : 0);
                return true;
            }
            if (argument.isNone()) {
                encoder_.add_none(0, kInput);
                return true;
            }
            if (argument.isIntList()) {
                encoder_.add_integers(0, kInput, argument.toListRef(),
                                      [](const c10::IValue& item) { return item.toInt(); });
                return true;
            }
        }
        return add_other(argument, i);
    }
    [[gnu::always_inline]] static ArrayView view_of(const c10::TensorImpl& impl) {
        ArrayView view{.dtype = dtype_of(c10::typeMetaToScalarType(impl.dtype())),
                       .device = device_of(impl.device())};
        const c10::IntArrayRef sizes = impl.sizes();
        const c10::IntArrayRef strides = impl.strides();
        view.sizes = {sizes.data(), sizes.size()};
        view.strides = {strides.data(), strides.size()};
        if (impl.has_storage()) view.storage = impl.unsafe_storage().data();
        return view;
    }
    [[gnu::noinline]] bool add_other(const c10::IValue& argument, std::size_t i) {
        if (!is_plain(argument)) return false;
        InputValues values;
        if (operator_ != nullptr) values.identify(InputValues::access_of(operator_->written, i));
        encoder_.add(0, detail::kValueInput, values.add_keyed(argument), needs_);
        return true;
    }

    detail::ValueEncoder encoder_;
    detail::ValueNeeds needs_;
    const OperatorSite* operator_ = nullptr;  ///< null: without identities
};

}  // namespace marey::torch
