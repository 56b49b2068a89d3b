// function_name.cpp: parses signatures from their ends, where they are regular; return types are not. The C++
// runtime reads symbols.
#include "native/function_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <vector>

namespace marey {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::string_view kLambda = "<lambda>";

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// 1 for an opening bracket, -1 for a closing one.
int nesting(char c) {
    if (c == '(' || c == '<' || c == '[' || c == '{') return 1;
    return c == ')' || c == '>' || c == ']' || c == '}' ? -1 : 0;
}

/// The position of the bracket that text.back() closes.
std::size_t opening(std::string_view text) {
    int depth = 0;
    for (std::size_t at = text.size(); at-- != 0;) {
        depth += nesting(text[at]);
        if (depth == 0) return at;
    }
    return kNone;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != kNone; at += to.size())
        text.replace(at, from.size(), to);
}

/// A template parameter and its argument.
struct Argument {
    std::string_view parameter;
    std::string_view value;
};

/// Splits "T = int; int N = 3" (GCC) or "T = int, N = 3" (Clang). GCC lists types from other declarations
/// too, such as "std::size_t = long unsigned int".
std::vector<Argument> parse_arguments(std::string_view list, char separator) {
    std::vector<Argument> found;
    int depth = 0;
    for (std::size_t at = 0, begin = 0; at <= list.size(); ++at) {
        if (at < list.size() && (list[at] != separator || depth != 0)) {
            depth += nesting(list[at]);
            continue;
        }
        const std::string_view item = list.substr(begin, at - begin);
        const std::size_t equals = item.find(" = ");
        begin = at + 2;
        if (equals == kNone) continue;
        const std::string_view left = item.substr(0, equals);
        const std::string_view parameter = left.substr(left.rfind(' ') == kNone ? 0 : left.rfind(' ') + 1);
        if (parameter.find_first_of("):") != kNone || parameter.ends_with("_t")) continue;
        std::string_view value = item.substr(equals + 3);
        if (value.size() >= 2 && (value.front() == '{' || value.front() == '<'))  // a parameter pack
            value = value.substr(1, value.size() - 2);
        found.push_back({parameter, value});
    }
    return found;
}

/// Takes the template arguments off the end of a signature.
std::vector<Argument> take_arguments(std::string_view& signature) {
    constexpr std::string_view kWith = " [with ";
    if (!signature.ends_with(']')) return {};
    std::size_t at = signature.find(kWith);
    const bool is_gcc = at != kNone;
    if (!is_gcc) at = signature.find(" [");
    if (at == kNone) return {};
    const std::size_t begin = at + (is_gcc ? kWith.size() : 2);
    const std::string_view list = signature.substr(begin, signature.size() - begin - 1);
    signature = signature.substr(0, at);
    return parse_arguments(list, is_gcc ? ';' : ',');
}

/// Removes return type, parameters and what follows them. Empty: not a signature.
std::string_view without_types(std::string_view signature) {
    std::size_t end = signature.size();
    if (!signature.ends_with('>')) {  // not a lambda of GCC
        end = signature.rfind(')');
        if (end == kNone) return {};
        end = opening(signature.substr(0, end + 1));
        if (end == kNone || end == 0) return {};
    }
    std::string_view name = signature.substr(0, end);
    constexpr std::string_view kOperator = "operator";  // followed by brackets, spaces or both
    std::size_t at = name.rfind(kOperator);
    const bool is_operator = at != kNone && at + kOperator.size() < end &&
                             !is_word(name[at + kOperator.size()]) && (at == 0 || !is_word(name[at - 1]));
    if (!is_operator) at = end;
    for (int depth = 0; at != 0; --at) {
        depth -= nesting(name[at - 1]);
        const bool is_const_member = name.substr(at).starts_with("const::");  // with a lambda in it
        if (depth == 0 && name[at - 1] == ' ' && !is_const_member) break;
    }
    name = name.substr(at);
    const std::size_t begin = name.find_first_not_of("*&");
    return begin != kNone ? name.substr(begin) : std::string_view();
}

