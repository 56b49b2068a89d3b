// annotation_backend.h: the interface to another tool: nested ranges on a thread, free ranges, marks.
#pragma once

#include <cstdint>
#include <string>

namespace marey {

/// Another tool. There is one object of each kind, which lives as long as the process. Any thread may call.
class AnnotationBackend {
  public:
    explicit AnnotationBackend(unsigned number) noexcept : number_(number) {}
    AnnotationBackend(const AnnotationBackend&) = delete;
    AnnotationBackend& operator=(const AnnotationBackend&) = delete;

    /// The reason why it cannot be used; empty if it can.
    virtual const std::string& unavailable() noexcept = 0;
    /// Begins a range on the calling thread. `text` begins with its name and adds further details. Returns
    /// the depth reported by the tool; negative: the tool reports none. kNotTaken: no tool is listening, and
    /// there is nothing to pop.
    static constexpr int kNotTaken = -2;
    virtual int push(const std::string& name, const std::string& text) = 0;
    /// Ends the innermost range.
    virtual int pop() = 0;
    /// Begins a range that any thread may end. 0: no tool is listening; end() ignores it.
    virtual std::uint64_t begin(const std::string& name, const std::string& text) = 0;
    virtual void end(std::uint64_t range) = 0;
    virtual void mark(const std::string& text) = 0;

    /// The index of this tool.
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
