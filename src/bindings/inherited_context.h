// inherited_context.h: the context that comes with a contextvars.Context, where nothing else has brought it.
#pragma once

#include <Python.h>

#include <optional>

#include <marey/context.h>

namespace marey::bindings {

/// The contextvars.ContextVar that carries a marey.Context while a session follows tasks; null: none does.
/// Guarded by the GIL.
extern PyObject* followed_variable;

/// Stands in the context that the followed variable holds, as long as it lives; in none when it holds none.
/// Leaves Python errors as they are.
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

/// Runs `open` where a range of this scope is wanted: here, or in the context that is followed.
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
