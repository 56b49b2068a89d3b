// info_verb.cpp: marey info: what a capture contains.
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <set>
#include <unordered_map>

#include <marey/process_end.h>
#include <marey/results.h>

#include "cli/result_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class InfoVerb final : public Verb {
  public:
    const char* help() const override {
        return "Show a capture's processes, threads, dropped events, clock and costs";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        output_.declare(options);
    }
    int run() override {
        output_.check();
        const Trace trace = capture_.load();
        const Result result = info_result(trace);
        return output_.print(result, [&] { return text(trace, result.table("threads")); });
    }

  private:
    std::string text(const Trace& trace, const ResultTable& threads) {
        show_file(trace);
        show_processes(trace);
        show_sessions(trace);
        show_events(trace);
        if (threads.rows > 0) text_ += "\n" + output_.lines(threads, terminal_) + "\n";
        return end_lines(trace, terminal_) + text_ + problem_lines(trace, terminal_);
    }
    void fact(std::string_view title, const std::string& value) {
        text_ += title_line(title, value, terminal_);
    }

    void show_file(const Trace& trace) {
        std::uint64_t bytes = 0;
        const std::vector<std::string> paths = capture_.paths();
        for (const std::string& path : paths) {
            struct stat info {};
            if (::stat(path.c_str(), &info) == 0) bytes += static_cast<std::uint64_t>(info.st_size);
        }
        std::string size = fmt::format("{} ({})", format_bytes(bytes), format_plural(bytes, "byte"));
        const std::uint64_t log_bytes = trace.window().log_bytes;
        if (log_bytes > 0) size += fmt::format(", built from {} of log", format_bytes(log_bytes));
        const double ranges = static_cast<double>(trace.ranges().size());
        if (ranges > 0) size += fmt::format(", {:.1f} bytes per range", static_cast<double>(bytes) / ranges);
        fact("file",
             printable(capture_.file()) +
                 (paths.size() == 1 ? "" : " and " + format_plural(paths.size() - 1, "more capture")));
        fact("size", size);
    }

    void show_processes(const Trace& trace) {
        if (trace.processes().size() > 1) return show_tree(trace);
        for (const ProcessInfo& process : trace.processes()) {
            std::string text = fmt::format("{}", process.pid);
            if (process.name != 0) text += " " + printable(trace.string(process.name));
            if (process.node >= 0) text += fmt::format(", rank {}", process.node);
            fact("process", text);
            const std::string command = command_line(trace.string(process.command_line));
            if (!command.empty()) fact("command", command);
            if (process.host != 0) fact("host", printable(trace.string(process.host)));
        }
    }

    /// The processes of a run, children below their parents.
    void show_tree(const Trace& trace) {
        const std::span<const ProcessInfo> processes = trace.processes();
        std::vector<std::uint64_t> ranges(processes.size());
        for (const TrackInfo& track : trace.tracks())
            ranges[trace.threads()[track.thread].process] += track.range_count;
        Table table({{"pid"}, {"origin", true}, {"ranges"}, {"end", true}, {"command", true, true, true}});
        std::unordered_map<Row, std::vector<Row>> children;  // by parent, the last one first
        for (Row row = static_cast<Row>(processes.size()); row-- != 0;) {
            if (processes[row].parent != row) children[processes[row].parent].push_back(row);
        }
        std::vector<std::pair<Row, std::size_t>> rest;  // to show, with their levels; the next is the last
        const auto add_children = [&](Row parent, std::size_t level) {
            const auto found = children.find(parent);
            if (found == children.end()) return;
            for (const Row row : found->second) rest.emplace_back(row, level);
        };
        add_children(kNoRow, 0);
        while (!rest.empty()) {
            const auto [row, level] = rest.back();
            rest.pop_back();
            const ProcessInfo& process = processes[row];
            const std::string command = command_line(trace.string(process.command_line));
            const std::string rank = process.node < 0 ? "" : fmt::format("rank {}: ", process.node);
            table.add({fmt::format("{}", process.pid), process_origin_name(process.origin),
                       format_count(ranges[row]), process_end_text(process),
                       std::string(2 * level, ' ') + rank +
                           (command.empty() ? printable(trace.string(process.name)) : command)});
            add_children(row, level + 1);
        }
        fact("processes", format_count(processes.size()));
        std::set<std::string_view> hosts;
        for (const ProcessInfo& process : processes) {
            if (process.host != 0) hosts.insert(trace.string(process.host));
        }
        if (!hosts.empty()) fact("host", printable(fmt::format("{}", fmt::join(hosts, ", "))));
        text_ += "\n" + table.text(terminal_) + "\n";
    }

    static std::string process_origin_name(ProcessOrigin origin) {
        constexpr const char* kNames[] = {"", "fork", "spawn", "exec"};
        return kNames[static_cast<std::size_t>(origin) % std::size(kNames)];
    }

    static std::string process_end_text(const ProcessInfo& process) {
        if (process.exit_signal > 0) return signal_name(process.exit_signal);
        return process.exit_code >= 0 ? fmt::format("code {}", process.exit_code) : "";
    }

    /// The arguments may be separated by NUL.
    static std::string command_line(std::string_view words) {
        std::string text(words);
        while (!text.empty() && text.back() == '\0') text.pop_back();
        for (char& c : text) {
            if (c == '\0') c = ' ';
        }
        return printable(text);
    }

    void show_sessions(const Trace& trace) {
        const WindowInfo& window = trace.window();
        std::vector<SessionInfo> sessions;
        try {
            if (trace.processes().size() == 1) sessions = list_sessions(capture_.file());
        } catch (const Error&) {  // files of other tools have no sessions
        }
        for (const SessionInfo& session : sessions) {
            std::string text = fmt::format("{}", session.id);
            if (!session.name.empty()) text += " " + printable(session.name);
            text += ", " + format_duration(session.end_ns - session.start_ns);
            if (!session.finished) text += ", not finished";
            if (sessions.size() > 1 && session.id == window.session_id) text += "  <- shown here";
            fact("session", text);
        }
        fact("window", window_fact(trace));
        std::string policy =
            fmt::format("{}, then {}", format_bytes(window.max_bytes), printable(window.policy));
        if (window.size_limit_reached) policy += "; reached";
        if (window.max_bytes > 0) fact("size limit", policy);
    }

    void show_events(const Trace& trace) {
        fact("events", events_fact(trace));
        if (!trace.links().empty()) fact("links", format_count(trace.links().size()));
        fact("clock", clock_fact(trace));
        std::string costs;
        for (const CostInfo& cost : trace.costs())
            costs += fmt::format("{}{} {:.1f} ns", costs.empty() ? "" : ", ", printable(cost.kind), cost.ns);
        if (!costs.empty()) fact("costs", costs);
        fact("overhead", overhead_fact(trace));
    }

    CaptureArgument capture_;
    ResultArgument output_{.verb = "info", .table = "threads", .row = "thread"};
    Terminal terminal_ = standard_output();
    std::string text_;
};

}  // namespace

MAREY_VERB(info, InfoVerb)

}  // namespace marey::cli
