// inherited_context.h: the context inherited through a contextvars.Context.
#pragma once

#include <Python.h>

#include <optional>

#include <marey/context.h>

namespace marey::bindings {

/// The contextvars.ContextVar that holds a marey.Context while a session follows tasks, else null. Guarded by
/// the GIL.
extern PyObject* followed_variable;

/// Enters the context in the followed variable, if it holds one, for the lifetime of this object. Does not
/// change the Python error state.
class FollowedContext {
  public:
    FollowedContext() noexcept;
    ~FollowedContext();
    FollowedContext(const FollowedContext&) = delete;
    FollowedContext& operator=(const FollowedContext&) = delete;

  private:
    PyObject* value_ = nullptr;  ///< owned
    std::optional<ContextAdoption> adoption_;
};

/// Runs `open` if a range of this scope is recorded: here, or in the followed context.
template <class Open>
[[gnu::always_inline]] inline void open_if_recording(Scope scope, Open open) noexcept {
    if (detail::should_record(scope)) {
        open();
    } else if (followed_variable != nullptr) [[unlikely]] {
        const FollowedContext context;
        if (detail::should_record(scope)) open();
    }
}

}  // namespace marey::bindings
