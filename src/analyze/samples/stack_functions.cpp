// stack_functions.cpp: the functions on the stacks of samples.
#include "analyze/samples/stack_functions.h"

#include <algorithm>
#include <string_view>

namespace marey {
namespace {

/// Libraries whose frames in Python programs start the interpreter, run it, or do what it needs.
bool is_of_interpreter(std::string_view module) {
    const std::string_view file = module.substr(module.rfind('/') + 1);  // npos + 1: 0
    constexpr const char* kStarts[] = {"python", "libpython", "libc.so", "libc-", "libpthread", "[vdso]"};
    return std::ranges::any_of(kStarts, [&](const char* start) { return file.starts_with(start); });
}

}  // namespace

StackFunctions::StackFunctions(const Trace& trace)
    : trace_stacks_(trace.stacks()), frames_(trace.frames()), outer_(trace_stacks_.size(), kNoRow) {
    std::vector<char> of_interpreter(frames_.size());
    for (std::size_t i = 0; i < frames_.size(); ++i)
        of_interpreter[i] = !is_python(frames_[i]) && is_of_interpreter(trace.string(frames_[i].module));
    std::vector<char> is_with_python(trace_stacks_.size());  // inside it, or around it
    for (auto i = static_cast<Row>(trace_stacks_.size()); i-- > 0;) {
        const Row outer = trace_stacks_[i].outer;
        if (outer != kNoRow && (is_with_python[i] != 0 || is_python(frame(i)))) is_with_python[outer] = 1;
    }
    for (Row i = 0; i < trace_stacks_.size(); ++i) {
        const Row outer = trace_stacks_[i].outer;
        const bool is_inside = outer != kNoRow && (is_with_python[outer] == 2 || is_python(frame(outer)));
        if (is_inside) is_with_python[i] = 2;
        const bool is_hidden = is_with_python[i] != 0 && of_interpreter[trace_stacks_[i].frame] != 0;
        outer_[i] = is_hidden ? i : shown(outer);
    }
}

std::vector<StringId> StackFunctions::names(Row stack) const {
    std::vector<StringId> names;
    for (Row at = shown(stack); at != kNoRow; at = outer(at)) names.push_back(frame(at).name);
    std::ranges::reverse(names);
    return names;
}

}  // namespace marey
