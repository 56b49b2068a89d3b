-- nvprof_rows.sql: two threads of process 77 (0x4D): 0x64 (forward, with two operators in it) and 0x65; a kernel of
-- each operator, one between them, copies before and after. Objects are pairs of little-endian numbers.
INSERT INTO Version VALUES (9);
INSERT INTO StringTable VALUES (1, 'forward'), (2, 'aten::mm'), (3, 'aten::relu'), (4, 'worker'),
    (5, '_Z4gemmPfS_i'), (6, 'relu_kernel'), (7, 'checkpoint'), (8, 'Tesla V100'), (9, 'main thread'), (10, 'my domain');
INSERT INTO CUPTI_ACTIVITY_KIND_MARKER(flags, timestamp, id, objectKind, objectId, name, domain) VALUES
    (2, 1000, 1, 2, x'4D00000064000000', 1, 0), (2, 1100, 2, 2, x'4D00000064000000', 2, 0),
    (4, 1400, 2, 2, x'4D00000064000000', 0, 0), (2, 1500, 3, 2, x'4D00000064000000', 3, 0),
    (4, 1700, 3, 2, x'4D00000064000000', 0, 0), (4, 2000, 1, 2, x'4D00000064000000', 0, 0),
    (2, 1200, 4, 2, x'4D00000065000000', 4, 10), (4, 1900, 4, 2, x'4D00000065000000', 0, 0),
    (1, 1800, 5, 2, x'4D00000064000000', 7, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME(cbid, start, end, processId, threadId, correlationId, returnValue) VALUES
    (31, 1010, 1060, 77, 100, 11, 0), (211, 1150, 1250, 77, 100, 12, 0), (211, 1420, 1450, 77, 100, 13, 0),
    (211, 1550, 1600, 77, 100, 14, 0), (13, 1300, 1350, 77, 101, 15, 0), (20, 1710, 1720, 77, 100, 16, 2);
INSERT INTO CUPTI_ACTIVITY_KIND_DRIVER(cbid, start, end, processId, threadId, correlationId, returnValue) VALUES
    (307, 1160, 1240, 77, 100, 12, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(cacheConfig, sharedMemoryConfig, registersPerThread,
    partitionedGlobalCacheRequested, partitionedGlobalCacheExecuted, start, end, completed, deviceId, contextId, streamId,
    gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, localMemoryPerThread,
    localMemoryTotal, correlationId, gridId, name) VALUES
    (x'00', 1, 32, 0, 0, 1300, 1800, 1800, 0, 1, 7, 4, 2, 1, 128, 1, 1, 256, 1024, 0, 0, 12, 1, 5),
    (x'00', 1, 16, 0, 0, 1800, 1830, 1830, 0, 1, 7, 1, 1, 1, 64, 1, 1, 0, 0, 0, 0, 13, 2, 6),
    (x'00', 1, 16, 0, 0, 1830, 1900, 1900, 0, 1, 7, 1, 1, 1, 64, 1, 1, 0, 0, 0, 0, 14, 3, 6),
    (x'00', 1, 16, 0, 0, 1400, 1500, 1500, 0, 1, 9, 1, 1, 1, 64, 1, 1, 0, 0, 8, 512, 15, 4, 6);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY(copyKind, srcKind, dstKind, flags, bytes, start, end, deviceId, contextId, streamId,
    correlationId, runtimeCorrelationId) VALUES (1, 1, 3, 0, 4096, 1030, 1050, 0, 1, 7, 999, 11);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET(value, bytes, start, end, deviceId, contextId, streamId, correlationId, flags,
    memoryKind) VALUES (255, 64, 1910, 1920, 1, 1, 7, 998, 0, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_DEVICE(globalMemorySize, numThreadsPerWarp, numMultiprocessors, computeCapabilityMajor,
    computeCapabilityMinor, id, uuid, name) VALUES (17179869184, 32, 80, 7, 0, 0, x'0011', 8);
INSERT INTO CUPTI_ACTIVITY_KIND_NAME(objectKind, objectId, name) VALUES (2, x'4D00000064000000', 9);
INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD(overheadKind, objectKind, objectId, start, end) VALUES
    (1, 2, x'4D00000064000000', 1000, 1001), (1, 2, x'4D00000064000000', 1002, 1003);
