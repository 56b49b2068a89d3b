-- nsight_schema.sql: tables of an export of Nsight Systems with the columns that Marey asks for, and two tables that it does
-- not read.
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE ThreadNames(globalTid, nameId);
CREATE TABLE PROCESSES(globalPid, pid, name);
CREATE TABLE ANALYSIS_DETAILS(duration, startTime, stopTime);
CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs, utcTime);
CREATE TABLE TARGET_INFO_GPU(id, name, totalMemory, smCount, threadsPerWarp, maxThreadsPerBlock, computeMajor, computeMinor);
CREATE TABLE TARGET_INFO_SYSTEM_ENV(name, value);
CREATE TABLE META_DATA_EXPORT(name, value);
CREATE TABLE NVTX_EVENTS(eventType, start, end, globalTid, text, textId, domainId, category, int64Value);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(nameId, correlationId, globalTid, start, end, returnValue);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(demangledName, shortName, mangledName, correlationId, globalPid, deviceId, contextId,
    streamId, start, end, registersPerThread, staticSharedMemory, dynamicSharedMemory, localMemoryPerThread, graphNodeId,
    gridX, gridY, gridZ, blockX, blockY, blockZ);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(copyKind, bytes, correlationId, globalPid, deviceId, contextId, streamId, start, end,
    srcKind, dstKind);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(value, bytes, correlationId, globalPid, deviceId, contextId, streamId, start, end);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(syncType, eventId, correlationId, globalPid, deviceId, contextId, streamId,
    start, end);
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(memoryOperationType, memKind, address, bytes, correlationId, globalPid, deviceId,
    start);
CREATE TABLE OSRT_API(nameId, globalTid, start, end);
CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER(id INTEGER PRIMARY KEY, name);
CREATE TABLE SCHED_EVENTS(start, cpu, isSchedIn, globalTid);
CREATE TABLE COMPOSITE_EVENTS(id INTEGER PRIMARY KEY, start, globalTid);
