// range_emitter.cpp: the observer that forwards ranges to a tool, and ranges and marks set by hand.
#include <marey/emit.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <marey/device.h>
#include <marey/error.h>
#include <marey/observe.h>

#include "base/fork_mutex.h"
#include "emitters/annotation_backend.h"
#include "emitters/array_identity.h"
#include "emitters/pushed_ranges.h"
#include "record/nvtx_injection.h"

namespace marey {
namespace {

constexpr std::size_t kMaxProducers = 1 << 16;

/// Forwards ranges to one tool. There is one object for each tool. It lives as long as the process, because
/// callbacks may run while it is being stopped and ranges may end afterwards. A run is the time between start
/// and stop.
class RangeEmitter {
  public:
    RangeEmitter(AnnotationBackend& tool, const char* name) : tool_(tool), name_(name) {}

    AnnotationBackend& tool() noexcept { return tool_; }
    /// The tool. Throws marey::Error if it cannot be used.
    AnnotationBackend& usable_tool() {
        const std::string& reason = tool_.unavailable();
        if (!reason.empty()) throw Error(std::string(name_) + " is not available: " + reason);
        return tool_;
    }

    std::uint64_t start(const EmitOptions& options) {
        usable_tool();
        const ScopedLock lock(mutex_);
        if (run_.load(std::memory_order_relaxed) != 0)
            throw Error(std::string("an ") + name_ +
                        " emitter is already running: ranges would be emitted twice");
        {
            const ScopedLock producers_lock(producers_mutex_);
            producers_.clear();
        }
        Observer observer;
        observer.start = options.record_shapes ? on_start<true> : on_start<false>;
        observer.end = on_end;
        observer.instant = on_instant;
        observer.data = this;
        observer.needs_ids = true;
        observer.needs_inputs = observer.needs_outputs = options.record_shapes;
        if (options.record_shapes) observer.memory = on_memory;
        // Set before the first callback, so that ranges that begin at once belong to this run.
        const std::uint64_t run = next_run_++;
        run_.store(run, std::memory_order_release);
        try {
            handle_ = add_observer(observer);
        } catch (...) {
            run_.store(0, std::memory_order_release);
            throw;
        }
        return run;
    }

    void stop(std::uint64_t run) noexcept {
        const ScopedLock lock(mutex_);
        if (run == 0 || run_.load(std::memory_order_relaxed) != run) return;
        // Not drained: ranges that are open on other threads are popped when they end.
        remove_observer(handle_);
        run_.store(0, std::memory_order_release);
        end_run(tool_, run);
    }

  private:
    struct EmittedRange final : ObserverContext {
        EmittedRange(RangeEmitter& of, std::uint64_t in_run) noexcept : emitter(of), run(in_run) {}
        ~EmittedRange() override {
            if (pushed != nullptr) end_emitted(emitter.tool_, pushed);
        }
        RangeEmitter& emitter;
        std::uint64_t run;
        PushedRange* pushed = nullptr;  ///< null: not pushed but begun with begin(), see `own`
        std::uint64_t own = 0;
    };

    template <bool with_shapes>
    static std::unique_ptr<ObserverContext> on_start(const ObservedRange& range, void* data) {
        auto& self = *static_cast<RangeEmitter*>(data);
        const std::uint64_t run = self.run_.load(std::memory_order_acquire);
        if (run == 0) return nullptr;  // stopped in the meantime
        const std::string name(range.name());
        std::string text;
        if constexpr (with_shapes) {
            const std::vector<const ArrayView*> arrays = arrays_of(range.inputs());
            text = range_text(range, arrays, self.producers_of(arrays));
        } else {
            text = range_text(range, {}, {});
        }
        auto emitted = std::make_unique<EmittedRange>(self, run);
        const EmitterCall call;
        if (range.is_async()) {
            emitted->own = self.tool_.begin(name, text);
        } else {
            emitted->pushed = push_emitted(self.tool_, run, name, text);
        }
        return emitted;
    }

    static void on_end(const ObservedRange& range, ObserverContext* context, void* data) {
        if (context == nullptr) return;
        auto& self = *static_cast<RangeEmitter*>(data);
        auto& emitted = static_cast<EmittedRange&>(*context);
        if (PushedRange* const pushed = std::exchange(emitted.pushed, nullptr)) {
            end_emitted(self.tool_, pushed);
        } else if (range.is_async()) {
            self.tool_.end(emitted.own);
        }
        if (!range.outputs().empty() && self.run_.load(std::memory_order_acquire) == emitted.run)
            self.keep_outputs(range);
    }

