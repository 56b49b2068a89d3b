// device_cuda.cpp: the tests for every device, on NVIDIA GPUs. Needs nothing of CUDA to build; without a GPU
// every test is skipped, with the reason.
#include <dlfcn.h>

#include <set>

#include "support/device_list.h"

#if defined(__SANITIZE_THREAD__)
// The child of a fork starts a thread here (the recorder's), which works.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
    return "die_after_fork=0";
}
#endif

namespace {

using Result = int;

/// The driver's functions, with its handles as plain pointers.
struct Driver {
    Result (*init)(unsigned flags);
    Result (*device_count)(int* count);
    Result (*device_get)(int* device, int ordinal);
    Result (*primary_retain)(void** context, int device);
    Result (*set_current)(void* context);
    Result (*context_create)(void** context, unsigned flags, int device);
    Result (*context_destroy)(void* context);
    Result (*allocate)(std::uint64_t* address, std::size_t bytes);
    Result (*set_bytes)(std::uint64_t address, unsigned char value, std::size_t bytes);
    Result (*synchronize)();
    Result (*stream_create)(void** stream, unsigned flags);
    Result (*begin_capture)(void* stream, int mode);
    Result (*end_capture)(void* stream, void** graph);
    Result (*instantiate)(void** executable, void* graph, unsigned long long flags);
    Result (*graph_launch)(void* executable, void* stream);
    Result (*module_load)(void** module, const void* image);
    Result (*module_function)(void** function, void* module, const char* name);
    Result (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned shared, void* stream, void** parameters, void** extra);
};

// Waits on the GPU's clock, so that it lasts for the given time.
constexpr const char* kProgram = R"(
.version 7.0
.target sm_50
.address_size 64
.visible .entry marey_list_kernel(.param .u64 duration)
{
    .reg .pred %more;
    .reg .b64 %duration, %start, %now, %passed;
    ld.param.u64 %duration, [duration];
    mov.u64 %start, %globaltimer;
AGAIN:
    mov.u64 %now, %globaltimer;
    sub.u64 %passed, %now, %start;
    setp.lt.u64 %more, %passed, %duration;
    @%more bra AGAIN;
    ret;
}
)";

constexpr int kQueues = 4;

struct OnDevice {
    void* context = nullptr;
    void* function = nullptr;
    void* queues[kQueues] = {};
};

struct Cuda {
    Driver driver{};
    std::vector<OnDevice> devices;
    std::string trouble;

    void check(Result result, const char* what) {
        if (result != 0 && trouble.empty())
            trouble = std::string(what) + " gave error " + std::to_string(result);
    }

    template <class Function>
    void find(void* library, Function& place, const char* name) {
        place = reinterpret_cast<Function>(dlsym(library, name));
        if (place == nullptr && trouble.empty()) trouble = std::string("libcuda.so.1 has no ") + name;
    }

    Cuda() {
        void* const library = dlopen("libcuda.so.1", RTLD_NOW);
        if (library == nullptr) {
            trouble = std::string("no NVIDIA driver: ") + dlerror();
            return;
        }
        find(library, driver.init, "cuInit");
        find(library, driver.device_count, "cuDeviceGetCount");
        find(library, driver.device_get, "cuDeviceGet");
        find(library, driver.primary_retain, "cuDevicePrimaryCtxRetain");
        find(library, driver.set_current, "cuCtxSetCurrent");
        find(library, driver.context_create, "cuCtxCreate_v2");
        find(library, driver.context_destroy, "cuCtxDestroy_v2");
        find(library, driver.allocate, "cuMemAlloc_v2");
        find(library, driver.set_bytes, "cuMemsetD8_v2");
        find(library, driver.synchronize, "cuCtxSynchronize");
        find(library, driver.stream_create, "cuStreamCreate");
        find(library, driver.begin_capture, "cuStreamBeginCapture_v2");
        find(library, driver.end_capture, "cuStreamEndCapture");
        find(library, driver.instantiate, "cuGraphInstantiateWithFlags");
        find(library, driver.graph_launch, "cuGraphLaunch");
        find(library, driver.module_load, "cuModuleLoadData");
        find(library, driver.module_function, "cuModuleGetFunction");
        find(library, driver.launch, "cuLaunchKernel");
        if (!trouble.empty()) return;
        check(driver.init(0), "cuInit");
        int count = 0;
        if (trouble.empty()) check(driver.device_count(&count), "cuDeviceGetCount");
        if (trouble.empty() && count == 0) trouble = "there is no GPU";
        for (int i = 0; trouble.empty() && i < count; ++i) add_device(i);
        if (trouble.empty()) trouble = marey::device_error("cuda");
        if (trouble.empty()) {
            const auto device = marey::find_device("cuda");
            if (device->activities() == nullptr) trouble = device->activities_error();
        }
    }

