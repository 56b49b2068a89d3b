// plain_program.cu: a CUDA program without Marey. It marks its work with NVTX and resets its device in between.
// plain_program [die|fork]: die: kills itself (SIGKILL) a while after its work; fork: works in a forked child.
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

__global__ void before_reset(float* values) { values[threadIdx.x] += 1; }
__global__ void after_reset(float* values) { values[threadIdx.x] *= 2; }

template <class Kernel>
void launch(const char* range, Kernel kernel, int times) {
    float* values = nullptr;
    cudaMalloc(&values, 4096);
    nvtxRangePushA(range);
    for (int i = 0; i < times; ++i) kernel<<<1, 32>>>(values);
    nvtxRangePop();
}

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "fork" && fork() != 0) return wait(nullptr) > 0 ? 0 : 1;
    for (int round = 0; round < 3; ++round) {
        launch("before", before_reset, 100);
        cudaDeviceSynchronize();
        cudaDeviceReset();
        launch("after", after_reset, 50);
    }
    if (mode == "die") {
        usleep(2'500'000);  // a crash may lose the last second
        raise(SIGKILL);
    }
    // The last round's kernels may still be running when the program ends.
    std::printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    return 3;
}
