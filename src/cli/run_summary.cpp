// run_summary.cpp: the summary that `marey run` prints at the end.
#include "cli/run_summary.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include <marey/analyze.h>
#include <marey/error.h>
#include <marey/gpu_use.h>
#include <marey/merge.h>
#include <marey/range_filter.h>
#include <marey/table.h>

#include "cli/finding_line.h"
#include "cli/footer.h"
#include "cli/progress.h"
#include "cli/result_argument.h"
#include "cli/sample_text.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

/// Captures beyond this number are not read for the summary.
constexpr std::size_t kMaxCapturesRead = 1024;
constexpr std::size_t kProgramsShown = 10;
constexpr std::int64_t kHotFunctions = 10;
constexpr std::size_t kThreadsShown = 4;
constexpr std::size_t kKernelsShown = 3;
constexpr std::size_t kNameWidth = 48;

std::uint64_t event_count(const Trace& trace) {
    return trace.ranges().size() + trace.instants().size() + trace.counters().size();
}

void make_printable(Averages& averages) {
    for (AverageRow& row : averages.rows) row.name = printable(row.name);
}

/// "6 threads; in calls: python 1.02 s, python 0.3 s": how long each had a range open.
std::string threads_fact(const Trace& trace) {
    std::vector<std::pair<std::int64_t, Row>> busy;
    for (Row thread = 0; thread < trace.threads().size(); ++thread) busy.emplace_back(0, thread);
    const RangeColumns ranges = trace.ranges();
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind != TrackKind::Thread) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            if (ranges.parent[row] != kNoRow) continue;
            const std::int64_t start = std::max(ranges.start_ns[row], trace.window().start_ns);
            const std::int64_t end =
                std::min(ranges.start_ns[row] + ranges.duration_ns[row], trace.window().end_ns);
            busy[track.thread].first += std::max<std::int64_t>(0, end - start);
        }
    }
    std::erase_if(busy, [](const auto& entry) { return entry.first == 0; });
    std::ranges::sort(busy, std::greater<>());
    std::string text = format_plural(busy.size(), "thread");
    if (busy.size() < 2) return text;
    for (std::size_t i = 0; i < busy.size() && i < kThreadsShown; ++i) {
        text += fmt::format("{}{} ({}) {}", i == 0 ? ": " : ", ", thread_label(trace, busy[i].second),
                            trace.threads()[busy[i].second].os_tid, format_duration(busy[i].first));
    }
    return busy.size() > kThreadsShown ? text + ", ..." : text;
}

/// Garbage collections, which are separate ranges if the recorder marks them.
std::string garbage_fact(const Averages& averages) {
    std::uint64_t count = 0;
    std::int64_t total = 0;
    std::int64_t longest = 0;
    for (const AverageRow& row : averages.rows) {
        if (row.name != "Python GC" || row.scope == Scope::PythonFunction || row.scope == Scope::CFunction ||
            row.scope == Scope::User)
            continue;
        count += row.count;
        total += row.covered_ns;
        longest = std::max(longest, row.max_ns);
    }
    if (count == 0) return "";
    return fmt::format("{}, {} in total, longest {}", format_plural(count, "collection"),
                       format_duration(total), format_duration(longest));
}

/// One text for each device: "cuda:0 busy 34.5%: gemm 1.20 s (812x), relu 0.3 s (900x)".
std::vector<std::string> device_facts(const Trace& trace) {
    std::vector<std::string> facts;
    const auto is_of_device = [](const TrackInfo& track) { return track.device.type != DeviceType::Cpu; };
    if (std::ranges::none_of(trace.tracks(), is_of_device)) return facts;
    for (const GpuDevice& device : gpu_use(trace, {.longest_gaps = 0}).devices) {
        if (device.times.count() == 0) continue;
        std::string text =
            fmt::format("{}:{} busy {}", device_type_name(device.device.type),
                        std::max(device.device.index, 0), format_share(device.times.utilisation()));
        for (std::size_t i = 0; i < device.kernels.size() && i < kKernelsShown; ++i) {
            const GpuKernel& kernel = device.kernels[i];
            text += fmt::format("{}{} {} ({}x)", i == 0 ? ": " : ", ",
                                cut_middle(printable(kernel.name), kNameWidth),
                                format_duration(kernel.times.total_ns), format_count(kernel.times.count));
        }
        facts.push_back(std::move(text));
    }
    return facts;
}

