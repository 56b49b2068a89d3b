// parser.cpp: the part of the program that is compiled as C++17.
#include "parser.h"

int parse(int bytes) {
    MAREY_FUNCTION();
    MAREY_RANGE("second range of one block");
    return lex(bytes);
}

long parser_standard() {
    return __cplusplus;
}
