// context_node.h: the list of context slots that a thread stands in, as inlined guards and look-ups see it.
#pragma once

#include <memory>

#include <marey/detail/export.h>

namespace marey::detail {
inline namespace layout1 {

struct ContextData;  ///< what a marey::Context shares: src/record/contexts.h
struct SharedSlot;   ///< a slot on the heap, shared by contexts: src/record/contexts.h

/// A link of a thread's list, the newest first. Three kinds of objects are links: guards and adoptions, which
/// lie where their owners put them and belong to one thread, and shared slots, which never change.
struct ContextNode {
    const void* key = nullptr;  ///< address of the ContextSlot; of `context_adoption_key` for an adoption
    const void* value = nullptr;
    ContextNode* next = nullptr;  ///< older; behind an adoption come the slots that it adopted
};

struct GuardNode : ContextNode {
    std::shared_ptr<const void> owner;  ///< of `value`; null: the guard holds the value itself
    std::shared_ptr<const void> (*copy)(const void* value) =
        nullptr;                         ///< for a context, if there is no owner
    std::shared_ptr<SharedSlot> shared;  ///< the list from here on, once a context has captured it
};

/// What observers and the per-thread switch add to a context.
struct ThreadExtras {
    std::shared_ptr<const void> observers;
    bool enabled = true;
};

struct AdoptionNode : ContextNode {
    const ContextData* data = nullptr;        ///< what is adopted; null: an empty context
    std::shared_ptr<const ContextData> kept;  ///< owns `data` where no caller promised to
    ContextNode* saved = nullptr;             ///< the list to return to
    const void* saved_sessions = nullptr;     ///< the ContextSessions to return to
    std::shared_ptr<const void> saved_owner;  ///< of `saved_sessions`, if the thread owned it
    ThreadExtras saved_extras;
};

/// This thread's newest link. Null in a thread that has no context.
MAREY_API extern constinit thread_local ContextNode* context_head __attribute__((tls_model("initial-exec")));

/// Takes a guard out from wherever it is in the calling thread's list; not being there is harmless.
MAREY_API void unlink_guard(GuardNode& guard) noexcept;

inline const void* find_slot(const ContextNode* node, const void* key) noexcept {
    while (node != nullptr && node->key != key) node = node->next;
    return node != nullptr ? node->value : nullptr;
}

}  // namespace layout1
}  // namespace marey::detail
