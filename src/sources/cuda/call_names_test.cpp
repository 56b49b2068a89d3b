// call_names_test.cpp: which CUDA functions are recorded, and under what names.
#include "sources/cuda/call_names.h"

#include <gtest/gtest.h>

namespace marey::cuda {
namespace {

TEST(CallNames, LoseTheirVersions) {
    EXPECT_EQ(plain_call_name("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
    EXPECT_EQ(plain_call_name("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel");
    EXPECT_EQ(plain_call_name("cuMemcpyHtoD_v2_ptds"), "cuMemcpyHtoD");
    EXPECT_EQ(plain_call_name("cuLaunchKernel"), "cuLaunchKernel");
    EXPECT_EQ(plain_call_name("cuGraphAddNode_value"), "cuGraphAddNode_value");
    EXPECT_EQ(plain_call_name("_v2"), "_v2");
    EXPECT_EQ(plain_call_name(""), "");
}

TEST(CallNames, AllRuntimeCallsAreRecordedExceptTheMostFrequentQueries) {
    EXPECT_TRUE(is_traced_runtime_call("cudaLaunchKernel"));
    EXPECT_TRUE(is_traced_runtime_call("cudaEventRecord"));
    EXPECT_TRUE(is_traced_runtime_call("cudaOfTomorrow"));
    EXPECT_FALSE(is_traced_runtime_call("cudaGetDevice"));
    EXPECT_TRUE(is_traced_runtime_call("cudaStreamIsCapturing"));
    EXPECT_FALSE(is_traced_runtime_call("cudaPeekAtLastError"));
    EXPECT_TRUE(is_traced_runtime_call("__cudaLaunchKernel"));
    EXPECT_FALSE(is_traced_runtime_call("__cudaPushCallConfiguration"));
}

TEST(CallNames, OnlyDriverCallsThatLaunchWorkOrWaitAreRecorded) {
    EXPECT_TRUE(is_traced_driver_call("cuLaunchKernelEx"));
    EXPECT_TRUE(is_traced_driver_call("cuCtxSynchronize"));
    EXPECT_FALSE(is_traced_driver_call("cuCtxGetDevice"));
    EXPECT_FALSE(is_traced_driver_call("cuOfTomorrow"));
}

}  // namespace
}  // namespace marey::cuda
