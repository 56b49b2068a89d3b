// lifecycle_plugin.cpp: a library with ranges of its own, loaded and unloaded by tests.
#include <kymo/kymo.h>

extern "C" __attribute__((visibility("default"))) void plugin_work(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        KYMO_RANGE("plug-in range", "round", i);
        KYMO_RANGE("plug-in inner");
    }
}
