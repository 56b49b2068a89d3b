// name_filter.h: which names match what the user typed.
#pragma once

#include <regex.h>

#include <memory>

#include <marey/trace.h>

#include "serve/http_request.h"

namespace marey::serve {

/// Matches names that contain a text, ignoring ASCII case, match a POSIX extended regular expression, or are
/// equal to a name. POSIX, because std::regex recurses once per character and a trace may have names of a
/// megabyte.
class NameFilter {
  public:
    /// From the parameters name, or text and regex. Throws RequestError (400) for a broken expression.
    explicit NameFilter(const Query& query);

    bool is_empty() const noexcept { return !is_exact_ && text_.empty(); }
    bool matches(std::string_view name) const;
    /// For each site, 1 if its name matches.
    std::vector<std::uint8_t> sites(const Trace& trace) const;

  private:
    struct Free {
        void operator()(regex_t* expression) const noexcept;
    };
    std::string text_;  ///< in lower case, unless is_exact_
    bool is_exact_ = false;
    std::unique_ptr<regex_t, Free> expression_;
};

}  // namespace marey::serve
