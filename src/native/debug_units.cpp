// debug_units.cpp: the functions and lines of a file's debug information, by address.
#if MAREY_HAVE_ELFUTILS

#include "native/debug_units.h"

#include <dwarf.h>

#include <algorithm>
#include <map>

#include "native/function_name.h"

namespace marey {
namespace {

constexpr int kMaxDepth = 256;  // of the tree; compilers stay far below

/// The demangled name; nothing where there is no mangled name, as for functions with internal linkage.
std::string linkage_name_of(Dwarf_Die& die) {
    for (const unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
        Dwarf_Attribute found;
        if (dwarf_attr_integrate(&die, attribute, &found) == nullptr) continue;
        if (const char* text = dwarf_formstring(&found)) return demangle(text).value_or(text);
    }
    return {};
}

/// The entry that this one extends.
bool origin_of(Dwarf_Die& die, Dwarf_Die& origin) {
    for (const unsigned attribute : {DW_AT_abstract_origin, DW_AT_specification}) {
        Dwarf_Attribute found;
        if (dwarf_attr(&die, attribute, &found) != nullptr && dwarf_formref_die(&found, &origin) != nullptr)
            return true;
    }
    return false;
}

std::uint64_t number_of(Dwarf_Die& die, unsigned attribute) {
    Dwarf_Attribute found;
    Dwarf_Word value = 0;
    if (dwarf_attr(&die, attribute, &found) == nullptr || dwarf_formudata(&found, &value) != 0) return 0;
    return value;
}

/// Calls use(begin, end) for each range of addresses of an entry. Returns whether there was one.
bool for_each_range(Dwarf_Die& die, const auto& use) {
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    bool any = false;
    for (std::ptrdiff_t place = 0; (place = dwarf_ranges(&die, place, &base, &begin, &end)) > 0;) {
        if (begin >= end || begin == 0) continue;  // 0: the linker dropped it
        use(begin, end);
        any = true;
    }
    return any;
}

}  // namespace

DebugUnits::DebugUnits(Dwarf* dwarf) {
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    std::uint8_t kind = 0;
    while (dwarf_get_units(dwarf, unit, &unit, nullptr, &kind, &die, nullptr) == 0) {
        if (kind != DW_UT_compile && kind != DW_UT_skeleton) continue;
        const auto number = static_cast<std::uint32_t>(units_.size());
        const auto add = [&](Dwarf_Addr begin, Dwarf_Addr end) { ranges_.push_back({begin, end, number}); };
        if (for_each_range(die, add)) units_.push_back({die, false, {}, {}, {}});
    }
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

/// Collects the functions of a unit and assigns their addresses, inner functions over outer ones.
class DebugUnits::Walk {
  public:
    explicit Walk(Unit& unit) : unit_(unit) {}

    void run() {
        children(unit_.die, -1, 0);
        unit_.segments.reserve(painted_.size());
        for (const auto& [begin, node] : painted_) unit_.segments.push_back({begin, node});
    }

  private:
    /// The children of a namespace or class, whose names are prefixed with its name.
    void members(Dwarf_Die& die, std::int32_t parent, int depth) {
        const char* name = dwarf_diename(&die);
        const std::string outer = scope_;
        scope_ += name != nullptr ? name : "(anonymous namespace)";
        scope_ += "::";
        children(die, parent, depth);
        scope_ = outer;
    }

    void children(Dwarf_Die& die, std::int32_t parent, int depth) {
        Dwarf_Die child;
        if (depth > kMaxDepth || dwarf_child(&die, &child) != 0) return;
        do visit(child, parent, depth + 1);
        while (dwarf_siblingof(&child, &child) == 0);
    }

    void visit(Dwarf_Die& die, std::int32_t parent, int depth) {
        switch (dwarf_tag(&die)) {
            case DW_TAG_subprogram:
            case DW_TAG_inlined_subroutine: {
                const bool inlined = dwarf_tag(&die) == DW_TAG_inlined_subroutine;
                const auto node = static_cast<std::int32_t>(unit_.nodes.size());
                if (!inlined && !scope_.empty()) unit_.scopes.emplace(dwarf_dieoffset(&die), scope_);
                if (paint(die, node)) {
                    unit_.nodes.push_back({die, inlined ? parent : -1});
                    children(die, node, depth);
                } else if (!inlined) {
                    children(die, -1,
                             depth);  // a declaration, or the abstract form: code may lie in classes inside
                }
                break;
            }
            case DW_TAG_lexical_block:
            case DW_TAG_module:
                children(die, parent, depth);
                break;
            case DW_TAG_namespace:
            case DW_TAG_structure_type:
            case DW_TAG_class_type:
            case DW_TAG_union_type:
                members(die, parent, depth);
                break;
            default:
                break;
        }
    }

    bool paint(Dwarf_Die& die, std::int32_t node) {
        if (dwarf_hasattr(&die, DW_AT_low_pc) == 0 && dwarf_hasattr(&die, DW_AT_ranges) == 0) return false;
        return for_each_range(die, [&](Dwarf_Addr begin, Dwarf_Addr end) { assign(begin, end, node); });
    }

    void assign(std::uint64_t begin, std::uint64_t end, std::int32_t node) {
        auto after = painted_.lower_bound(end);
        std::int32_t outside = -1;
        if (after != painted_.begin()) outside = std::prev(after)->second;
        if (after == painted_.end() || after->first != end)
            after = painted_.emplace_hint(after, end, outside);
        painted_.erase(painted_.lower_bound(begin), after);
        painted_.emplace_hint(after, begin, node);
    }

    Unit& unit_;
    std::string scope_;
    std::map<std::uint64_t, std::int32_t> painted_;
};

/// For functions without a mangled name: scopes and name.
std::string DebugUnits::name_of(const Unit& unit, Dwarf_Die die) {
    const char* name = dwarf_diename(&die);
    if (name == nullptr) return {};
    for (int steps = 0; steps < 4; ++steps) {
        if (const auto scope = unit.scopes.find(dwarf_dieoffset(&die)); scope != unit.scopes.end())
            return scope->second + name;
        Dwarf_Die origin;
        if (!origin_of(die, origin)) break;
        die = origin;
    }
    return name;
}

void DebugUnits::read(Unit& unit) {
    unit.read = true;
    Walk(unit).run();
}

std::vector<NativeSymbol> DebugUnits::at(std::uint64_t address) {
    const auto range =
        std::upper_bound(ranges_.begin(), ranges_.end(), address,
                         [](std::uint64_t at, const Range& other) { return at < other.begin; });
    if (range == ranges_.begin() || address >= std::prev(range)->end) return {};
    Unit& unit = units_[std::prev(range)->unit];
    if (!unit.read) read(unit);

    std::vector<NativeSymbol> symbols;
    const char* file = nullptr;
    int line = 0;
    if (Dwarf_Line* found = dwarf_getsrc_die(&unit.die, address)) {
        file = dwarf_linesrc(found, nullptr, nullptr);
        dwarf_lineno(found, &line);
    }
    const auto segment =
        std::upper_bound(unit.segments.begin(), unit.segments.end(), address,
                         [](std::uint64_t at, const Segment& other) { return at < other.begin; });
    std::int32_t node = segment == unit.segments.begin() ? -1 : std::prev(segment)->node;
    if (node < 0) {
        if (file != nullptr) symbols.push_back({{}, file, line, false, false});
        return symbols;
    }
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrcfiles(&unit.die, &files, &count) != 0) files = nullptr;
    while (node >= 0) {
        Node& here = unit.nodes[static_cast<std::size_t>(node)];
        std::string name = linkage_name_of(here.die);
        const bool mangled = !name.empty();
        if (!mangled) name = name_of(unit, here.die);
        symbols.push_back({std::move(name), file != nullptr ? file : "", line, here.parent >= 0, mangled});
        if (here.parent >= 0) {  // the next outer function is at the line of this call
            const std::uint64_t number = number_of(here.die, DW_AT_call_file);
            file =
                files != nullptr && number < count ? dwarf_filesrc(files, number, nullptr, nullptr) : nullptr;
            line = static_cast<int>(number_of(here.die, DW_AT_call_line));
        }
        node = here.parent;
    }
    return symbols;
}

}  // namespace marey

#endif
