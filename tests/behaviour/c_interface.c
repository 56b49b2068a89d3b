// c_interface.c: the C header is C: a program that marks itself, records itself and names a bad option.
#include <marey/c.h>
#include <stdio.h>
#include <string.h>

static int fail(const char* what) {
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(void) {
    char error[200] = "";
    if (marey_session_start("policy=nonsense", error, sizeof error) != 0)
        return fail("a bad option was accepted");
    if (strstr(error, "nonsense") == NULL) return fail("the error does not name the option");
    if (marey_is_recording()) return fail("recording before any session");

    const uint64_t session = marey_session_start("max=1MB,policy=ring", error, sizeof error);
    if (session == 0) return fail(error);
    if (!marey_is_recording()) return fail("not recording");
    const marey_site site = marey_intern("work", __FILE__, __LINE__, MAREY_SCOPE_FUNCTION);
    if (site == 0 || site != marey_intern("work", __FILE__, __LINE__ - 1, MAREY_SCOPE_FUNCTION)) {
        return fail("one place, two sites");
    }
    marey_begin(site);
    marey_begin_named("inner");
    marey_end();
    marey_end();
    const uint64_t id = marey_async_begin(site);
    if (id == 0) return fail("no id for an async range");
    marey_async_end(site, id);
    marey_instant("point");
    marey_counter_int("count", 3);
    marey_counter_double("load", 0.5);
    marey_thread_name("main");
    marey_context* const context = marey_context_capture();
    if (context == NULL) return fail("no context");
    marey_adoption* const adoption = marey_context_adopt(context);
    marey_context_free(context);
    if (!marey_is_recording()) return fail("a session of all threads is in every context");
    marey_context_restore(adoption);
    marey_session_stop(session);
    if (marey_is_recording()) return fail("still recording");
    if (marey_intern(NULL, NULL, 0, MAREY_SCOPE_USER) != 0) return fail("a site without a name");
    return 0;
}
