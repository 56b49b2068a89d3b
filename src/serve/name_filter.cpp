// name_filter.cpp: which names match what the user typed.
#include "serve/name_filter.h"

#include <algorithm>
#include <array>

namespace marey::serve {
namespace {

constexpr std::size_t kMaxSearchedBytes = std::size_t{4} << 10;  ///< of each name, by expressions
constexpr std::size_t kMaxExpressionBytes = 500;

char lower_case(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
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
