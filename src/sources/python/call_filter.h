// call_filter.h: which calls are recorded, as the running sessions ask.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "record/source.h"
#include "sources/python/code_sites.h"

namespace marey::python {

// In the word of a code object: what the filter of a generation says of it.
inline constexpr CodeWord kCodeExcluded = 64;  ///< its calls are not recorded; those that it makes are
inline constexpr CodeWord kCodeLibrary = 128;  ///< of the standard library, or of an installed package
inline constexpr unsigned kCodeGenerationShift = 40;
inline constexpr std::uint32_t kMaxGenerations = (1u << 24) - 1;

/// What the hooks look at. Guarded by the GIL.
struct CallFilter {
    bool is_on = false;  ///< some call may be left out, or carries more: else the hooks need not look here
    bool folds = false;
    bool has_lines = false;
    std::uint32_t generation = 0;
    std::uint32_t max_depth = ~0u;
    std::uint64_t min_ticks = 0;
    std::uint64_t recorded = 0;  ///< calls, while `limit` counts
    std::uint64_t limit = ~std::uint64_t{0};
    bool is_spent() const noexcept { return recorded >= limit; }
};
[[gnu::visibility("hidden")]] extern CallFilter call_filter;

/// The sessions that record calls. Any thread.
void set_requested_calls(const std::vector<SessionCalls>& sessions) noexcept;

/// In the child of a fork, whatever other threads were doing.
void clear_requested_calls() noexcept;

/// Takes over what was set. True: the filter is another one now. Needs the GIL.
bool renew_call_filter() noexcept;

/// The word of a code object with the answer of the present filter. `globals`: of a frame of it, or null.
/// Never fails and never changes the error indicator.
CodeWord classify_code(PyCodeObject* code, PyObject* globals) noexcept;
inline CodeWord filtered_word(PyCodeObject* code, PyObject* globals) noexcept {
    const CodeWord known = known_code(code);
    return known >> kCodeGenerationShift == call_filter.generation ? known : classify_code(code, globals);
}

/// Whether calls of C functions of a module are recorded.
bool takes_module(std::string_view module);

}  // namespace marey::python
