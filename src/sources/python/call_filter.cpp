// call_filter.cpp: merges the filters of all sessions, and applies the result to code objects.
#include "sources/python/call_filter.h"

#include <algorithm>
#include <map>
#include <memory>

#include <marey/call_pattern.h>
#include <marey/detail/thread_safety.h>

#include "record/source_writer.h"
#include "sources/python/import_names.h"
#include "sources/python/python_text.h"

namespace marey::python {
namespace {

/// A glob over the path of a file (it has a '/', ends in ".py" or begins with '<'), or else over the dotted
/// name of a module. `*` and `?` match within one component, `**` across components, `[ab]` and `[!ab]` are
/// sets. It also covers the contents of a folder or package that it matches. A path that does not begin with
/// '/' may start at any folder.
class CallPattern {
  public:
    explicit CallPattern(std::string_view text);
    bool is_file_pattern() const noexcept { return is_file_pattern_; }
    bool matches(std::string_view text) const;

  private:
    struct Token {
        enum class Kind : std::uint8_t { Text, One, Set, Many, Deep } kind;
        char text = 0;
        bool is_negated = false;
        std::string set{};  ///< pairs: the first and last character of each range
    };
    bool takes(const Token& token, char c) const noexcept;
    void add(std::vector<bool>& states, std::size_t at) const;

    std::vector<Token> tokens_;
    bool is_file_pattern_;
    bool is_anchored_;
    char separator_;
};

bool names_file(std::string_view text) noexcept {
    return text.find('/') != std::string_view::npos || text.ends_with(".py") || text.starts_with('<');
}

CallPattern::CallPattern(std::string_view text)
    : is_file_pattern_(names_file(text)), separator_(is_file_pattern_ ? '/' : '.') {
    while (text.starts_with("./")) text.remove_prefix(2);
    while (text.size() > 1 && text.back() == separator_) text.remove_suffix(1);
    is_anchored_ = !is_file_pattern_ || text.starts_with('/') || text.starts_with('<');
    for (std::size_t i = 0; i < text.size(); ++i) {
        Token token{Token::Kind::Text, text[i]};
        if (text[i] == '?') {
            token.kind = Token::Kind::One;
        } else if (text[i] == '*') {
            token.kind = Token::Kind::Many;
            while (i + 1 < text.size() && text[i + 1] == '*') {
                token.kind = Token::Kind::Deep;
                ++i;
            }
        } else if (const std::size_t end =
                       text[i] == '[' ? detail::end_of_pattern_set(text, i) : std::string_view::npos;
                   end != std::string_view::npos) {
            token.kind = Token::Kind::Set;
            token.is_negated = text[i + 1] == '!';
            for (std::size_t j = i + (token.is_negated ? 2 : 1); j < end; ++j) {
                const bool is_run = j + 2 < end && text[j + 1] == '-';
                token.set += text[j];
                token.set += text[is_run ? j + 2 : j];
                if (is_run) j += 2;
            }
            i = end;
        }
        tokens_.push_back(std::move(token));
    }
}

bool CallPattern::takes(const Token& token, char c) const noexcept {
    switch (token.kind) {
        case Token::Kind::Text:
            return token.text == c;
        case Token::Kind::One:
        case Token::Kind::Many:
            return c != separator_;
        case Token::Kind::Deep:
            return true;
        case Token::Kind::Set:
            break;
    }
    bool is_in = false;
    for (std::size_t i = 0; i < token.set.size(); i += 2)
        is_in = is_in || (token.set[i] <= c && c <= token.set[i + 1]);
    return is_in != token.is_negated && c != separator_;
}

// Adds a state and those reachable from it without reading a character.
void CallPattern::add(std::vector<bool>& states, std::size_t at) const {
    while (!states[at]) {
        states[at] = true;
        if (at == tokens_.size()) return;
        const Token::Kind kind = tokens_[at].kind;
        if (kind != Token::Kind::Many && kind != Token::Kind::Deep) return;
        // "a/**/b" matches "a/b" too.
        if (kind == Token::Kind::Deep && at + 1 < tokens_.size() && tokens_[at + 1].text == separator_ &&
            tokens_[at + 1].kind == Token::Kind::Text && (at == 0 || tokens_[at - 1].text == separator_))
            add(states, at + 2);
        ++at;
    }
}

bool CallPattern::matches(std::string_view text) const {
    std::vector<bool> states(tokens_.size() + 1), next(tokens_.size() + 1);
    add(states, 0);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (states.back() && text[i] == separator_) return true;
        next.assign(next.size(), false);
        for (std::size_t at = 0; at < tokens_.size(); ++at) {
            if (!states[at] || !takes(tokens_[at], text[i])) continue;
            const bool stays = tokens_[at].kind == Token::Kind::Many || tokens_[at].kind == Token::Kind::Deep;
            add(next, stays ? at : at + 1);
        }
        if (!is_anchored_ && text[i] == separator_) add(next, 0);
        states.swap(next);
    }
    return states.back();
}

}  // namespace

