// violation_list.h: counts violations and keeps the first example of each rule.
#pragma once

#include <algorithm>

#include <marey/validate.h>

namespace marey {

class ViolationList {
  public:
    /// `describe` returns the example text; it is called only for the first violation of a rule.
    void add(std::string_view rule, const auto& describe) {
        for (Violation& known : violations_) {
            if (known.rule != rule) continue;
            ++known.count;
            return;
        }
        violations_.push_back({std::string(rule), 1, describe()});
    }
    /// Adds the violations of another list for rules that have no violation yet.
    void merge(const std::vector<Violation>& others) {
        for (const Violation& other : others) {
            const auto same = [&](const Violation& known) { return known.rule == other.rule; };
            if (std::ranges::none_of(violations_, same)) violations_.push_back(other);
        }
    }
    /// Returns the violations in the order of the rules.
    std::vector<Violation> take() {
        const auto place = [](const Violation& violation) {
            const std::span<const ValidationRule> rules = validation_rules();
            return std::ranges::find_if(
                       rules, [&](const ValidationRule& rule) { return rule.name == violation.rule; }) -
                   rules.begin();
        };
        std::ranges::stable_sort(violations_, {}, [&](const Violation& a) { return place(a); });
        return std::move(violations_);
    }

  private:
    std::vector<Violation> violations_;
};

}  // namespace marey
