// messages.cpp: 10^6 messages over pipes between two processes, also in two time namespaces: how well the
// clocks of their captures agree.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include <marey/marey.h>
#include <marey/merge.h>
#include <marey/token.h>

#include "figure.h"

namespace {

constexpr int kRounds = 500'000;  // two messages each

/// Sends tokens to and fro, from a forked child's point of view or from its parent's.
bool play(int in, int out, bool begins) {
    MAREY_RANGE("play");
    for (int i = 0; i < kRounds; ++i) {
        marey::Token token;
        for (const bool sends : {begins, !begins}) {
            if (sends) {
                token = marey::send_token();
                if (write(out, &token, sizeof token) != sizeof token) return false;
            } else {
                if (read(in, &token, sizeof token) != sizeof token) return false;
                marey::receive_token(token);
            }
        }
    }
    return true;
}

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/// Processes that are forked from now on have a monotonic clock that is 100,000 s ahead. Needs root.
bool move_clocks_of_children() {
    constexpr std::string_view kOffset = "monotonic 100000 0\n";
    if (unshare(CLONE_NEWTIME) != 0) return false;
    const int file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    const bool is_written =
        file >= 0 && write(file, kOffset.data(), kOffset.size()) == static_cast<ssize_t>(kOffset.size());
    if (file >= 0) close(file);
    return is_written;
}

int run(bool is_apart) {
    int there[2], back[2];
    if (pipe(there) != 0 || pipe(back) != 0 || (is_apart && !move_clocks_of_children())) return 1;
    const pid_t child = fork();
    if (child == 0) std::exit(play(there[0], back[1], false) ? 0 : 1);
    int status = 0;
    const bool is_done = child > 0 && play(back[0], there[1], true);
    return is_done && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

bool measure(const std::string& way, const std::string& where) {
    const std::string folder = std::string(MAREY_BENCH_DIR) + "/bench_messages.data";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const std::string program = std::filesystem::canonical("/proc/self/exe").string();
    if (std::system(("MAREY=out=" + folder + "/app.marey " + program + " " + way).c_str()) != 0) return false;
    std::vector<std::string> captures;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) captures.push_back(entry.path());
    const marey::Trace trace = marey::load_merged(captures).trace;
    std::filesystem::remove_all(folder);

    std::unordered_map<std::uint64_t, std::int64_t> sent[2];  // times by number; the senders' numbers overlap
    std::unordered_map<std::uint64_t, std::size_t> senders;
    const auto of = [&](const marey::MessageInfo& message) -> auto& {
        return sent[senders.try_emplace(message.sender, senders.size() % 2).first->second];
    };
    for (const marey::MessageInfo& message : trace.messages()) {
        if (message.is_received) continue;
        of(message)[message.number] = message.time_ns;
    }
    std::int64_t fastest = std::numeric_limits<std::int64_t>::max();
    double messages = 0, violations = 0;
    for (const marey::MessageInfo& message : trace.messages()) {
        if (!message.is_received) continue;
        const auto found = of(message).find(message.number);
        if (found == of(message).end()) continue;
        const std::int64_t time = message.time_ns - found->second;
        ++messages;
        if (time < 0) ++violations;
        fastest = std::min(fastest, time);
    }
    bench::print("messages over pipes, both ends recorded" + where, "count", messages, "1000000");
    bench::print("messages that arrive before they were sent" + where, "count", violations, "0");
    // Not compared between directions: that differs by 2 to 500 ns from run to run without Marey, too,
    // because it depends on where the kernel wakes each process.
    bench::print("fastest message" + where, "ns", static_cast<double>(fastest), "");
    return true;
}

}  // namespace

int main(int count, char** words) {
    if (count > 1) return run(words[1] == std::string_view("apart"));
    if (!measure("together", "")) return 1;
    if (!measure("apart", ", two time namespaces"))
        std::fprintf(stderr, "not measured across time namespaces: this needs root\n");
    return 0;
}