CallFilter call_filter;

namespace {

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

struct Patterns {
    std::vector<CallPattern> include;
    std::vector<CallPattern> exclude;
};

// None of these is ever destroyed: calls and sessions may occur until the process ends.

// The requests of the sessions; written without the GIL.
Mutex requested_mutex;
auto& wanted MAREY_GUARDED_BY(requested_mutex) = *new std::vector<SessionCalls>;

// Guarded by the GIL.
auto& present = *new std::vector<SessionCalls>;
auto& patterns = *new std::vector<Patterns>;  // one for each session: a call is recorded if any matches
// Session -> value of CallFilter::recorded at which its budget is spent.
auto& limits = *new std::map<std::uint64_t, std::uint64_t>;
auto& library_folders = *new std::vector<std::string>;
auto& unfolded = *new std::vector<CallPattern>;  // libraries that count as the program

std::vector<CallPattern> compiled(const std::vector<std::string>& texts) {
    std::vector<CallPattern> made;
    made.reserve(texts.size());
    for (const std::string& text : texts) made.emplace_back(text);
    return made;
}

// The folders of the standard library; those of installed packages are recognized by their names.
std::vector<std::string> find_library_folders() {
    std::vector<std::string> folders;
    PyObject* const folder = PySys_GetObject("_stdlib_dir");  // borrowed
    if (folder != nullptr && PyUnicode_Check(folder)) folders.push_back(text_of(folder) + "/");
    PyObject* const modules = PyImport_GetModuleDict();
    PyObject* const os = PyDict_GetItemString(modules, "os");  // borrowed, like the next
    PyObject* const file = os != nullptr && PyModule_Check(os)
                               ? PyDict_GetItemString(PyModule_GetDict(os), "__file__")
                               : nullptr;
    if (file != nullptr && PyUnicode_Check(file))
        with_text(file,
                  [&](std::string_view text) { folders.emplace_back(text.substr(0, text.rfind('/') + 1)); });
    return folders;
}

bool is_library(std::string_view file) {
    if (file.starts_with("<frozen ") || file.starts_with("<__array_function__")) return true;
    if (file.find("/site-packages/") != std::string_view::npos ||
        file.find("/dist-packages/") != std::string_view::npos)
        return true;
    return std::any_of(library_folders.begin(), library_folders.end(), [&](const std::string& folder) {
        return folder.size() > 1 && file.starts_with(folder);
    });
}

struct Subject {
    std::string file;  ///< empty: a C function
    std::string module;
    std::string other_module{};  ///< another name of the same module
};

bool takes(const std::vector<CallPattern>& list, const Subject& subject) {
    return std::any_of(list.begin(), list.end(), [&](const CallPattern& pattern) {
        if (pattern.is_file_pattern()) return !subject.file.empty() && pattern.matches(subject.file);
        return pattern.matches(subject.module) ||
               (!subject.other_module.empty() && pattern.matches(subject.other_module));
    });
}

bool is_taken(const Subject& subject) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const Patterns& each) {
        return (each.include.empty() || takes(each.include, subject)) && !takes(each.exclude, subject);
    });
}

bool has_patterns() noexcept {
    return std::all_of(patterns.begin(), patterns.end(),
                       [](const Patterns& each) { return !each.include.empty() || !each.exclude.empty(); }) &&
           !patterns.empty();
}

bool is_notebook_file(std::string_view file) noexcept {
    return file.starts_with("<ipython-input") || file.find("/ipykernel_") != std::string_view::npos;
}

// `globals`: of a frame of the code, or null.
Subject subject_of(PyCodeObject* code, PyObject* globals) {
    Subject subject;
    with_text(code->co_filename, [&](std::string_view text) { subject.file = absolute_file(text); });
    PyObject* const name =
        globals != nullptr && PyDict_Check(globals) ? PyDict_GetItemString(globals, "__name__") : nullptr;
    if (name != nullptr && PyUnicode_Check(name)) subject.module = text_of(name);
    if (subject.module.empty() || subject.module == "__main__")
        subject.other_module = is_notebook_file(subject.file) ? "__main__" : module_of_file(subject.file);
    return subject;
}

