// context_node.h: a thread's list of context slots, for inlined guards and lookups.
#pragma once

#include <memory>

#include <marey/detail/export.h>

namespace marey::detail {
inline namespace layout1 {

struct ContextData;  ///< the shared data of a marey::Context: src/record/contexts.h
struct SharedSlot;   ///< a slot on the heap, shared by contexts: src/record/contexts.h

/// A node of a thread's list, newest first. There are three kinds of nodes: guards and adoptions, which
/// belong to one thread and live where their owner put them, and shared slots, which never change.
struct ContextNode {
    const void* key = nullptr;  ///< address of the ContextSlot; of `context_adoption_key` for an adoption
    const void* value = nullptr;
    ContextNode* next = nullptr;  ///< the next older node; after an adoption, the slots that it adopted
};

struct GuardNode : ContextNode {
    std::shared_ptr<const void> owner;  ///< owns `value`; null: the guard contains the value itself
    /// Copies the value for a context, if there is no owner.
    std::shared_ptr<const void> (*copy)(const void* value) = nullptr;
    std::shared_ptr<SharedSlot> shared;  ///< the list from here on, after a context has captured it
};

/// The thread's observers and whether it is enabled, as part of a context.
struct ThreadExtras {
    std::shared_ptr<const void> observers;
    bool enabled = true;
};

struct AdoptionNode : ContextNode {
    const ContextData* data = nullptr;        ///< the adopted context; null: an empty context
    std::shared_ptr<const ContextData> kept;  ///< owns `data` if the caller does not keep it alive
    ContextNode* saved = nullptr;             ///< the list to restore
    const void* saved_sessions = nullptr;     ///< the ContextSessions to restore
    std::shared_ptr<const void> saved_owner;  ///< owns `saved_sessions`, if the thread owned it
    ThreadExtras saved_extras;
};

/// This thread's newest node. Null in a thread without a context.
MAREY_API extern __thread ContextNode* context_head __attribute__((tls_model("initial-exec")));

/// Removes a guard from any position in the calling thread's list; does nothing if it is not in the list.
MAREY_API void unlink_guard(GuardNode& guard) noexcept;

inline const void* find_slot(const ContextNode* node, const void* key) noexcept {
    while (node != nullptr && node->key != key) node = node->next;
    return node != nullptr ? node->value : nullptr;
}

}  // namespace layout1
}  // namespace marey::detail
