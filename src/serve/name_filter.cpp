// name_filter.cpp: which names match what the user typed.
#include "serve/name_filter.h"

#include <algorithm>
#include <array>

namespace marey::serve {
namespace {

constexpr std::size_t kMaxSearchedBytes = std::size_t{4} << 10;  ///< of each name, by expressions
constexpr std::size_t kMaxExpressionBytes = 500;
constexpr std::uint64_t kMaxAtoms = 1000;  ///< regcomp() takes memory for the square of them

char lower_case(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// The place after the bracket expression that begins at `at`: "[]a]", "[^]]", "[[:alpha:]]".
std::size_t after_brackets(std::string_view expression, std::size_t at) {
    ++at;
    if (at < expression.size() && expression[at] == '^') ++at;
    if (at < expression.size() && expression[at] == ']') ++at;
    for (; at < expression.size() && expression[at] != ']'; ++at) {
        if (expression[at] != '[' || at + 1 >= expression.size()) continue;
        const char kind = expression[at + 1];  // [:alpha:], [.x.], [=x=]
        if (kind != ':' && kind != '.' && kind != '=') continue;
        const char end[] = {kind, ']'};
        at = std::min(expression.find(std::string_view(end, 2), at + 2), expression.size() - 1) + 1;
    }
    return at + 1;
}

/// The number of characters and sets in an expression whose repetitions are written out: 6 for "(ab){3}".
std::uint64_t expanded_atoms(std::string_view expression) {
    constexpr std::uint64_t kMany = 1'000'000'000;
    std::vector<std::uint64_t> groups{0};  // that are open
    std::uint64_t last = 0;                // what a repetition repeats
    const auto add = [&](std::uint64_t atoms) {
        last = std::min(atoms, kMany);
        groups.back() = std::min(groups.back() + last, kMany);
    };
    for (std::size_t at = 0; at < expression.size();) {
        const char c = expression[at];
        if (c == '[') {
            at = after_brackets(expression, at);
            add(1);
            continue;
        }
        ++at;
        if (c == '(') {
            groups.push_back(0);
            last = 0;
        } else if (c == ')' && groups.size() > 1) {
            const std::uint64_t inside = groups.back();
            groups.pop_back();
            add(inside);
        } else if (c == '{') {
            std::uint64_t most = 1, number = 0;
            for (; at < expression.size() && expression[at] != '}'; ++at) {
                const bool is_digit = expression[at] >= '0' && expression[at] <= '9';
                number = is_digit
                             ? std::min(number * 10 + static_cast<std::uint64_t>(expression[at] - '0'), kMany)
                             : 0;
                most = std::max(most, number);
            }
            const std::uint64_t repeated = std::min(last, kMany) * most;
            add(repeated - last);
            last = std::min(repeated, kMany);
        } else if (c != '*' && c != '+' && c != '?' && c != '}') {
            if (c == '\\') ++at;
            add(1);
        }
    }
    std::uint64_t all = 0;
    for (const std::uint64_t group : groups) all += group;
    return all;
}

}  // namespace

void NameFilter::Free::operator()(regex_t* expression) const noexcept {
    ::regfree(expression);
    delete expression;
}

NameFilter::NameFilter(const Query& query)
    : text_(query.text("text")), is_exact_(query.find("name").has_value()) {
    if (is_exact_) {
        text_ = query.text("name");
    } else if (query.flag("regex") && !text_.empty()) {
        if (text_.size() > kMaxExpressionBytes) throw RequestError(400, "the regular expression is too long");
        if (expanded_atoms(text_) > kMaxAtoms)
            throw RequestError(400,
                               "the regular expression repeats too much: at most 1000 characters in all");
        auto made = std::make_unique<regex_t>();
        const int error = ::regcomp(made.get(), text_.c_str(), REG_EXTENDED | REG_ICASE | REG_NOSUB);
        if (error != 0) {
            std::array<char, 200> why{};
            ::regerror(error, made.get(), why.data(), why.size());
            throw RequestError(400, "invalid regular expression: " + std::string(why.data()));
        }
        expression_.reset(made.release());
    } else {
        std::transform(text_.begin(), text_.end(), text_.begin(), lower_case);
    }
}

bool NameFilter::matches(std::string_view name) const {
    if (is_exact_) return name == text_;
    if (expression_ != nullptr) {
        const std::string start(name.substr(0, kMaxSearchedBytes));
        return ::regexec(expression_.get(), start.c_str(), 0, nullptr, 0) == 0;
    }
    return std::search(name.begin(), name.end(), text_.begin(), text_.end(),
                       [](char a, char b) { return lower_case(a) == b; }) != name.end() ||
           text_.empty();
}

std::vector<std::uint8_t> NameFilter::sites(const Trace& trace) const {
    std::vector<std::uint8_t> found;
    found.reserve(trace.sites().size());
    for (const SiteInfo& site : trace.sites()) found.push_back(matches(trace.string(site.name)) ? 1 : 0);
    return found;
}

}  // namespace marey::serve
