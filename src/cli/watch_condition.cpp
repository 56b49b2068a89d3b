// watch_condition.cpp: reads conditions.
#include "cli/watch_condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <marey/error.h>
#include <marey/session_options.h>

#include "cli/text_format.h"

namespace marey::cli {
namespace {

enum class Limit : std::uint8_t { None, Time, Relative, Number, Size };

/// A subject: the word that it begins with, and what follows the word.
struct Subject {
    std::string_view word;
    WatchKind kind;
    Limit limit;
    char name_after;  ///< what stands between the word and a name; 0: it has none
    bool needs_name;
};

constexpr Subject kSubjects[] = {
    {"missing rank", WatchKind::MissingRank, Limit::Time, 0, false},
    {"exception", WatchKind::Exception, Limit::None, ':', false},
    {"counter", WatchKind::Counter, Limit::Number, ' ', true},
    {"memory", WatchKind::Memory, Limit::Size, 0, false},
    {"stall", WatchKind::Stall, Limit::Time, ':', false},
    {"died", WatchKind::Died, Limit::None, 0, false},
    {"step", WatchKind::Step, Limit::Relative, 0, false},
    {"gap", WatchKind::Gap, Limit::Time, ' ', false},
};
constexpr Subject kRange{"", WatchKind::Range, Limit::Relative, 0, true};

class Parser {
  public:
    explicit Parser(const std::string& text) : text_(text) {}

    WatchCondition parse() {
        WatchCondition condition{.text = text_};
        skip_blanks();
        const Subject& subject = take_subject();
        condition.kind = subject.kind;
        const bool has_mark =
            subject.name_after != 0 && at_ < text_.size() && text_[at_] == subject.name_after;
        if (has_mark) ++at_;
        if (has_mark || subject.needs_name) condition.name = take_name();
        if (subject.needs_name && condition.name.empty())
            fail(subject.kind == WatchKind::Counter ? "the name of a counter" : "a name");
        if (subject.limit != Limit::None) take_limit(condition, subject.limit);
        skip_blanks();
        if (at_ < text_.size())
            fail(subject.limit == Limit::None ? "nothing after this condition" : "the end of the condition");
        return condition;
    }

  private:
    [[noreturn]] void fail(std::string_view expected) const {
        throw Error(fmt::format("condition '{}', column {}: expected {}", text_, at_ + 1, expected));
    }
    void skip_blanks() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    }

    /// A quoted text is a name, whatever it begins with.
    const Subject& take_subject() {
        const std::string_view rest = std::string_view(text_).substr(at_);
        for (const Subject& subject : kSubjects) {
            if (!rest.starts_with(subject.word)) continue;
            const char next = rest.size() > subject.word.size() ? rest[subject.word.size()] : '>';
            if (next != ' ' && next != '>' && next != subject.name_after) continue;
            at_ += subject.word.size();
            return subject;
        }
        return kRange;
    }

    /// Up to the last '>', since names have this character, too; in quotes up to the closing one.
    std::string take_name() {
        skip_blanks();
        if (at_ < text_.size() && text_[at_] == '"') {
            const std::size_t end = text_.find('"', at_ + 1);
            if (end == std::string::npos) fail("a closing quote");
            std::string name = text_.substr(at_ + 1, end - at_ - 1);
            at_ = end + 1;
            return name;
        }
        std::size_t end = text_.rfind('>');
        if (end == std::string::npos || end < at_) end = text_.size();
        std::string name = text_.substr(at_, end - at_);
        at_ = end;
        name.erase(name.find_last_not_of(' ') + 1);
        return name;
    }

    void take_limit(WatchCondition& condition, Limit limit) {
        skip_blanks();
        if (at_ == text_.size() || text_[at_] != '>') fail("'>' and a limit");
        ++at_;
        skip_blanks();
        const std::size_t end = std::min(text_.find(' ', at_), text_.size());
        const std::string word = text_.substr(at_, end - at_);
        if (!read_limit(condition, limit, word)) fail(expected(condition.kind, limit));
        condition.limit_text = word;
        at_ = end;
    }

    static bool read_limit(WatchCondition& condition, Limit limit, std::string_view word) {
        if (limit == Limit::Relative && read_relative(condition, word)) return true;
        std::optional<double> value;
        if (limit == Limit::Time || limit == Limit::Relative) {
            if (const auto time = parse_duration(word)) value = static_cast<double>(*time);
        } else {
            value = limit == Limit::Size ? size(word) : number(word);
        }
        if (!value) return false;
        condition.limit = *value;
        return true;
    }

    /// "p99*3"; of steps "1.5x", too.
    static bool read_relative(WatchCondition& condition, std::string_view word) {
        if (condition.kind == WatchKind::Step && word.ends_with('x')) {
            const auto factor = number(word.substr(0, word.size() - 1));
            if (!factor || *factor <= 0) return false;
            condition.of_usual = 0.5;
            condition.limit = *factor;
            return true;
        }
        if (!word.starts_with('p')) return false;
        const std::size_t star = std::min(word.find('*'), word.size());
        const auto percent = number(word.substr(1, star - 1));
        const auto factor = star < word.size() ? number(word.substr(star + 1)) : 1.0;
        if (!percent || !factor || *percent <= 0 || *percent > 100 || *factor <= 0) return false;
        condition.of_usual = *percent / 100;
        condition.limit = *factor;
        return true;
    }

    static std::optional<double> number(std::string_view word) {
        double value = 0;
        const char* const end = word.data() + word.size();
        const auto [rest, error] = std::from_chars(word.data(), end, value);
        return error == std::errc() && rest == end ? std::optional(value) : std::nullopt;
    }
    static std::optional<double> size(std::string_view word) {
        try {
            return static_cast<double>(parse_bytes(word));
        } catch (const Error&) {
            return std::nullopt;
        }
    }

    static std::string_view expected(WatchKind kind, Limit limit) {
        if (limit == Limit::Number) return "a number";
        if (limit == Limit::Size) return "a size such as 4GB";
        if (limit == Limit::Time) return "a time such as 30s";
        return kind == WatchKind::Step ? "a time such as 250ms, or a factor such as 1.5x"
                                       : "a time such as 250ms, or a quantile such as p99*3";
    }

    const std::string& text_;
    std::size_t at_ = 0;
};

}  // namespace

WatchCondition parse_watch_condition(const std::string& text) {
    return Parser(text).parse();
}

}  // namespace marey::cli