    static void on_instant(const ObservedRange& instant, void* data) {
        auto& self = *static_cast<RangeEmitter*>(data);
        const EmitterCall call;
        if (self.run_.load(std::memory_order_acquire) != 0) self.tool_.mark(std::string(instant.name()));
    }

    static void on_memory(const MemoryReport& report, void* data) {
        if (report.bytes >= 0 || report.is_out_of_memory) return;
        auto& self = *static_cast<RangeEmitter*>(data);
        const ScopedLock lock(self.producers_mutex_);
        self.producers_.forget({reinterpret_cast<std::uintptr_t>(report.address), true});
    }

    std::vector<Producer> producers_of(const std::vector<const ArrayView*>& arrays) {
        std::vector<Producer> producers(arrays.size());
        const ScopedLock lock(producers_mutex_);
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            if (arrays[i] == nullptr) continue;
            const StorageKey key = StorageKey::of(*arrays[i]);
            if (const Producer* const found = key.is_known() ? producers_.find(key) : nullptr)
                producers[i] = *found;
        }
        return producers;
    }

    void keep_outputs(const ObservedRange& range) {
        const ScopedLock lock(producers_mutex_);
        for (std::size_t i = 0; i < range.outputs().size(); ++i) {
            for (const ArrayView* array : arrays_of({&range.outputs()[i], 1})) {
                if (array == nullptr || !StorageKey::of(*array).is_known()) continue;
                producers_.set(StorageKey::of(*array), {range.id(), static_cast<std::int32_t>(i)});
            }
        }
    }

    AnnotationBackend& tool_;
    const char* const name_;
    ForkMutex mutex_;  ///< guards start and stop
    std::uint64_t next_run_ MAREY_GUARDED_BY(mutex_) = 1;
    ObserverHandle handle_ MAREY_GUARDED_BY(mutex_) = 0;
    std::atomic<std::uint64_t> run_{0};  ///< the current run; 0: none
    ForkMutex producers_mutex_;
    /// The range that wrote each array.
    StorageMap<Producer> producers_ MAREY_GUARDED_BY(producers_mutex_){kMaxProducers};
};

RangeEmitter& nvtx_emitter() {
    static RangeEmitter& only = *new RangeEmitter(nvtx_tool(), "NVTX");
    return only;
}

RangeEmitter& itt_emitter() {
    static RangeEmitter& only = *new RangeEmitter(itt_tool(), "ITT");
    return only;
}

}  // namespace

NvtxEmitter::NvtxEmitter(const EmitOptions& options) {
    nvtx_emitter().usable_tool();
    synchronize_devices();
    run_ = nvtx_emitter().start(options);
}
NvtxEmitter::~NvtxEmitter() {
    stop();
}
void NvtxEmitter::stop() noexcept {
    if (run_ == 0) return;
    synchronize_devices();
    nvtx_emitter().stop(run_.exchange(0));
}

IttEmitter::IttEmitter(const EmitOptions& options) : run_(itt_emitter().start(options)) {}
IttEmitter::~IttEmitter() {
    stop();
}
void IttEmitter::stop() noexcept {
    itt_emitter().stop(run_.exchange(0));
}

namespace nvtx {

bool is_available() noexcept {
    return nvtx_tool().unavailable().empty();
}
void mark(std::string_view text) {
    nvtx_emitter().usable_tool().mark(std::string(text));
}
int range_push(std::string_view text) {
    return push_manual(nvtx_emitter().usable_tool(), std::string(text));
}
int range_pop() {
    return pop_manual(nvtx_emitter().usable_tool());
}
std::uint64_t range_start(std::string_view text) {
    const std::string whole(text);
    return nvtx_emitter().usable_tool().begin(whole, whole);
}
void range_end(std::uint64_t range) {
    nvtx_emitter().usable_tool().end(range);
}

}  // namespace nvtx

namespace itt {

bool is_available() noexcept {
    return itt_tool().unavailable().empty();
}
void mark(std::string_view text) {
    itt_emitter().usable_tool().mark(std::string(text));
}
int range_push(std::string_view text) {
    return push_manual(itt_emitter().usable_tool(), std::string(text));
}
int range_pop() {
    return pop_manual(itt_emitter().usable_tool());
}
std::uint64_t range_start(std::string_view text) {
    const std::string whole(text);
    return itt_emitter().usable_tool().begin(whole, whole);
}
void range_end(std::uint64_t range) {
    itt_emitter().usable_tool().end(range);
}

}  // namespace itt

}  // namespace marey
