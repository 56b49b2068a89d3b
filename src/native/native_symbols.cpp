// native_symbols.cpp: functions, files and lines of addresses in ELF files, including inlined calls.
#include "native/native_symbols.h"

#include <filesystem>
#include <map>
#include <memory>

#include <marey/detail/thread_safety.h>
#include <marey/error.h>

#if MAREY_HAVE_ELFUTILS
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "native/debug_units.h"
#include "native/demangle.h"
#else
#include "native/elf_symbols.h"
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

[[maybe_unused]] void check_build_id(const std::string& path, const std::string& own,
                                     const std::string& wanted) {
    if (!wanted.empty() && own != wanted)
        throw Error(path + ": its build id is " + (own.empty() ? "(none)" : own) + ", not " + wanted);
}

}  // namespace

#if !MAREY_HAVE_ELFUTILS

namespace {

/// Functions without lines.
class SymbolFile {
  public:
    SymbolFile(const std::string& path, const std::string& build_id) : file_(path) {
        check_build_id(path, file_.build_id(), build_id);
        const std::string separate = file_with_build_id(kDebugFolder, file_.build_id());
        if (file_.has_full_table() || separate.empty() || separate == path) return;
        try {
            debug_ = std::make_unique<ElfSymbols>(separate);
        } catch (const Error&) {  // the file itself may still have symbols
            debug_.reset();
        }
    }
    std::vector<NativeSymbol> at(std::uint64_t offset) const {
        NativeSymbol symbol;
        if (debug_) symbol.function = debug_->function_at(offset);
        if (symbol.function.empty()) symbol.function = file_.function_at(offset);
        return {symbol};
    }

  private:
    ElfSymbols file_;
    std::unique_ptr<ElfSymbols> debug_;
};

}  // namespace

bool can_read_lines() noexcept {
    return false;
}

#else

namespace {

std::string hexadecimal(const void* data, std::size_t size) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto* bytes = static_cast<const unsigned char*>(data);
    std::string text;
    for (std::size_t i = 0; i < size; ++i) {
        text += kDigits[bytes[i] >> 4];
        text += kDigits[bytes[i] & 15];
    }
    return text;
}

/// An open ELF file.
class ElfFile {
  public:
    explicit ElfFile(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (descriptor_ < 0) throw Error(path + ": " + std::strerror(errno));
        elf_version(EV_CURRENT);
        elf_ = elf_begin(descriptor_, ELF_C_READ_MMAP, nullptr);
        if (elf_ == nullptr || elf_kind(elf_) != ELF_K_ELF) {
            close_all();
            throw Error(path + ": not an ELF file");
        }
    }
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;
    ~ElfFile() { close_all(); }

    Elf* get() const noexcept { return elf_; }
    std::string build_id() const {
        const void* bytes = nullptr;
        const ssize_t size = dwelf_elf_gnu_build_id(elf_, &bytes);
        return size > 0 ? hexadecimal(bytes, static_cast<std::size_t>(size)) : std::string();
    }

  private:
    void close_all() noexcept {
        if (elf_ != nullptr) elf_end(elf_);
        close(descriptor_);
    }

    int descriptor_;
    Elf* elf_ = nullptr;
};

struct FunctionSymbol {
    std::uint64_t begin;
    std::uint64_t size;  ///< 0: to the next
    const char* name;
    int rank;  ///< the higher, the better a name for this address
};

