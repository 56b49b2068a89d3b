// tree_program.cpp: a program that becomes several processes.
//
//   tree_program fork CHILDREN RANGES    forks children one after another; each records ranges and exits
//   tree_program spawn CHILDREN RANGES   the same with posix_spawn
//   tree_program vfork CHILDREN RANGES   the same with vfork
//   tree_program exec RANGES             replaces itself with "tree_program fork 0 RANGES"
//   tree_program double RANGES           forks a process that records nothing and forks one that does
//   tree_program kill SIGNAL             forks a child that dies of a signal inside a range
//   tree_program messages COUNT          sends messages to a forked child and back, with tokens
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <string>

#include <marey/marey.h>
#include <marey/token.h>

namespace {

void work(int ranges) {
    MAREY_RANGE("child");
    for (int i = 0; i < ranges; ++i) {
        MAREY_RANGE("work");
    }
}

bool has_failed(pid_t child) {
    int status = 0;
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

int fork_children(int children, int ranges) {
    MAREY_RANGE("parent");
    if (children == 0) work(ranges);
    for (int i = 0; i < children; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            work(ranges);
            std::exit(0);
        }
        if (has_failed(child)) return 1;
    }
    return 0;
}

int spawn_children(char* program, int children, char* ranges) {
    MAREY_RANGE("spawner");
    for (int i = 0; i < children; ++i) {
        std::string mode = "fork";
        std::string none = "0";
        char* const words[] = {program, mode.data(), none.data(), ranges, nullptr};
        pid_t child = 0;
        if (posix_spawn(&child, program, nullptr, nullptr, words, environ) != 0 || has_failed(child))
            return 1;
    }
    return 0;
}

/// As posix_spawn does it, but through the function that programs call themselves.
[[gnu::noinline]] pid_t start_by_vfork(char* const* words) {
    const pid_t child = vfork();
    if (child != 0) return child;
    execv(words[0], words);
    _exit(127);
}

int vfork_children(char* program, int children, char* ranges) {
    MAREY_RANGE("spawner");
    std::string mode = "fork", none = "0";
    char* const words[] = {program, mode.data(), none.data(), ranges, nullptr};
    for (int i = 0; i < children; ++i) {
        if (has_failed(start_by_vfork(words))) return 1;
    }
    return 0;
}

int replace(char* program, char* ranges) {
    MAREY_RANGE("before exec");
    std::string mode = "fork";
    std::string none = "0";
    char* const words[] = {program, mode.data(), none.data(), ranges, nullptr};
    execv(program, words);
    return 1;
}

int fork_twice(int ranges) {
    MAREY_RANGE("parent");
    const pid_t middle = fork();
    if (middle != 0) return has_failed(middle) ? 1 : 0;
    const pid_t child = fork();
    if (child != 0) _exit(has_failed(child) ? 1 : 0);
    work(ranges);
    std::exit(0);
}

int kill_child(int signal) {
    MAREY_RANGE("parent");
    const pid_t child = fork();
    if (child == 0) {
        MAREY_RANGE("doomed");
        work(3);
        raise(signal);
    }
    waitpid(child, nullptr, 0);
    return 0;
}

/// Sends a token and receives the one of the answer, or the other way round.
int exchange(int in, int out, int count, bool sends_first) {
    for (int i = 0; i < 2 * count; ++i) {
        marey::Token token;
        if ((i % 2 == 0) == sends_first) {
            MAREY_RANGE("send");
            token = marey::send_token();
            if (write(out, &token, sizeof token) != sizeof token) return 1;
        } else {
            MAREY_RANGE("receive");
            if (read(in, &token, sizeof token) != sizeof token) return 1;
            marey::receive_token(token);
        }
    }
    return 0;
}

int send_messages(int count) {
    int there[2];
    int back[2];
    if (pipe(there) != 0 || pipe(back) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) std::exit(exchange(there[0], back[1], count, false));
    return exchange(back[0], there[1], count, true) != 0 || has_failed(child) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 2 ? argv[1] : "";
    const int number = argc > 2 ? std::atoi(argv[2]) : 0;
    if (mode == "fork" && argc == 4) return fork_children(number, std::atoi(argv[3]));
    if (mode == "spawn" && argc == 4) return spawn_children(argv[0], number, argv[3]);
    if (mode == "vfork" && argc == 4) return vfork_children(argv[0], number, argv[3]);
    if (mode == "exec") return replace(argv[0], argv[2]);
    if (mode == "double") return fork_twice(number);
    if (mode == "kill") return kill_child(number);
    if (mode == "messages") return send_messages(number);
    return 2;
}
