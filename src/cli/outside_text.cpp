// outside_text.cpp: what a process that is not recorded is doing, for people.
#include "cli/outside_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/text_format.h"
#include "cli/thread_start.h"

namespace marey::cli {
namespace {

/// The script of an interpreter, otherwise the program.
std::string program_text(const OutsideProcess& process) {
    std::string name(base_name(process.program));
    if (process.python.empty() || process.arguments.size() < 2) return name;
    const std::string& first = process.arguments[1];
    if (!first.starts_with('-')) return std::string(base_name(first));
    return first == "-m" && process.arguments.size() > 2 ? "-m " + process.arguments[2] : name;
}

/// The frames that people want: not those of the interpreter, of the C library only what was called, and not
/// how threads start.
std::vector<const OutsideFrame*> shown_frames(const OutsideThread& thread) {
    std::vector<const OutsideFrame*> frames;
    const auto is_library = [](const OutsideFrame& frame) {
        return !frame.is_python && frame.name.starts_with("libc.");
    };
    for (const OutsideFrame& frame : thread.frames) {
        if (frame.is_interpreter) continue;
        if (is_library(frame)) {
            if (frame.name.find(": 0x") != frame.name.npos) continue;  // has no name
            if (!frames.empty() && is_library(*frames.back())) frames.pop_back();
        }
        frames.push_back(&frame);
    }
    while (thread.is_python && frames.size() > 1 &&
           (!frames.back()->is_python || is_thread_start(frames.back()->name)))
        frames.pop_back();
    return frames;
}

class ThreadNames {
  public:
    explicit ThreadNames(const OutsideProcess& process) {
        std::map<std::string_view, int> counts;
        for (const OutsideThread& thread : process.threads) ++counts[thread.name];
        for (const OutsideThread& thread : process.threads) {
            const bool is_main = thread.os_tid == process.pid;
            const std::string name =
                thread.name == process.threads[0].name ? "thread" : printable(thread.name);
            names_[thread.os_tid] = is_main                    ? "main thread"
                                    : counts[thread.name] == 1 ? name
                                                               : fmt::format("{} {}", name, thread.os_tid);
        }
    }
    std::string of(std::int64_t os_tid) const {
        const auto found = names_.find(os_tid);
        return found != names_.end() ? found->second : fmt::format("thread {}", os_tid);
    }

  private:
    std::map<std::int64_t, std::string> names_;
};

std::string state_text(const OutsideThread& thread, const ThreadNames& names) {
    if (thread.wait == OutsideWait::None) return thread.holds_gil ? "runs, holds the GIL" : "runs";
    std::string text = fmt::format("waits: {}", wait_name(thread.wait));
    if (thread.waits_for != 0) text += " of " + names.of(thread.waits_for);
    return text + (thread.holds_gil ? ", holds the GIL" : "");
}

std::string stack_text(const OutsideThread& thread, const Terminal& terminal, std::size_t indent) {
    constexpr std::size_t kLeastWidth = 40;
    const std::vector<const OutsideFrame*> frames = shown_frames(thread);
    const std::size_t room = terminal.width > indent + kLeastWidth ? terminal.width - indent : 0;
    std::string text;
    bool has_line = false;  // only the innermost Python function shows the line that runs
    for (std::size_t level = 0, next = 0; level < frames.size(); level = next) {
        while (next < frames.size() && frames[next]->name == frames[level]->name) ++next;
        std::string part = (level == 0 ? "" : "  <  ") + printable(frames[level]->name);
        if (frames[level]->is_python && !has_line && frames[level]->line != 0)
            part += fmt::format(" line {}", frames[level]->line);
        if (next - level > 1) part += fmt::format(" ({} times)", next - level);
        has_line = has_line || frames[level]->is_python;
        const std::string rest = fmt::format("  <  {} more", frames.size() - level);
        const bool is_last = next == frames.size();
        if (level != 0 && room > 0 &&
            display_width(text) + display_width(part) + (is_last ? 0 : display_width(rest)) > room)
            return text + styled(terminal, Style::Dim, rest);
        text += part;
    }
    if (thread.is_torn)
        text += (text.empty() ? "" : "  <  ") + std::string("Python frames that change all the time");
    return thread.is_cut ? text + "  <  ..." : text;
}

}  // namespace

std::string outside_text(const OutsideProcess& process, const Terminal& terminal) {
    const ThreadNames names(process);
    std::string text;
    for (const std::vector<std::int64_t>& circle : process.deadlocks) {
        text += styled(terminal, Style::Red, "deadlock:");
        for (std::size_t i = 0; i < circle.size(); ++i)
            text += fmt::format("{} {} waits for {}", i == 0 ? "" : ",", names.of(circle[i]),
                                names.of(circle[(i + 1) % circle.size()]));
        text += "\n\n";
    }
    text +=
        styled(terminal, Style::Bold, fmt::format("{} {}", printable(program_text(process)), process.pid)) +
        (process.python.empty() ? "" : ", Python " + process.python) + ", not recorded\n";
    std::size_t name_width = 0, state_width = 0;
    for (const OutsideThread& thread : process.threads) {
        name_width = std::max(name_width, display_width(names.of(thread.os_tid)));
        state_width = std::max(state_width, display_width(state_text(thread, names)));
    }
    for (const OutsideThread& thread : process.threads) {
        const std::string name = names.of(thread.os_tid);
        const std::string state = state_text(thread, names);
        std::string line = "  " + name + std::string(name_width - display_width(name), ' ') + "  " + state +
                           std::string(state_width - display_width(state), ' ') + "  " +
                           stack_text(thread, terminal, name_width + state_width + 6);
        line.resize(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

}  // namespace marey::cli
