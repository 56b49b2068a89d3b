// nvtx_tool.cpp: NVTX, through its header. NVTX itself finds the listening tool (NVTX_INJECTION64_PATH).
#include "emitters/annotation_backend.h"

#if MAREY_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace marey {
namespace {

#if MAREY_HAVE_NVTX

class NvtxTool final : public AnnotationBackend {
  public:
    // NVTX looks for its tool at the first call and stores the result where other threads read it without a
    // lock. So this happens here, before any thread emits.
    NvtxTool() noexcept : AnnotationBackend(0) { nvtxInitialize(nullptr); }

    const std::string& unavailable() noexcept override { return reason_; }
    int push(const std::string&, const std::string& text) override { return nvtxRangePushA(text.c_str()); }
    int pop() override { return nvtxRangePop(); }
    std::uint64_t begin(const std::string&, const std::string& text) override {
        return nvtxRangeStartA(text.c_str());
    }
    void end(std::uint64_t range) override { nvtxRangeEnd(range); }
    void mark(const std::string& text) override { nvtxMarkA(text.c_str()); }

  private:
    const std::string reason_;
};

#else

class NvtxTool final : public AnnotationBackend {
  public:
    NvtxTool() noexcept : AnnotationBackend(0) {}

    const std::string& unavailable() noexcept override { return reason_; }
    int push(const std::string&, const std::string&) override { return -1; }
    int pop() override { return -1; }
    std::uint64_t begin(const std::string&, const std::string&) override { return 0; }
    void end(std::uint64_t) override {}
    void mark(const std::string&) override {}

  private:
    const std::string reason_ = "Marey was built without the NVTX header, nvtx3/nvToolsExt.h";
};

#endif

}  // namespace

AnnotationBackend& nvtx_tool() noexcept {
    static NvtxTool& tool = *new NvtxTool;  // outlives every thread
    return tool;
}

}  // namespace marey
