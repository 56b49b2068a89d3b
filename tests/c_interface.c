// c_interface.c: the C header is C: a program that marks itself, records itself and names a bad option.
#include <kymo/c.h>
#include <stdio.h>
#include <string.h>

static int fail(const char* what) {
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(void) {
    char error[200] = "";
    if (kymo_session_start("policy=nonsense", error, sizeof error) != 0)
        return fail("a bad option was accepted");
    if (strstr(error, "nonsense") == NULL) return fail("the error does not name the option");
    if (kymo_is_recording()) return fail("recording before any session");

    const uint64_t session = kymo_session_start("max=1MB,policy=ring", error, sizeof error);
    if (session == 0) return fail(error);
    if (!kymo_is_recording()) return fail("not recording");
    const kymo_site site = kymo_intern("work", __FILE__, __LINE__, KYMO_SCOPE_FUNCTION);
    if (site == 0 || site != kymo_intern("work", __FILE__, __LINE__ - 1, KYMO_SCOPE_FUNCTION)) {
        return fail("one place, two sites");
    }
    kymo_begin(site);
    kymo_begin_named("inner");
    kymo_end();
    kymo_end();
    const uint64_t id = kymo_async_begin(site);
    if (id == 0) return fail("no id for an async range");
    kymo_async_end(site, id);
    kymo_instant("point");
    kymo_counter_int("count", 3);
    kymo_counter_double("load", 0.5);
    kymo_thread_name("main");
    kymo_context* const context = kymo_context_capture();
    if (context == NULL) return fail("no context");
    kymo_adoption* const adoption = kymo_context_adopt(context);
    kymo_context_free(context);
    if (!kymo_is_recording()) return fail("a session of all threads is in every context");
    kymo_context_restore(adoption);
    kymo_session_stop(session);
    if (kymo_is_recording()) return fail("still recording");
    if (kymo_intern(NULL, NULL, 0, KYMO_SCOPE_USER) != 0) return fail("a site without a name");
    return 0;
}