    void add_device(int ordinal) {
        OnDevice made;
        int device = 0;
        check(driver.device_get(&device, ordinal), "cuDeviceGet");
        if (trouble.empty()) check(driver.primary_retain(&made.context, device), "cuDevicePrimaryCtxRetain");
        if (trouble.empty()) prepare(made);
        devices.push_back(made);
    }

    /// Makes its context current, and what kernels need there.
    void prepare(OnDevice& made) {
        void* module = nullptr;
        check(driver.set_current(made.context), "cuCtxSetCurrent");
        if (trouble.empty()) check(driver.module_load(&module, kProgram), "cuModuleLoadData");
        if (trouble.empty())
            check(driver.module_function(&made.function, module, "marey_list_kernel"), "cuModuleGetFunction");
        for (void*& queue : made.queues) {
            if (trouble.empty()) check(driver.stream_create(&queue, 1), "cuStreamCreate");  // 1: non-blocking
        }
    }

    static Cuda& get() {
        static auto& cuda = *new Cuda;
        return cuda;
    }
};

struct CudaDriver {
    static const char* name() { return "cuda"; }
    static std::string why_not() { return Cuda::get().trouble; }
    static int devices() { return static_cast<int>(Cuda::get().devices.size()); }

    static void launch(int device, int queue, std::uint64_t ns) {
        const OnDevice& on = use(device);
        put(on, on.queues[queue % kQueues], ns);
    }
    static void put(const OnDevice& on, void* stream, std::uint64_t ns) {
        void* parameters[] = {&ns};
        ASSERT_EQ(Cuda::get().driver.launch(on.function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr),
                  0);
    }
    static void graph(int device, int queue, int count) {
        const OnDevice& on = use(device);
        void* const stream = on.queues[queue % kQueues];
        void* const executable = graph_of(on, count);
        ASSERT_EQ(Cuda::get().driver.graph_launch(executable, stream), 0);
    }
    static void synchronize(int device) {
        use(device);
        ASSERT_EQ(Cuda::get().driver.synchronize(), 0);
    }
    static bool is_kernel(const std::string& shown) { return shown == "marey_list_kernel"; }
    static bool is_launch(const std::string& shown) { return shown == "cuLaunchKernel"; }
    static bool is_graph(const std::string& shown) { return shown == "cuGraphLaunch"; }
    static bool is_synchronize(const std::string& shown) { return shown == "cuCtxSynchronize"; }
    static const char* clock_fact() { return "gpu_clock"; }
    static bool works_after_fork() { return false; }

  private:
    static const OnDevice& use(int device) {
        const OnDevice& on = Cuda::get().devices.at(static_cast<std::size_t>(device));
        EXPECT_EQ(Cuda::get().driver.set_current(on.context), 0);
        return on;
    }
    /// `count` kernels, one after the other; captured once by each thread, in a queue that is not used
    /// otherwise.
    static void* graph_of(const OnDevice& on, int count) {
        thread_local std::map<std::pair<const OnDevice*, int>, void*> made;
        void*& executable = made[{&on, count}];
        if (executable != nullptr) return executable;
        const Driver& driver = Cuda::get().driver;
        void* stream = nullptr;
        void* graph = nullptr;
        EXPECT_EQ(driver.stream_create(&stream, 1), 0);
        EXPECT_EQ(driver.begin_capture(stream, 1), 0);  // 1: of this thread
        for (int i = 0; i < count; ++i) put(on, stream, 1000);
        EXPECT_EQ(driver.end_capture(stream, &graph), 0);
        EXPECT_EQ(driver.instantiate(&executable, graph, 0), 0);
        return executable;
    }
};

class CudaDevice : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!Cuda::get().trouble.empty()) GTEST_SKIP() << Cuda::get().trouble;
    }
    /// An additional context beside the device's, current on this thread.
    static OnDevice make_context() {
        OnDevice made;
        EXPECT_EQ(Cuda::get().driver.context_create(&made.context, 0, 0), 0);
        Cuda::get().prepare(made);
        EXPECT_EQ(Cuda::get().trouble, "");
        return made;
    }
};

