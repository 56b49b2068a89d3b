// simulated_device.h: the functions of libmarey_simulated.so, which registers its device when it is loaded.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include <marey/device.h>

#include "simulated/simulated.h"

namespace simulated {

/// The library, which is loaded and registers its device at the first call.
inline void* library() {
    static void* const loaded = [] {
        void* const handle = dlopen(MAREY_TEST_BIN_DIR "/libmarey_simulated.so", RTLD_NOW);
        if (handle == nullptr) throw std::runtime_error(dlerror());
        reinterpret_cast<void (*)()>(dlsym(handle, "marey_register_device"))();
        return handle;
    }();
    return loaded;
}

template <class Function>
Function* find(const char* name) {
    void* const found = dlsym(library(), name);
    if (found == nullptr) throw std::runtime_error(std::string("libmarey_simulated.so has no ") + name);
    return reinterpret_cast<Function*>(found);
}

#define MAREY_SIMULATED(name) \
    inline const auto name = ::simulated::find<decltype(marey_simulated_##name)>("marey_simulated_" #name)
MAREY_SIMULATED(configure);
MAREY_SIMULATED(reset);
MAREY_SIMULATED(launch);
MAREY_SIMULATED(copy);
MAREY_SIMULATED(set);
MAREY_SIMULATED(graph);
MAREY_SIMULATED(wait);
MAREY_SIMULATED(synchronize);
MAREY_SIMULATED(allocate);
MAREY_SIMULATED(release);
MAREY_SIMULATED(use);
MAREY_SIMULATED(lost);
#undef MAREY_SIMULATED

}  // namespace simulated