/// The first finding about a trace whose imports are folded; empty if nothing stands out. Losses are
/// problems, and the recording's overhead is a fact already.
std::string finding_fact(const Trace& trace, const std::string& path) {
    for (const Finding& finding : explain(trace)) {
        if (finding.id.starts_with("recording.")) continue;
        return finding_line(finding) + fmt::format(" (marey explain {})", printable(path));
    }
    return "";
}

/// Whether only garbage collections were recorded.
bool is_only_garbage(const Trace& trace, const Averages& averages) {
    const auto is_garbage = [](const AverageRow& row) { return row.scope == Scope::GarbageCollection; };
    return trace.instants().size() + trace.counters().size() == 0 &&
           std::ranges::all_of(averages.rows, is_garbage);
}

/// The part of a run that the table of calls covers, and the waiting that it leaves out.
struct CallExtent {
    std::size_t processes = 1;
    std::uint64_t calls = 0;
    std::string waiting;
    std::int64_t time_ns = 0;
    std::int64_t imports_ns = 0;
};

/// The summary of a Python program: the hottest functions of all its processes, and other facts about the
/// first one. `trace` is that of the first process.
std::string calls_summary(const Trace& trace, const std::string& path, const std::string& about,
                          Averages& averages, const CallExtent& extent, const std::string& overhead,
                          const Terminal& terminal) {
    make_printable(averages);
    const bool is_alone = extent.processes == 1;
    std::string text =
        fmt::format("marey: {}: {}{} in {}, {}\n\n", styled(terminal, Style::Bold, printable(path)),
                    format_plural(extent.calls, "call"),
                    is_alone ? "" : fmt::format(" of {} processes", extent.processes),
                    format_duration(extent.time_ns), format_file_size(path));
    text += about;
    ResultTable hottest = averages_for_people(
        averages, {.sort_by = "self",
                   .row_limit = kHotFunctions,
                   .columns = {"self", "self_cpu_percent", "total", "calls", "average", "name"}});
    hottest.columns.back().heading = "function";
    text += result_lines(hottest, terminal);
    const auto fact = [&](std::string_view title, const std::string& value) {
        if (!value.empty()) text += styled(terminal, Style::Dim, fmt::format("{:<10}", title)) + value + "\n";
    };
    text += "\n";
    fact("waiting", extent.waiting);
    fact("imports", is_alone ? imports_fact(trace) : imports_fact(extent.imports_ns, "in all processes"));
    if (is_alone) fact("threads", threads_fact(trace));
    fact("gc", garbage_fact(averages));
    for (const std::string& device : device_facts(trace)) fact("gpu", device);
    const bool has_c_calls = std::ranges::any_of(
        averages.rows, [](const AverageRow& row) { return row.scope == Scope::CFunction; });
    if (!has_c_calls)
        fact("c calls",
             "not recorded: the time of C functions and compiled modules (Cython, mypyc) counts as "
             "their caller's; --c-calls records them");
    fact("overhead", is_alone ? overhead : overhead + " of the first process");
    fact("times", times_fact(trace));
    if (is_alone) fact("finding", finding_fact(trace, path));
    return text + problem_lines(trace, terminal);
}

/// Reads "pid:start:pid_namespace ...", the ancestors of a process, up to this command.
std::vector<ProcessKey> ancestors_of(std::string_view text) {
    struct stat own {};
    if (::stat("/proc/self/ns/pid", &own) != 0) return {};
    std::vector<ProcessKey> found;
    std::istringstream words{std::string(text)};
    long long pid = 0;
    unsigned long long start = 0, pid_namespace = 0;
    char colon = 0;
    while (words >> pid >> colon >> start >> colon >> pid_namespace) {
        if (pid == ::getpid() || pid_namespace != own.st_ino) break;
        found.emplace_back(pid, start);
    }
    return found;
}

/// Names the process if it is not the program itself, for example one that a shell script has started.
std::string start_line(const Trace& trace) {
    const ProcessInfo& process = trace.processes().front();
    if (ancestors_of(trace.string(process.ancestors)).empty()) return "";
    return fmt::format("of the first recorded process, {} ({}):\n\n", printable(program_name(trace, process)),
                       process.pid);
}

}  // namespace

bool ran_program(const Trace& trace) {
    const RangeColumns ranges = trace.ranges();
    for (Row row = 0; row < ranges.size(); ++row) {
        const std::string_view name = trace.range_name(row);
        const bool is_program = ranges.parent[row] == kNoRow && name.ends_with(": <module>");
        // runpy starts modules, folders and archives; it imports other modules before that.
        if (is_program || (name.starts_with("<frozen runpy>") && name.ends_with(": _run_code"))) return true;
    }
    return false;
}

