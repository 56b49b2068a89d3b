// cupti_records_test.cpp: compares our declarations of CUPTI's records with NVIDIA's header, if installed.
#include "sources/cuda/cupti_records.h"

#include <gtest/gtest.h>

#if MAREY_HAVE_CUPTI
#include <cupti.h>
#endif

namespace marey::cuda {
namespace {

#if MAREY_HAVE_CUPTI

#define MAREY_SAME(ours, our_field, theirs, their_field)                        \
    static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
                      sizeof(ours::our_field) == sizeof(theirs::their_field),   \
                  #theirs "::" #their_field)

MAREY_SAME(KernelRecord, registers_per_thread, CUpti_ActivityKernel10, registersPerThread);
MAREY_SAME(KernelRecord, start, CUpti_ActivityKernel10, start);
MAREY_SAME(KernelRecord, end, CUpti_ActivityKernel10, end);
MAREY_SAME(KernelRecord, device, CUpti_ActivityKernel10, deviceId);
MAREY_SAME(KernelRecord, context, CUpti_ActivityKernel10, contextId);
MAREY_SAME(KernelRecord, stream, CUpti_ActivityKernel10, streamId);
static_assert(offsetof(KernelRecord, grid) == offsetof(CUpti_ActivityKernel10, gridX));
static_assert(offsetof(KernelRecord, block) == offsetof(CUpti_ActivityKernel10, blockX));
MAREY_SAME(KernelRecord, static_shared, CUpti_ActivityKernel10, staticSharedMemory);
MAREY_SAME(KernelRecord, dynamic_shared, CUpti_ActivityKernel10, dynamicSharedMemory);
MAREY_SAME(KernelRecord, correlation, CUpti_ActivityKernel10, correlationId);
MAREY_SAME(KernelRecord, name, CUpti_ActivityKernel10, name);
MAREY_SAME(KernelRecord, graph_node, CUpti_ActivityKernel10, graphNodeId);
MAREY_SAME(KernelRecord, graph, CUpti_ActivityKernel10, graphId);

MAREY_SAME(CopyRecord, copy_kind, CUpti_ActivityMemcpy6, copyKind);
MAREY_SAME(CopyRecord, source_kind, CUpti_ActivityMemcpy6, srcKind);
MAREY_SAME(CopyRecord, target_kind, CUpti_ActivityMemcpy6, dstKind);
MAREY_SAME(CopyRecord, bytes, CUpti_ActivityMemcpy6, bytes);
MAREY_SAME(CopyRecord, start, CUpti_ActivityMemcpy6, start);
MAREY_SAME(CopyRecord, device, CUpti_ActivityMemcpy6, deviceId);
MAREY_SAME(CopyRecord, stream, CUpti_ActivityMemcpy6, streamId);
MAREY_SAME(CopyRecord, correlation, CUpti_ActivityMemcpy6, correlationId);
MAREY_SAME(PeerCopyRecord, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
MAREY_SAME(PeerCopyRecord, source_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
MAREY_SAME(PeerCopyRecord, target_context, CUpti_ActivityMemcpyPtoP4, dstContextId);
MAREY_SAME(PeerCopyRecord, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
MAREY_SAME(SetRecord, bytes, CUpti_ActivityMemset4, bytes);
MAREY_SAME(SetRecord, start, CUpti_ActivityMemset4, start);
MAREY_SAME(SetRecord, correlation, CUpti_ActivityMemset4, correlationId);
MAREY_SAME(SetRecord, memory_kind, CUpti_ActivityMemset4, memoryKind);
MAREY_SAME(EventRecord, correlation, CUpti_ActivityCudaEvent2, correlationId);
MAREY_SAME(EventRecord, context, CUpti_ActivityCudaEvent2, contextId);
MAREY_SAME(EventRecord, stream, CUpti_ActivityCudaEvent2, streamId);
MAREY_SAME(EventRecord, event, CUpti_ActivityCudaEvent2, eventId);
MAREY_SAME(WaitRecord, type, CUpti_ActivitySynchronization2, type);
MAREY_SAME(WaitRecord, start, CUpti_ActivitySynchronization2, start);
MAREY_SAME(WaitRecord, correlation, CUpti_ActivitySynchronization2, correlationId);
MAREY_SAME(WaitRecord, stream, CUpti_ActivitySynchronization2, streamId);
MAREY_SAME(WaitRecord, event, CUpti_ActivitySynchronization2, cudaEventId);
MAREY_SAME(OverheadRecord, overhead_kind, CUpti_ActivityOverhead3, overheadKind);
MAREY_SAME(OverheadRecord, object_kind, CUpti_ActivityOverhead3, objectKind);
MAREY_SAME(OverheadRecord, object, CUpti_ActivityOverhead3, objectId);
MAREY_SAME(OverheadRecord, start, CUpti_ActivityOverhead3, start);
MAREY_SAME(OverheadRecord, end, CUpti_ActivityOverhead3, end);
MAREY_SAME(MemoryRecord, operation, CUpti_ActivityMemory4, memoryOperationType);
MAREY_SAME(MemoryRecord, memory_kind, CUpti_ActivityMemory4, memoryKind);
MAREY_SAME(MemoryRecord, address, CUpti_ActivityMemory4, address);
MAREY_SAME(MemoryRecord, bytes, CUpti_ActivityMemory4, bytes);
MAREY_SAME(MemoryRecord, time, CUpti_ActivityMemory4, timestamp);
MAREY_SAME(MemoryRecord, device, CUpti_ActivityMemory4, deviceId);
MAREY_SAME(UnifiedMemoryRecord, counter_kind, CUpti_ActivityUnifiedMemoryCounter3, counterKind);
MAREY_SAME(UnifiedMemoryRecord, value, CUpti_ActivityUnifiedMemoryCounter3, value);
MAREY_SAME(UnifiedMemoryRecord, start, CUpti_ActivityUnifiedMemoryCounter3, start);
MAREY_SAME(UnifiedMemoryRecord, source, CUpti_ActivityUnifiedMemoryCounter3, srcId);
MAREY_SAME(UnifiedMemoryRecord, stream, CUpti_ActivityUnifiedMemoryCounter3, streamId);
MAREY_SAME(UnifiedMemoryConfig, device, CUpti_ActivityUnifiedMemoryCounterConfig, deviceId);
static_assert(sizeof(SubscriberParams) == sizeof(CUpti_SubscriberParams));
MAREY_SAME(CallbackData, site, CUpti_CallbackData, callbackSite);
MAREY_SAME(CallbackData, result, CUpti_CallbackData, functionReturnValue);
MAREY_SAME(CallbackData, context, CUpti_CallbackData, context);
MAREY_SAME(CallbackData, correlation, CUpti_CallbackData, correlationId);
MAREY_SAME(ResourceData, context, CUpti_ResourceData, context);

TEST(CuptiRecords, KindsHaveTheNumbersOfTheHeader) {
    EXPECT_EQ(kActivityKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    EXPECT_EQ(kActivityMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
    EXPECT_EQ(kActivityMemcpyPeer, CUPTI_ACTIVITY_KIND_MEMCPY2);
    EXPECT_EQ(kActivityMemset, CUPTI_ACTIVITY_KIND_MEMSET);
    EXPECT_EQ(kActivityOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
    EXPECT_EQ(kActivityUnifiedMemory, CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
    EXPECT_EQ(kActivityEvent, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
    EXPECT_EQ(kActivitySynchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    EXPECT_EQ(kActivityMemory, CUPTI_ACTIVITY_KIND_MEMORY2);
    EXPECT_EQ(kCuptiMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_EQ(kCuptiMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
    EXPECT_EQ(kDriverCalls, CUPTI_CB_DOMAIN_DRIVER_API);
    EXPECT_EQ(kRuntimeCalls, CUPTI_CB_DOMAIN_RUNTIME_API);
    EXPECT_EQ(kResourceEvents, CUPTI_CB_DOMAIN_RESOURCE);
    EXPECT_EQ(kContextEnds, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
    EXPECT_EQ(kCallBegins, CUPTI_API_ENTER);
    EXPECT_EQ(kCallEnds, CUPTI_API_EXIT);
}

#else

TEST(CuptiRecords, KindsHaveTheNumbersOfTheHeader) {
    GTEST_SKIP() << "CUPTI's header is not installed";
}

#endif

}  // namespace
}  // namespace marey::cuda
