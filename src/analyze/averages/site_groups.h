// site_groups.h: the text under which the ranges of a site are counted: its name, or its function, line,
// file, module or package; and the shapes of a range's input arrays: comparison, hash and text.
#pragma once

#include <marey/trace.h>

#include "trace/trace_data.h"

namespace marey {

/// The parts of the name of a Python function: "json/decoder.py(332): JSONDecoder.decode".
struct PythonName {
    std::string_view path;  ///< relative to the folder that it was imported from; empty: a name without one
    std::string_view function;
};
PythonName parse_python_name(std::string_view name);

/// The name with the function first: "JSONDecoder.decode (json/decoder.py:332)". Names without a path stay as
/// they are.
std::string function_first(std::string_view name);

/// The module in a file: "json/decoder.py" becomes json.decoder, "<frozen os>" becomes os. Anything that is
/// not a module stays a path.
std::string module_of(std::string_view path);

/// Whether the full path of a file is not in a folder of the standard library or of installed packages.
bool is_program_file(std::string_view file);

/// Whether a folded import has this name: "import shop.load".
bool is_import_name(Scope scope, std::string_view name) noexcept;

/// "ProfilerStep*" for every "ProfilerStep#n"; other names are unchanged.
std::string_view group_name(std::string_view name) noexcept;

/// Groups split by input shapes. An input that is not a single array has no extents.
class ShapeGroups {
  public:
    explicit ShapeGroups(const Trace& trace) : data_(trace.data()), entries_(kFirstSize) {}

    /// The group number, starting at 0, of (base, shapes of these arguments). Adds a new group if there is
    /// none.
    std::uint32_t find(std::uint32_t base, std::uint32_t first, std::uint32_t count);
    std::uint32_t size() const noexcept { return used_; }

  private:
    static constexpr std::size_t kFirstSize = 1024;  // a power of two
    static constexpr std::uint32_t kFree = ~0u;
    struct Entry {
        std::uint64_t hash = 0;
        std::uint32_t base = 0;
        std::uint32_t group = kFree;
        std::size_t first = 0;  ///< its shapes: shapes_[first, first + size)
        std::size_t size = 0;
    };
    /// Writes the shapes to current_, each preceded by its number of dimensions. Returns their hash.
    std::uint64_t read(std::uint32_t base, std::uint32_t first, std::uint32_t count);
    void grow();

    const TraceData& data_;
    std::vector<Entry> entries_;
    std::vector<std::int64_t> shapes_;   ///< of all groups
    std::vector<std::int64_t> current_;  ///< as long as the longest so far
    std::size_t current_size_ = 0;
    std::uint32_t used_ = 0;
};

/// The sizes of an input; empty if it is not an array, not defined, or invalid.
std::span<const std::int64_t> input_extents(const TraceData& data, const Argument& input) noexcept;
/// "[[8, 3], [3], []]", one entry per input.
std::string input_shapes_text(const Trace& trace, std::span<const Argument> arguments);

}  // namespace marey
