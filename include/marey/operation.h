// operation.h: a range with what an operator has: inputs, outputs, a sequence number.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include <marey/detail/hot_path.h>
#include <marey/value.h>

namespace marey {

class CallStack;

/// What is known of an operation beside its values: what ties its two halves together, and where it began.
struct OperationFacts {
    std::int64_t sequence = -1;  ///< the forward half: peek_sequence(); the backward half: the forward one's
    std::uint32_t forward_thread = 0;  ///< the backward half: current_thread_id() of the forward one
    const CallStack* stack = nullptr;  ///< where it was begun; looked at where needs_keywords()
};

/// The calling thread's sequence number: what the next take_sequence() gives. Forward halves carry it.
MAREY_API std::int64_t peek_sequence() noexcept;
/// Takes a number, for the backward half that is being made.
MAREY_API std::int64_t take_sequence() noexcept;

/// A scope with inputs and outputs. Made, then begun (or not: then it is nothing), then ended by its
/// destructor. Who watches it is settled when it is made. One that ends on another thread than it began on
/// is async.
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

    /// Somebody records or observes it: begin() has an effect.
    bool is_active() const noexcept { return is_active_; }
    /// Somebody will look at inputs given to begin() / keywords given to it / outputs given to set_outputs().
    bool needs_inputs() const noexcept { return needs_inputs_; }
    bool needs_keywords() const noexcept { return needs_keywords_; }
    bool needs_outputs() const noexcept { return needs_outputs_; }

    /// Begins it. What the values view need not outlive the call. 16 keywords and 16 KiB of values are kept;
    /// the last one kept is marked as truncated where more were given.
    void begin(std::string_view name, const OperationFacts& facts = {}, std::span<const Value> inputs = {},
               std::span<const KeyedValue> keywords = {}) noexcept {
        if (is_active_) start(name, facts, inputs, keywords);
    }
    void begin(std::string_view name, const OperationFacts& facts,
               std::initializer_list<Value> inputs) noexcept {
        begin(name, facts, std::span(inputs.begin(), inputs.size()));
    }
    /// With a name that is written in the source: MAREY_SITE("mm").
    void begin(detail::Site& site, const OperationFacts& facts = {}, std::span<const Value> inputs = {},
               std::span<const KeyedValue> keywords = {}) noexcept {
        if (is_active_) start(site, facts, inputs, keywords);
    }
    void begin(detail::Site& site, const OperationFacts& facts,
               std::initializer_list<Value> inputs) noexcept {
        begin(site, facts, std::span(inputs.begin(), inputs.size()));
    }
    /// With a site's number, of its own scope (detail::dynamic_site, detail::operator_site); 0 is none: then
    /// it is nothing.
    void begin(std::uint32_t site, const OperationFacts& facts = {}, std::span<const Value> inputs = {},
               std::span<const KeyedValue> keywords = {}) noexcept {
        if (is_active_ && site != 0) start(site, facts, inputs, keywords);
    }
    /// Before end(); what the values view must live until then.
    void set_outputs(std::span<const Value> outputs) noexcept { outputs_ = outputs; }
    /// Ends it before its scope does. Ending twice is harmless.
    void end() noexcept {
        if (is_active_) finish();
    }

  private:
    MAREY_API void prepare() noexcept;
    MAREY_API void start(std::string_view name, const OperationFacts& facts, std::span<const Value> inputs,
                         std::span<const KeyedValue> keywords) noexcept;
    MAREY_API void start(detail::Site& site, const OperationFacts& facts, std::span<const Value> inputs,
                         std::span<const KeyedValue> keywords) noexcept;
    MAREY_API void start(std::uint32_t site, const OperationFacts& facts, std::span<const Value> inputs,
                         std::span<const KeyedValue> keywords) noexcept;
    MAREY_API void finish() noexcept;

    Scope scope_;
    bool is_active_ = false;
    bool has_begun_ = false;
    bool needs_inputs_ = false;
    bool needs_keywords_ = false;
    bool needs_outputs_ = false;
    void* frame_ = nullptr;  ///< of its observers
    detail::Opened opened_{0, detail::kNotOpen};
    std::uint32_t thread_ = 0;  ///< that opened it
    std::span<const Value> outputs_;
};

namespace detail {
/// Opens a range with facts and inputs, where may_open_with_inputs(): for close_with_inputs()
/// (operator_path.h). What the values view need not outlive the call.
MAREY_API Opened open_with_inputs(std::uint32_t site, Scope scope, const RangeFacts& facts,
                                  std::span<const Value> inputs) noexcept;
}  // namespace detail

}  // namespace marey

/// The place where it stands, under a name that is a string literal: what Operation::begin takes.
#define MAREY_SITE(name) MAREY_SITE_SCOPE(::marey::Scope::Function, name)
/// The same for another scope, which is to be the operation's.
#define MAREY_SITE_SCOPE(scope, name)                                                 \
    ([]() noexcept -> ::marey::detail::Site& {                                        \
        static constinit ::marey::detail::Site site{name, __FILE__, __LINE__, scope}; \
        return site;                                                                  \
    }())
