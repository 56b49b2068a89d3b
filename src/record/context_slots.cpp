// context_slots.cpp: capturing and adopting contexts; guards that end out of order.
#include <utility>
#include <vector>

#include <marey/context.h>

#include "record/contexts.h"
#include "record/thread_log.h"
#include "record/thread_registry.h"

namespace marey {

namespace detail {
inline namespace layout1 {

__thread ContextNode* context_head __attribute__((tls_model("initial-exec"))) = nullptr;

SharedSlot::~SharedSlot() {
    std::shared_ptr<SharedSlot> slot = std::move(rest);
    while (slot != nullptr && slot.use_count() == 1) slot = std::exchange(slot->rest, nullptr);
}

}  // namespace layout1
}  // namespace detail

namespace {

using detail::AdoptionNode;
using detail::context_head;
using detail::ContextNode;
using detail::GuardNode;
using detail::SharedSlot;

constexpr char kAdoption = 0;  // its address is the key of adoptions

AdoptionNode* as_adoption(ContextNode* node) noexcept {
    return node->key == &kAdoption ? static_cast<AdoptionNode*>(node) : nullptr;
}

// The next older guard or adoption of this thread: after an adoption, the slots it will return to.
ContextNode* next_older(ContextNode* node) noexcept {
    AdoptionNode* const adoption = as_adoption(node);
    return adoption != nullptr ? adoption->saved : node->next;
}

AdoptionNode* innermost_adoption() noexcept {
    ContextNode* node = context_head;
    while (node != nullptr && as_adoption(node) == nullptr) node = node->next;
    return node != nullptr ? as_adoption(node) : nullptr;
}

// The calling thread's slots as a list that others can hold. Each guard is copied once.
std::shared_ptr<SharedSlot> share_slots() {
    std::vector<GuardNode*> fresh;  // newest first
    std::shared_ptr<SharedSlot> list;
    for (ContextNode* node = context_head; node != nullptr; node = node->next) {
        if (AdoptionNode* const adoption = as_adoption(node)) {
            if (adoption->data != nullptr) list = adoption->data->slots;
            break;
        }
        auto* const guard = static_cast<GuardNode*>(node);
        if (guard->shared != nullptr) {
            list = guard->shared;
            break;
        }
        fresh.push_back(guard);
    }
    for (std::size_t i = fresh.size(); i-- != 0;) {
        auto slot = std::make_shared<SharedSlot>();
        slot->key = fresh[i]->key;
        slot->owner = fresh[i]->owner != nullptr ? fresh[i]->owner : fresh[i]->copy(fresh[i]->value);
        slot->value = fresh[i]->owner != nullptr ? fresh[i]->value : slot->owner.get();
        slot->next = list.get();
        slot->rest = std::move(list);
        list = std::move(slot);
        fresh[i]->shared = list;
    }
    return list;
}

ThreadEntry* current_entry() noexcept {
    return static_cast<ThreadEntry*>(calling_thread()->owner);
}

const ContextSessions* sessions_of(const detail::ContextData* data) noexcept {
    return data != nullptr ? data->sessions.get() : nullptr;
}

const detail::ThreadExtras kNoExtras{};

const detail::ThreadExtras& extras_of(const detail::ContextData* data) noexcept {
    return data != nullptr ? data->extras : kNoExtras;
}

void take_in(AdoptionNode& node, const detail::ContextData* data) noexcept {
    node.key = &kAdoption;
    node.data = data;
    node.next = data != nullptr ? data->slots.get() : nullptr;
}

void begin_adoption(AdoptionNode& node, const detail::ContextData* data) noexcept {
    take_in(node, data);
    node.saved = context_head;
    context_head = &node;
    if (ThreadEntry* const entry = current_entry()) {
        node.saved_sessions = entry->sessions;
        node.saved_owner = std::move(entry->sessions_owner);
    }
    enter_sessions(sessions_of(data));
    node.saved_extras = capture_extras();
    apply_extras(extras_of(data));
}

void end_adoption(AdoptionNode& node) noexcept {
    AdoptionNode* inside = nullptr;  // the oldest of the adoptions made in this one, if one has outlived it
    ContextNode* at = context_head;
    while (at != nullptr && at != &node) {
        if (AdoptionNode* const adoption = as_adoption(at)) inside = adoption;
        at = next_older(at);
    }
    if (at == nullptr) return;
    if (inside != nullptr) {
        inside->saved = node.saved;
        inside->saved_sessions = node.saved_sessions;
        inside->saved_owner = std::move(node.saved_owner);
        inside->saved_extras = std::move(node.saved_extras);
        return;
    }
    context_head = node.saved;
    enter_sessions(static_cast<const ContextSessions*>(node.saved_sessions));
    if (ThreadEntry* const entry = current_entry()) entry->sessions_owner = std::move(node.saved_owner);
    apply_extras(node.saved_extras);
}

/// Left by adopt() on a thread that is in no adoption, until the thread ends.
struct LastingAdoption {
    AdoptionNode node;
    ~LastingAdoption() { end_adoption(node); }
};
constinit thread_local std::unique_ptr<LastingAdoption> lasting_adoption;

}  // namespace

namespace detail {
inline namespace layout1 {

void unlink_guard(GuardNode& guard) noexcept {
    // Only if it is still in the list: an adoption that it was made in may have ended before it.
    ContextNode* at = context_head;
    while (at != nullptr && at != &guard) at = next_older(at);
    if (at == nullptr) return;
    ContextNode** link = &context_head;
    while (*link != &guard) {
        AdoptionNode* const adoption = as_adoption(*link);
        // Shared copies made by the guards above it refer to it.
        if (adoption == nullptr) static_cast<GuardNode*>(*link)->shared.reset();
        link = adoption != nullptr ? &adoption->saved : &(*link)->next;
    }
    *link = guard.next;
}

}  // namespace layout1
}  // namespace detail

Context Context::current() {
    Context context;
    std::shared_ptr<SharedSlot> slots = share_slots();
    const ContextSessions* const sessions = current_sessions();
    detail::ThreadExtras extras = capture_extras();
    if (slots == nullptr && sessions == nullptr && extras.observers == nullptr && extras.enabled) {
        return context;
    }
    auto data = std::make_shared<detail::ContextData>();
    data->slots = std::move(slots);
    if (sessions != nullptr) data->sessions = sessions->shared_from_this();
    data->extras = std::move(extras);
    context.data_ = std::move(data);
    return context;
}

const void* Context::find(const void* key) const noexcept {
    return data_ != nullptr ? detail::find_slot(data_->slots.get(), key) : nullptr;
}

ContextAdoption::ContextAdoption(const Context& context) noexcept {
    begin_adoption(node_, context.data_.get());
}

ContextAdoption::~ContextAdoption() {
    end_adoption(node_);
}

void adopt(const Context& context) {
    const std::shared_ptr<const detail::ContextData> data = context.data_;
    AdoptionNode* node = innermost_adoption();
    if (node == nullptr) {
        lasting_adoption = std::make_unique<LastingAdoption>();
        node = &lasting_adoption->node;
        begin_adoption(*node, data.get());
        node->kept = data;
        return;
    }
    // Replaces the slots that the adoption had brought. Guards made in it since are out of the list.
    const std::shared_ptr<const detail::ContextData> before = std::move(node->kept);
    take_in(*node, data.get());
    node->kept = data;
    context_head = node;
    enter_sessions(sessions_of(data.get()));
    ThreadEntry* const entry = current_entry();
    if (entry != nullptr && (entry->sessions == nullptr || entry->sessions == sessions_of(data.get()))) {
        entry->sessions_owner.reset();
    }
    apply_extras(extras_of(data.get()));
}

}  // namespace marey
