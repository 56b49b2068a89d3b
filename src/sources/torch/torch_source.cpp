// torch_source.cpp: loads and controls the observer, in the Python extension.
#include "sources/torch/torch_source.h"

#include <dlfcn.h>

#include <array>
#include <memory>
#include <string_view>

#include <marey/detail/log_format.h>
#include <marey/detail/operator_path.h>
#include <marey/detail/thread_safety.h>
#include <marey/error.h>

#include "base/environment.h"
#include "record/source_writer.h"
#include "sources/torch/observer/observer_table.h"

namespace marey::torch {

namespace {

constexpr std::uint32_t kScopes = 0x3ff;  // PyTorch's scopes, which have the same numbers

/// The requests of sessions and other users, and the observer that receives them.
struct Requests {
    Mutex mutex;
    const ObserverTable* table = nullptr;  // set once, before the source of operators is added
    std::uint32_t session_needs MAREY_GUARDED_BY(mutex) = 0;
    std::array<std::uint32_t, 32> holds MAREY_GUARDED_BY(mutex){};  // by bit of ObserverNeeds

    void hold(std::uint32_t needs) noexcept MAREY_REQUIRES(mutex) {
        for (std::size_t bit = 0; bit < holds.size(); ++bit) holds[bit] += needs >> bit & 1;
    }
    void release(std::uint32_t needs) noexcept MAREY_REQUIRES(mutex) {
        for (std::size_t bit = 0; bit < holds.size(); ++bit) {
            if ((needs >> bit & 1) != 0 && holds[bit] != 0) --holds[bit];
        }
    }
    bool apply() noexcept MAREY_REQUIRES(mutex) {
        std::uint32_t needs = session_needs;
        for (std::size_t bit = 0; bit < holds.size(); ++bit)
            needs |= holds[bit] != 0 ? std::uint32_t{1} << bit : 0;
        return table == nullptr || table->set_needs(needs);
    }
};
Requests& requests() noexcept {
    static auto* const made = new Requests;  // never destroyed: threads may record until the process ends
    return *made;
}

class OperatorSource final : public Source {
  public:
    const char* name() const noexcept override { return "torch"; }
    void needs_changed(const RecordingNeeds& needs) noexcept override {
        std::uint32_t wanted = 0;
        if ((needs.scopes & kScopes) != 0) {
            wanted = kNeedsRanges;
            if ((needs.option_bits & detail::kOptionShapes) != 0) wanted |= kNeedsInputs;
            if ((needs.option_bits & detail::kOptionMemory) != 0) wanted |= kNeedsMemory;
        }
        Requests& all = requests();
        const ScopedLock lock(all.mutex);
        all.session_needs = wanted;
        if (!all.apply())
            note_problem("torch_operators_missing", "could not register a callback with PyTorch");
    }
    void flush(std::uint64_t, bool) noexcept override {
        char name[64];
        while (requests().table->next_unobserved_thread(name, sizeof name)) {
            note_problem("torch_memory_missing",
                         std::string("another PyTorch profiler is running on thread ") + name +
                             ": its allocations are not recorded");
        }
    }
    void forked() noexcept override { requests().table->forked(); }
};

const ObserverTable* loaded_table() noexcept {
    const ScopedLock lock(requests().mutex);
    return requests().table;
}

std::string load_error(const std::string& path) {
    const char* const reason = ::dlerror();
    return "cannot load the PyTorch observer " + path + ": " +
           (reason != nullptr ? reason : "unknown reason");
}

}  // namespace

void describe_ranges() {
    // Operators that only inspect memory.
    constexpr std::string_view kUntimed[] = {"aten::view",          "aten::t",
                                             "aten::transpose",     "aten::stride",
                                             "aten::empty",         "aten::empty_like",
                                             "aten::empty_strided", "aten::as_strided",
                                             "aten::expand",        "aten::resize_",
                                             "aten::squeeze",       "aten::unsqueeze",
                                             "aten::slice",         "aten::_unsafe_view",
                                             "aten::size"};
    time_on_device(kUntimed, false);
    // TorchScript functions that wait for forks are resumed elsewhere. The forked ones are not waited for.
    detail::set_waited_ranges([](Scope scope, std::string_view name) noexcept {
        return scope == Scope::ScriptFunction && name != "<forked function>";
    });
}

ExecutionTraceRequest execution_trace_request() {
    const auto is_set = [](const char* ours, const char* pytorchs) {
        return environment_text(ours).empty() && environment_text(pytorchs) == "1";
    };
    ExecutionTraceRequest request = marey::execution_trace_request();
    if (is_set("MAREY_EXECUTION_TRACE", "ENABLE_PYTORCH_EXECUTION_TRACE")) request.is_wanted = true;
    if (is_set("MAREY_EXECUTION_TRACE_EXTRAS", "ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS"))
        request.with_resources = true;
    return request;
}

void load_observer(const std::string& path) {
    Requests& all = requests();
    {
        const ScopedLock lock(all.mutex);
        if (all.table != nullptr) return;
        void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) throw Error(load_error(path));
        const auto get = reinterpret_cast<const ObserverTable* (*)()>(::dlsym(library, kObserverSymbol));
        if (get == nullptr) throw Error(load_error(path));
        const ObserverTable* const table = get();
        if (table->version != kObserverTableVersion || table->layout != detail::kLayoutNumber)
            throw Error("the PyTorch observer " + path + " was compiled for another version of Marey");
        all.table = table;
    }
    add_source(std::make_shared<OperatorSource>());
}

bool is_observer_loaded() noexcept {
    return loaded_table() != nullptr;
}

void hold_needs(std::uint32_t needs) {
    Requests& all = requests();
    const ScopedLock lock(all.mutex);
    if (all.table == nullptr) throw Error("the PyTorch observer is not loaded");
    const std::string prefix = "ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_";
    all.table->set_elements(environment_text((prefix + "RANGE").c_str()) == "1",
                            environment_text((prefix + "DATA").c_str()).c_str());
    all.hold(needs);
    if (all.apply()) return;
    all.release(needs);
    throw Error("could not register a callback with PyTorch");
}

void release_needs(std::uint32_t needs) noexcept {
    Requests& all = requests();
    const ScopedLock lock(all.mutex);
    all.release(needs);
    all.apply();
}

bool links_forward() noexcept {
    const ObserverTable* const table = loaded_table();
    return table == nullptr || table->links_forward();
}

bool records_waits() noexcept {
    const ObserverTable* const table = loaded_table();
    return table != nullptr && table->records_waits();
}

std::uint64_t enter_thread(bool shapes) {
    const ObserverTable* const table = loaded_table();
    if (table == nullptr) throw Error("the PyTorch observer is not loaded");
    return table->enter(shapes);
}

void leave_thread(std::uint64_t token) noexcept {
    if (token != 0) requests().table->leave(token);
}

bool describe_tensor(std::uintptr_t impl, void (*take)(const ArrayView&, void*), void* context) noexcept {
    const ObserverTable* const table = loaded_table();
    return table != nullptr && table->describe_tensor(impl, take, context);
}

}  // namespace marey::torch
