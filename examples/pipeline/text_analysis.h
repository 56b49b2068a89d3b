// text_analysis.h: from paragraphs to counted terms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "document.h"

using TermCounts = std::unordered_map<std::string, std::uint32_t>;

/// Lower-case words of a paragraph, without punctuation.
std::vector<std::string> tokenise(std::string_view paragraph);
/// Strips endings, so that "running" and "runs" become the same term.
void stem(std::string& word);
/// How often each term occurs in the document.
TermCounts analyse(const Document& document);
