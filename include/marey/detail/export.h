// export.h: included by every C++ header: the oldest language standard, exported symbols, compiler hints.
#pragma once

#if __cplusplus < 201703L
#error "Marey needs C++17 or later: compile with -std=c++17. (Headers for sessions and traces need C++20.)"
#include <C++17>  // does not exist: the compiler stops here instead of reporting what follows
#endif

#if defined(__GNUC__)
#define MAREY_API __attribute__((visibility("default")))
#else
#define MAREY_API
#endif

// C++20's constinit, [[likely]] and [[unlikely]], for headers that also compile as C++17. They are the same
// in both, so that both get the same instructions.
#if defined(__clang__)
#define MAREY_DETAIL_CONSTINIT __attribute__((require_constant_initialization))
#else
#define MAREY_DETAIL_CONSTINIT __constinit
#endif
#define MAREY_DETAIL_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), true))
#define MAREY_DETAIL_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), false))
