// lifecycle_plugin.cpp: a library with ranges, loaded and unloaded by tests.
#include <marey/all.h>

extern "C" __attribute__((visibility("default"))) void plugin_work(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        MAREY_RANGE("plug-in range", "round", i);
        MAREY_RANGE("plug-in inner");
    }
}
