// capture_argument.cpp: the arguments FILE, --from and --session that most verbs take, and loading the file.
#include "cli/capture_argument.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include <marey/error.h>
#include <marey/import.h>
#include <marey/live.h>
#include <marey/merge.h>
#include <marey/range_filter.h>
#include <marey/selection.h>

#include "cli/capture_files.h"
#include "cli/progress.h"
#include "cli/text_format.h"

namespace marey::cli {

namespace {

constexpr const char* kFileHelp = "Marey capture, or a trace written by another tool";

}  // namespace

void declare_from(Options& options, std::string& from) {
    std::vector<std::string> names;
    for (const FileFormat& format : file_formats()) {
        if (format.recognizes != nullptr) names.emplace_back(format.name);
    }
    options.choice(from, "--from", names, "Format of FILE (detected from its content)");
}

std::int64_t parsed_time(const char* option, const std::string& text) {
    const auto time = parse_duration(text);
    if (!time || *time > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 2))
        throw Error(std::string("invalid time '") + text + "' for " + option +
                    ": expected a number with a unit (ns, us, ms or s)");
    return static_cast<std::int64_t>(*time);
}

void declare_file(Options& options, std::string& file, std::string& from) {
    options.required(file, "FILE", kFileHelp);
    declare_from(options, from);
}

void declare_files(Options& options, std::vector<std::string>& files, std::string& from) {
    options.required(files, "FILE", "Marey captures (files or folders), or a trace written by another tool");
    declare_from(options, from);
}

void declare_session(Options& options, std::optional<std::uint64_t>& session) {
    options.number(session, "--session", "Session to show if a process has several (see marey info)");
}

void CaptureArgument::declare(Options& options) {
    declare_files(options, files, from);
    declare_session(options, session);
    options.flag(is_alone, "--alone", "Show only FILE, not the other processes of its run");
    options.number(process, "--process", "Show only the process with this process id");
    options.number(rank, "--rank", "Show only the process with this rank");
}

void CaptureArgument::declare_filter(Options& options) {
    options.text(begin, "--begin", "TIME", "Leave out what was before, such as 1.5s since the start");
    options.text(end, "--end", "TIME", "Leave out what was after, such as 1.6s since the start");
    options.texts(exclude, "--exclude", "PATTERN",
                  "Leave out ranges whose name, function or file matches; repeatable");
    options.flag(show_importlib, "--show-importlib", "Show the frames of importlib in Python imports");
}

Trace CaptureArgument::load() const {
    if (!from.empty() && files.size() > 1) throw Error("--from applies to a single file");
    const std::vector<std::string> paths = this->paths();
    if (paths.size() == 1) return chosen_processes(load_one(paths[0]));
    const Progress progress("reading " + format_plural(paths.size(), "capture"));
    return chosen_processes(load_merged(paths, {.session = session.value_or(0)}).trace);
}

std::vector<std::string> CaptureArgument::paths() const {
    return from.empty() ? capture_paths(files, is_alone) : files;
}

Trace CaptureArgument::load_one(const std::string& path) const {
    const Progress progress("reading " + path);
    if (!session) return open_trace(path, from);
    const FileFormat* const detected = from.empty() ? detect_format(path) : nullptr;
    const std::string_view format = detected != nullptr ? detected->name : std::string_view(from);
    if (!format.empty() && format != "marey")
        throw Error(path + ": --session applies only to Marey captures, and this file has the format " +
                    std::string(format));
    return Trace::load(path, *session);
}

Trace CaptureArgument::chosen_processes(Trace trace) const {
    if (!process && !rank) return trace;
    std::vector<Row> rows;
    for (Row row = 0; row < trace.processes().size(); ++row) {
        const ProcessInfo& info = trace.processes()[row];
        if (process && info.pid != static_cast<std::int64_t>(*process)) continue;
        if (rank && info.node != static_cast<std::int64_t>(*rank)) continue;
        rows.push_back(row);
    }
    if (rows.empty())
        throw Error(file() + ": has no process " +
                    (process ? std::to_string(*process) : "of rank " + std::to_string(*rank)) +
                    " (see marey info)");
    return rows.size() == trace.processes().size() ? trace : select_processes(trace, rows);
}

std::vector<std::string> with_captures_of_processes(const std::vector<std::string>& words,
                                                    std::vector<std::int64_t>* unrecorded) {
    std::vector<std::string> paths;
    for (const std::string& word : words) {
        std::int64_t pid = 0;
        const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), pid);
        if (error != std::errc() || *rest != '\0' || pid <= 0 || ::access(word.c_str(), F_OK) == 0) {
            paths.push_back(word);
            continue;
        }
        const std::vector<RecordedProcess> found = recorded_processes(pid);
        if (found.empty() && unrecorded != nullptr) {
            unrecorded->push_back(pid);
            continue;
        }
        if (found.empty() && ::kill(static_cast<pid_t>(pid), 0) != 0)
            throw Error("process " + word + ": " + std::strerror(errno));
        if (found.empty())
            throw Error("process " + word + ": is not being recorded (marey ps lists those that are)");
        for (const RecordedProcess& process : found) paths.push_back(process.capture);
    }
    return paths;
}

void require_files(const std::vector<std::string>& files) {
    for (const std::string& file : files) {
        if (::access(file.c_str(), F_OK) != 0) throw Error(file + ": " + std::strerror(errno));
    }
}

std::vector<std::string> capture_paths(const std::vector<std::string>& words, bool is_alone,
                                       std::vector<std::int64_t>* unrecorded) {
    const std::vector<std::string> files = with_captures_of_processes(words, unrecorded);
    require_files(files);
    std::vector<std::string> paths;
    for (const std::string& file : files) {
        if (!is_folder(file)) {
            paths.push_back(file);
            continue;
        }
        std::vector<std::string> inside = captures_beside(file.ends_with('/') ? file : file + "/");
        if (inside.empty()) throw Error(file + ": contains no captures (*.marey)");
        std::ranges::sort(inside);
        paths.insert(paths.end(), inside.begin(), inside.end());
    }
    return files.size() == 1 && paths == words && !is_alone ? captures_of_tree(files[0]) : paths;
}

std::vector<std::string> captures_now(const std::vector<std::string>& words, const std::string& verb,
                                      std::vector<std::int64_t>* unrecorded) {
    if (!words.empty()) return capture_paths(words, false, unrecorded);
    std::vector<std::string> paths;
    for (const RecordedProcess& process : recorded_processes()) paths.push_back(process.capture);
    if (paths.empty()) throw Error(verb + ": no program is being recorded");
    return paths;
}

Trace CaptureArgument::filtered(Trace trace, bool flatten_imports) const {
    trace = filter_ranges(
        std::move(trace),
        {.exclude = exclude, .fold_imports = !show_importlib, .flatten_imports = flatten_imports});
    if (begin.empty() && end.empty()) return trace;
    const WindowInfo& window = trace.window();
    Selection selection{.begin_ns = window.start_ns + (begin.empty() ? 0 : parsed_time("--begin", begin)),
                        .end_ns = end.empty() ? window.end_ns : window.start_ns + parsed_time("--end", end)};
    if (selection.end_ns < selection.begin_ns) throw Error("--end " + end + " is before --begin " + begin);
    return select_ranges(trace, selection);
}

std::string without_suffix(const std::string& path) {
    constexpr std::string_view kSuffix = ".marey";
    if (path.size() > kSuffix.size() && path.ends_with(kSuffix))
        return path.substr(0, path.size() - kSuffix.size());
    return path;
}

}  // namespace marey::cli
