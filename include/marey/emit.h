// emit.h: ranges passed on to other tools as they happen: NVTX (Nsight) and ITT (VTune).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include <marey/detail/export.h>

namespace marey {

struct EmitOptions {
    /// Sizes of arrays among the inputs, and which ranges produced them, go into the text.
    bool record_shapes = false;
};

/// Passes the ranges and instants of every thread on to NVTX, from its construction to stop(). One of a kind
/// may run at a time; sessions and other observers beside it do not matter. A range is pushed when it begins
/// and popped when it ends; one that was open before is not seen, and those that this thread has open at the
/// stop are popped then. Throws marey::Error when NVTX is not available or an emitter runs already.
class MAREY_API NvtxEmitter {
  public:
    explicit NvtxEmitter(const EmitOptions& options = {});
    ~NvtxEmitter();
    NvtxEmitter(const NvtxEmitter&) = delete;
    NvtxEmitter& operator=(const NvtxEmitter&) = delete;
    /// Any thread, any number of times.
    void stop() noexcept;

  private:
    std::atomic<std::uint64_t> run_{0};  ///< 0: stopped
};

/// The same for ITT. Ranges become tasks under their plain names, so that tools can group them; the rest of
/// the text follows as the task's metadata.
class MAREY_API IttEmitter {
  public:
    explicit IttEmitter(const EmitOptions& options = {});
    ~IttEmitter();
    IttEmitter(const IttEmitter&) = delete;
    IttEmitter& operator=(const IttEmitter&) = delete;
    void stop() noexcept;

  private:
    std::atomic<std::uint64_t> run_{0};
};

/// Marks and ranges by hand, on any thread. All but is_available() throw marey::Error where NVTX is not
/// available.
namespace nvtx {
/// Whether Marey was built with NVTX's header. The tool that listens, if any, is found by NVTX at run time.
MAREY_API bool is_available() noexcept;
MAREY_API void mark(std::string_view text);
/// Begins a range on this thread; gives its depth, from 0.
MAREY_API int range_push(std::string_view text);
/// Ends the innermost one that range_push() began on this thread; gives its depth. -1: there is none, and
/// what an emitter has pushed is left alone.
MAREY_API int range_pop();
/// Begins a range that any thread may end.
MAREY_API std::uint64_t range_start(std::string_view text);
MAREY_API void range_end(std::uint64_t range);
}  // namespace nvtx

/// The same for ITT.
namespace itt {
/// False when INTEL_LIBITTNOTIFY64 names a library that cannot be used as a collector. True without one: then
/// nobody listens, which is no error.
MAREY_API bool is_available() noexcept;
MAREY_API void mark(std::string_view text);
MAREY_API int range_push(std::string_view text);
MAREY_API int range_pop();
MAREY_API std::uint64_t range_start(std::string_view text);
MAREY_API void range_end(std::uint64_t range);
}  // namespace itt

}  // namespace marey
