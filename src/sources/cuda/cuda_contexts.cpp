// cuda_contexts.cpp: the primary contexts, reported by the driver, and those in which calls were seen.
#include "sources/cuda/cuda_contexts.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <utility>

#include <marey/detail/thread_safety.h>

namespace marey::cuda {

RelaxedCaptureMode::RelaxedCaptureMode(const Driver& driver) noexcept : driver_(driver), mode_(2) {
    driver_.capture_mode(&mode_);  // relaxed; receives the previous mode
}

RelaxedCaptureMode::~RelaxedCaptureMode() {
    driver_.capture_mode(&mode_);
}

CurrentContext::CurrentContext(const Driver& driver, void* context) noexcept
    : driver_(driver), is_pushed_(driver.context_push(context) == kCudaSuccess), outside_(driver) {}

CurrentContext::~CurrentContext() {
    void* popped = nullptr;
    if (is_pushed_) driver_.context_pop(&popped);
}

namespace {

/// The contexts in which calls were seen, and their users here. Never destroyed: callbacks arrive until the
/// process ends.
struct NotedContexts {
    struct Context {
        void* context;
        int users = 0;
        bool is_forgotten = false;  ///< removed with its last user
    };
    Mutex mutex;
    Condition unused;
    std::vector<Context> contexts MAREY_GUARDED_BY(mutex);
    std::atomic<std::uint32_t> forgotten{0};

    Context* find(void* context) MAREY_REQUIRES(mutex) {
        const auto found = std::find_if(contexts.begin(), contexts.end(),
                                        [&](const Context& each) { return each.context == context; });
        return found != contexts.end() ? &*found : nullptr;
    }
    void erase(void* context) MAREY_REQUIRES(mutex) {
        std::erase_if(contexts, [&](const Context& each) { return each.context == context; });
    }
};

NotedContexts& noted() {
    static auto& noted = *new NotedContexts;
    return noted;
}

/// Keeps a context from ending, if it was noted.
class UsedContext {
  public:
    explicit UsedContext(void* context) : context_(context) {
        const ScopedLock lock(noted().mutex);
        NotedContexts::Context* const found = noted().find(context);
        if (found == nullptr || found->is_forgotten) return;
        ++found->users;
        is_noted_ = true;
    }
    ~UsedContext() {
        if (!is_noted_) return;
        {
            const ScopedLock lock(noted().mutex);
            NotedContexts::Context* const found = noted().find(context_);
            if (found != nullptr && --found->users == 0 && found->is_forgotten) noted().erase(context_);
        }
        noted().unused.notify_all();
    }
    UsedContext(const UsedContext&) = delete;
    UsedContext& operator=(const UsedContext&) = delete;
    explicit operator bool() const noexcept { return is_noted_; }

  private:
    void* context_;
    bool is_noted_ = false;
};

/// The names of device properties, and the driver's numbers for them.
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

bool note_context(void* context) noexcept {
    if (context == nullptr) return false;
    const ScopedLock lock(noted().mutex);
    if (NotedContexts::Context* const found = noted().find(context))
        return std::exchange(found->is_forgotten, false);
    try {
        noted().contexts.push_back({.context = context});
    } catch (const std::bad_alloc&) {  // Marey does not wait for it then
    }
    return true;
}

void context_ends(void* context) noexcept {
    NotedContexts& all = noted();
    const ScopedLock lock(all.mutex);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    for (;;) {
        const NotedContexts::Context* const found = all.find(context);
        if (found == nullptr || found->users == 0 || !all.unused.wait_until(all.mutex, limit)) break;
    }
    all.erase(context);
    all.forgotten.fetch_add(1, std::memory_order_relaxed);
}

void forget_contexts() noexcept {
    const ScopedLock lock(noted().mutex);
    std::erase_if(noted().contexts, [](const NotedContexts::Context& each) { return each.users == 0; });
    for (NotedContexts::Context& each : noted().contexts) each.is_forgotten = true;
    noted().forgotten.fetch_add(1, std::memory_order_relaxed);
}

std::uint32_t contexts_forgotten() noexcept {
    return noted().forgotten.load(std::memory_order_relaxed);
}

void for_each_context(const std::function<void(int device, void* context)>& visit) {
    const Driver& driver = libraries().driver;
    int count = 0;
    if (!libraries().has_driver || driver.device_count(&count) != kCudaSuccess) return;
    std::vector<void*> visited;
    for (int device = 0; device < count; ++device) {
        unsigned flags = 0;
        int active = 0;
        void* context = nullptr;
        if (driver.primary_state(device, &flags, &active) != kCudaSuccess || active == 0) continue;
        if (driver.primary_retain(&context, device) != kCudaSuccess) continue;
        {
            const UsedContext used(context);
            visit(device, context);
        }
        visited.push_back(context);
        driver.primary_release(device);
    }
    std::vector<NotedContexts::Context> others;
    {
        const ScopedLock lock(noted().mutex);
        others = noted().contexts;
    }
    for (const NotedContexts::Context& other : others) {
        void* const context = other.context;
        if (std::find(visited.begin(), visited.end(), context) != visited.end()) continue;
        const UsedContext used(context);
        if (!used) continue;  // it has ended
        int device = 0;
        {
            const CurrentContext current(driver, context);
            if (!current || driver.context_device(&device) != kCudaSuccess) continue;
        }
        visit(device, context);
    }
}

std::uint64_t context_id(void* context) noexcept {
    unsigned long long id = 0;
    return libraries().driver.context_id(context, &id) == kCudaSuccess ? id : 0;
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

}  // namespace marey::cuda
