// python_stacks.h: the threads of another process's interpreter, and their Python frames.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "outside/python_layout.h"

namespace marey {

/// A thread state.
struct PythonThread {
    std::uintptr_t state = 0;
    std::uint64_t thread_id = 0;  ///< pthread_self(), by which the interpreter's locks name their owner
    std::uint64_t native_id = 0;  ///< in the process's own namespace
    std::uintptr_t gil = 0;       ///< of its interpreter
    bool holds_gil = false;
};

/// A call that runs. Names are looked up later: PythonReader::name() and line().
struct PythonCall {
    std::uintptr_t frame = 0;
    std::uintptr_t code = 0;
    std::int32_t instruction = -1;  ///< offset in bytes; -1: none has run
    std::uintptr_t anchor = 0;      ///< where the interpreter that runs it is in the C stack; 0: not known
};

struct PythonStack {
    std::vector<PythonCall> calls;  ///< innermost first
    bool is_torn = false;           ///< it changed during every try: there are no calls
    bool is_cut = false;            ///< it has more outer ones
};

/// A code object, read once.
struct PythonCode {
    bool is_code = false;
    std::string filename;
    std::string qualname;
    std::int32_t first_line = 0;
    std::uintptr_t instructions = 0;
    std::uint64_t instruction_bytes = 0;
    std::uint32_t local_count = 0;  ///< variables and cells, which the value stack follows
    std::uint32_t stack_size = 0;   ///< the most values on that
    std::string line_table;
    std::string exception_table;
};

/// Reads an interpreter that runs. Nothing in its memory is believed: all loops and sizes are bounded, and
/// pointers may lead anywhere. Not thread-safe.
class PythonReader {
  public:
    PythonReader(const ProcessFiles& process, const FoundPython& python)
        : process_(process), layout_(python.layout), runtime_(python.runtime) {}

    std::vector<PythonThread> threads() const;
    /// The calls of a thread, which goes on running. `memory` may have a copy of its C stack; it gets those
    /// of the thread's frames. A copy counts when the chain of frames is whole, all of them run code objects,
    /// and the innermost was the thread's current one before or after; otherwise it is tried again, five
    /// times.
    PythonStack stack(const PythonThread& thread, CopiedMemory& memory);

    const PythonCode& code(std::uintptr_t address);
    /// The source line that runs; 0: none.
    std::int32_t line(const PythonCall& call);
    /// The values on the value stack of a call that its `with` blocks and exception handlers will need: they
    /// are certainly there.
    std::vector<std::uintptr_t> kept_values(const PythonCall& call, const CopiedMemory& memory);
    /// All words that may be on its value stack, the newest last; until 3.13 some may be left from before.
    std::vector<std::uintptr_t> stack_values(const PythonCall& call, const CopiedMemory& memory);
    /// The name of an object's type; "" if it cannot be one.
    std::string type_name(std::uintptr_t object) const;

    const PythonLayout& layout() const noexcept { return layout_; }

  private:
    enum class Try : std::uint8_t { Whole, Torn };
    Try read_calls(const PythonThread& thread, CopiedMemory& memory, PythonStack& stack);
    bool copy_chunks(std::uintptr_t state, CopiedMemory& memory) const;
    std::vector<std::uintptr_t> values(const PythonCall& call, std::uint32_t count,
                                       const CopiedMemory& memory);
    std::string text(std::uintptr_t object) const;
    std::string bytes(std::uintptr_t object);

    const ProcessFiles& process_;
    PythonLayout layout_;
    std::uintptr_t runtime_;
    std::unordered_map<std::uintptr_t, PythonCode> codes_;
    std::unordered_set<std::uintptr_t> code_types_;
    std::uint64_t table_room_ = std::uint64_t{256} << 20;  ///< bytes that tables of code objects may yet take
};

/// The line of an instruction, from a table of locations as 3.11 and later have it; 0: none.
std::int32_t line_at(std::string_view line_table, std::int32_t first_line, std::int32_t instruction);
/// The depth of the value stack that the handler around an instruction begins with; 0: there is none.
std::uint32_t handler_depth(std::string_view exception_table, std::int32_t instruction);

}  // namespace marey
