// element_values.h: the elements of integral tensors, for execution traces that are asked to contain them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/array_elements.h>
#include <marey/detail/thread_safety.h>

namespace marey::torch {

/// The elements that execution traces contain.
class ElementRequest {
  public:
    static ElementRequest& get() {
        static ElementRequest& only = *new ElementRequest;
        return only;
    }
    void set(bool has_ranges, const char* operators) {
        const ScopedLock lock(mutex_);
        has_ranges_ = has_ranges;
        operators_ = ',' + std::string(operators) + ',';
        is_any_.store(has_ranges_ || operators_ != ",,", std::memory_order_release);
    }
    bool is_any() const noexcept { return is_any_.load(std::memory_order_acquire); }
    bool has_ranges() const {
        const ScopedLock lock(mutex_);
        return has_ranges_;
    }
    /// Whether the elements of this operator's inputs are saved.
    bool saves(std::string_view name) const {
        const ScopedLock lock(mutex_);
        return operators_.find(',' + std::string(name) + ',') != std::string::npos;
    }

  private:
    mutable Mutex mutex_;
    std::atomic<bool> is_any_{false};
    bool has_ranges_ MAREY_GUARDED_BY(mutex_) = false;
    std::string operators_ MAREY_GUARDED_BY(mutex_) = ",,";  ///< with a comma before and after each
};

/// Offers the elements of an operator's integral inputs while it exists. Waits for the device that has them.
class ElementValues {
  public:
    ElementValues(const char* name, c10::ArrayRef<const c10::IValue> inputs) {
        const ElementRequest& request = ElementRequest::get();
        const bool has_ranges = request.has_ranges(), has_bytes = request.saves(name);
        if (!has_ranges && !has_bytes) return;
        const at::RecordFunctionGuard unrecorded(false);
        const at::NoGradGuard without_gradients;
        for (const c10::IValue& input : inputs) {
            if (input.isTensor()) {
                read(input.toTensor(), has_ranges, has_bytes);
            } else if (input.isTensorList()) {
                for (const at::Tensor& tensor : input.toTensorVector()) read(tensor, has_ranges, has_bytes);
            }
        }
        for (const std::string& each : bytes_) views_.emplace_back(each);
        if (!ranges_.empty()) ranges_ = '{' + ranges_ + '}';
        elements_ = {ranges_, {views_.data(), views_.size()}};
        detail::offer_elements(&elements_);
    }
    ~ElementValues() { detail::offer_elements(nullptr); }
    ElementValues(const ElementValues&) = delete;
    ElementValues& operator=(const ElementValues&) = delete;

  private:
    void read(const at::Tensor& tensor, bool has_ranges, bool has_bytes) {
        const std::size_t number = bytes_.size();
        bytes_.emplace_back();
        const bool has_elements = tensor.defined() && c10::isIntegralType(tensor.scalar_type(), false) &&
                                  tensor.layout() == c10::kStrided && !tensor.is_meta() &&
                                  !tensor.unsafeGetTensorImpl()->is_python_dispatch() && tensor.numel() != 0;
        if (!has_elements) return;
        try {
            const at::Tensor own = tensor.detach();
            if (has_ranges) {
                if (!ranges_.empty()) ranges_ += ',';
                ranges_ += '"' + std::to_string(number) + "\":[" +
                           std::to_string(own.min().item<std::int64_t>()) + ',' +
                           std::to_string(own.max().item<std::int64_t>()) + ']';
            }
            if (has_bytes) {
                const at::Tensor host = own.cpu().contiguous();
                bytes_[number].assign(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
            }
        } catch (const std::exception&) {  // an operation that this type of tensor does not have
        }
    }

    std::string ranges_;
    std::vector<std::string> bytes_;
    std::vector<std::string_view> views_;
    detail::ArrayElements elements_;
};

}  // namespace marey::torch
