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
INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES
    (1, 5, 12, 1300, 1800, 0, 1, 7, 32, 256, 1024, 0, 4, 2, 1, 128, 1, 1),
    (2, 6, 13, 1800, 1830, 0, 1, 7, 16, 0, 0, 0, 1, 1, 1, 64, 1, 1),
    (3, 6, 14, 1830, 1900, 0, 1, 7, 16, 0, 0, 0, 1, 1, 1, 64, 1, 1),
    (4, 6, 15, 1400, 1500, 0, 1, 9, 16, 0, 0, 8, 1, 1, 1, 64, 1, 1);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 1, 4096, 999, 11, 1030, 1050, 0, 1, 7, 1, 3);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1, 255, 64, 998, 1910, 1920, 1, 1, 7);
INSERT INTO CUPTI_ACTIVITY_KIND_DEVICE VALUES (1, 0, 8, 17179869184, 80, 32, 7, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_NAME(objectKind, objectId, name) VALUES (2, x'4D00000064000000', 9);
INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES (1, 1000, 1001), (2, 1002, 1003);
