// interposer_plugin.cpp: a library to preload, which replaces functions as libfaketime does: after its
// destructor has run, they end the program.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>

#include <marey/marey.h>

namespace {

bool is_over = false;

/// Ends the program, with the name of the function that was called too late.
void check(const char* name) {
    if (!is_over) return;
    dprintf(STDERR_FILENO, "%s was called after the library was torn down\n", name);
    _exit(77);
}

template <class Function>
Function* replaced(Function*, const char* name) {
    check(name);
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

__attribute__((destructor)) void end() {
    if (std::getenv("MAREY_TEST_RANGE_AT_END") != nullptr) {
        MAREY_RANGE("library destructor");
    }
    is_over = true;
}

}  // namespace

extern "C" {

#define EXPORT __attribute__((visibility("default")))

EXPORT int stat(const char* path, struct stat* status) noexcept {
    return replaced(&stat, "stat")(path, status);
}
EXPORT int lstat(const char* path, struct stat* status) noexcept {
    return replaced(&lstat, "lstat")(path, status);
}
EXPORT int fstat(int file, struct stat* status) noexcept {
    return replaced(&fstat, "fstat")(file, status);
}
EXPORT int rename(const char* from, const char* to) noexcept {
    return replaced(&rename, "rename")(from, to);
}
EXPORT int unlink(const char* path) noexcept {
    return replaced(&unlink, "unlink")(path);
}
EXPORT int ftruncate(int file, off_t size) noexcept {
    return replaced(&ftruncate, "ftruncate")(file, size);
}
/// A clock that stands still.
EXPORT int clock_gettime(clockid_t, timespec* time) noexcept {
    check("clock_gettime");
    *time = {1'600'000'000, 0};
    return 0;
}
EXPORT int open(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, unsigned) : 0;
    va_end(rest);
    return replaced(&open, "open")(path, flags, mode);
}

}  // extern "C"
