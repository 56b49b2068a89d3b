// pushed_ranges.cpp: the stacks of pushed ranges, one per thread and tool.
#include "emitters/pushed_ranges.h"

#include <pthread.h>

#include <memory>
#include <vector>

#include "json/json_writer.h"

namespace marey {
namespace {

/// The stacks of one thread; only that thread uses them.
struct ThreadStacks {
    std::uint64_t thread;
    std::vector<PushedRange*> ranges[kAnnotationBackends];

    ~ThreadStacks() {
        for (auto& stack : ranges) {
            for (PushedRange* range : stack) PushedRange::release(range);
        }
    }
};

constinit thread_local ThreadStacks* thread_stacks __attribute__((tls_model("initial-exec"))) = nullptr;

ThreadStacks& stacks() {
    if (thread_stacks != nullptr) return *thread_stacks;
    static std::atomic<std::uint64_t> next_thread{1};
    static const pthread_key_t exit_key = [] {
        pthread_key_t key{};
        pthread_key_create(&key, [](void* stacks_of_thread) {
            thread_stacks = nullptr;
            delete static_cast<ThreadStacks*>(stacks_of_thread);
        });
        return key;
    }();
    auto fresh = std::make_unique<ThreadStacks>();
    fresh->thread = next_thread.fetch_add(1, std::memory_order_relaxed);
    pthread_setspecific(exit_key, fresh.get());
    thread_stacks = fresh.release();
    return *thread_stacks;
}

// Pops ended ranges from the top of the stack.
void pop_ended(AnnotationBackend& tool, std::vector<PushedRange*>& stack) {
    while (!stack.empty() && stack.back()->has_ended.load(std::memory_order_acquire)) {
        const bool is_taken = stack.back()->is_taken;
        PushedRange::release(stack.back());
        stack.pop_back();
        if (is_taken) tool.pop();
    }
}

// Returns the depth: the tool's, if it reports one.
int push(AnnotationBackend& tool, std::uint64_t run, int holders, const std::string& name,
         const std::string& text, PushedRange** pushed) {
    ThreadStacks& own = stacks();
    auto& stack = own.ranges[tool.number()];
    pop_ended(tool, stack);
    auto range = std::make_unique<PushedRange>();
    range->thread = own.thread;
    range->run = run;
    range->holders.store(holders, std::memory_order_relaxed);
    if (stack.size() == stack.capacity()) stack.reserve(stack.size() * 2 + 8);  // so that nothing fails below
    const int depth = tool.push(name, text);
    range->is_taken = depth != AnnotationBackend::kNotTaken;
    stack.push_back(range.get());
    range->depth = depth >= 0 ? depth : static_cast<int>(stack.size()) - 1;
    *pushed = range.release();
    return (*pushed)->depth;
}

// False: the value contains no arrays.
bool collect_arrays(const Value& value, std::vector<const ArrayView*>& arrays) {
    if (value.kind() == ValueKind::Array) {
        arrays.push_back(&value.array());
        return true;
    }
    if (value.kind() != ValueKind::List) return false;
    bool found = false;
    for (const Value& item : value.list()) found = collect_arrays(item, arrays) || found;
    return found;
}

void add_sizes(std::string& text, const ArrayView* array) {
    text += '[';
    if (array != nullptr && array->is_defined) {
        for (std::size_t i = 0; i < array->sizes.size(); ++i) {
            if (i != 0) text += ", ";
            append_json_number(text, array->sizes[i]);
        }
    }
    text += ']';
}

}  // namespace

PushedRange* push_emitted(AnnotationBackend& tool, std::uint64_t run, const std::string& name,
                          const std::string& text) {
    PushedRange* pushed = nullptr;
    push(tool, run, 2, name, text, &pushed);
    return pushed;
}

void end_emitted(AnnotationBackend& tool, PushedRange* range) noexcept {
    range->has_ended.store(true, std::memory_order_release);
    ThreadStacks* const own = thread_stacks;
    if (own != nullptr && own->thread == range->thread) pop_ended(tool, own->ranges[tool.number()]);
    PushedRange::release(range);
}

void end_run(AnnotationBackend& tool, std::uint64_t run) noexcept {
    if (thread_stacks == nullptr) return;
    auto& stack = thread_stacks->ranges[tool.number()];
    for (PushedRange* range : stack) {
        if (range->run == run) range->has_ended.store(true, std::memory_order_release);
    }
    pop_ended(tool, stack);
}

int push_manual(AnnotationBackend& tool, const std::string& text) {
    PushedRange* pushed = nullptr;
    return push(tool, 0, 1, text, text, &pushed);
}

int pop_manual(AnnotationBackend& tool) {
    auto& stack = stacks().ranges[tool.number()];
    pop_ended(tool, stack);
    for (std::size_t at = stack.size(); at-- != 0;) {
        PushedRange& range = *stack[at];
        if (range.run != 0 || range.has_ended.load(std::memory_order_relaxed)) continue;
        range.has_ended.store(true, std::memory_order_relaxed);
        const int depth = range.depth;
        pop_ended(tool, stack);
        return depth;
    }
    return -1;
}

std::vector<const ArrayView*> arrays_of(std::span<const Value> values) {
    std::vector<const ArrayView*> arrays;
    for (const Value& value : values) {
        if (!collect_arrays(value, arrays)) arrays.push_back(nullptr);
    }
    return arrays;
}

std::string range_text(const ObservedRange& range, std::span<const ArrayView* const> arrays,
                       std::span<const Producer> producers) {
    std::string text(range.name());
    if (range.sequence() >= 0) {
        text += ", seq = ";
        append_json_number(text, range.sequence());
    }
    if (range.id() != 0) {
        text += ", op_id = ";
        append_json_number(text, range.id());
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        text += i == 0 ? ", sizes = [" : ", ";
        add_sizes(text, arrays[i]);
    }
    if (!arrays.empty()) text += ']';
    for (std::size_t i = 0; i < producers.size(); ++i) {
        text += i == 0 ? ", input_op_ids = [(" : ", (";
        append_json_number(text, producers[i].range);
        text += ',';
        append_json_number(text, std::int64_t{producers[i].output});
        text += ')';
    }
    if (!producers.empty()) text += ']';
    return text;
}

}  // namespace marey
