// cxx20.h: included by the headers that need C++20: sessions, traces, analyses, export.
#pragma once

#if __cplusplus < 202002L
#error \
    "this Marey header needs C++20: compile with -std=c++20. (marey/marey.h, which marks ranges, needs C++17.)"
#include <C++20>  // does not exist: the compiler stops here instead of reporting what follows
#endif
