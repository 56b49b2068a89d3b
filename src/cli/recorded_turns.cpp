// recorded_turns.cpp: runs `marey run` again and again, and `git worktree` for two commits.
#include "cli/recorded_turns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <marey/error.h>

#include "base/environment.h"
#include "cli/child_process.h"
#include "cli/terminal.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

namespace fs = std::filesystem;

/// "; its last line: ..." of a program's output.
std::string last_line(const std::string& path) {
    std::ifstream file(path);
    std::string line, last;
    while (std::getline(file, line)) {
        if (line.find_first_not_of(" \t\r") != line.npos) last = line;
    }
    return last.empty() ? "" : "; the last line of its output: " + printable(last);
}

/// Replaces the line of progress; empty: erases it. Not a Progress, whose thread run_child() forbids.
void show_progress(const std::string& text) {
    if (standard_error().progress) print_error("\r\x1b[2K" + text);
}

/// Runs a program in a folder, with its output in a file. Throws marey::Error if it fails.
void run_quietly(const std::string& what, const std::string& folder, const std::string& output,
                 std::vector<std::string> words) {
    std::vector<std::string> all{"/bin/sh", "-c", "cd \"$1\" && shift && exec \"$@\" >\"$0\" 2>&1 </dev/null",
                                 output, folder};
    all.insert(all.end(), words.begin(), words.end());
    const ChildEnd end = run_child(all, {}, [](int) {});
    if (end.exec_error == 0 && end.signal == 0 && end.exit_code == 0) return;
    const std::string how = end.exec_error != 0 ? std::strerror(end.exec_error)
                            : end.signal != 0   ? fmt::format("was killed by signal {}", end.signal)
                                                : fmt::format("exited with code {}", end.exit_code);
    throw Error(fmt::format("diff: {} {}{}", what, how, last_line(output)));
}

/// A command as words; one that needs a shell is run by it.
std::vector<std::string> words_of(const std::string& command) {
    if (command.find_first_of("|&;<>()$`\\\"'*?~[]{}!#\n\t=") == command.npos) return split(command, ' ');
    return {"/bin/sh", "-c", command};
}

}  // namespace

RecordedTurns::RecordedTurns(const TurnOptions& options) {
    const std::string base = environment_text("TMPDIR");
    temporary_ = (base.empty() ? "/tmp" : base) + "/marey-diff-XXXXXX";
    if (::mkdtemp(temporary_.data()) == nullptr) throw Error(temporary_ + ": " + std::strerror(errno));
    folder_ = temporary_;
    try {
        if (!options.keep.empty()) {
            fs::create_directories(options.keep);
            folder_ = fs::absolute(options.keep).string();
        }
        std::ranges::copy(options.commands, labels_);
        if (!options.commits.empty()) check_out(options);
        for (std::uint64_t i = 0; i < options.warmups * 2; ++i)
            fs::remove(record(options, static_cast<int>(i % 2), "warmup"));
        for (std::uint64_t i = 0; i < options.runs * 2; ++i) {
            const int side = static_cast<int>((i + i / 2) % 2);  // old, new, new, old
            show_progress(fmt::format("recording run {} of {}", i + 1, options.runs * 2));
            captures_[side].push_back(
                record(options, side, fmt::format("{:03}", captures_[side].size() + 1)));
        }
        show_progress("");
    } catch (const fs::filesystem_error& error) {
        remove();
        throw Error(error.what());
    } catch (...) {
        remove();
        throw;
    }
}

RecordedTurns::~RecordedTurns() {
    remove();
}

void RecordedTurns::remove() {
    show_progress("");
    std::error_code ignored;
    for (const std::string& tree : trees_) {
        if (tree.empty()) continue;
        try {
            run_quietly("git worktree remove", ".", temporary_ + "/git.txt",
                        {"git", "worktree", "remove", "--force", tree});
        } catch (const Error&) {  // it is removed with the folder, and git forgets it later
        }
    }
    fs::remove_all(temporary_, ignored);
}

void RecordedTurns::check_out(const TurnOptions& options) {
    const std::size_t dots = options.commits.find("..");
    if (dots == options.commits.npos)
        throw Error("diff: --git: expected two commits such as main..HEAD, got '" + options.commits + "'");
    const std::string commits[2] = {options.commits.substr(0, dots), options.commits.substr(dots + 2)};
    for (int side = 0; side < 2; ++side) {
        const std::string commit = commits[side].empty() ? "HEAD" : commits[side];
        if (commit.starts_with('-')) throw Error("diff: --git: '" + commit + "' is not a commit");
        labels_[side] = commit;
        const std::string tree = temporary_ + (side == 0 ? "/old" : "/new");
        run_quietly("git worktree add " + commit, ".", temporary_ + "/git.txt",
                    {"git", "worktree", "add", "--detach", tree, commit});
        trees_[side] = tree;
        if (options.build.empty()) continue;
        show_progress("building " + printable(commit));
        run_quietly(fmt::format("the build of {}", commit), tree, temporary_ + "/build.txt",
                    {"/bin/sh", "-c", options.build});
    }
}

std::string RecordedTurns::record(const TurnOptions& options, int side, const std::string& name) const {
    const bool has_trees = !options.commits.empty();
    const std::vector<std::string> program = has_trees ? options.words : words_of(options.commands[side]);
    const std::string start = fmt::format("{}/{}-{}", folder_, side == 0 ? "old" : "new", name);
    std::vector<std::string> words{
        fs::read_symlink("/proc/self/exe").string(), "run", "-q", "--force", "-o", start + ".marey"};
    words.insert(words.end(), options.options.begin(), options.options.end());
    words.emplace_back("--");
    words.insert(words.end(), program.begin(), program.end());
    const std::string what = fmt::format("{} '{}'", side == 0 ? "old" : "new", fmt::join(program, " "));
    run_quietly(what, has_trees ? trees_[side] : ".", start + ".txt", std::move(words));
    if (!fs::exists(start + ".marey"))
        throw Error(fmt::format("diff: {}: nothing was recorded{}", what, last_line(start + ".txt")));
    return start + ".marey";
}

}  // namespace marey::cli
