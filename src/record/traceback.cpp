// traceback.cpp: captures of stacks, and their lifetimes.
#include <marey/traceback.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include <marey/detail/python_stacks.h>

#include "native/loaded_modules.h"
#include "native/native_stack.h"
#include "record/python_stacks.h"

namespace marey {
namespace {

std::atomic<const detail::PythonStacks*> python{nullptr};

// Where the extension that provides them is in memory: it contains no other code.
std::atomic<std::uintptr_t> extension_begin{0};
std::atomic<std::uintptr_t> extension_end{0};

// Dropped captures with references to Python objects: a stack to which any thread adds without a lock, and
// which a thread that has the GIL takes as a whole.
std::atomic<detail::TracebackData*> dropped{nullptr};

constexpr std::size_t kInlineFrames = 64;
constexpr std::size_t kMaxNative = std::size_t{1} << 16;

/// Stack memory for the usual size, heap memory for more.
template <class T>
class Room {
  public:
    T* data() noexcept { return more_ ? more_.get() : usual_; }
    std::size_t size() const noexcept { return size_; }
    /// Discards the contents. False: no memory.
    bool enlarge(std::size_t size) noexcept {
        more_.reset(static_cast<T*>(std::malloc(size * sizeof(T))));
        size_ = more_ ? size : kInlineFrames;
        return more_ != nullptr;
    }

