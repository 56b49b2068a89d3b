// call_patterns.cpp: matches globs by following all states at once, so that no pattern is slow.
#include "sources/python/call_patterns.h"

#include <marey/call_pattern.h>

namespace marey::python {

namespace {

bool names_file(std::string_view text) noexcept {
    return text.find('/') != std::string_view::npos || text.ends_with(".py") || text.starts_with('<');
}

}  // namespace

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

}  // namespace marey::python