void MemberFacts::add_extent(const Trace& trace) {
    ranges_ += trace.ranges().size();
    start_ns_ = std::min(start_ns_, trace.window().start_ns);
    end_ns_ = std::max(end_ns_, trace.window().end_ns);
    const ProcessInfo& process = trace.processes().front();
    recorded_.emplace(process.pid, process.start);
    for (const ProcessKey& ancestor : ancestors_of(trace.string(process.ancestors))) saw(ancestor, "");
}

void MemberFacts::add_end(const Trace& trace) {
    const ProcessInfo& process = trace.processes().front();
    const std::int64_t start_ns = trace.window().start_ns;
    auto& [last_ns, ended] =
        ends_.try_emplace({process.pid, process.start}, start_ns, std::nullopt).first->second;
    if (start_ns < last_ns) return;
    last_ns = start_ns;
    ended.reset();
    if (trace.has_problem("crashed")) ended = ended_process(trace, 0);
}

/// `trace` has its imports folded. Returns the averages of this process, without functions that only wait.
Averages MemberFacts::add_calls(const Trace& trace) {
    Averages averages = key_averages(trace, call_options());
    with_calls_ += are_host_calls(averages) ? 1 : 0;
    waiting_.add(take_waiting(trace, averages));
    calls_.add(averages);
    imports_ns_ += import_time_ns(trace);
    return averages;
}

void MemberFacts::add(const std::string& capture) {
    if (++captures_ >= kMaxCapturesRead) {
        is_complete_ = false;
        return;
    }
    try {
        Trace trace = Trace::load_for_averages(capture);
        const std::uint64_t events = event_count(trace);
        add_extent(trace);
        add_end(trace);
        if (events == 0) return;
        if (first_.empty()) first_ = capture;
        call_count_ += count_calls(trace);
        trace = filter_ranges(std::move(trace), {.fold_imports = true});
        Group& group = groups_[program_name(trace, trace.processes().front())];
        ++group.processes;
        group.time_ns += trace.window().end_ns - trace.window().start_ns;
        group.ranges += trace.ranges().size();
        for (const AverageRow& row : add_calls(trace).rows) {
            if (row.self_cpu_time_total_ns <= group.hottest_ns) continue;
            group.hottest_ns = row.self_cpu_time_total_ns;
            group.hottest = row.name;
        }
    } catch (const Error& error) {
        is_complete_ = false;
        unread_ += fmt::format("marey: {}: {}\n", printable(capture), printable(error.what()));
    }
}

std::string MemberFacts::text(const Terminal& terminal) const {
    if (groups_.empty()) return unread_;
    std::vector<std::pair<std::string, Group>> rows(groups_.begin(), groups_.end());
    std::ranges::stable_sort(
        rows, [](const auto& a, const auto& b) { return a.second.time_ns > b.second.time_ns; });
    Table table({{"processes"}, {"time"}, {"ranges"}, {"program", true}, {"hottest", true, true, true}});
    std::size_t processes = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Group& group = rows[i].second;
        processes += group.processes;
        if (i < kProgramsShown)
            table.add({format_count(group.processes), format_duration(group.time_ns),
                       format_count(group.ranges), printable(rows[i].first), printable(group.hottest)});
    }
    std::string text = "\n" + styled(terminal, Style::Bold, format_plural(processes, "other process")) +
                       "\n" + table.text(terminal);
    if (rows.size() > kProgramsShown)
        text += fmt::format("... and {} (marey info shows all processes)\n",
                            format_plural(rows.size() - kProgramsShown, "more program"));
    return text + unread_;
}

std::string MemberFacts::end_text(const Terminal& terminal) const {
    std::vector<EndedProcess> ended;
    for (const auto& [process, end] : ends_) {
        if (end.second) ended.push_back(*end.second);
    }
    const std::vector<ProblemInfo> problems = describe_ends(ended);
    std::string text;
    for (std::size_t i = 0; i < problems.size() && i < kProgramsShown; ++i)
        text += styled(terminal, Style::Red, "problem: " + printable(problems[i].text)) + "\n";
    if (problems.size() > kProgramsShown)
        text += fmt::format("... and {} (marey info shows all)\n",
                            format_plural(problems.size() - kProgramsShown, "more problem"));
    return text;
}

