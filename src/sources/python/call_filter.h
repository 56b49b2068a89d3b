// call_filter.h: selects the calls that the running sessions record.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/source.h"
#include "sources/python/code_sites.h"

namespace marey::python {

// Bits in the word of a code object: the result of the filter of a generation.
inline constexpr CodeWord kCodeExcluded = 64;  ///< its calls are not recorded, but its callees are
inline constexpr CodeWord kCodeLibrary = 128;  ///< belongs to the standard library or an installed package
inline constexpr unsigned kCodeGenerationShift = 40;
inline constexpr std::uint32_t kMaxGenerations = (1u << 24) - 1;

/// The settings that the hooks read. Guarded by the GIL.
struct CallFilter {
    bool is_on = false;  ///< some calls may be left out or have values; otherwise hooks skip the filter
    bool folds = false;
    bool has_lines = false;
    std::uint32_t generation = 0;
    std::uint32_t max_depth = ~0u;
    std::uint64_t min_ticks = 0;
    std::uint64_t recorded = 0;  ///< number of calls, while there is a `limit`
    std::uint64_t limit = ~std::uint64_t{0};
    bool is_spent() const noexcept { return recorded >= limit; }
};
[[gnu::visibility("hidden")]] extern CallFilter call_filter;

/// Sets the sessions that record calls. Any thread.
void set_requested_calls(const std::vector<SessionCalls>& sessions) noexcept;

/// For the child of a fork, whatever other threads were doing.
void clear_requested_calls() noexcept;

/// Applies the requested filters. Returns whether the filter has changed. Needs the GIL.
bool renew_call_filter() noexcept;

/// Sets the libraries that count as the program for CallOptions::fold_libraries, as patterns like those of
/// CallOptions::include. Needs the GIL.
void count_as_program(const std::vector<std::string>& texts);

/// The word of a code object with the result of the current filter. `globals`: of one of its frames, or null.
/// Never fails and never changes the error indicator.
CodeWord classify_code(PyCodeObject* code, PyObject* globals) noexcept;
inline CodeWord filtered_word(PyCodeObject* code, PyObject* globals) noexcept {
    const CodeWord known = known_code(code);
    return known >> kCodeGenerationShift == call_filter.generation ? known : classify_code(code, globals);
}

/// Whether calls of C functions of a module are recorded.
bool takes_module(std::string_view module);

}  // namespace marey::python
