// import_prefixes.cpp: the entries of sys.path as given, absolute, and with links resolved.
#include "sources/python/import_prefixes.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "sources/python/python_text.h"

namespace marey::python {

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
