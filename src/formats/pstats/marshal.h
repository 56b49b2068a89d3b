// marshal.h: reads the objects that Python's module marshal writes, as far as the statistics of cProfile need
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace marey {

/// An object. Dictionaries hold their keys and values in turn.
struct MarshalObject {
    enum class Kind : std::uint8_t { None, Integer, Real, Text, Tuple, Dictionary };
    Kind kind = Kind::None;
    std::int64_t integer = 0;
    double real = 0;
    std::string text;
    std::vector<MarshalObject> items;

    double number() const { return kind == Kind::Integer ? static_cast<double>(integer) : real; }
};

/// Reads one object. Returns "" or what is wrong with it: a length beyond the end, a reference to an object
/// that contains it, too deep or too many objects, or an object of another type.
std::string read_marshal(std::string_view bytes, MarshalObject& object);

}  // namespace marey
