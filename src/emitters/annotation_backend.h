// annotation_backend.h: what an outside tool takes: ranges on a thread, ranges of their own, marks.
#pragma once

#include <cstdint>
#include <string>

namespace marey {

/// One outside tool. There is one object of each kind, which lives as long as the process. Any thread may
/// call.
class AnnotationBackend {
  public:
    explicit AnnotationBackend(unsigned number) noexcept : number_(number) {}
    AnnotationBackend(const AnnotationBackend&) = delete;
    AnnotationBackend& operator=(const AnnotationBackend&) = delete;

    /// Why it cannot be used; empty: it can.
    virtual const std::string& unavailable() noexcept = 0;
    /// Begins a range on the calling thread. `text` is all that is known of it, and begins with its name.
    /// Gives its depth as the tool sees it; negative: the tool does not say. kNotTaken: nobody listens now,
    /// and there is nothing to pop.
    static constexpr int kNotTaken = -2;
    virtual int push(const std::string& name, const std::string& text) = 0;
    /// Ends the innermost one.
    virtual int pop() = 0;
    /// Begins a range that any thread may end. 0: nobody listens now, and end() does nothing with it.
    virtual std::uint64_t begin(const std::string& name, const std::string& text) = 0;
    virtual void end(std::uint64_t range) = 0;
    virtual void mark(const std::string& text) = 0;

    /// Its place among the tools.
    unsigned number() const noexcept { return number_; }

  protected:
    ~AnnotationBackend() = default;

  private:
    unsigned number_;
};

inline constexpr unsigned kAnnotationBackends = 2;

AnnotationBackend& nvtx_tool() noexcept;
AnnotationBackend& itt_tool() noexcept;

}  // namespace marey
