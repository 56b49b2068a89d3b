// comparison_text.h: a comparison for people, as text or as Markdown.
#pragma once

#include <cstddef>
#include <string>

#include <marey/compare.h>

#include "cli/terminal.h"

namespace marey::cli {

struct ComparisonLayout {
    std::size_t rows = 20;   ///< of times; 0: all
    bool shows_all = false;  ///< small differences, too
    bool is_markdown = false;
    Terminal terminal{};
};

std::string comparison_text(const Comparison& comparison, const ComparisonLayout& layout);

}  // namespace marey::cli
