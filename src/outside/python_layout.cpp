// python_layout.cpp: finds the interpreter in a process, and the layout of its structures.
#include "outside/python_layout.h"

#include <array>
#include <span>

#include <marey/error.h>

#include "base/hexadecimal.h"

namespace marey {
namespace {

constexpr std::size_t kWords = 96;                         // of a _Py_DebugOffsets that are looked at
constexpr std::uint64_t kCookie = 0x79706775'62656478ULL;  // "xdebugpy"
constexpr std::uint32_t kFirstDescribed = 0x030d00f0;      // development versions differ
constexpr std::uint64_t kMostStructureBytes = std::uint64_t{1} << 23;

constexpr PythonLayout kPython311{.version = 0x030b0000,
                                  .threads = 16,
                                  .gil = 360,
                                  .thread_bytes = 360,
                                  .current = 56,
                                  .thread_id = 152,
                                  .native_id = 160,
                                  .chunk = 296,
                                  .entry_frame = 8,
                                  .entry_previous = 16,
                                  .previous = 48,
                                  .code = 32,
                                  .owner = 69,
                                  .is_entry = 68,
                                  .code_bytes = 192,
                                  .first_line = 72,
                                  .local_count = 76,
                                  .instructions = 184,
                                  .text_bytes = 48,
                                  .text_more = 24};
constexpr PythonLayout kPython312{.version = 0x030c0000,
                                  .threads = 72,
                                  .gil = 384,
                                  .thread_bytes = 288,
                                  .current = 56,
                                  .thread_id = 136,
                                  .native_id = 144,
                                  .chunk = 232,
                                  .entry_frame = 0,
                                  .entry_previous = 8};

/// Which words of a _Py_DebugOffsets begin its sections; those are alike in all versions.
struct Sections {
    std::size_t interpreter, gil, thread, frame, code, text;
};
constexpr Sections kSections313{6, 14, 19, 28, 34, 67};
constexpr Sections kSections314{6, 15, 22, 31, 39, 77};

std::string version_text(std::uint64_t version) {
    return std::to_string(version >> 24 & 0xff) + "." + std::to_string(version >> 16 & 0xff) + "." +
           std::to_string(version >> 8 & 0xff);
}

/// The address in memory of a symbol, or of a section that begins with it.
std::optional<std::uintptr_t> place_of(const ProcessModule& module, std::string_view symbol,
                                       std::string_view section) {
    if (const auto found = module.file->symbol(symbol)) return *found + module.bias;
    for (const Elf64_Shdr& each : module.file->sections()) {
        if (!section.empty() && module.file->name(each) == section) return each.sh_addr + module.bias;
    }
    return std::nullopt;
}

PythonLayout read_layout(const ProcessFiles& process, const ProcessModule& module, std::uintptr_t runtime) {
    std::array<std::uint64_t, kWords> words{};
    if (process.read(runtime, words.data(), sizeof words) && words[0] == kCookie) return layout_of(words);
    const auto place = place_of(module, "Py_Version", "");
    const std::uint64_t version = place ? process.read<std::uint64_t>(*place).value_or(0) : 0;
    PythonLayout layout = version >> 16 == 0x030b ? kPython311 : kPython312;
    if (version >> 16 != layout.version >> 16)
        throw Error("its Python " +
                    (version == 0 ? "is older than 3.11" : version_text(version) + " is not known") +
                    ", and only 3.11 to 3.14 can be read from outside");
    layout.version = static_cast<std::uint32_t>(version);
    return layout;
}

}  // namespace

PythonLayout layout_of(std::span<const std::uint64_t> words) {
    const std::uint64_t version = words[1];
    if (words.size() < kWords || version < kFirstDescribed || version >> 16 > 0x030e)
        throw Error("its Python " + version_text(version) +
                    " is not known, and only 3.11 to 3.14 can be read from outside");
    if (words[2] != 0)
        throw Error("its Python " + version_text(version) +
                    " is free-threaded, which cannot be read from outside yet");
    const Sections at = version >> 16 == 0x030d ? kSections313 : kSections314;
    // A structure's first word is its size; every offset, with what is there, is within it.
    const auto size_of = [&](std::size_t section) {
        const std::uint64_t size = words[section];
        if (size == 0 || size > kMostStructureBytes)
            throw Error("the description of its Python " + version_text(version) + " is damaged");
        return static_cast<std::uint32_t>(size);
    };
    const auto offset = [&](std::size_t section, std::size_t word, std::uint32_t bytes = 8) {
        const std::uint64_t found = words[word];
        if (found > size_of(section) || size_of(section) - found < bytes)
            throw Error("the description of its Python " + version_text(version) + " is damaged");
        return static_cast<std::uint32_t>(found);
    };
    PythonLayout layout;
    layout.version = static_cast<std::uint32_t>(version);
    layout.interpreters = offset(3, 5);
    layout.next_interpreter = offset(at.interpreter, at.interpreter + 2);
    layout.threads = offset(at.interpreter, at.interpreter + 3);
    layout.gil = offset(at.interpreter, at.gil);
    const std::uint32_t own_gil = offset(at.interpreter, at.gil + 1);
    layout.gil_locked = offset(at.interpreter, at.gil + 3) - own_gil;
    layout.gil_holder = offset(at.interpreter, at.gil + 4) - own_gil;
    if (layout.gil_locked > layout.gil_bytes || layout.gil_holder > layout.gil_bytes)
        throw Error("the description of its Python " + version_text(version) + " is damaged");
    layout.thread_bytes = size_of(at.thread);
    layout.next_thread = offset(at.thread, at.thread + 2);
    layout.current = offset(at.thread, at.thread + 4);
    layout.thread_id = offset(at.thread, at.thread + 5);
    layout.native_id = offset(at.thread, at.thread + 6);
    layout.chunk = offset(at.thread, at.thread + 7, 16);
    layout.frame_bytes = size_of(at.frame);
    layout.previous = offset(at.frame, at.frame + 1);
    layout.code = offset(at.frame, at.frame + 2);
    layout.instruction = offset(at.frame, at.frame + 3);
    layout.locals = offset(at.frame, at.frame + 4, 0);
    layout.owner = offset(at.frame, at.frame + 5, 1);
    if (version >> 16 >= 0x030e) layout.stack_pointer = offset(at.frame, at.frame + 6);
    layout.code_bytes = size_of(at.code);
    layout.filename = offset(at.code, at.code + 1);
    layout.name = offset(at.code, at.code + 2);
    layout.qualname = offset(at.code, at.code + 3);
    layout.line_table = offset(at.code, at.code + 4);
    layout.first_line = offset(at.code, at.code + 5, 4);
    layout.instructions = offset(at.code, at.code + 9, 0);
    layout.text_bytes = offset(at.text, at.text + 3, 0);
    constexpr std::uint32_t kMostBytes = 4096;  // of what is read as a whole
    for (const std::uint32_t bytes :
         {layout.thread_bytes, layout.frame_bytes, layout.code_bytes, layout.text_bytes}) {
        if (bytes < 32 || bytes > kMostBytes)
            throw Error("the description of its Python " + version_text(version) + " is damaged");
    }
    return layout;
}

std::optional<FoundPython> find_python(const ProcessFiles& process, ProcessModules& modules) {
    // Programs may have large libraries, whose symbols are looked at only if need be.
    for (const bool is_likely : {true, false}) {
        for (ProcessModule& module : modules.all()) {
            if ((&module == &modules.all().front() || module.name.find("python") != module.name.npos) !=
                    is_likely ||
                !modules.open(module))
                continue;
            const auto runtime = place_of(module, "_PyRuntime", ".PyRuntime");
            if (!runtime) continue;
            try {
                const PythonLayout layout = read_layout(process, module, *runtime);
                return FoundPython{*runtime, layout, version_text(layout.version), module.begin, module.end};
            } catch (const Error& error) {
                throw Error("process " + std::to_string(process.pid()) + ": " + error.what());
            }
        }
    }
    return std::nullopt;
}

}  // namespace marey
