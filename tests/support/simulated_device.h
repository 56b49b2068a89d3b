// simulated_device.h: for tests: the functions of libmarey_simulated.so, loaded as a user would.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include <marey/device.h>
#include <marey/simulated.h>

namespace simulated {

/// A function of the library, which find_device has loaded.
template <class Function>
Function* find(const char* name) {
    static void* const library = [] {
        marey::find_device("simulated");
        return dlopen(MAREY_TEST_BIN_DIR "/../libmarey_simulated.so", RTLD_NOW | RTLD_NOLOAD);
    }();
    void* const found = library != nullptr ? dlsym(library, name) : nullptr;
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
