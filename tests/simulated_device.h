// simulated_device.h: for tests: the functions of libkymo_simulated.so, found as a user of it would.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include <kymo/device.h>
#include <kymo/simulated.h>

namespace simulated {

/// A function of the library, which find_device has loaded.
template <class Function>
Function* find(const char* name) {
    static void* const library = [] {
        kymo::find_device("simulated");
        return dlopen(KYMO_TEST_BIN_DIR "/../libkymo_simulated.so", RTLD_NOW | RTLD_NOLOAD);
    }();
    void* const found = library != nullptr ? dlsym(library, name) : nullptr;
    if (found == nullptr) throw std::runtime_error(std::string("libkymo_simulated.so has no ") + name);
    return reinterpret_cast<Function*>(found);
}

#define KYMO_SIMULATED(name) \
    inline const auto name = ::simulated::find<decltype(kymo_simulated_##name)>("kymo_simulated_" #name)
KYMO_SIMULATED(configure);
KYMO_SIMULATED(reset);
KYMO_SIMULATED(launch);
KYMO_SIMULATED(copy);
KYMO_SIMULATED(set);
KYMO_SIMULATED(graph);
KYMO_SIMULATED(wait);
KYMO_SIMULATED(synchronize);
KYMO_SIMULATED(allocate);
KYMO_SIMULATED(release);
KYMO_SIMULATED(use);
KYMO_SIMULATED(lost);
#undef KYMO_SIMULATED

}  // namespace simulated