TEST_F(CudaDevice, WorkInAContextThatTheProgramMadeItselfIsWaitedFor) {
    const OnDevice own = make_context();
    marey::Session session(device_list::options_of<CudaDriver>());
    {
        MAREY_RANGE("own");
        for (int i = 0; i < 8; ++i) CudaDriver::put(own, own.queues[i % kQueues], 10'000'000);
    }
    const auto reading = device_list::Reading::of<CudaDriver>(session.stop());
    EXPECT_EQ(reading.by_range(), (device_list::Counts{{"own", 8}}));
    EXPECT_EQ(reading.problem("device_work_missing"), 0u);
    EXPECT_EQ(Cuda::get().driver.context_destroy(own.context), 0);
}

TEST_F(CudaDevice, ContextsMayComeAndGoWhileASessionRuns) {
    marey::Session session(device_list::options_of<CudaDriver>());
    for (int round = 0; round < 5; ++round) {
        const OnDevice own = make_context();
        {
            MAREY_RANGE("own");
            CudaDriver::put(own, own.queues[0], 1'000'000);
        }
        marey::Session(device_list::options_of<CudaDriver>()).stop();  // which waits for every context
        EXPECT_EQ(Cuda::get().driver.context_destroy(own.context), 0);
    }
    {
        MAREY_RANGE("device's");
        CudaDriver::launch(0, 0, 1000);
    }
    const auto reading = device_list::Reading::of<CudaDriver>(session.stop());
    EXPECT_EQ(reading.by_range(), (device_list::Counts{{"own", 5}, {"device's", 1}}));
    EXPECT_EQ(reading.problem("device_work_missing"), 0u);
}

// L19: a pool for each context, and not for a later one with the same address.
TEST_F(CudaDevice, EventsMayBeRecordedInContextsThatComeAndGo) {
    const auto device = marey::find_device("cuda");
    for (int round = 0; round < 3; ++round) {
        const OnDevice own = make_context();
        for (int i = 0; i < 3; ++i) {  // the later ones out of the pool
            const auto first = device->record();
            CudaDriver::put(own, nullptr, 2'000'000);
            const auto last = device->record();
            ASSERT_NE(last, nullptr);
            EXPECT_EQ(device->has_reached(*last), false);
            EXPECT_GE(device->elapsed_us(*first, *last), 2000);
            EXPECT_EQ(device->has_reached(*last), true);
        }
        EXPECT_EQ(Cuda::get().driver.context_destroy(own.context), 0);
        EXPECT_EQ(Cuda::get().driver.set_current(nullptr), 0);
        EXPECT_EQ(device->record(), nullptr);
    }
}

TEST_F(CudaDevice, EventsOfAContextThatHasEndedHaveNoTime) {
    const auto device = marey::find_device("cuda");
    const OnDevice own = make_context();
    const auto first = device->record();
    const auto last = device->record();
    EXPECT_EQ(Cuda::get().driver.context_destroy(own.context), 0);
    EXPECT_EQ(device->has_reached(*last), true);  // there is nothing to wait for
    EXPECT_THROW(device->elapsed_us(*first, *last), marey::Error);
}

TEST_F(CudaDevice, EveryDeviceIsVisitedOnceHoweverManyContextsItHas) {
    const OnDevice own = make_context();
    marey::Session session(device_list::options_of<CudaDriver>());
    CudaDriver::put(own, nullptr, 1000);
    std::vector<int> visited;
    marey::find_device("cuda")->on_each_device([&](std::int32_t device) { visited.push_back(device); });
    session.stop();
    EXPECT_EQ(visited.size(), std::set<int>(visited.begin(), visited.end()).size());
    EXPECT_FALSE(visited.empty());
    EXPECT_EQ(Cuda::get().driver.context_destroy(own.context), 0);
}

TEST_F(CudaDevice, AMemorySetIsUnderItsCallWithItsBytes) {
    CudaDriver::synchronize(0);
    std::uint64_t address = 0;
    ASSERT_EQ(Cuda::get().driver.allocate(&address, 4096), 0);
    marey::Session session(device_list::options_of<CudaDriver>());
    ASSERT_EQ(Cuda::get().driver.set_bytes(address, 7, 4096), 0);
    const marey::Trace trace = session.stop();
    ASSERT_EQ(trace.links().size(), 1u);
    EXPECT_EQ(trace.range_name(trace.links()[0].from), "cuMemsetD8");
    EXPECT_EQ(trace.range_name(trace.links()[0].to), "Memset (Device)");
}

TEST_F(CudaDevice, AHundredThousandLaunchesAreNeverBeforeTheirCallsNorAfterTheirWaits) {
    device_list::check_clock<CudaDriver>(100'000);
}

}  // namespace

namespace device_list {
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, DeviceList, ::CudaDriver);
}  // namespace device_list