/// Processes that end within a moment are not seen.
std::string MemberFacts::unrecorded_line() const {
    std::set<std::string> names;
    std::size_t count = 0;
    for (const auto& [process, name] : seen_) {
        if (recorded_.contains(process) || explained_.contains(process)) continue;
        ++count;
        if (!name.empty()) names.insert(printable(name));
    }
    if (count == 0 || !is_complete_) return "";
    std::string list;
    for (auto name = names.begin(); name != names.end() && list.size() < kNameWidth; ++name)
        list += (list.empty() ? " (" : ", ") + *name;
    if (!list.empty()) list += ")";
    return fmt::format(
        "not recorded: at least {}{}: without Marey and Python, setuid, or with another environment\n",
        format_plural(count, "process"), list);
}

RunSummary summarize_run(const std::vector<std::string>& captures, MemberFacts members,
                         std::string_view why_empty, const Terminal& terminal) {
    RunSummary summary;
    std::string main;
    for (std::size_t i = 1; i < captures.size(); ++i) {
        if (members.kept_.contains(captures[i])) continue;
        const Progress progress("reading " + captures[i]);
        members.add(captures[i]);
    }
    const std::string& path = captures.front();
    try {
        const Progress progress("reading " + path);
        Trace trace = with_function_names(Trace::load_for_averages(path));
        members.add_extent(trace);
        const ProcessInfo& process = trace.processes().front();
        members.ends_.erase({process.pid, process.start});  // the lines about this capture say it
        const std::uint64_t events = event_count(trace);
        const std::string recorded = events_fact(trace);
        const std::string overhead = overhead_fact(trace);
        members.call_count_ += count_calls(trace);
        trace = filter_ranges(std::move(trace), {.fold_imports = true});
        const Averages own = members.add_calls(trace);
        const bool is_empty = events == 0 || is_only_garbage(trace, own);
        const std::string samples = sample_section(trace, terminal);
        Averages& calls = members.calls_.sum();
        const bool is_sum = members.with_calls_ > 1;
        const std::string about =
            (members.groups_.empty() || is_sum ? "" : start_line(trace)) + end_lines(trace, terminal);
        if (members.with_calls_ > 0 && (is_empty || are_host_calls(own))) {
            const CallExtent extent{members.with_calls_, members.call_count_,
                                    waiting_fact(members.waiting_.sum(), "marey report --all"),
                                    is_sum ? members.end_ns_ - members.start_ns_
                                           : trace.window().end_ns - trace.window().start_ns,
                                    members.imports_ns_};
            main = calls_summary(trace, path, about, calls, extent, overhead, terminal);
            if (!samples.empty()) main += "\n" + samples;
        } else if (is_empty && !samples.empty()) {
            main =
                fmt::format("marey: {}: {} in {}, {}\n\n{}", styled(terminal, Style::Bold, printable(path)),
                            format_plural(trace.samples().size(), "sample"),
                            format_duration(trace.window().end_ns - trace.window().start_ns),
                            format_file_size(path), about + samples + problem_lines(trace, terminal));
        } else if (is_empty) {
            main = fmt::format("marey: {}: {}\n{}", styled(terminal, Style::Bold, printable(path)), why_empty,
                               about + problem_lines(trace, terminal));
        } else {
            main = fmt::format("marey: {}: {}, {}\n", styled(terminal, Style::Bold, printable(path)),
                               recorded, format_file_size(path));
            main += about;
            for (const std::string& device : device_facts(trace)) main += "gpu: " + device + "\n";
            if (const std::string fact = finding_fact(trace, path); !fact.empty())
                main += "finding: " + fact + "\n";
            if (!samples.empty()) main += "\n" + samples;
            main += problem_lines(trace, terminal);
        }
        if (events > 0 || !samples.empty()) summary.best = path;
    } catch (const Error& error) {
        members.is_complete_ = false;
        main = fmt::format("marey: {}\n", printable(error.what()));
    }
    if (summary.best.empty()) summary.best = members.first_;
    if (members.is_complete_)
        summary.extent = format_plural(members.ranges_, "range") + " in " +
                         format_duration(std::max<std::int64_t>(members.end_ns_ - members.start_ns_, 0));
    summary.text =
        "\n" + main + members.text(terminal) + members.end_text(terminal) + members.unrecorded_line();
    if (members.captures_ >= kMaxCapturesRead)
        summary.text += fmt::format("... and {} that this summary does not include\n",
                                    format_plural(members.captures_ + 1 - kMaxCapturesRead, "more capture"));
    return summary;
}

}  // namespace marey::cli
