// argument_fixture.h: for tests: values of ranges as text.
#pragma once

#include <marey/trace.h>

namespace marey::testing {

inline Argument integer(std::int64_t number) {
    Argument value;
    value.kind = ValueKind::Int;
    value.integer = number;
    return value;
}

inline Argument real(double number) {
    Argument value;
    value.kind = ValueKind::Double;
    value.real = number;
    return value;
}

inline Argument boolean(bool truth) {
    Argument value;
    value.kind = ValueKind::Bool;
    value.boolean = truth;
    return value;
}

inline Argument string_value(StringId text) {
    Argument value;
    value.kind = ValueKind::String;
    value.string = text;
    return value;
}

}  // namespace marey::testing
