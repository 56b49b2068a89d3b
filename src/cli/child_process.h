// child_process.h: runs a program as a shell would, passing signals on to it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace marey::cli {

/// How a program ended.
struct ChildEnd {
    int pid = 0;
    int exec_error = 0;  ///< errno if it could not be started (ENOENT: not found). Then the rest is unset
    int exit_code = 0;
    int signal = 0;  ///< the signal that killed it, or 0
};

/// Placeholder for the process id of the program; may occur once in the variables.
inline constexpr char kPidMark = '\1';

/// Environment variables. A variable without a value is removed.
using Variables = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// Starts `words[0]` (looked up in PATH) with changed environment variables and waits for it. The program
/// keeps our standard streams, our process group and the signal settings we were started with. While it runs,
/// signals that another process sends to us are forwarded to it; terminal signals reach it directly and do
/// not end us. The calling process must have no other threads. `started` is called with the program's process
/// id while the signals that are forwarded are blocked; it may start threads. Throws marey::Error if no child
/// process can be created.
ChildEnd run_child(const std::vector<std::string>& words, const Variables& variables,
                   const std::function<void(int)>& started);

/// Why `program` could not be started, as a message for the user: the obstacle if the file exists, otherwise
/// the text of `exec_error`.
std::string start_failure_reason(const std::string& program, int exec_error);

/// Ends this process by the signal that ended the child; otherwise returns the child's exit code.
int end_like(const ChildEnd& end);

}  // namespace marey::cli
