// emit.h: forwards ranges to other tools as they happen: NVTX (Nsight) and ITT (VTune).
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include <marey/detail/export.h>

namespace marey {

/// Options of NvtxEmitter and IttEmitter.
struct EmitOptions {
    /// Include the sizes of array inputs, and the ranges that produced them, in the text.
    bool record_shapes = false;
};

/// Forwards the ranges and instants of every thread to NVTX, from construction to stop(). Only one
/// NvtxEmitter may run at a time; sessions and other observers do not interfere. A range is pushed when it
/// begins and popped when it ends. Ranges that were already open are not forwarded; ranges that the calling
/// thread has open at stop() are popped then. Throws marey::Error if NVTX is not available or an emitter
/// already runs.
class MAREY_API NvtxEmitter {
  public:
    explicit NvtxEmitter(const EmitOptions& options = {});
    ~NvtxEmitter();
    /// Stops forwarding. May be called from any thread, any number of times.
    void stop() noexcept;

  private:
    std::atomic<std::uint64_t> run_{0};  ///< 0: stopped
};

/// The same for ITT. Ranges become tasks with their plain names, so that tools can group them; the rest of
/// the text becomes metadata of the task.
class MAREY_API IttEmitter {
  public:
    explicit IttEmitter(const EmitOptions& options = {});
    ~IttEmitter();
    void stop() noexcept;

  private:
    std::atomic<std::uint64_t> run_{0};
};

/// NVTX marks and ranges, on any thread. All functions except is_available() throw marey::Error if NVTX is
/// not available.
namespace nvtx {
/// Whether Marey was built with NVTX's header. NVTX finds the tool that receives the ranges, if any, at run
/// time.
MAREY_API bool is_available() noexcept;
MAREY_API void mark(std::string_view text);
/// Begins a range on this thread and returns its depth, from 0.
MAREY_API int range_push(std::string_view text);
/// Ends the innermost range that range_push() began on this thread and returns its depth. Returns -1 if there
/// is none; ranges pushed by an emitter stay open.
MAREY_API int range_pop();
/// Begins a range that any thread may end.
MAREY_API std::uint64_t range_start(std::string_view text);
MAREY_API void range_end(std::uint64_t range);
}  // namespace nvtx

/// The same for ITT.
namespace itt {
/// Returns false if INTEL_LIBITTNOTIFY64 names a library that cannot be used as a collector. Returns true if
/// there is no collector; then the calls have no effect.
MAREY_API bool is_available() noexcept;
MAREY_API void mark(std::string_view text);
MAREY_API int range_push(std::string_view text);
MAREY_API int range_pop();
MAREY_API std::uint64_t range_start(std::string_view text);
MAREY_API void range_end(std::uint64_t range);
}  // namespace itt

}  // namespace marey
