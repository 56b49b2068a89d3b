// child_process.h: runs a program as a shell would, passing signals on to it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace marey::cli {

/// How a program ended.
struct ChildEnd {
    int pid = 0;
    int exec_error = 0;  ///< errno when it could not be started; ENOENT: it is not there. The rest means
                         ///< nothing then
    int exit_code = 0;
    int signal = 0;  ///< the signal that killed it, or 0
};

/// Stands in one value for the number of the program's process.
inline constexpr char kPidMark = '\1';

/// Environment variables; without a value: the program does not have it.
using Variables = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// Starts `words[0]` (looked up in PATH) with other environment variables and waits for it. The program
/// keeps our standard streams, our process group and the signal settings we were started with. While it runs,
/// signals that another process sends to us are passed on to it; those of the terminal reach it directly and
/// we outlive them. To be called from a process without other threads. Throws marey::Error when there can be
/// no child at all.
ChildEnd run_child(const std::vector<std::string>& words, const Variables& variables);

/// Why `program` could not be started, for people: what stands in its way where it is there, else the text of
/// `exec_error`.
std::string start_failure_reason(const std::string& program, int exec_error);

/// Ends this process the way the child ended: by the same signal, or gives its exit code.
int end_like(const ChildEnd& end);

}  // namespace marey::cli
