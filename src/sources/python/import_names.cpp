// import_names.cpp: one site for each imported module.
#include "sources/python/import_names.h"

#include <new>
#include <string>
#include <string_view>
#include <unordered_map>

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

}  // namespace marey::python
