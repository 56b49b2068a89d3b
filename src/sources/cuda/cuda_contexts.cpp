// cuda_contexts.cpp: only the primary contexts: those that CUDA's runtime, and so nearly everybody, uses.
#include "sources/cuda/cuda_contexts.h"

#include <cstdio>

namespace kymo::cuda {

CurrentContext::CurrentContext(const Driver& driver, void* context) noexcept
    : driver_(driver), is_pushed_(driver.context_push(context) == kCudaSuccess), capture_mode_(2) {
    driver_.capture_mode(&capture_mode_);  // relaxed; gives the mode that it was
}

CurrentContext::~CurrentContext() {
    driver_.capture_mode(&capture_mode_);
    void* popped = nullptr;
    if (is_pushed_) driver_.context_pop(&popped);
}

void for_each_context(const std::function<void(int device, void* context)>& visit) {
    const Driver& driver = libraries().driver;
    int count = 0;
    if (!libraries().has_driver || driver.device_count(&count) != kCudaSuccess) return;
    for (int device = 0; device < count; ++device) {
        unsigned flags = 0;
        int active = 0;
        void* context = nullptr;
        if (driver.primary_state(device, &flags, &active) != kCudaSuccess || active == 0) continue;
        if (driver.primary_retain(&context, device) != kCudaSuccess) continue;
        visit(device, context);
        driver.primary_release(device);
    }
}

std::string synchronize_contexts() {
    std::string trouble;
    for_each_context([&](int, void* context) {
        const Driver& driver = libraries().driver;
        const CurrentContext current(driver, context);
        if (!current) return;
        const CudaResult result = driver.context_synchronize();
        if (result != kCudaSuccess) trouble = cuda_error(result);
    });
    return trouble;
}

namespace {

/// Names of a device's properties, and the driver's numbers for them.
constexpr struct {
    const char* key;
    int attribute;
} kAttributes[] = {
    {"computeMajor", 75},
    {"computeMinor", 76},
    {"maxThreadsPerBlock", 1},
    {"maxThreadsPerMultiprocessor", 39},
    {"regsPerBlock", 12},
    {"warpSize", 10},
    {"sharedMemPerBlock", 8},
    {"numSms", 16},
    {"regsPerMultiprocessor", 82},
    {"sharedMemPerBlockOptin", 97},
    {"sharedMemPerMultiprocessor", 81},
    {"maxBlocksPerMultiprocessor", 106},
};

std::string quoted(const char* text) {
    std::string json = "\"";
    for (; *text != '\0'; ++text) {
        if (*text == '"' || *text == '\\') json += '\\';
        if (static_cast<unsigned char>(*text) >= 0x20) json += *text;
    }
    return json + "\"";
}

}  // namespace

std::string device_properties() {
    const Driver& driver = libraries().driver;
    int count = 0;
    if (!libraries().has_driver || driver.device_count(&count) != kCudaSuccess) return "";
    std::string json;
    for (int device = 0; device < count; ++device) {
        char name[256] = "";
        std::size_t memory = 0;
        driver.device_name(name, sizeof name, device);
        driver.device_memory(&memory, device);
        json += json.empty() ? "[" : ", ";
        json += "{\"id\": " + std::to_string(device) + ", \"name\": " + quoted(name) +
                ", \"totalGlobalMem\": " + std::to_string(memory);
        for (const auto& [key, attribute] : kAttributes) {
            int value = 0;
            if (driver.device_attribute(&value, attribute, device) != kCudaSuccess) continue;
            json += std::string(", \"") + key + "\": " + std::to_string(value);
        }
        json += "}";
    }
    return json.empty() ? "" : json + "]";
}

}  // namespace kymo::cuda
