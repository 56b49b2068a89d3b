// corpus.cpp: makes words, sentences and documents.
#include "corpus.h"

#include <marey/marey.h>

namespace {

constexpr std::uint32_t kTopics = 12;

std::string make_word(Random& random) {
    static constexpr const char* kOnsets[] = {"b", "br", "c", "d", "f",  "gr", "l",  "m", "n",
                                              "p", "qu", "r", "s", "st", "t",  "tr", "v"};
    static constexpr const char* kVowels[] = {"a", "e", "i", "o", "u", "ea", "ou"};
    static constexpr const char* kEndings[] = {"", "n", "r", "ing", "ed", "s", "tion", "ly", "ness"};
    std::string word;
    for (std::uint32_t syllables = 1 + random.below(3); syllables > 0; --syllables) {
        word += kOnsets[random.below(std::size(kOnsets))];
        word += kVowels[random.below(std::size(kVowels))];
    }
    return word + kEndings[random.below(std::size(kEndings))];
}

void append_sentence(std::string& text, const Vocabulary& vocabulary, const std::vector<std::string>& topic,
                     Random& random) {
    const std::size_t begin = text.size();
    for (std::uint32_t words = 6 + random.below(14); words > 0; --words) {
        // Every third word is one of the document's topic, so that documents of one topic are alike.
        const bool on_topic = random.below(3) == 0;
        text += on_topic ? topic[random.below(static_cast<std::uint32_t>(topic.size()))]
                         : vocabulary.draw(random);
        text += words > 1 ? (random.below(9) == 0 ? ", " : " ") : ". ";
    }
    text[begin] = static_cast<char>(text[begin] - 'a' + 'A');
}

}  // namespace

Vocabulary::Vocabulary(std::size_t words) {
    MAREY_RANGE("make vocabulary", "words", words);
    Random random(1);
    words_.reserve(words);
    for (std::size_t i = 0; i < words; ++i) words_.push_back(make_word(random));
}

const std::string& Vocabulary::draw(Random& random) const {
    // The product of two uniform numbers leans towards 0: towards the common words.
    const auto size = static_cast<std::uint32_t>(words_.size());
    return words_[random.below(random.below(size) + 1)];
}

std::string make_block(const Vocabulary& vocabulary, std::uint32_t first, std::uint32_t count) {
    MAREY_RANGE("make block", "first", first, "count", count);
    std::string text;
    for (std::uint32_t id = first; id < first + count; ++id) {
        MAREY_RANGE("make document");
        const std::uint32_t topic_number = id % kTopics;
        Random topic_random(1000 + topic_number);
        std::vector<std::string> topic;
        for (int i = 0; i < 24; ++i) topic.push_back(vocabulary.draw(topic_random));

        Random random(100'000 + id);
        text += "id: " + std::to_string(id) + "\ntopic: " + std::to_string(topic_number) + "\ntitle: ";
        for (int i = 0; i < 4; ++i) text += topic[random.below(24)] + (i < 3 ? " " : "\n\n");
        for (std::uint32_t paragraphs = 3 + random.below(4); paragraphs > 0; --paragraphs) {
            for (std::uint32_t sentences = 6 + random.below(16); sentences > 0; --sentences) {
                append_sentence(text, vocabulary, topic, random);
            }
            text += "\n\n";
        }
        text += "%%\n";
    }
    return text;
}