  private:
    struct Free {
        void operator()(T* memory) const noexcept { std::free(memory); }
    };
    T usual_[kInlineFrames];
    std::unique_ptr<T, Free> more_;
    std::size_t size_ = kInlineFrames;
};

struct Captured {
    Room<detail::PythonFrame> python;
    std::size_t python_count = 0;
    Room<std::uintptr_t> native;
    std::size_t native_count = 0;
};

void capture_python(const detail::PythonStacks& stacks, std::size_t skip, Captured& out,
                    Room<std::uintptr_t>* anchors) noexcept {
    for (;;) {
        const std::size_t room = out.python.size();
        const std::size_t count =
            stacks.capture(out.python.data(), room, skip, anchors ? anchors->data() : nullptr);
        out.python_count = count < room ? count : room;
        if (count <= room) return;
        stacks.release(out.python.data(), room);
        out.python_count = 0;
        if (!out.python.enlarge(count + kInlineFrames) ||
            (anchors && !anchors->enlarge(count + kInlineFrames)))
            return;
    }
}

/// Leaves out the innermost native frames that are Marey's own: how the extension made the capture is not
/// part of where the program is.
void strip_extension_frames(Captured& captured, std::uintptr_t* stack_pointers) noexcept {
    const std::uintptr_t begin = extension_begin.load(std::memory_order_relaxed);
    const std::uintptr_t end = extension_end.load(std::memory_order_relaxed);
    std::uintptr_t* const addresses = captured.native.data();
    std::size_t own = 0;
    while (own < captured.native_count && addresses[own] - 1 >= begin && addresses[own] - 1 < end) ++own;
    if (own == 0) return;
    captured.native_count -= own;
    std::memmove(addresses, addresses + own, captured.native_count * sizeof *addresses);
    std::memmove(stack_pointers, stack_pointers + own, captured.native_count * sizeof *stack_pointers);
}

/// Gives each Python frame the number of the native frame in whose part of the stack its anchor lies.
void place(Captured& captured, const std::uintptr_t* anchors, const std::uintptr_t* stack_pointers) noexcept {
    std::size_t at = 0;
    for (std::size_t i = 0; i < captured.python_count; ++i) {
        detail::PythonFrame& frame = captured.python.data()[i];
        frame.place = detail::kNoPlace;
        std::size_t found = at;  // both go outwards, so one pass is enough
        while (found + 1 < captured.native_count && stack_pointers[found + 1] <= anchors[i]) ++found;
        if (found + 1 >= captured.native_count || stack_pointers[found] > anchors[i]) continue;
        at = found;
        frame.place = static_cast<std::uint32_t>(found);
    }
}

detail::TracebackData* block_of(Captured& captured) noexcept {
    const std::size_t python_bytes = captured.python_count * sizeof(detail::PythonFrame);
    const std::size_t native_bytes = captured.native_count * sizeof(std::uintptr_t);
    void* memory = std::malloc(sizeof(detail::TracebackData) + python_bytes + native_bytes);
    if (memory == nullptr) return nullptr;
    auto* data = new (memory) detail::TracebackData{{1},
                                                    static_cast<std::uint32_t>(captured.python_count),
                                                    static_cast<std::uint32_t>(captured.native_count),
                                                    nullptr};
    std::memcpy(data->python(), captured.python.data(), python_bytes);
    if (native_bytes != 0) std::memcpy(data->native(), captured.native.data(), native_bytes);
    return data;
}

detail::TracebackData* gather_python(const detail::PythonStacks& stacks, std::size_t skip) noexcept {
    Captured captured;
    capture_python(stacks, skip, captured, nullptr);
    detail::TracebackData* data = block_of(captured);
    if (data == nullptr) stacks.release(captured.python.data(), captured.python_count);
    return data;
}

[[gnu::noinline]] detail::TracebackData* gather_native(const detail::PythonStacks* stacks, std::size_t skip,
                                                       std::size_t native_skip) noexcept {
    Captured captured;
    Room<std::uintptr_t> anchors;
    Room<std::uintptr_t> stack_pointers;
    for (;;) {
        const std::size_t room = captured.native.size();
        captured.native_count =
            capture_native_stack(captured.native.data(), room, native_skip, stack_pointers.data());
        if (captured.native_count < room || room >= kMaxNative) break;
        if (!captured.native.enlarge(room * 4) || !stack_pointers.enlarge(room * 4)) {
            captured.native_count = 0;
            break;
        }
    }
    strip_extension_frames(captured, stack_pointers.data());
    if (stacks != nullptr) {
        capture_python(*stacks, skip, captured, &anchors);
        place(captured, anchors.data(), stack_pointers.data());
    }
    detail::TracebackData* data = block_of(captured);
    if (data == nullptr && stacks != nullptr) stacks->release(captured.python.data(), captured.python_count);
    return data;
}

}  // namespace

const detail::PythonStacks* python_stacks() noexcept {
    return python.load(std::memory_order_acquire);
}

namespace detail {

void set_python_stacks(const PythonStacks* stacks) noexcept {
    try {
        const auto modules = loaded_modules();
        const LoadedModule* const own = modules->find(reinterpret_cast<std::uintptr_t>(stacks->capture));
        const LoadedModule* const library = modules->find(reinterpret_cast<std::uintptr_t>(&python));
        // If everything is linked into one program, its frames are not ours alone.
        if (own != nullptr && own != library) {
            extension_end.store(own->end, std::memory_order_relaxed);
            extension_begin.store(own->begin, std::memory_order_relaxed);
        }
    } catch (const std::bad_alloc&) {  // then they are not left out
    }
    python.store(stacks, std::memory_order_release);
}

void keep(TracebackData* data) noexcept {
    data->owners.fetch_add(1, std::memory_order_relaxed);
}

void release_traceback(TracebackData* data) noexcept {
    if (data->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (data->python_count == 0) {
        std::free(data);
        return;
    }
    TracebackData* first = dropped.load(std::memory_order_relaxed);
    do data->next = first;
    while (!dropped.compare_exchange_weak(first, data, std::memory_order_release, std::memory_order_relaxed));
}

void release_dropped() noexcept {
    if (dropped.load(std::memory_order_relaxed) == nullptr) return;
    const PythonStacks* stacks = python_stacks();
    // Taken before anything is released: a finalizer may run this again.
    TracebackData* data = dropped.exchange(nullptr, std::memory_order_acquire);
    while (data != nullptr) {
        TracebackData* next = data->next;
        if (stacks != nullptr) stacks->release(data->python(), data->python_count);
        std::free(data);
        data = next;
    }
}

[[gnu::noinline]] TracebackData* gather(const TracebackOptions& options, std::size_t native_skip) noexcept {
    const PythonStacks* stacks = options.python ? python_stacks() : nullptr;
    int state = 0;
    if (stacks != nullptr && !stacks->enter(state)) stacks = nullptr;
    if (stacks != nullptr) release_dropped();
    TracebackData* data = nullptr;
    if (options.native)
        data = gather_native(stacks, options.skip, native_skip + 2);
    else if (stacks != nullptr)
        data = gather_python(*stacks, options.skip);
    if (stacks != nullptr) stacks->leave(state);
    return data;
}

}  // namespace detail

CapturedTraceback CapturedTraceback::gather(const TracebackOptions& options) noexcept {
    CapturedTraceback handle;
    handle.data_ = detail::gather(options, 1);
    return handle;
}

std::size_t CapturedTraceback::python_frames() const noexcept {
    return data_ != nullptr ? data_->python_count : 0;
}

Span<const std::uintptr_t> CapturedTraceback::addresses() const noexcept {
    if (data_ == nullptr) return {};
    return {data_->native(), data_->native_count};
}

std::vector<NativeLocation> CapturedTraceback::locations() const {
    std::vector<NativeLocation> found;
    const auto modules = loaded_modules();
    for (const std::uintptr_t address : addresses()) {
        const LoadedModule* module = modules->find(address - 1);
        if (module != nullptr)
            found.push_back({module->path, module->build_id, address - 1 - module->bias});
        else
            found.push_back({{}, {}, address - 1});
    }
    return found;
}

UnwindCounts unwind_counts() noexcept {
    const NativeStackCounts counts = native_stack_counts();
    return {counts.known, counts.looked_up, counts.without_table, counts.forgotten};
}

_object* to_python(const CapturedTraceback& traceback) noexcept {
    const detail::PythonStacks* stacks = python_stacks();
    return stacks != nullptr ? stacks->to_python(traceback) : nullptr;
}

bool is_captured_traceback(_object* object) noexcept {
    const detail::PythonStacks* stacks = python_stacks();
    return stacks != nullptr && stacks->is_traceback(object);
}

CapturedTraceback from_python(_object* object) noexcept {
    const detail::PythonStacks* stacks = python_stacks();
    return stacks != nullptr ? stacks->from_python(object) : CapturedTraceback();
}

}  // namespace marey
