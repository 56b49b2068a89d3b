// nvtx_plugin.cpp: loops in a library that uses NVTX.
#include <cstdint>

#if MAREY_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

nvtxEventAttributes_t attributes() {
    nvtxEventAttributes_t made{};
    made.version = NVTX_VERSION;
    made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    return made;
}

}  // namespace

EXPORTED void empty_loop(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) asm volatile("" ::: "memory");
}

EXPORTED void push_pop(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        nvtxRangePushA("benchmark of a library");
        nvtxRangePop();
    }
}

EXPORTED void push_pop_registered(std::int64_t count) {
    auto* const domain = nvtxDomainCreateA("library");
    nvtxEventAttributes_t event = attributes();
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    for (std::int64_t i = 0; i < count; ++i) {
        nvtxDomainRangePushEx(domain, &event);
        nvtxDomainRangePop(domain);
    }
}

EXPORTED void push_pop_values(std::int64_t count) {
    nvtxEventAttributes_t event = attributes();
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "with values";
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff112233;
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    for (std::int64_t i = 0; i < count; ++i) {
        event.payload.llValue = i;
        nvtxRangePushEx(&event);
        nvtxRangePop();
    }
}

EXPORTED void start_end(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) nvtxRangeEnd(nvtxRangeStartA("started"));
}
#endif
