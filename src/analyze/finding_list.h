// finding_list.h: counts findings and keeps the first example of each rule.
#pragma once

#include <algorithm>

#include <marey/validate.h>

namespace marey {

class FindingList {
  public:
    /// `describe` returns the example text; it is called only for the first finding of a rule.
    void add(std::string_view rule, const auto& describe) {
        for (Finding& known : findings_) {
            if (known.rule != rule) continue;
            ++known.count;
            return;
        }
        findings_.push_back({std::string(rule), 1, describe()});
    }
    /// Adds the findings of another list for rules that have no finding yet.
    void merge(const std::vector<Finding>& others) {
        for (const Finding& other : others) {
            const auto same = [&](const Finding& known) { return known.rule == other.rule; };
            if (std::ranges::none_of(findings_, same)) findings_.push_back(other);
        }
    }
    /// Returns the findings in the order of the rules.
    std::vector<Finding> take() {
        const auto place = [](const Finding& finding) {
            const std::span<const ValidationRule> rules = validation_rules();
            return std::ranges::find_if(
                       rules, [&](const ValidationRule& rule) { return rule.name == finding.rule; }) -
                   rules.begin();
        };
        std::ranges::stable_sort(findings_, {}, [&](const Finding& a) { return place(a); });
        return std::move(findings_);
    }

  private:
    std::vector<Finding> findings_;
};

}  // namespace marey
