// restricted_program.cpp: enters strict seccomp mode, or gives up reading the processor's counter, while it
// is recorded. Usage: restricted_program seccomp|tsc.
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include <marey/all.h>

namespace {

void work(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        MAREY_RANGE("work");
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 91;
    work(10);
    {
        MAREY_RANGE("around");
        const bool is_strict = arguments[1] == std::string_view("seccomp");
        const int result =
            is_strict ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) : prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
        if (result != 0) return 77;
        work(10);
    }
    if (write(STDOUT_FILENO, "done\n", 5) != 5) return 1;
    syscall(SYS_exit, 0);
}
