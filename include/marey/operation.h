// operation.h: a range for an operator, with inputs, outputs and a sequence number.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <marey/detail/hot_path.h>
#include <marey/span.h>
#include <marey/value.h>

namespace marey {

class CallStack;

/// Facts about an operation other than its values: the link between its forward and backward half, and the
/// call stack.
struct OperationProperties {
    /// Forward half: peek_sequence(); backward half: the number of the forward half.
    std::int64_t sequence = -1;
    std::uint32_t forward_thread = 0;  ///< backward half: current_thread_id() of the forward half
    const CallStack* stack = nullptr;  ///< where it began; used only if needs_keywords()
};

/// Returns the calling thread's sequence number, which the next take_sequence() will return. Forward halves
/// use it.
MAREY_API std::int64_t peek_sequence() noexcept;
/// Takes a sequence number, for the backward half that is being created.
MAREY_API std::int64_t take_sequence() noexcept;

/// A scoped range with inputs and outputs. Construct it, call begin(), and let the destructor end it; without
/// begin() it has no effect. The sessions and observers that receive it are determined at construction. An
/// operation that ends on another thread than it began on is async.
///
///     marey::Operation op(marey::Scope::Function);
///     if (op.is_active()) op.begin("mm", {.sequence = n}, op.needs_inputs() ? describe(a, b) : ...);
///     ...
///     const marey::Value outputs[] = {describe(result)};
///     if (op.needs_outputs()) op.set_outputs(outputs);
class Operation {
  public:
    explicit Operation(Scope scope = Scope::Function) noexcept : scope_(scope) {
        const std::uint64_t armed = detail::load_relaxed(detail::current_thread->armed);
        if ((armed & detail::scope_bit(scope)) == 0) return;
        if ((armed & (detail::kArmedAttention | detail::kArmedObservers)) != 0) {
            prepare();
            return;
        }
        is_active_ = (armed & detail::kArmedRecorder) != 0;
        needs_inputs_ = needs_outputs_ = (armed & detail::kArmedShapes) != 0;
        needs_keywords_ = (armed & detail::kArmedValues) != 0;
    }
    ~Operation() {
        if (is_active_) finish();
    }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    /// Whether it is recorded or observed, so that begin() has an effect.
    bool is_active() const noexcept { return is_active_; }
    /// Whether the inputs or keywords passed to begin(), or the outputs passed to set_outputs(), will be
    /// used.
    bool needs_inputs() const noexcept { return needs_inputs_; }
    bool needs_keywords() const noexcept { return needs_keywords_; }
    bool needs_outputs() const noexcept { return needs_outputs_; }

    /// Begins the operation. The memory that the values refer to need not outlive the call. At most 16
    /// keywords and 16 KiB of values are kept; if there are more, the last one kept is marked as truncated.
    void begin(std::string_view name, const OperationProperties& facts = {}, Span<const Value> inputs = {},
               Span<const KeyedValue> keywords = {}) noexcept {
        if (is_active_) start(name, facts, inputs, keywords);
    }
    void begin(std::string_view name, const OperationProperties& facts,
               std::initializer_list<Value> inputs) noexcept {
        begin(name, facts, Span(inputs.begin(), inputs.size()));
    }
    /// Begins the operation with a name that is a string literal: MAREY_SITE("mm").
    void begin(detail::Site& site, const OperationProperties& facts = {}, Span<const Value> inputs = {},
               Span<const KeyedValue> keywords = {}) noexcept {
        if (is_active_) start(site, facts, inputs, keywords);
    }
    void begin(detail::Site& site, const OperationProperties& facts,
               std::initializer_list<Value> inputs) noexcept {
        begin(site, facts, Span(inputs.begin(), inputs.size()));
    }
    /// Begins the operation with the number of a site of the same scope (detail::dynamic_site,
    /// detail::operator_site). Does nothing if it is 0.
    void begin(std::uint32_t site, const OperationProperties& facts = {}, Span<const Value> inputs = {},
               Span<const KeyedValue> keywords = {}) noexcept {
        if (is_active_ && site != 0) start(site, facts, inputs, keywords);
    }
    /// Sets the outputs. Call it before end(); the memory that the values refer to must live until then.
    void set_outputs(Span<const Value> outputs) noexcept { outputs_ = outputs; }
    /// Ends the operation before its destructor does. Ending twice is harmless.
    void end() noexcept {
        if (is_active_) finish();
    }

  private:
    MAREY_API void prepare() noexcept;
    MAREY_API void start(std::string_view name, const OperationProperties& facts, Span<const Value> inputs,
                         Span<const KeyedValue> keywords) noexcept;
    MAREY_API void start(detail::Site& site, const OperationProperties& facts, Span<const Value> inputs,
                         Span<const KeyedValue> keywords) noexcept;
    MAREY_API void start(std::uint32_t site, const OperationProperties& facts, Span<const Value> inputs,
                         Span<const KeyedValue> keywords) noexcept;
    MAREY_API void finish() noexcept;

    Scope scope_;
    bool is_active_ = false;
    bool has_begun_ = false;
    bool needs_inputs_ = false;
    bool needs_keywords_ = false;
    bool needs_outputs_ = false;
    void* frame_ = nullptr;  ///< of its observers
    detail::Opened opened_{0, detail::kNotOpen};
    std::uint32_t thread_ = 0;  ///< the thread that opened it
    Span<const Value> outputs_;
};

namespace detail {
/// Opens a range with facts and inputs, if may_open_with_inputs(); close_with_inputs() (operator_path.h)
/// closes it. The memory that the values refer to need not outlive the call.
MAREY_API Opened open_with_inputs(std::uint32_t site, Scope scope, const RangeProperties& facts,
                                  Span<const Value> inputs) noexcept;
}  // namespace detail

}  // namespace marey

/// A site for Operation::begin: this place in the source, with a name that is a string literal.
#define MAREY_SITE(name) MAREY_SITE_SCOPE(::marey::Scope::Function, name)
/// The same for another scope, which must be the scope of the operation.
#define MAREY_SITE_SCOPE(scope, name)                                                              \
    ([]() noexcept -> ::marey::detail::Site& {                                                     \
        static MAREY_DETAIL_CONSTINIT ::marey::detail::Site site{name, __FILE__, __LINE__, scope}; \
        return site;                                                                               \
    }())