// Combines the filters of all sessions so that each call that any session records passes.
void merge() {
    const std::uint32_t generation = call_filter.generation % kMaxGenerations + 1;
    const std::uint64_t recorded = call_filter.recorded;
    call_filter = {};
    call_filter.generation = generation;
    call_filter.recorded = recorded;
    patterns.clear();
    bool folds = !present.empty();
    bool is_unlimited = present.empty();
    std::uint32_t depth = 0;
    std::uint64_t min_ns = kNoLimit;
    std::uint64_t limit = 0;
    std::map<std::uint64_t, std::uint64_t> new_limits;
    for (const SessionCalls& session : present) {
        const CallOptions& options = session.options;
        patterns.push_back({compiled(options.include), compiled(options.exclude)});
        folds = folds && options.fold_libraries;
        call_filter.has_lines = call_filter.has_lines || options.lines;
        depth = std::max(depth, options.max_depth == 0 ? ~0u : options.max_depth);
        min_ns = std::min(min_ns, options.min_duration_ns);
        if (options.budget == 0) {
            is_unlimited = true;
            continue;
        }
        const auto known = limits.find(session.session);
        const std::uint64_t own = known != limits.end()                  ? known->second
                                  : options.budget < kNoLimit - recorded ? recorded + options.budget
                                                                         : kNoLimit;
        new_limits.emplace(session.session, own);
        limit = std::max(limit, own);
    }
    limits = std::move(new_limits);
    call_filter.folds = folds;
    call_filter.max_depth = depth == 0 ? ~0u : depth;
    call_filter.min_ticks = min_ns == kNoLimit ? 0 : source_ticks_of(min_ns);
    call_filter.limit = is_unlimited ? kNoLimit : limit;
    if (folds) library_folders = find_library_folders();
    call_filter.is_on = has_patterns() || folds || call_filter.has_lines || call_filter.max_depth != ~0u ||
                        call_filter.min_ticks != 0 || call_filter.limit != kNoLimit;
    const bool is_one = std::all_of(present.begin(), present.end(), [](const SessionCalls& each) {
        return each.options == present.front().options;
    });
    if (!is_one)
        note_problem(
            "python_calls_of_others",
            "sessions with different call filters ran at the same time: each has the calls that any of "
            "them records");
}

}  // namespace

void set_requested_calls(const std::vector<SessionCalls>& sessions) noexcept {
    try {
        const ScopedLock lock(requested_mutex);
        wanted = sessions;
    } catch (const std::bad_alloc&) {  // the filter stays as it is
    }
}

void clear_requested_calls() noexcept {
    std::construct_at(&requested_mutex);
    std::construct_at(&wanted);
}

bool renew_call_filter() noexcept {
    const SavedError error;
    try {
        {
            const ScopedLock lock(requested_mutex);
            if (wanted == present) return false;
            present = wanted;
        }
        const bool was_on = call_filter.is_on;
        merge();
        return was_on || call_filter.is_on;
    } catch (const std::bad_alloc&) {
        call_filter.is_on = false;
        return true;
    }
}

void count_as_program(const std::vector<std::string>& texts) {
    unfolded = compiled(texts);
    call_filter.generation = call_filter.generation % kMaxGenerations + 1;
}

CodeWord classify_code(PyCodeObject* code, PyObject* globals) noexcept {
    const SavedError error;
    constexpr CodeWord kOurs = kCodeExcluded | kCodeLibrary | ~CodeWord{0} << kCodeGenerationShift;
    CodeWord word = code_word(code) & ~kOurs;
    word |= CodeWord{call_filter.generation} << kCodeGenerationShift;
    try {
        const Subject subject = subject_of(code, globals);
        if (call_filter.folds && is_library(subject.file) && !takes(unfolded, subject)) word |= kCodeLibrary;
        if (has_patterns() && !is_taken(subject)) word |= kCodeExcluded;
    } catch (const std::bad_alloc&) {
        return word;
    }
    set_code_word(code, word);
    return word;
}

bool takes_module(std::string_view module) {
    return !call_filter.is_on || !has_patterns() || is_taken({{}, std::string(module), {}});
}

}  // namespace marey::python