/// Removes the parameters of enclosing functions, and writes lambdas alike.
std::string simplified(std::string_view name) {
    std::string result;
    for (std::size_t at = 0; at < name.size(); ++at) {
        const bool follows_name = !result.empty() && (is_word(result.back()) || result.back() == '>');
        if (name[at] == '(' && follows_name) {
            std::size_t end = at;
            int depth = 0;
            do depth += nesting(name[end++]);
            while (depth != 0 && end < name.size());
            if (name.substr(end).starts_with("::") || name.substr(end).starts_with(" const::")) {
                at = name.find("::", end) - 1;
                continue;
            }
        }
        if (name.substr(at).starts_with("<lambda(")) {
            result += kLambda;
            at = name.find(")>", at);
            if (at == kNone) break;
            ++at;
            continue;
        }
        result += name[at];
    }
    replace_all(result, "(anonymous class)::operator()", kLambda);
    replace_all(result, "(lambda)::operator()", kLambda);
    replace_all(result, "{anonymous}::", "");
    replace_all(result, "(anonymous namespace)::", "");
    return result;
}

/// Replaces a word; false if it does not occur.
bool replace_word(std::string& text, std::string_view word, std::string_view by) {
    bool is_found = false;
    for (std::size_t at = 0; (at = text.find(word, at)) != kNone;) {
        const bool is_whole = (at == 0 || !is_word(text[at - 1])) &&
                              (at + word.size() == text.size() || !is_word(text[at + word.size()]));
        if (is_whole) text.replace(at, word.size(), by);
        is_found |= is_whole;
        at += is_whole ? by.size() : word.size();
    }
    return is_found;
}

// Each reference may repeat everything before it: three references to the preceding part, ten times over,
// already make a text of 3^10 parts.
constexpr int kMaxReferences = 32;

/// How often S_, S0_, ... and T_, T0_, ... (earlier parts and template arguments) may occur in `symbol`.
int count_references(std::string_view symbol) {
    int count = 0;
    for (std::size_t i = 0; i + 1 < symbol.size(); ++i) {
        if (symbol[i] != 'S' && symbol[i] != 'T') continue;
        std::size_t end = i + 1;
        while (end < symbol.size() &&
               ((symbol[end] >= '0' && symbol[end] <= '9') || (symbol[end] >= 'A' && symbol[end] <= 'Z')))
            ++end;
        if (end < symbol.size() && symbol[end] == '_') ++count;
    }
    return count;
}

}  // namespace

std::string function_name(std::string_view signature) {
    std::string_view rest = signature;
    const std::vector<Argument> arguments = take_arguments(rest);
    const std::string_view qualified = without_types(rest);
    if (qualified.empty()) return std::string(signature);
    std::string name = simplified(qualified);
    // GCC prints "C<T>::get" and Clang "C<int>::get"; arguments that are in neither are the function's own.
    std::string own;
    for (const Argument& argument : arguments) {
        const std::string in_class = "<" + std::string(argument.value);
        if (replace_word(name, argument.parameter, argument.value) || name.find(in_class) != kNone) continue;
        own += (own.empty() ? "<" : ", ") + std::string(argument.value);
    }
    if (!own.empty()) {
        const std::size_t lambda = name.find("::" + std::string(kLambda));
        name.insert(lambda == kNone ? name.size() : lambda, own + ">");
    }
    replace_all(name, "std::__cxx11::basic_string<char>", "std::string");
    replace_all(name, "std::basic_string<char>", "std::string");
    return name;
}

std::optional<std::string> demangle(std::string_view symbol) {
    if (symbol.size() < 3 || !symbol.starts_with("_Z")) return std::nullopt;
    if (symbol.find('\0') != std::string_view::npos) return std::nullopt;
    if (count_references(symbol) > kMaxReferences) return std::nullopt;
    int status = 0;
    struct Free {
        void operator()(char* text) const noexcept { std::free(text); }
    };
    const std::unique_ptr<char, Free> text(
        abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status));
    if (text == nullptr || status != 0) return std::nullopt;
    return std::string(text.get());
}

}  // namespace marey
