// traceback_symbols.cpp: names for captured frames, many at once.
#include <dlfcn.h>

#include <marey/traceback.h>

#include <map>
#include <tuple>
#include <unordered_map>

#include <marey/detail/python_stacks.h>
#include <marey/error.h>

#include "base/hexadecimal.h"
#include "native/function_name.h"
#include "native/loaded_modules.h"
#include "native/native_symbols.h"
#include "record/python_stacks.h"

namespace marey {
namespace {

using Frames = std::vector<TracebackFrame>;

TracebackFrame unnamed(const std::string& path, std::uint64_t offset) {
    return {"??", (path.empty() ? "??" : path) + "+" + hexadecimal(offset), 0, false, false};
}

Frames frames_of(const std::vector<NativeSymbol>& symbols, const std::string& path, std::uint64_t offset) {
    Frames frames;
    for (const NativeSymbol& symbol : symbols) {
        TracebackFrame frame = unnamed(path, offset);
        if (!symbol.function.empty()) frame.name = symbol.function;
        if (!symbol.file.empty()) frame.filename = symbol.file;
        frame.line = symbol.line;
        frame.inlined = symbol.inlined;
        frames.push_back(std::move(frame));
    }
    return frames;
}

/// Names from the loader itself, where files cannot be read.
Frames frames_of_loader(std::uintptr_t address, const std::string& path, std::uint64_t offset) {
    Frames frames{unnamed(path, offset)};
    Dl_info info{};
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    if (dladdr(reinterpret_cast<void*>(address), &info) != 0 && info.dli_sname != nullptr)
        frames[0].name = demangle(info.dli_sname).value_or(info.dli_sname);
    return frames;
}

/// Numbers for distinct values, in order of first occurrence.
class Numbered {
  public:
    std::uint32_t add(TracebackFrame frame) {
        const auto [at, fresh] = numbers_.try_emplace({frame.name, frame.filename, frame.line,
                                                       frame.python    ? 1
                                                       : frame.inlined ? 2
                                                                       : 0},
                                                      static_cast<std::uint32_t>(frames_.size()));
        if (fresh) frames_.push_back(std::move(frame));
        return at->second;
    }
    std::vector<TracebackFrame> take() { return std::move(frames_); }

  private:
    std::map<std::tuple<std::string, std::string, int, int>, std::uint32_t> numbers_;
    std::vector<TracebackFrame> frames_;
};

struct Instruction {
    void* code;
    std::int32_t lasti;
    bool operator==(const Instruction&) const = default;
};
struct HashInstruction {
    std::size_t operator()(const Instruction& at) const noexcept {
        return (reinterpret_cast<std::uintptr_t>(at.code) ^ (static_cast<std::size_t>(at.lasti) << 40)) *
               0x9e3779b97f4a7c15ULL;
    }
};

/// Holds the GIL while it lives, if it could be taken.
class PythonScope {
  public:
    PythonScope() noexcept : stacks_(python_stacks()) {
        if (stacks_ != nullptr && !stacks_->enter(state_)) stacks_ = nullptr;
    }
    PythonScope(const PythonScope&) = delete;
    PythonScope& operator=(const PythonScope&) = delete;
    ~PythonScope() {
        if (stacks_ != nullptr) stacks_->leave(state_);
    }
    const detail::PythonStacks* stacks() const noexcept { return stacks_; }

  private:
    const detail::PythonStacks* stacks_;
    int state_ = 0;
};

using PythonNumbers = std::unordered_map<Instruction, std::uint32_t, HashInstruction>;

PythonNumbers name_python(Span<const CapturedTraceback> tracebacks, Numbered& numbered) {
    PythonNumbers numbers;
    bool any = false;
    for (const CapturedTraceback& traceback : tracebacks) any = any || traceback.python_frames() != 0;
    if (!any) return numbers;
    const PythonScope inside;
    for (const CapturedTraceback& traceback : tracebacks) {
        for (std::size_t i = 0; i < traceback.python_frames(); ++i) {
            const detail::PythonFrame& frame = traceback.get()->python()[i];
            const auto [at, fresh] = numbers.try_emplace(Instruction{frame.code, frame.lasti}, 0);
            if (!fresh) continue;
            TracebackFrame named{"??", "??", 0, true, false};
            if (inside.stacks() != nullptr) inside.stacks()->describe(frame, named);
            at->second = numbered.add(std::move(named));
        }
    }
    return numbers;
}

using NativeNumbers = std::unordered_map<std::uintptr_t, std::vector<std::uint32_t>>;

NativeNumbers name_native(Span<const CapturedTraceback> tracebacks, Numbered& numbered) {
    NativeNumbers numbers;
    std::vector<std::uintptr_t> addresses;
    for (const CapturedTraceback& traceback : tracebacks) {
        for (const std::uintptr_t address : traceback.addresses()) {
            if (numbers.try_emplace(address).second) addresses.push_back(address);
        }
    }
    std::vector<Frames> named = symbolize_addresses(addresses);
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        for (TracebackFrame& frame : named[i])
            numbers[addresses[i]].push_back(numbered.add(std::move(frame)));
    }
    return numbers;
}

}  // namespace

