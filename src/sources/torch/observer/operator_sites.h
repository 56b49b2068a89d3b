// operator_sites.h: the site of each operator, found by its schema without reading its name.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include <marey/c.h>
#include <marey/detail/thread_safety.h>
#include <marey/detail/values.h>

namespace marey::torch {

/// The site of operators that are not recorded.
inline constexpr std::uint32_t kNoSite = ~0u;

/// Operators that only open and close user ranges, which are recorded themselves.
inline bool is_range_operator(std::string_view name) noexcept {
    return name == "profiler::_record_function_enter" || name == "profiler::_record_function_enter_new" ||
           name == "profiler::_record_function_exit";
}

/// The arguments that an operator writes to, one bit each for the first 64.
inline std::uint64_t written_by(const c10::FunctionSchema& schema) noexcept {
    std::uint64_t written = 0;
    for (std::size_t i = 0; i < schema.arguments().size() && i < 64; ++i) {
        const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
        if (alias != nullptr && alias->isWrite()) written |= std::uint64_t{1} << i;
    }
    return written;
}

struct OperatorSite {
    std::uint32_t site;     ///< `kNoSite`: the operator is not recorded; 0: there is no space
    std::uint64_t written;  ///< the arguments that it writes to
};

/// Sites by the address of the schema. A lookup takes no lock; the table is never emptied. The entry of a
/// schema that is freed is cleared, since its address may be reused.
class OperatorSites {
  public:
    OperatorSite find(const c10::FunctionSchema& schema, Scope scope, bool by_overload) noexcept {
        for (std::size_t i = 0; i < kMaxProbes; ++i) {
            Entry& entry = entries_[(hash(&schema) + i) & (kEntries - 1)];
            const auto* const key = entry.schema.load(std::memory_order_acquire);
            if (key == &schema && scope == Scope::Function) [[likely]] {
                const auto& site = by_overload ? entry.overload_site : entry.site;
                if (const std::uint32_t number = site.load(std::memory_order_relaxed)) [[likely]]
                    return {number, entry.written.load(std::memory_order_relaxed)};
                break;
            }
            if (key == nullptr) break;
        }
        const std::uint64_t written = written_by(schema);
        return {learn(schema, written, scope, by_overload), written};
    }

    /// Removes a schema that has been destroyed.
    void forget(const c10::FunctionSchema* schema) noexcept {
        const ScopedLock lock(mutex_);
        for (std::size_t i = 0; i < kMaxProbes; ++i) {
            Entry& entry = entries_[(hash(schema) + i) & (kEntries - 1)];
            if (entry.schema.load(std::memory_order_relaxed) == schema) entry.schema.store(tombstone());
        }
    }

  private:
    struct Entry {
        std::atomic<const c10::FunctionSchema*> schema{nullptr};
        std::atomic<std::uint32_t> site{0};
        std::atomic<std::uint32_t> overload_site{0};
        std::atomic<std::uint64_t> written{0};
    };
    static constexpr std::size_t kEntries = 1 << 14;  // PyTorch has some 4000 operators
    static constexpr std::size_t kMaxProbes = 32;

    static std::size_t hash(const c10::FunctionSchema* schema) noexcept {
        const auto address = reinterpret_cast<std::uintptr_t>(schema) >> 4;
        return address ^ address >> 11;
    }
    static const c10::FunctionSchema* tombstone() noexcept {
        return reinterpret_cast<const c10::FunctionSchema*>(std::uintptr_t{1});
    }

    [[gnu::noinline]] std::uint32_t learn(const c10::FunctionSchema& schema, std::uint64_t written,
                                          Scope scope, bool by_overload) noexcept {
        const std::string& name = schema.name();
        if (is_range_operator(name)) return kNoSite;
        if (scope != Scope::Function && !by_overload) return detail::dynamic_site(name, scope);
        const std::uint32_t site = by_overload ? detail::operator_site(name, schema.overload_name(), scope)
                                               : marey_intern(name.c_str(), nullptr, 0, MAREY_SCOPE_FUNCTION);
        if (scope != Scope::Function || site == 0) return site;
        const ScopedLock lock(mutex_);
        for (std::size_t i = 0; i < kMaxProbes; ++i) {
            Entry& entry = entries_[(hash(&schema) + i) & (kEntries - 1)];
            const auto* const key = entry.schema.load(std::memory_order_relaxed);
            if (key != nullptr && key != &schema) continue;
            entry.written.store(written, std::memory_order_relaxed);
            (by_overload ? entry.overload_site : entry.site).store(site, std::memory_order_relaxed);
            entry.schema.store(&schema, std::memory_order_release);
            break;
        }
        return site;
    }

    std::array<Entry, kEntries> entries_;
    Mutex mutex_;  ///< for writing
};

inline constinit OperatorSites operator_sites;

/// Clears the entries of operators that are deregistered.
class SchemaWatch final : public c10::OpRegistrationListener {
  public:
    static void start() {
        static auto* const handle = new c10::RegistrationHandleRAII(
            c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<SchemaWatch>()));
        (void)handle;
    }
    void onOperatorRegistered(const c10::OperatorHandle&) override {}
    void onOperatorDeregistered(const c10::OperatorHandle& op) override {
        if (op.hasSchema()) operator_sites.forget(&op.schema());
    }
};

}  // namespace marey::torch
