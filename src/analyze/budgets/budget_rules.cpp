// budget_rules.cpp: reads rules: METRIC [OF] [STATISTIC] <= LIMIT [per step], one on each line.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include <marey/budgets.h>
#include <marey/error.h>
#include <marey/findings.h>

#include "json/json_cursor.h"
#include "json/json_writer.h"

namespace marey {
namespace {

struct Unit {
    std::string_view name;
    double size;
};
constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Unit kSizes[] = {{"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                           {"KB", 1e3}, {"MB", 1e6},     {"GB", 1e9}};
constexpr std::string_view kOrders[] = {"<=", ">=", "=="}, kTimeOrders[] = {"<=", ">="};

std::string listed(const auto& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
}

class RuleReader {
  public:
    RuleReader(std::string_view line, const std::string& file, std::uint32_t number) : line_(line) {
        rule_.file = file;
        rule_.line = number;
    }

    /// Empty if the line has no rule.
    std::optional<BudgetRule> read() {
        if (peek().empty()) return std::nullopt;
        const std::size_t start = at_;
        rule_.metric = choice<BudgetMetric>(kBudgetMetricNames, "a metric: ");
        const std::size_t end_of_metric = end_;
        is_exact_ = !rule_.is_time();
        has_parts_ = rule_.metric < BudgetMetric::Memory;
        read_subject();
        read_statistic();
        const std::string before =
            has_parts_ && end_ == end_of_metric ? "a name in quotes, path, a statistic such as median, " : "";
        rule_.order =
            is_exact_ ? choice<BudgetOrder>(kOrders, before) : choice<BudgetOrder>(kTimeOrders, before);
        read_limit();
        if (has_parts_ && rule_.of != BudgetOf::Steps && take("per")) {
            if (!take("step")) fail("'step'");
            rule_.per_step = true;
        }
        if (rule_.metric == BudgetMetric::Findings && take("of")) read_findings();
        if (is_exact_ && rule_.statistic != BudgetStatistic::Sum && !rule_.per_step)
            fail("'per step': without it, a run has one value");
        if (!peek().empty()) fail("the end of the rule or a comment (#)");
        rule_.text = line_.substr(start, end_ - start);
        complete();
        return std::move(rule_);
    }

  private:
    /// The next word, operator or character; empty at the end or before a comment.
    std::string_view peek() {
        const auto is_word = [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
        };
        while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
        const std::string_view rest = line_.substr(at_);
        if (rest.starts_with('#')) return {};
        if (std::ranges::find(kOrders, rest.substr(0, 2)) != std::end(kOrders)) return rest.substr(0, 2);
        const auto end = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_word) - rest.begin());
        return rest.substr(0, std::max<std::size_t>(end, 1));
    }
    void move(std::size_t count) { end_ = at_ += count; }
    bool take(std::string_view word) {
        if (peek() != word) return false;
        move(word.size());
        return true;
    }
    [[noreturn]] void fail(const std::string& expected) {
        const std::string found(peek());
        const std::string_view before = line_.substr(0, at_);
        const auto column = std::ranges::count_if(before, [](char c) { return (c & 0xC0) != 0x80; }) + 1;
        throw Error(rule_.file + ":" + std::to_string(rule_.line) + ":" + std::to_string(column) +
                    ": expected " + expected + ", got " +
                    (found.empty() ? "the end of the rule" : "'" + found + "'"));
    }
    template <class Number, std::size_t kCount>
    Number choice(const std::string_view (&names)[kCount], const std::string& before) {
        const auto* const found = std::ranges::find(names, peek());
        if (found == std::end(names)) fail(before + listed(names));
        move(found->size());
        return static_cast<Number>(found - std::begin(names));
    }
    /// A number that is part of a word.
    template <class Number>
    bool parse(std::string_view text, Number& number) const {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        return error == std::errc() && end == text.data() + text.size();
    }

    void read_subject() {
        if (has_parts_ && take("path")) rule_.of = BudgetOf::Path;
        if (has_parts_ && peek() == "\"") {
            if (rule_.of == BudgetOf::All) rule_.of = BudgetOf::Name;
            read_string();
        } else if (rule_.of == BudgetOf::Path) {
            fail("a path in quotes, such as \"main/load/*\"");
        } else if (rule_.metric == BudgetMetric::Time && take("steps")) {
            rule_.of = BudgetOf::Steps;
        }
        const bool has_devices = rule_.metric == BudgetMetric::Launches ||
                                 rule_.metric == BudgetMetric::Copies || rule_.metric == BudgetMetric::Gpu ||
                                 rule_.metric == BudgetMetric::Memory;
        if (has_devices && take("device")) {
            if (!parse(peek(), rule_.device)) fail("the number of a device");
            move(peek().size());
        }
        if (rule_.metric == BudgetMetric::Memory && !take("peak")) fail("'peak'");
    }

    void read_string() {
        std::size_t end = at_ + 1;
        while (end < line_.size() && line_[end] != '"') end += line_[end] == '\\' ? 2 : 1;
        if (end >= line_.size()) fail("a name that ends with '\"' on the same line");
        const char* place = line_.data() + at_ + 1;
        while (place < line_.data() + end) {
            if (*place != '\\') {
                rule_.pattern += *place++;
            } else if (read_json_escape(++place, line_.data() + end, rule_.pattern) != JsonEscape::Valid) {
                fail(R"(only escapes such as \", \\ and \n in a name)");
            }
        }
        if (rule_.pattern.empty()) fail("a name that is not empty");
        move(end + 1 - at_);
    }

    void read_statistic() {
        const std::string_view word = has_parts_ ? peek() : "";
        const bool is_percentile = word.starts_with('p') && parse(word.substr(1), rule_.percent);
        if (is_percentile && (rule_.percent < 1 || rule_.percent > 100)) fail("a percentile from p1 to p100");
        if (word == "max") rule_.percent = 100;
        if (word == "median") rule_.percent = 50;
        if (is_percentile || word == "min" || word == "median" || word == "max") {
            rule_.statistic = BudgetStatistic::Percentile;
        } else if (word == "mean" && !is_exact_) {
            rule_.statistic = BudgetStatistic::Mean;
        } else {
            return;
        }
        move(word.size());
    }

    double read_number() {
        double number = 0;
        (void)peek();
        const std::string_view rest = line_.substr(at_);
        const bool is_digit = !rest.empty() && rest[0] >= '0' && rest[0] <= '9';  // not "nan"
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
        if (!is_digit || error != std::errc()) fail("a number");
        move(static_cast<std::size_t>(end - rest.data()));
        return number;
    }

    void read_limit() {
        const bool is_more = take("+");
        if (is_more || take("-")) {
            rule_.limit = (is_more ? 1 : -1) * read_number() / 100;
            if (!take("%") || !take("of") || peek() != "baseline") fail("'% of baseline'");
        }
        rule_.of_baseline = take("baseline");
        if (rule_.of_baseline) return;
        rule_.limit = read_number();
        if (rule_.metric == BudgetMetric::Memory) {
            rule_.limit *= size_of_unit(kSizes);
        } else if (!is_exact_) {
            rule_.limit *= size_of_unit(kTimes);
        } else if (rule_.limit != std::floor(rule_.limit)) {
            fail("a whole number before this");
        }
    }
    double size_of_unit(std::span<const Unit> units) {
        const auto found = std::ranges::find(units, peek(), &Unit::name);
        std::vector<std::string_view> names;
        for (const Unit& unit : units) names.push_back(unit.name);
        if (found == units.end()) fail("a unit: " + listed(names));
        move(found->name.size());
        return found->size;
    }

    void read_findings() {
        const std::span<const FindingRule> known = finding_rules();
        do {
            std::vector<std::string_view> ids;
            for (const FindingRule& rule : known) ids.push_back(rule.id);
            const std::string_view id = peek();
            if (std::ranges::find(ids, id) == ids.end()) fail("a finding: " + listed(ids));
            rule_.findings.emplace_back(id);
            move(id.size());
        } while (take(","));
        std::ranges::sort(rule_.findings);
    }

    /// Fills in what follows from the parts.
    void complete() {
        if (rule_.per_step && rule_.statistic == BudgetStatistic::Sum) {
            rule_.statistic = is_exact_ ? BudgetStatistic::Percentile : BudgetStatistic::Mean;
            rule_.percent = rule_.order == BudgetOrder::AtLeast ? 0 : 100;  // each step has to keep the rule
        }
        std::string& text = rule_.measure;
        text = kBudgetMetricNames[static_cast<int>(rule_.metric)];
        if (rule_.of == BudgetOf::Steps) text += " steps";
        if (rule_.of == BudgetOf::Path) text += " path";
        if (!rule_.pattern.empty()) append_json_string(text += ' ', rule_.pattern);
        if (rule_.device >= 0) text += " device " + std::to_string(rule_.device);
        if (rule_.metric == BudgetMetric::Memory) text += " peak";
        if (rule_.statistic == BudgetStatistic::Mean) text += " mean";
        if (rule_.statistic == BudgetStatistic::Percentile) text += " p" + std::to_string(rule_.percent);
        if (rule_.per_step) text += " per step";
        if (!rule_.findings.empty()) text += " of " + listed(rule_.findings);
    }

    std::string_view line_;
    std::size_t at_ = 0, end_ = 0;  ///< `end_`: of the last part, without spaces after it
    bool is_exact_ = false, has_parts_ = false;
    BudgetRule rule_;
};

/// Throws if no value keeps all rules about one measure.
void check_contradictions(const std::vector<BudgetRule>& rules) {
    struct Bound {
        double value;
        std::uint32_t line = 0;
    };
    constexpr double kMost = std::numeric_limits<double>::infinity();
    std::map<std::pair<std::string, bool>, std::pair<Bound, Bound>> bounds;
    for (const BudgetRule& rule : rules) {
        std::string key = rule.measure;
        const std::string every = rule.order == BudgetOrder::AtLeast ? " p0 per step" : " p100 per step";
        if (key.ends_with(every)) key.replace(key.size() - every.size(), key.npos, " each step");
        auto& [least, most] =
            bounds.try_emplace({key, rule.of_baseline}, Bound{-kMost}, Bound{kMost}).first->second;
        if (rule.order != BudgetOrder::AtMost && rule.limit > least.value) least = {rule.limit, rule.line};
        if (rule.order != BudgetOrder::AtLeast && rule.limit < most.value) most = {rule.limit, rule.line};
        if (least.value > most.value)
            throw Error(rule.file + ":" + std::to_string(rule.line) + ":1: contradicts line " +
                        std::to_string(std::min(least.line, most.line)) + ": no value keeps both rules");
    }
}

}  // namespace

std::vector<BudgetRule> parse_budgets(std::string_view text, const std::string& file) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    std::vector<BudgetRule> rules;
    for (std::uint32_t number = 1; !text.empty(); ++number) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (std::optional<BudgetRule> rule = RuleReader(line, file, number).read())
            rules.push_back(std::move(*rule));
    }
    if (rules.empty()) throw Error(file + ": has no rules");
    check_contradictions(rules);
    return rules;
}

}  // namespace marey
