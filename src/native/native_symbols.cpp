// native_symbols.cpp: functions, files and lines of addresses in ELF files, including inlined calls.
#include "native/native_symbols.h"

#include <filesystem>
#include <map>
#include <memory>
#include <unordered_map>

#include <marey/detail/thread_safety.h>
#include <marey/error.h>

#include "native/elf_symbols.h"
#if MAREY_HAVE_ELFUTILS
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

#include "native/debug_units.h"
#endif

namespace marey {

std::string file_with_build_id(const std::string& folder, const std::string& build_id) {
    if (build_id.size() < 4) return {};
    const std::string stem = folder + "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2);
    std::error_code ignored;
    for (const char* ending : {".debug", ""}) {
        if (std::filesystem::is_regular_file(stem + ending, ignored)) return stem + ending;
    }
    return {};
}

namespace {

constexpr const char* kDebugFolder = "/usr/lib/debug";

#if MAREY_HAVE_ELFUTILS

/// The debug information of a file.
class DebugInformation {
  public:
    explicit DebugInformation(const std::string& path)
        : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        dwarf_ = dwarf_begin(descriptor_, DWARF_C_READ);
        if (dwarf_ != nullptr) units_ = std::make_unique<DebugUnits>(dwarf_);
    }
    ~DebugInformation() {
        dwarf_end(dwarf_);
        if (descriptor_ >= 0) close(descriptor_);
    }

    bool is_empty() const noexcept { return dwarf_ == nullptr; }
    std::vector<NativeSymbol> at(std::uint64_t offset) {
        return is_empty() ? std::vector<NativeSymbol>() : units_->at(offset);
    }

  private:
    int descriptor_;
    Dwarf* dwarf_;
    std::unique_ptr<DebugUnits> units_;
};

#else

/// No lines without elfutils.
struct DebugInformation {
    explicit DebugInformation(const std::string& /*path*/) {}
    static bool is_empty() { return true; }
    static std::vector<NativeSymbol> at(std::uint64_t /*offset*/) { return {}; }
};

#endif

/// The functions of a file and, if it has debug information, their lines.
class SymbolFile {
  public:
    SymbolFile(const std::string& path, const std::string& build_id) : file_(path) {
        const std::string& own = file_.build_id();
        if (!build_id.empty() && own != build_id)
            throw Error(path + ": its build id is " + (own.empty() ? "(none)" : own) + ", not " + build_id);
        const std::string separate = file_with_build_id(kDebugFolder, own);
        lines_ = std::make_unique<DebugInformation>(path);
        if (separate.empty() || separate == path) return;
        if (lines_->is_empty()) lines_ = std::make_unique<DebugInformation>(separate);
        if (file_.has_full_table()) return;
        try {
            debug_ = std::make_unique<ElfSymbols>(separate);
        } catch (const Error&) {  // the file itself may still have symbols
            debug_.reset();
        }
    }

    const std::vector<NativeSymbol>& at(std::uint64_t offset) {
        const auto [known, fresh] = known_.try_emplace(offset);
        if (fresh) known->second = look_up(offset);
        return known->second;
    }

  private:
    std::vector<NativeSymbol> look_up(std::uint64_t offset) {
        std::vector<NativeSymbol> symbols = lines_->at(offset);
        if (symbols.empty()) symbols.emplace_back();
        // The symbol table also has the parameters of functions with internal linkage.
        if (NativeSymbol& outermost = symbols.back(); !outermost.exact) {
            if (std::string name = function_at(offset); !name.empty()) outermost.function = std::move(name);
        }
        return symbols;
    }

    std::string function_at(std::uint64_t offset) const {
        std::string name;
        if (debug_) name = debug_->function_at(offset);
        return name.empty() ? file_.function_at(offset) : name;
    }

    ElfSymbols file_;
    std::unique_ptr<ElfSymbols> debug_;
    std::unique_ptr<DebugInformation> lines_;
    std::unordered_map<std::uint64_t, std::vector<NativeSymbol>> known_;
};

struct OpenFiles {
    Mutex mutex;  ///< innermost; no Python lock is ever taken while it is held
    std::map<std::pair<std::string, std::string>, std::unique_ptr<SymbolFile>> files MAREY_GUARDED_BY(mutex);
};

OpenFiles& open_files() {
    static auto& only = *new OpenFiles;
    return only;
}

}  // namespace

bool can_read_lines() noexcept {
    return MAREY_HAVE_ELFUTILS != 0;
}

std::vector<std::vector<NativeSymbol>> symbols_at(const std::string& path, const std::string& build_id,
                                                  std::span<const std::uint64_t> offsets) {
    OpenFiles& open = open_files();
    const ScopedLock lock(open.mutex);
    std::unique_ptr<SymbolFile>& file = open.files[{path, build_id}];
    if (!file) file = std::make_unique<SymbolFile>(path, build_id);
    std::vector<std::vector<NativeSymbol>> symbols;
    symbols.reserve(offsets.size());
    for (const std::uint64_t offset : offsets) symbols.push_back(file->at(offset));
    return symbols;
}

}  // namespace marey
