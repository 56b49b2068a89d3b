// nvtx_library.cpp: a library with NVTX ranges in its own domain, for programs in any language.
#include <nvtx3/nvToolsExt.h>

/// Pushes and pops `rounds` ranges, and returns the depth of the first (-2: no tool listens).
extern "C" __attribute__((visibility("default"))) int library_work(int rounds) {
    static auto* const domain = nvtxDomainCreateA("library");
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "library work";
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    int depth = 0;
    for (int i = 0; i < rounds; ++i) {
        event.payload.llValue = i;
        const int pushed = nvtxDomainRangePushEx(domain, &event);
        if (i == 0) depth = pushed;
        nvtxDomainRangePop(domain);
    }
    return depth;
}
