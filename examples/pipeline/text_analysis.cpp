// text_analysis.cpp: tokenising, stemming, counting.
#include "text_analysis.h"

#include <array>

namespace {

/// Converts to lower case and replaces everything except letters with spaces.
std::string fold_case(std::string_view text) {
    MAREY_FUNCTION();
    std::string folded(text);
    for (char& c : folded) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        if (c < 'a' || c > 'z') c = ' ';
    }
    return folded;
}

void stem_all(std::vector<std::string>& words) {
    MAREY_RANGE("stem", "words", words.size());
    for (std::string& word : words) stem(word);
}

void count(const std::vector<std::string>& words, TermCounts& counts) {
    MAREY_RANGE("count terms");
    for (const std::string& word : words) ++counts[word];
}

}  // namespace

std::vector<std::string> tokenise(std::string_view paragraph) {
    MAREY_FUNCTION();
    const std::string folded = fold_case(paragraph);
    std::vector<std::string> words;
    std::string word;
    for (const char c : folded) {
        if (c != ' ') {
            word += c;
        } else if (!word.empty()) {
            words.push_back(std::move(word));
            word.clear();
        }
    }
    if (!word.empty()) words.push_back(std::move(word));
    return words;
}

void stem(std::string& word) {
    static constexpr std::array<std::string_view, 8> kEndings = {"ation", "ness", "tion", "ing",
                                                                 "ed",    "ly",   "es",   "s"};
    // Twice: "readings" loses its s, then its ing.
    for (int round = 0; round < 2; ++round) {
        for (const std::string_view ending : kEndings) {
            if (word.size() >= ending.size() + 3 && word.ends_with(ending)) {
                word.resize(word.size() - ending.size());
                break;
            }
        }
    }
}

TermCounts analyse(const Document& document) {
    MAREY_FUNCTION("paragraphs", document.paragraphs.size());
    TermCounts counts;
    for (const std::string& paragraph : document.paragraphs) {
        MAREY_RANGE("paragraph");
        std::vector<std::string> words = tokenise(paragraph);
        stem_all(words);
        count(words, counts);
    }
    return counts;
}