bool has_native_lines() noexcept {
    return can_read_lines();
}

SymbolizedTracebacks symbolize(Span<const CapturedTraceback> tracebacks) {
    Numbered numbered;
    // Files are read before the GIL is taken: other threads run in that time.
    const NativeNumbers native = name_native(tracebacks, numbered);
    const PythonNumbers python = name_python(tracebacks, numbered);
    SymbolizedTracebacks result;
    result.tracebacks.reserve(tracebacks.size());
    for (const CapturedTraceback& traceback : tracebacks) {
        std::vector<std::uint32_t>& merged = result.tracebacks.emplace_back();
        const Span<const std::uintptr_t> addresses = traceback.addresses();
        const std::size_t python_count = traceback.python_frames();
        const detail::PythonFrame* frames = python_count != 0 ? traceback.get()->python() : nullptr;
        std::size_t next = 0;
        const auto add_python = [&] {
            merged.push_back(python.at({frames[next].code, frames[next].lasti}));
            ++next;
        };
        for (std::size_t i = 0; i < addresses.size(); ++i) {
            while (next < python_count && frames[next].place == i) add_python();
            const std::vector<std::uint32_t>& here = native.at(addresses[i]);
            merged.insert(merged.end(), here.begin(), here.end());
        }
        while (next < python_count) add_python();
    }
    result.all_frames = numbered.take();
    return result;
}

std::vector<Frames> symbolize_addresses(Span<const std::uintptr_t> addresses) {
    std::vector<Frames> result(addresses.size());
    const auto modules = loaded_modules();
    std::map<const LoadedModule*, std::vector<std::size_t>> by_module;
    for (std::size_t i = 0; i < addresses.size(); ++i)
        by_module[modules->find(addresses[i] - 1)].push_back(i);
    for (const auto& [module, indices] : by_module) {
        if (module == nullptr) {
            for (const std::size_t i : indices) result[i] = {unnamed({}, addresses[i] - 1)};
            continue;
        }
        std::vector<std::uint64_t> offsets;
        for (const std::size_t i : indices) offsets.push_back(addresses[i] - 1 - module->bias);
        std::vector<std::vector<NativeSymbol>> symbols;
        try {
            symbols = symbols_at(module->path, module->build_id, offsets);
        } catch (const Error&) {  // no such file, or another file: use the loader's names
            symbols.clear();
        }
        for (std::size_t k = 0; k < indices.size(); ++k) {
            const std::size_t i = indices[k];
            result[i] = symbols.empty() ? frames_of_loader(addresses[i] - 1, module->path, offsets[k])
                                        : frames_of(symbols[k], module->path, offsets[k]);
        }
    }
    return result;
}

std::vector<Frames> symbolize_locations(Span<const NativeLocation> locations, const std::string& folder) {
    std::vector<Frames> result(locations.size());
    std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> by_file;
    for (std::size_t i = 0; i < locations.size(); ++i)
        by_file[{locations[i].build_id, locations[i].path}].push_back(i);
    for (const auto& [file, indices] : by_file) {
        const auto& [build_id, path] = file;
        std::vector<std::uint64_t> offsets;
        for (const std::size_t i : indices) offsets.push_back(locations[i].offset);
        std::vector<std::vector<NativeSymbol>> symbols;
        for (const std::string& candidate : {file_with_build_id(folder, build_id), path}) {
            if (candidate.empty() || !symbols.empty()) continue;
            try {
                symbols = symbols_at(candidate, build_id, offsets);
            } catch (const Error&) {
                symbols.clear();
            }
        }
        for (std::size_t k = 0; k < indices.size(); ++k) {
            const std::string shown = path.empty() ? build_id : path;
            result[indices[k]] = symbols.empty() ? Frames{unnamed(shown, offsets[k])}
                                                 : frames_of(symbols[k], shown, offsets[k]);
        }
    }
    return result;
}

}  // namespace marey
