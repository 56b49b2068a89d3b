// code_sites.cpp: the names of Python functions.
#include "sources/python/code_sites.h"

#include <unordered_set>

#include "record/source_writer.h"
#include "sources/python/c_function_sites.h"
#include "sources/python/greenlets.h"
#include "sources/python/import_names.h"
#include "sources/python/module_calls.h"
#include "sources/python/python_text.h"
#include "sources/python/thread_names.h"

namespace marey::python {

Py_ssize_t code_slot = -1;

bool claim_code_slot() noexcept {
    if (code_slot < 0) {
#if PY_VERSION_HEX >= 0x030C0000
        code_slot = PyUnstable_Eval_RequestCodeExtraIndex(nullptr);
#else
        code_slot = _PyEval_RequestCodeExtraIndex(nullptr);
#endif
    }
    return code_slot >= 0;
}

namespace {

auto& package_folder = *new std::string;  // with a `/` at its end; guarded by the GIL; never destroyed

void find_package_folder() noexcept {
    if (!package_folder.empty()) return;
    PyObject* const modules = PyImport_GetModuleDict();  // borrowed
    PyObject* const package =
        modules != nullptr ? PyDict_GetItemString(modules, "marey") : nullptr;  // borrowed
    const Ref file = attribute(package, "__file__");
    if (!file || !PyUnicode_Check(file.get())) return;
    const std::string text = text_of(file.get());
    package_folder = text.substr(0, text.rfind('/') + 1);
}

// Whether code belongs to the package itself, whose calls are not part of the program.
bool is_marey_code(PyCodeObject* code) {
    find_package_folder();
    if (package_folder.empty()) return false;
    return with_text(code->co_filename, [&](std::string_view file) {
        return file.starts_with(package_folder) || file == "<internal>";  // nanobind
    });
}

// `python -c` calls its code `<string>`, as exec() and namedtuple() call theirs.
constexpr std::string_view kAnyString = "<string>";
constexpr std::string_view kCommand = "<command>";
bool is_command_expected = false;                             // guarded by the GIL
auto& command_code = *new std::unordered_set<PyCodeObject*>;  // likewise; never destroyed

void add_command_code(PyCodeObject* code) {
    command_code.insert(code);
    PyObject* const constants = code->co_consts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); ++i) {
        PyObject* const constant = PyTuple_GET_ITEM(constants, i);
        if (PyCode_Check(constant)) add_command_code(reinterpret_cast<PyCodeObject*>(constant));
    }
}

bool is_command_code(PyCodeObject* code) {
    if (is_command_expected) {  // the first code after the interpreter's report is the command
        is_command_expected = false;
        add_command_code(code);
    }
    return command_code.count(code) != 0;
}

PyObject* cell_numbers = nullptr;  // a dict by file, or null; owned, guarded by the GIL

// "In[7]" for the code of a notebook's cell; otherwise empty.
std::string cell_of(PyCodeObject* code) {
    PyObject* const number =
        cell_numbers != nullptr ? PyDict_GetItemWithError(cell_numbers, code->co_filename) : nullptr;
    const long value = number != nullptr && PyLong_Check(number) ? PyLong_AsLong(number) : -1;
    PyErr_Clear();
    return value >= 0 ? "In[" + std::to_string(value) + "]" : std::string();
}

std::string place_of(PyCodeObject* code, const std::string& file) {
    return file + '(' + std::to_string(code->co_firstlineno) + "): ";
}

std::uint32_t make_site(PyCodeObject* code) {
    std::string file = text_of(code->co_filename);
    const bool is_command = file == kAnyString && is_command_code(code);
    if (is_command) file = kCommand;
    std::string shown = cell_of(code);
    if (shown.empty()) shown = is_command ? file : import_prefixes.shortened(file);
    const std::string name = place_of(code, shown) + text_of(code->co_qualname);
    return traced_site(name, file.empty() ? std::string_view("(unknown)") : std::string_view(file),
                       static_cast<std::uint32_t>(code->co_firstlineno), Scope::PythonFunction);
}

}  // namespace

std::string pytorch_name(Scope scope, std::string_view name) {
    if (scope == Scope::CFunction) return printed_name(name);
    if (scope != Scope::PythonFunction) return {};
    constexpr std::string_view kEndOfLine = "): ";
    const std::size_t line = name.rfind(kEndOfLine);
    if (line == std::string_view::npos) return printed_name(name);  // a module or an optimizer
    const std::string_view function = name.substr(line + kEndOfLine.size());
    std::string_view place = name.substr(0, name.size() - function.size());
    std::string own;
    if (place.starts_with(kCommand)) {
        own = kAnyString;
        place.remove_prefix(kCommand.size());
    }
    own += place;
    own += function.substr(function.rfind('.') + 1);
    return own;
}

void show_as_code_to_pytorch(const std::string& name, PyCodeObject* code) {
    const std::string place = place_of(code, import_prefixes.shortened(text_of(code->co_filename)));
    add_printed_name(name, place + text_of(code->co_name));
}

void expect_command_code() noexcept {
    is_command_expected = true;
}

void name_cells(PyObject* numbers) noexcept {
    Py_XSETREF(cell_numbers, Py_XNewRef(numbers));
}

CodeWord register_code(PyCodeObject* code) noexcept {
    const SavedError error;
    CodeWord word = kCodeKnown;
    if ((code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0) word |= kCodeGenerator;
    if ((code->co_flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE)) != 0) word |= kCodeCoroutine;
    try {
        with_text(code->co_filename, note_file_for_greenlets);
        if (is_marey_code(code)) word |= kCodeSkipped;
        word |= CodeWord{make_site(code)} << kCodeSiteShift;
    } catch (const std::bad_alloc&) {
        return word;
    }
    if (is_module_code(code)) word |= kCodeModule;
    if (is_thread_code(code) || is_import_code(code)) word |= kCodeModule | kCodeNamed;
    set_code_word(code, word);
    return word;
}

void set_code_word(PyCodeObject* code, CodeWord word) noexcept {
    auto* const object = reinterpret_cast<PyObject*>(code);
#if PY_VERSION_HEX >= 0x030C0000
    PyUnstable_Code_SetExtra(object, code_slot, reinterpret_cast<void*>(word));
#else
    _PyCode_SetExtra(object, code_slot, reinterpret_cast<void*>(word));
#endif
    PyErr_Clear();
}

void mark_code(PyCodeObject* code, CodeWord bit, bool is_set) noexcept {
    const CodeWord word = code_slot >= 0 ? known_code(code) : 0;
    if (word == 0) return;
    const SavedError error;
    set_code_word(code, is_set ? word | bit : word & ~bit);
}

}  // namespace marey::python
