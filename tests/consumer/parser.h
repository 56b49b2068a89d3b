// parser.h: functions that mark ranges, in a file compiled as C++17 and in a header that C++20 files use too.
#pragma once

#include <marey/marey.h>

inline int lex(int bytes) {
    MAREY_RANGE("lex", "bytes", bytes, "file", "input.txt");
    return bytes / 2;
}

int parse(int bytes);
long parser_standard();  ///< __cplusplus where parse() was compiled
