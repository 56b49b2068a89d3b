// restricted_threads.cpp: stops recording a thread that gives up reading the processor's counter.
//
// In strict seccomp mode the instruction that reads the counter (rdtsc) ends the program, and so does nearly
// every system call. Nothing can be asked any more then, so the library sees the request itself: it is called
// in place of the C library's prctl().
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <marey/detail/export.h>

#include "record/recorder.h"
#include "record/source_writer.h"
#include "record/thread_log.h"

namespace marey {
namespace {

bool gives_up_counter(int option, unsigned long argument) noexcept {
    return (option == PR_SET_SECCOMP && argument == SECCOMP_MODE_STRICT) ||
           (option == PR_SET_TSC && argument == PR_TSC_SIGSEGV);
}

}  // namespace
}  // namespace marey

extern "C" MAREY_API int prctl(int option, ...) noexcept {
    unsigned long arguments[4];
    va_list list;
    va_start(list, option);
    for (unsigned long& argument : arguments) argument = va_arg(list, unsigned long);
    va_end(list);
    const bool is_last = marey::gives_up_counter(option, arguments[0]);
    if (is_last && marey::detail::current_thread->owner != nullptr) {
        marey::note_problem(
            "thread_restricted",
            "a thread entered strict seccomp mode, or gave up reading the processor's counter: "
            "what it did afterwards is not recorded",
            false);
        marey::Recorder::get().retire_current_thread();
    } else if (is_last) {
        marey::set_current_thread(&marey::idle_thread);
    }
    const long result = syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3]);
    if (is_last && result != 0) marey::set_current_thread(&marey::unregistered_thread);
    return static_cast<int>(result);
}
