/* nvtx_collector.c: an NVTX tool for tests. Writes what it receives to the file that MAREY_TEST_COLLECTED
 * names, a line each: the thread (1, 2, ... as they appear), what, text. */
#include <nvtx3/nvToolsExt.h>

#include "collected_lines.h"

static _Thread_local int depth;
static nvtxRangeId_t next_range;

static void on_mark(const char* text) {
    collected_line("mark %s", text);
}
static int on_push(const char* text) {
    collected_line("push %s", text);
    return depth++;
}
static int on_pop(void) {
    collected_line("%s", depth > 0 ? "pop" : "pop of nothing");
    if (depth == 0) return -1;
    return --depth;
}
static nvtxRangeId_t on_start(const char* text) {
    const nvtxRangeId_t range = __atomic_add_fetch(&next_range, 1, __ATOMIC_SEQ_CST);
    collected_line("start %llu %s", (unsigned long long)range, text);
    return range;
}
static void on_end(nvtxRangeId_t range) {
    collected_line("end %llu", (unsigned long long)range);
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    const NvtxExportTableCallbacks* const callbacks =
        (const NvtxExportTableCallbacks*)get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable functions = 0;
    unsigned int count = 0;
    if (callbacks == 0 || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &count) ||
        count <= NVTX_CBID_CORE_RangePop)
        return 0;
    *functions[NVTX_CBID_CORE_MarkA] = (NvtxFunctionPointer)on_mark;
    *functions[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)on_push;
    *functions[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)on_pop;
    *functions[NVTX_CBID_CORE_RangeStartA] = (NvtxFunctionPointer)on_start;
    *functions[NVTX_CBID_CORE_RangeEnd] = (NvtxFunctionPointer)on_end;
    return 1;
}
