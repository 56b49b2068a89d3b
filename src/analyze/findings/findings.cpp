// findings.cpp: runs all rules, and orders what they find.
#include <functional>
#include <tuple>

#include <marey/range_filter.h>

#include "analyze/averages/site_groups.h"
#include "analyze/findings/finding_rule.h"
#include "analyze/tree/step_ranges.h"

namespace marey {
namespace {

constexpr void (*kFinders[])(const FindingInput&, Findings&) = {
    find_recording_costs, find_tiny_calls,   find_repeated_ranges, find_serial_threads,
    find_step_times,      find_input_waits,  find_purposes,        find_blocked_loops,
    find_memory,          find_gpu_problems, find_rank_problems,   find_self_time,
};

void add_steps(FindingInput& in) {
    constexpr std::size_t kSlowSteps = 8;
    const std::vector<bool> sites = step_sites(in.trace, in.options.step_name);
    if (std::ranges::find(sites, true) == sites.end()) return;
    in.steps = step_report(in.trace, {.name = in.options.step_name, .slowest = kSlowSteps});
    std::vector<std::size_t> steps(in.trace.threads().size());
    for (const StepInfo& step : in.steps.steps) ++steps[step.thread];
    const auto most = static_cast<Row>(std::ranges::max_element(steps) - steps.begin());
    std::ranges::copy_if(in.steps.steps, std::back_inserter(in.whole_steps),
                         [&](const StepInfo& step) { return step.thread == most && !step.is_partial; });
}

/// A general finding about a function or a holder says nothing that a special one about it does not.
bool is_repetition(const Finding& finding, const Findings& all) {
    const auto is_about_it = [&](const Finding& other) {
        if (finding.id == "memory.peak") return other.id == "memory.growth" && other.name == finding.name;
        if (other.id == finding.id || other.gain_ns == 0) return false;
        const std::string caller = finding.name + std::string(kThatCalls);
        return other.name == finding.name ||
               std::ranges::find(other.evidence, caller, &FindingEvidence::text) != other.evidence.end();
    };
    const bool is_general = finding.id == "function.self" || finding.id == "memory.peak";
    return is_general && std::ranges::any_of(all, is_about_it);
}

bool mentions(const Finding& finding, std::string_view text) {
    const auto has = [&](std::string_view whole) {
        const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
        const auto is_same = [&](char a, char b) { return lower(a) == lower(b); };
        return std::search(whole.begin(), whole.end(), text.begin(), text.end(), is_same) != whole.end();
    };
    return text.empty() || has(finding.id) || has(finding.name) || has(finding.claim) ||
           std::ranges::any_of(finding.evidence, has, &FindingEvidence::text);
}

void replace(std::string& text, std::string_view word, std::string_view by) {
    if (const std::size_t place = text.find(word); place != text.npos) text.replace(place, word.size(), by);
}

}  // namespace

std::string FindingInput::thread_text(Row thread) const {
    if (facts.is_main[thread] && trace.processes().size() == 1) return "the main thread";
    const std::string_view name = trace.string(trace.threads()[thread].name);
    return "thread " + (name.empty() ? std::to_string(trace.threads()[thread].id) : std::string(name));
}

Finding& add_finding(const FindingInput& in, Findings& findings, std::string_view id, std::int64_t gain_ns,
                     std::string claim, std::string_view name) {
    const FindingRule& rule = *std::ranges::find(finding_rules(), id, &FindingRule::id);
    Finding& finding = findings.emplace_back();
    finding.id = id;
    finding.claim = std::move(claim);
    finding.gain_ns = gain_ns;
    finding.gain_share = std::min(in.share(gain_ns), 1.0);
    finding.certainty = rule.certainty;
    finding.name = name;
    finding.advice = rule.advice;
    finding.command = rule.command;
    std::string word = "'";
    for (const char c : name) c == '\'' ? word += "'\\''" : word += c;
    replace(finding.command, "NAME", word + "'");
    return finding;
}

void add_evidence(Finding& finding, std::string text, std::int64_t count, std::int64_t time_ns,
                  std::int64_t bytes) {
    finding.evidence.push_back({std::move(text), count, time_ns, bytes});
}

void set_place(const FindingInput& in, Finding& finding, Row range) {
    if (range == kNoRow) return;
    finding.start_ns = in.trace.ranges().start_ns[range];
    finding.duration_ns = in.trace.ranges().duration_ns[range];
    finding.thread = in.trace.tracks()[in.trace.track_of(range)].thread;
}

void set_place(Finding& finding, const StepInfo& step) {
    std::tie(finding.start_ns, finding.duration_ns) = std::tie(step.start_ns, step.duration_ns);
    std::tie(finding.thread, finding.name) = std::tie(step.thread, step.name);
}

std::string in_words(std::string_view name) {
    return name.empty() ? "code outside any range" : function_first(name);
}

std::string count_text(std::uint64_t count) {
    std::string text = std::to_string(count);
    for (std::size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, ",");
    return text;
}

std::string times_text(std::uint64_t count) {
    return count == 1 ? "once" : count_text(count) + " times";
}

std::string bytes_text(std::int64_t bytes) {
    constexpr const char* kUnits[] = {" KiB", " MiB", " GiB", " TiB"};
    double size = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    for (; size >= 1024 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
    const long tenths = std::lround(size * 10);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + kUnits[unit];
}

std::vector<Finding> explain(const Trace& trace, const ExplainOptions& options) {
    const Trace folded = filter_ranges(trace, {.fold_imports = true});
    FindingInput in{trace, folded, options, FindingFacts(folded), {}};
    in.window_ns = folded.window().end_ns - folded.window().start_ns;
    add_steps(in);
    Findings findings, kept;
    for (const auto find : kFinders) find(in, findings);
    for (Finding& finding : findings) {
        if (finding.process == kNoRow && finding.thread != kNoRow)
            finding.process = trace.threads()[finding.thread].process;
        if (!is_repetition(finding, findings) && mentions(finding, options.about)) kept.push_back(finding);
    }
    // Every program has a function with most self time, so it says least about what is wrong.
    std::ranges::stable_sort(kept, std::greater<>(), [](const Finding& finding) {
        return std::tuple(finding.is_fault, finding.id != "function.self", finding.gain_ns,
                          finding.gain_bytes);
    });
    return kept;
}

}  // namespace marey