/// The functions of a symbol table, in order of address.
std::vector<FunctionSymbol> functions_of(Elf* elf, unsigned section_type) {
    std::vector<FunctionSymbol> found;
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(elf, section)) != nullptr) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type != section_type ||
            header.sh_entsize == 0)
            continue;
        Elf_Data* data = elf_getdata(section, nullptr);
        const std::size_t count = data != nullptr ? data->d_size / header.sh_entsize : 0;
        found.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            GElf_Sym symbol;
            if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr || symbol.st_shndx == SHN_UNDEF)
                continue;
            const int type = GELF_ST_TYPE(symbol.st_info);
            if (type != STT_FUNC && type != STT_GNU_IFUNC) continue;
            const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
            if (name == nullptr || *name == 0) continue;
            const int binding = GELF_ST_BIND(symbol.st_info);
            found.push_back({symbol.st_value, symbol.st_size, name,
                             binding == STB_GLOBAL ? 2 : static_cast<int>(binding == STB_WEAK)});
        }
    }
    std::stable_sort(found.begin(), found.end(), [](const FunctionSymbol& a, const FunctionSymbol& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.rank > b.rank;
    });
    found.erase(
        std::unique(found.begin(), found.end(),
                    [](const FunctionSymbol& a, const FunctionSymbol& b) { return a.begin == b.begin; }),
        found.end());
    return found;
}

class SymbolFile {
  public:
    SymbolFile(const std::string& path, const std::string& build_id) : file_(path) {
        const std::string own = file_.build_id();
        check_build_id(path, own, build_id);
        functions_ = functions_of(file_.get(), SHT_SYMTAB);
        if (const std::string separate = file_with_build_id(kDebugFolder, own);
            !separate.empty() && separate != path) {
            try {
                debug_ = std::make_unique<ElfFile>(separate);
            } catch (const Error&) {  // the file itself may still have symbols
                debug_.reset();
            }
        }
        if (functions_.empty() && debug_) functions_ = functions_of(debug_->get(), SHT_SYMTAB);
        if (functions_.empty()) functions_ = functions_of(file_.get(), SHT_DYNSYM);
        for (Elf* elf : {file_.get(), debug_ ? debug_->get() : nullptr}) {
            if (elf == nullptr || units_) continue;
            dwarf_.reset(dwarf_begin_elf(elf, DWARF_C_READ, nullptr));
            if (dwarf_) units_ = std::make_unique<DebugUnits>(dwarf_.get());
        }
    }

    const std::vector<NativeSymbol>& at(std::uint64_t offset) {
        const auto [known, fresh] = known_.try_emplace(offset);
        if (fresh) known->second = look_up(offset);
        return known->second;
    }

  private:
    std::vector<NativeSymbol> look_up(std::uint64_t offset) {
        std::vector<NativeSymbol> symbols;
        if (units_) symbols = units_->at(offset);
        if (symbols.empty()) symbols.emplace_back();
        // The symbol table also has the parameters of functions with internal linkage.
        if (NativeSymbol& outermost = symbols.back(); !outermost.exact) {
            if (std::string name = function_at(offset); !name.empty()) outermost.function = std::move(name);
        }
        return symbols;
    }

    std::string function_at(std::uint64_t offset) const {
        const auto after = std::upper_bound(
            functions_.begin(), functions_.end(), offset,
            [](std::uint64_t at, const FunctionSymbol& function) { return at < function.begin; });
        if (after == functions_.begin()) return {};
        const FunctionSymbol& function = *std::prev(after);
        if (function.size != 0 && offset >= function.begin + function.size) return {};
        return demangle(function.name).value_or(function.name);
    }

    struct EndDwarf {
        void operator()(Dwarf* dwarf) const noexcept { dwarf_end(dwarf); }
    };

    ElfFile file_;
    std::unique_ptr<ElfFile> debug_;
    std::vector<FunctionSymbol> functions_;
    std::unique_ptr<Dwarf, EndDwarf> dwarf_;
    std::unique_ptr<DebugUnits> units_;
    std::unordered_map<std::uint64_t, std::vector<NativeSymbol>> known_;
};

}  // namespace

bool can_read_lines() noexcept {
    return true;
}

#endif

namespace {

struct OpenFiles {
    Mutex mutex;  ///< innermost; no Python lock is ever taken while it is held
    std::map<std::pair<std::string, std::string>, std::unique_ptr<SymbolFile>> files MAREY_GUARDED_BY(mutex);
};

OpenFiles& open_files() {
    static auto& only = *new OpenFiles;
    return only;
}

}  // namespace

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
