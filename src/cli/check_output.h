// check_output.h: checks for CI systems: JUnit's XML, annotations and summaries of GitHub's workflows.
#pragma once

#include <string>

#include <marey/budgets.h>

namespace marey::cli {

/// "broken: 1 of 14 rules, 10 runs; baseline of 20 runs".
std::string check_title(const BudgetReport& report);
/// A test suite with one test for each rule. Rules that cannot be told are skipped tests.
std::string check_junit(const BudgetReport& report);
/// One command of a workflow for each rule that is not kept, at its place in the program or in the rules.
std::string check_annotations(const BudgetReport& report);
/// Appends to the file that GITHUB_STEP_SUMMARY names, if it is set. Throws marey::Error.
void append_to_summary(const std::string& markdown);

}  // namespace marey::cli
