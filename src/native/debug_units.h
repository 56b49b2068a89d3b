// debug_units.h: the functions and lines of a file's debug information, by address.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "native/native_symbols.h"

namespace marey {

/// Reads a compilation unit completely when an address in it is first requested, because addresses seldom
/// come alone and walking its tree again for each is what makes other readers slow. Not thread-safe.
class DebugUnits {
  public:
    explicit DebugUnits(Dwarf* dwarf);

    /// The functions at the address, innermost first; nothing where no unit covers it.
    std::vector<NativeSymbol> at(std::uint64_t address);

  private:
    /// A function, or a call inlined into another.
    struct Node {
        Dwarf_Die die;
        std::int32_t parent;  ///< -1: not inlined
    };
    struct Segment {
        std::uint64_t begin;
        std::int32_t node;  ///< the innermost from here to the next segment, -1: none
    };
    struct Unit {
        Dwarf_Die die;
        bool read = false;
        std::vector<Node> nodes;
        std::vector<Segment> segments;
        std::unordered_map<std::uint64_t, std::string> scopes;  ///< of functions in namespaces and classes
    };
    struct Range {
        std::uint64_t begin;
        std::uint64_t end;
        std::uint32_t unit;
    };
    class Walk;

    static void read(Unit& unit);
    static std::string name_of(const Unit& unit, Dwarf_Die die);

    std::vector<Unit> units_;
    std::vector<Range> ranges_;
};

}  // namespace marey
