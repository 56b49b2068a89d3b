/* collected_lines.h: how the collectors of the tests write down what they receive. */
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lines_mutex = PTHREAD_MUTEX_INITIALIZER;
static int lines_file = -1; /* of lines_mutex, as are the threads */
static int threads_seen;
static _Thread_local int thread_number;

static __attribute__((format(printf, 1, 2))) void collected_line(const char* format, ...) {
    char text[4096];
    va_list values;
    pthread_mutex_lock(&lines_mutex);
    if (lines_file < 0) {
        const char* const path = getenv("MAREY_TEST_COLLECTED");
        lines_file = open(path != NULL ? path : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0666);
    }
    if (thread_number == 0) thread_number = ++threads_seen;
    int used = snprintf(text, sizeof text, "%d ", thread_number);
    va_start(values, format);
    used += vsnprintf(text + used, sizeof text - (size_t)used - 1, format, values);
    va_end(values);
    if (used > (int)sizeof text - 2) used = sizeof text - 2;
    text[used++] = '\n';
    if (write(lines_file, text, (size_t)used) != used) abort();
    pthread_mutex_unlock(&lines_mutex);
}
