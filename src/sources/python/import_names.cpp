// import_names.cpp: one site for each imported module; the folders of sys.path.
#include "sources/python/import_names.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>

#include "record/source_writer.h"
#include "sources/python/python_text.h"

namespace marey::python {
namespace {

/// A program may try to import names without end; sites are never freed.
constexpr std::size_t kMaxModules = std::size_t{1} << 16;

constexpr std::string_view kFile = "<frozen importlib._bootstrap>";
constexpr std::string_view kFunction = "_find_and_load";

auto& sites = *new std::unordered_map<std::string, std::uint32_t>;  // by module; guarded by the GIL

}  // namespace

bool is_import_code(PyCodeObject* code) noexcept {
    const auto is = [](PyObject* text, std::string_view wanted) {
        return with_text(text, [=](std::string_view found) { return found == wanted; });
    };
    return is(code->co_qualname, kFunction) && is(code->co_filename, kFile);
}

std::uint32_t import_site(CodeWord word, PyCodeObject* code, PyObject* module) noexcept {
    const SavedError error;
    std::uint32_t site = 0;
    try {
        std::string text = text_of(module);
        const auto known = sites.find(text);
        if (known != sites.end()) return known->second;
        if (sites.size() < kMaxModules) {
            std::string name(kFile);  // as code_sites.cpp names it
            name.append("(").append(std::to_string(code->co_firstlineno)).append("): ").append(kFunction);
            site = traced_overload(name, text, Scope::PythonFunction);
            if (site != 0) sites.emplace(std::move(text), site);
        }
    } catch (const std::bad_alloc&) {  // then only the function is known
    }
    return site != 0 ? site : site_of(word);
}

ImportPrefixes& import_prefixes = *new ImportPrefixes;

namespace {

std::string working_folder() {
    std::error_code error;
    return std::filesystem::current_path(error).string();
}

bool is_path(std::string_view file) noexcept {
    return !file.empty() && file.front() != '<';
}

// Resolves links; empty if there is no such file.
std::string real_path(const std::string& path) {
    const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
    return real != nullptr ? std::string(real.get()) : std::string();
}

// sys.path as a new tuple; null if it is not a list.
PyObject* import_path() {
    PyObject* const path = PySys_GetObject("path");  // borrowed
    PyObject* const copy = path != nullptr && PyList_Check(path) ? PyList_AsTuple(path) : nullptr;
    PyErr_Clear();
    return copy;
}

bool is_same(PyObject* path, PyObject* seen) noexcept {
    if (path == nullptr || !PyList_Check(path) || seen == nullptr ||
        PyList_GET_SIZE(path) != PyTuple_GET_SIZE(seen))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(seen); ++i) {
        if (PyList_GET_ITEM(path, i) != PyTuple_GET_ITEM(seen, i)) return false;
    }
    return true;
}

}  // namespace

std::string absolute_file(std::string_view file) {
    if (!is_path(file)) return std::string(file);
    const bool is_normal =
        file.find("/.") == std::string_view::npos && file.find("//") == std::string_view::npos;
    if (file.front() == '/' && is_normal) return std::string(file);
    return (std::filesystem::path(working_folder()) / file).lexically_normal().string();
}

std::string module_of_file(std::string_view file) {
    constexpr std::string_view kFrozen = "<frozen ";
    if (file.starts_with(kFrozen) && file.ends_with('>'))
        return std::string(file.substr(kFrozen.size(), file.size() - kFrozen.size() - 1));
    if (!is_path(file)) return "__main__";
    std::string name = import_prefixes.shortened(file);
    for (const std::string_view end : {".py", ".pyc", "/__init__"}) {
        if (name.ends_with(end)) name.resize(name.size() - end.size());
    }
    for (char& c : name) {
        if (c == '/') c = '.';
    }
    return name;
}

void ImportPrefixes::rescan() {
    Py_XDECREF(std::exchange(seen_, import_path()));
    folders_.clear();
    has_relative_ = false;
    if (seen_ == nullptr) return;
    const auto add = [&](std::string folder) {
        while (!folder.empty() && folder.back() == '/') folder.pop_back();
        if (!folder.empty()) folders_.push_back(std::move(folder));
    };
    working_folder_ = working_folder();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(seen_); ++i) {
        PyObject* const entry = PyTuple_GET_ITEM(seen_, i);
        if (!PyUnicode_Check(entry)) continue;
        with_text(entry, [&](std::string_view text) {
            std::string folder(text);
            if (folder.empty() || folder.front() != '/') {
                has_relative_ = true;
                folder = folder.empty() ? working_folder_ : absolute_file(folder);
            }
            add(real_path(folder));
            add(std::filesystem::path(folder).lexically_normal().string());
            add(std::move(folder));
        });
    }
}

std::size_t ImportPrefixes::longest(std::string_view file) const noexcept {
    std::size_t longest = 0;
    for (const std::string_view folder : folders_) {
        if (folder.size() >= longest && file.size() > folder.size() + 1 && file[folder.size()] == '/' &&
            file.starts_with(folder))
            longest = folder.size() + 1;
    }
    return longest;
}

std::string ImportPrefixes::shortened(std::string_view file) {
    if (!is_path(file)) return std::string(file);
    if (!is_same(PySys_GetObject("path"), seen_) || (has_relative_ && working_folder_ != working_folder()))
        rescan();
    const std::string path = absolute_file(file);
    if (const std::size_t cut = longest(path)) return path.substr(cut);
    const std::string real = real_path(path);
    if (const std::size_t cut = longest(real)) return real.substr(cut);
    return std::string(file);
}

}  // namespace marey::python
