// module_calls.cpp: identifies module calls, the object that is called, and its name.
#include "sources/python/module_calls.h"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <marey/observe.h>

#include "record/source_writer.h"
#include "sources/python/import_names.h"
#include "sources/python/python_text.h"
#include "sources/python/thread_names.h"

namespace marey::python {

namespace {

/// The numbers of the objects with one name. Numbers of deleted objects are reused only after very many have
/// been assigned, so that a program that creates objects without end creates a bounded number of names and
/// sites.
class Numbers {
  public:
    static constexpr std::size_t kNumbersBeforeReuse = 1000;
    std::uint32_t take() {
        if (described_.size() < kNumbersBeforeReuse || free_.empty()) {
            described_.push_back(0);
            free_.reserve(described_.size());  // so that releasing a number needs no memory
            return static_cast<std::uint32_t>(described_.size() - 1);
        }
        const std::uint32_t number = free_.back();
        free_.pop_back();
        return number;
    }
    void recycle(std::uint32_t number) noexcept { free_.push_back(number); }
    /// The round in which the object with that number was last described.
    std::uint64_t& described(std::uint32_t number) noexcept { return described_[number]; }

  private:
    std::vector<std::uint64_t> described_;  ///< by number
    std::vector<std::uint32_t> free_;
};

/// An object that has been called. Identified by its address while it exists.
struct ModuleObject {
    Ref reference;  ///< weak; to the object itself if it does not support weak references
    bool is_weak = true;
    std::uint32_t site = 0;
    std::uint32_t number = 0;
    Numbers* numbers = nullptr;
    std::string class_name;
};

// All guarded by the GIL. Never destroyed: when the process ends there is no interpreter to release objects.
auto& types = *new std::vector<std::shared_ptr<const ModuleType>>;
auto& known_objects = *new std::unordered_map<PyObject*, ModuleObject>;
auto& numbers_of = *new std::unordered_map<std::string, Numbers>;  // by prefix and name
constexpr std::size_t kFewKnown = 1024;
std::size_t next_sweep_size = kFewKnown;  // number of known objects at which deleted ones are removed next
std::uint64_t round_number = 1;
std::uint64_t times_forgotten = 0;
DescribeModule describe_module = nullptr;
NewCodeCallback on_new_code = nullptr;
thread_local bool is_describing = false;

std::atomic<bool> with_children{false};

bool is_alive(const ModuleObject& known, PyObject* object) noexcept {
    if (!known.is_weak) return true;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* found = nullptr;
    if (PyWeakref_GetRef(known.reference.get(), &found) < 0) PyErr_Clear();
    Py_XDECREF(found);
    return found == object;
#else
    return PyWeakref_GET_OBJECT(known.reference.get()) == object;
#endif
}

// Removes deleted objects. Runs no program code: the references have no callbacks.
void forget_gone() noexcept {
    for (auto at = known_objects.begin(); at != known_objects.end();) {
        ModuleObject& known = at->second;
        if (is_alive(known, at->first)) {
            ++at;
            continue;
        }
        known.numbers->recycle(known.number);
        at = known_objects.erase(at);
    }
    next_sweep_size = std::max(kFewKnown, known_objects.size() * 2);
}

// The name of an object's class.
std::string class_name_of(const ModuleType& type, PyObject* self) {
    if (type.name != nullptr) {
        const EnableGuard off(false);
        PyObject* const name = PyObject_CallOneArg(type.name, self);
        drop_error();
        if (const Ref held(name); name != nullptr && PyUnicode_Check(name)) return text_of(name);
    }
    return text_of(Ref(PyType_GetName(Py_TYPE(self))).get());
}

// Null: tracing has ended in between.
ModuleObject* learn(const ModuleType& type, PyObject* self) {
    const std::uint64_t forgotten = times_forgotten;
    std::string class_name = class_name_of(type, self);
    // Creating the reference may collect garbage and so run any code, like reading the object. Nothing runs
    // after it.
    Ref reference(PyWeakref_NewRef(self, nullptr));
    const bool is_weak = bool(reference);
    if (!is_weak) reference = Ref::borrow(self);
    if (times_forgotten != forgotten) return nullptr;
    if (known_objects.size() >= next_sweep_size) forget_gone();
    // Reading may have let another thread come here first, or the address may belong to a deleted object.
    if (const auto found = known_objects.find(self); found != known_objects.end()) {
        if (is_alive(found->second, self)) return &found->second;
        found->second.numbers->recycle(found->second.number);
        known_objects.erase(found);
    }
    std::string name = type.prefix + class_name;
    Numbers& numbers = numbers_of[name];
    ModuleObject known{
        .reference = {}, .is_weak = is_weak, .numbers = &numbers, .class_name = std::move(class_name)};
    known.number = numbers.take();
    name += '_';
    name += std::to_string(known.number);
    if (type.is_optimizer) show_as_code_to_pytorch(name, type.code);
    const std::string file = text_of(type.code->co_filename);
    known.site = traced_site(name, file.empty() ? std::string_view("(unknown)") : std::string_view(file),
                             static_cast<std::uint32_t>(type.code->co_firstlineno), Scope::PythonFunction);
    known.reference = std::move(reference);
    return &known_objects.emplace(self, std::move(known)).first->second;
}

void describe(const ModuleType& type, PyObject* self, const ModuleObject& known) {
    const std::uint32_t site = known.site;
    const std::uint64_t ticks = source_ticks();
    std::vector<KeyedValue> values;
    std::shared_ptr<void> held;
    const ModuleInstance instance{type, self, known.class_name, known.number, with_children.load()};
    {
        const EnableGuard off(false);
        describe_module(instance, values, held);
        drop_error();
    }
    add_site_values(site, ticks, values);
}

std::uint32_t site_of_object(PyCodeObject* code, PyObject* self) {
    std::shared_ptr<const ModuleType> type;
    for (auto at = types.rbegin(); at != types.rend() && type == nullptr; ++at) {
        if ((*at)->code == code && PyType_IsSubtype(Py_TYPE(self), (*at)->cls) != 0) type = *at;
    }
    if (type == nullptr) return 0;
    const auto found = known_objects.find(self);
    ModuleObject* known =
        found != known_objects.end() && is_alive(found->second, self) ? &found->second : learn(*type, self);
    if (known == nullptr) return 0;
    const std::uint32_t site = known->site;
    std::uint64_t& described = known->numbers->described(known->number);
    if (described != round_number && site != 0 && describe_module != nullptr && !is_describing) {
        described = round_number;
        is_describing = true;
        try {
            describe(*type, self, *known);
        } catch (const std::exception&) {  // then only its name is recorded
        }
        is_describing = false;
    }
    return site;
}

}  // namespace

ModuleType::~ModuleType() {
    Py_XDECREF(reinterpret_cast<PyObject*>(cls));
    Py_XDECREF(reinterpret_cast<PyObject*>(code));
    for (PyObject* const object : {name, parameters, gradients, state, children, arrays}) Py_XDECREF(object);
}

void set_module_callbacks(DescribeModule describe, NewCodeCallback new_code) noexcept {
    describe_module = describe;
    on_new_code = new_code;
}

void add_module_type(std::shared_ptr<const ModuleType> type) {
    std::shared_ptr<const ModuleType> before;  // destroyed last: that may run Python code
    PyCodeObject* const code = type->code;
    const auto same = std::find_if(types.begin(), types.end(), [&](const auto& other) {
        return other->code == type->code && other->cls == type->cls;
    });
    if (same != types.end()) {
        before = std::move(*same);
        types.erase(same);
    }
    types.push_back(std::move(type));
    mark_code(code, kCodeModule, true);
}

std::size_t remove_module_type(PyTypeObject* cls) {
    std::vector<std::shared_ptr<const ModuleType>> removed;
    for (std::size_t i = 0; i < types.size();) {
        if (types[i]->cls != cls) {
            ++i;
            continue;
        }
        removed.push_back(std::move(types[i]));
        types.erase(types.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (const auto& type : removed) {
        const bool is_used = std::any_of(types.begin(), types.end(),
                                         [&](const auto& other) { return other->code == type->code; });
        if (!is_used) mark_code(type->code, kCodeModule, false);
    }
    return removed.size();
}

std::shared_ptr<const ModuleType> module_type_of(PyObject* object) {
    for (auto at = types.rbegin(); at != types.rend(); ++at) {
        if (PyType_IsSubtype(Py_TYPE(object), (*at)->cls) != 0) return *at;
    }
    return nullptr;
}

bool is_module_code(PyCodeObject* code) noexcept {
    const auto is_registered = [&] {
        return std::any_of(types.begin(), types.end(), [&](const auto& type) { return type->code == code; });
    };
    if (is_registered()) return true;
    if (on_new_code == nullptr || is_describing) return false;
    is_describing = true;
    on_new_code(code);
    is_describing = false;
    return is_registered();
}

std::uint32_t module_site(CodeWord word, PyCodeObject* code, PyObject* self) noexcept {
    if (self == nullptr) return site_of(word);
    if ((word & kCodeNamed) != 0) {
        if (PyUnicode_Check(self)) return import_site(word, code, self);
        name_calling_thread(self);
        return site_of(word);
    }
    const SavedError error;
    std::uint32_t site = 0;
    Py_INCREF(self);
    try {
        site = site_of_object(code, self);
    } catch (const std::bad_alloc&) {  // then it is an ordinary call
    }
    Py_DECREF(self);
    PyErr_Clear();
    return site != 0 ? site : site_of(word);
}

void describe_modules_again() noexcept {
    ++round_number;
}

void set_module_children(bool wanted) noexcept {
    with_children.store(wanted);
}

void forget_modules() noexcept {
    const SavedError error;
    ++times_forgotten;
    std::unordered_map<PyObject*, ModuleObject> dropped;
    dropped.swap(known_objects);
    numbers_of.clear();
    next_sweep_size = kFewKnown;
}

}  // namespace marey::python
