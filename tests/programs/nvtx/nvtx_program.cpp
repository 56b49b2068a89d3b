// nvtx_program.cpp: uses NVTX as libraries do, without using Marey. Usage: nvtx_program MODE.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <nvtx3/nvToolsExt.h>

namespace {

nvtxEventAttributes_t attributes(const char* text) {
    nvtxEventAttributes_t made{};
    made.version = NVTX_VERSION;
    made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    made.messageType = NVTX_MESSAGE_TYPE_ASCII;
    made.message.ascii = text;
    return made;
}

// Calls every function once. Prints their results.
void every_function() {
    nvtxInitialize(nullptr);
    nvtxNameOsThreadA(static_cast<std::uint32_t>(syscall(SYS_gettid)), "the main one");
    nvtxNameCategoryA(1, "first");
    nvtxNameCategoryW(2, L"zw\u00f6lf");
    nvtxEventAttributes_t event = attributes("push ex");
    event.category = 1;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff336699;
    event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    event.payload.iValue = -3;
    std::printf("%d ", nvtxRangePushA("push a"));
    std::printf("%d ", nvtxRangePushW(L"push w \u00e4"));
    std::printf("%d ", nvtxRangePushEx(&event));
    nvtxMarkA("mark a");
    nvtxMarkW(L"mark w");
    event.category = 2;
    nvtxMarkEx(&event);
    std::printf("%d ", nvtxRangePop());
    std::printf("%d ", nvtxRangePop());
    std::printf("%d ", nvtxRangePop());
    std::printf("%d\n", nvtxRangePop());

    auto* const domain = nvtxDomainCreateA("library");
    auto* const wide = nvtxDomainCreateW(L"library w");
    nvtxDomainNameCategoryA(domain, 1, "of the library");
    nvtxDomainNameCategoryW(wide, 1, L"of w");
    nvtxEventAttributes_t registered = attributes(nullptr);
    registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    registered.message.registered = nvtxDomainRegisterStringA(domain, "registered a");
    registered.category = 1;
    nvtxEventAttributes_t registered_wide = registered;
    registered_wide.message.registered = nvtxDomainRegisterStringW(wide, L"registered w");
    std::printf("%d ", nvtxDomainRangePushEx(domain, &registered));
    std::printf("%d ", nvtxDomainRangePushEx(wide, &registered_wide));
    nvtxDomainMarkEx(domain, &registered);
    std::printf("%d ", nvtxDomainRangePop(wide));
    std::printf("%d\n", nvtxDomainRangePop(domain));

    const nvtxRangeId_t ids[] = {nvtxRangeStartA("start a"), nvtxRangeStartW(L"start w"),
                                 nvtxRangeStartEx(&event), nvtxDomainRangeStartEx(domain, &registered)};
    std::thread([&] {  // begun there, ended here
        for (int i = 0; i < 3; ++i) nvtxRangeEnd(ids[i]);
        nvtxDomainRangeEnd(domain, ids[3]);
    })
        .join();
    nvtxDomainDestroy(domain);
    nvtxDomainDestroy(wide);
}

// Each thread has its own ranges within one of the library's, all at once.
void threads() {
    auto* const domain = nvtxDomainCreateA("library");
    std::vector<std::thread> running;
    running.reserve(8);
    for (int i = 0; i < 8; ++i) {
        running.emplace_back([&domain, i] {
            const std::string name = "thread " + std::to_string(i);
            const nvtxEventAttributes_t inner = attributes("inner");
            for (int round = 0; round < 5000; ++round) {
                nvtxRangePushA(name.c_str());
                nvtxDomainRangePushEx(domain, &inner);
                nvtxDomainRangePop(domain);
                nvtxRangePop();
            }
        });
    }
    for (std::thread& thread : running) thread.join();
}

void forks() {
    nvtxRangePushA("of both");
    const pid_t child = fork();
    nvtxRangePushA(child == 0 ? "of the child" : "of the parent");
    nvtxRangePop();
    nvtxRangePop();
    if (child != 0) waitpid(child, nullptr, 0);
}

}  // namespace

int main(int count, char** words) {
    const std::string mode = count > 1 ? words[1] : "";
    if (mode == "every_function") {
        every_function();
    } else if (mode == "threads") {
        threads();
    } else if (mode == "forks") {
        forks();
    } else {
        return 2;
    }
}
