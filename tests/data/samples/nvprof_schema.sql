-- nvprof_schema.sql: nvprof's tables with the columns that Marey asks for, and one table that it does not read.
CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE Version(version);
CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(_id_ INTEGER PRIMARY KEY, id, name, timestamp, flags, domain, objectKind, objectId);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(_id_ INTEGER PRIMARY KEY, cbid, correlationId, start, end, processId, threadId,
    returnValue);
CREATE TABLE CUPTI_ACTIVITY_KIND_DRIVER(_id_ INTEGER PRIMARY KEY, cbid, correlationId, start, end, processId, threadId,
    returnValue);
CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(_id_ INTEGER PRIMARY KEY, name, correlationId, start, end, deviceId,
    contextId, streamId, registersPerThread, staticSharedMemory, dynamicSharedMemory, localMemoryPerThread,
    gridX, gridY, gridZ, blockX, blockY, blockZ);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(_id_ INTEGER PRIMARY KEY, copyKind, bytes, correlationId, runtimeCorrelationId,
    start, end, deviceId, contextId, streamId, srcKind, dstKind);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(_id_ INTEGER PRIMARY KEY, value, bytes, correlationId, start, end, deviceId,
    contextId, streamId);
CREATE TABLE CUPTI_ACTIVITY_KIND_DEVICE(_id_ INTEGER PRIMARY KEY, id, name, globalMemorySize, numMultiprocessors,
    numThreadsPerWarp, computeCapabilityMajor, computeCapabilityMinor);
CREATE TABLE CUPTI_ACTIVITY_KIND_NAME(_id_ INTEGER PRIMARY KEY, name, objectKind, objectId);
CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD(_id_ INTEGER PRIMARY KEY, start, end);
