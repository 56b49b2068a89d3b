// child_run.h: starts a program in a separate folder and examines the files it leaves. For lifecycle.cpp,
// io_failures.cpp.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>

namespace child_run {

/// How often each range occurs, by name.
inline std::map<std::string, int> counts(const marey::Trace& trace) {
    std::map<std::string, int> found;
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) ++found[std::string(trace.range_name(row))];
    return found;
}

inline marey::Row find(const marey::Trace& trace, std::string_view name) {
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.range_name(row) == name) return row;
    }
    return marey::kNoRow;
}

inline bool has_flag(const marey::Trace& trace, std::string_view name, std::uint16_t flag) {
    const marey::Row row = find(trace, name);
    return row != marey::kNoRow && (trace.ranges().flags[row] & flag) != 0;
}

inline std::string problem_codes(const marey::Trace& trace) {
    std::string codes;
    for (const marey::ProblemInfo& problem : trace.problems()) codes += problem.code + " ";
    return codes;
}

inline bool has_problem(const marey::Trace& trace, std::string_view code) {
    const auto problems = trace.problems();
    return std::any_of(problems.begin(), problems.end(),
                       [code](const auto& each) { return each.code == code; });
}

inline std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

inline int lines(const std::string& text) {
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

/// A test with an empty folder and a program to run in it.
class ChildRun : public ::testing::Test {
  protected:
    void SetUp() override {
        unsetenv("MAREY");
        char name[] = "/tmp/marey-test-XXXXXX";
        folder_ = mkdtemp(name);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    void remove_files() {
        for (const auto& entry : std::filesystem::directory_iterator(folder_))
            std::filesystem::remove_all(entry.path());
    }

    std::string capture() const { return folder_ + "/app.marey"; }
    std::string environment() const { return "out=" + capture(); }

    /// Runs it with MAREY set (empty: not set) and returns its exit code, or 100 + the signal that ended it;
    /// its output is in out() and error().
    int run(const std::vector<std::string>& arguments, const std::string& marey,
            const std::string& program = MAREY_TEST_BIN_DIR "/lifecycle_program") {
        std::vector<char*> raw{const_cast<char*>(program.c_str())};
        for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
        raw.push_back(nullptr);
        const pid_t child = fork();
        if (child == 0) {
            if (!marey.empty()) setenv("MAREY", marey.c_str(), 1);
            before_exec();
            redirect(STDOUT_FILENO, folder_ + "/stdout");
            redirect(STDERR_FILENO, folder_ + "/stderr");
            execv(raw[0], raw.data());
            _exit(127);
        }
        pid_ = child;
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
    }
    /// In the child, before it executes the program.
    virtual void before_exec() {}

    std::string out() const { return text_of(folder_ + "/stdout"); }
    std::string error() const { return text_of(folder_ + "/stderr"); }

    /// Every capture except app.marey itself.
    std::vector<std::string> other_captures() const {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
            const std::string path = entry.path().string();
            if (path.ends_with(".marey") && path != capture()) found.push_back(path);
        }
        std::sort(found.begin(), found.end());
        return found;
    }
    /// Files that no program may leave behind.
    std::vector<std::string> leftover_files() const {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
            const std::string name = entry.path().filename().string();
            if (contains(name, ".tmp.") || contains(name, ".spool")) found.push_back(name);
        }
        return found;
    }

    std::string folder_;
    pid_t pid_ = 0;

  private:
    static void redirect(int descriptor, const std::string& path) {
        const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, descriptor);
        close(fd);
    }
};

}  // namespace child_run
