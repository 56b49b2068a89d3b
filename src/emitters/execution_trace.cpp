// execution_trace.cpp: the observer that writes a node for each range.
#include <marey/execution_trace.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <unordered_map>
#include <vector>

#include <marey/detail/array_elements.h>
#include <marey/error.h>
#include <marey/observe.h>

#include "base/fork_mutex.h"
#include "base/output_file.h"
#include "emitters/array_identity.h"
#include "emitters/execution_node.h"
#include "emitters/node_file.h"
#include "record/recorder_parts.h"

namespace marey {
namespace {

constexpr std::uint64_t kRoot = 1;
constexpr std::size_t kMaxStorages = 1 << 16;
constexpr std::size_t kMaxViews = 64;  ///< distinct views of one storage that are remembered

// There is one trace at a time, so one lock is enough. It is held for lookups and appending; text is
// formatted without it.
ForkMutex& graph_mutex() {
    static ForkMutex& only = *new ForkMutex;
    return only;
}

std::uint64_t fingerprint(const ArrayView& array) {
    std::uint64_t hash = static_cast<std::uint64_t>(array.dtype) + 1;
    const auto mix = [&hash](std::int64_t number) {
        hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    };
    for (const std::int64_t size : array.sizes) mix(size);
    mix(-1);
    for (const std::int64_t stride : array.strides) mix(stride);
    return hash;
}

constinit thread_local const detail::ArrayElements* offered_elements = nullptr;

}  // namespace

void detail::offer_elements(const ArrayElements* elements) noexcept {
    offered_elements = elements;
}

/// The state of the trace.
class ExecutionTrace::Graph {
  public:
    explicit Graph(const std::string& path) : file_(path) {
        NodeProperties root;
        root.id = root.parent = kRoot;
        root.name = kProcessNode;
        const ScopedLock lock(graph_mutex());
        append_bare(root);
        file_.flush();
    }
    ~Graph() = default;

    void start() {
        if (handle_ == 0) {
            is_running_.store(true);
            handle_ = add_observer({.start = on_start,
                                    .end = on_end,
                                    .memory = on_memory,
                                    .data = this,
                                    .needs_inputs = true,
                                    .needs_outputs = true,
                                    .needs_ids = true});
        } else if (!is_running_.exchange(true)) {
            enable_observer(handle_);
        }
    }
    void stop() {
        if (handle_ != 0 && is_running_.exchange(false)) disable_observer(handle_);
        const ScopedLock lock(graph_mutex());
        if (is_ours()) file_.flush();
    }
    bool is_running() const noexcept { return is_running_.load(); }

    /// No callback runs afterwards. Throws if called from a callback.
    void detach() {
        stop();
        if (handle_ != 0) remove_and_drain(handle_);
        handle_ = 0;
    }
    void complete() {
        const ScopedLock lock(graph_mutex());
        if (!is_ours()) return;
        for (const auto& [id, node] : open_) file_.append(node.json(kNoValues));
        open_.clear();
        file_.finish();
    }
    bool is_ours() const noexcept { return generation_ == fork_generation(); }

    void save_elements_in(const std::string& folder) {
        const ScopedLock lock(graph_mutex());
        folder_ = folder;
    }

  private:
    static constexpr std::string_view kNoValues =
        R"({"values": [], "shapes": [], "types": [], "strides": []})";

    /// A range that has begun: everything except its outputs.
    struct OpenNode {
        NodeProperties facts;
        std::string name;
        std::string inputs;
        std::string attributes;

        std::string json(std::string_view outputs) const {
            NodeProperties named = facts;
            named.name = name;
            return node_json(named, inputs, outputs, attributes);
        }
    };
    struct NodeContext final : ObserverContext {
        std::uint64_t id = 0;
        bool is_stacked = false;
        std::uint32_t thread = 0;
    };
    struct ThreadNodes {
        std::uint64_t root = 0;
        std::vector<std::uint64_t> open;  ///< innermost last
        std::uint64_t top() const noexcept { return open.empty() ? root : open.back(); }
    };
    struct Storage {
        std::uint64_t id = 0;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> views;  ///< fingerprint, id
    };

    static std::unique_ptr<ObserverContext> on_start(const ObservedRange& range, void* data) {
        auto& self = *static_cast<Graph*>(data);
        if (!self.is_running() || !self.is_ours()) return nullptr;
        auto context = std::make_unique<NodeContext>();
        context->thread = range.start_thread();
        context->is_stacked = !range.is_async();
        OpenNode node;
        node.facts.range = range.id();
        node.facts.sequence = range.sequence();
        node.facts.scope = range.scope();
        node.facts.thread = range.start_thread();
        node.facts.forward_thread = range.forward_thread();
        node.name = range.name();
        const std::vector<const ArrayView*> arrays = array_list(range.inputs());
        std::vector<ArrayKey> ids;
        {
            const ScopedLock lock(graph_mutex());
            ThreadNodes& thread = self.thread_nodes(range.start_thread());
            node.facts.id = context->id = self.next_id_++;
            node.facts.parent = thread.top();
            if (const auto forward = self.threads_.find(range.forward_thread());
                forward != self.threads_.end())
                node.facts.forward_parent = forward->second.top();
            ids = self.array_ids(arrays);
        }
        node.inputs = values_json(range.inputs(), ids);
        std::vector<KeyedValue> keywords(range.keywords().begin(), range.keywords().end());
        if (offered_elements != nullptr) {
            if (!offered_elements->ranges.empty())
                keywords.push_back({"tensor_range", offered_elements->ranges});
            self.save(context->id, *offered_elements);
        }
        node.attributes = attributes_json(node.facts, keywords);
        const ScopedLock lock(graph_mutex());
        // Last, so that a failure leaves nothing to undo. This thread cannot begin another range in between.
        self.open_.emplace(context->id, std::move(node));
        if (context->is_stacked) self.threads_[context->thread].open.push_back(context->id);
        return context;
    }

    static void on_end(const ObservedRange& range, ObserverContext* context, void* data) {
        if (context == nullptr) return;
        auto& self = *static_cast<Graph*>(data);
        const auto& own = static_cast<const NodeContext&>(*context);
        const std::vector<const ArrayView*> arrays = array_list(range.outputs());
        std::vector<ArrayKey> ids;
        std::unordered_map<std::uint64_t, OpenNode>::node_type taken;
        {
            const ScopedLock lock(graph_mutex());
            if (!self.is_ours()) return;
            if (own.is_stacked) std::erase(self.threads_[own.thread].open, own.id);
            taken = self.open_.extract(own.id);
            ids = self.array_ids(arrays);
        }
        if (taken.empty()) return;
        const std::string json = taken.mapped().json(values_json(range.outputs(), ids));
        const ScopedLock lock(graph_mutex());
        self.file_.append(json);
    }

    void save(std::uint64_t node, const detail::ArrayElements& elements) {
        std::string start;
        {
            const ScopedLock lock(graph_mutex());
            if (folder_.empty()) return;
            start = folder_ + "/nid_" + std::to_string(node) + "_tid_";
        }
        try {
            for (std::size_t i = 0; i < elements.bytes.size(); ++i) {
                if (elements.bytes[i].empty()) continue;
                OutputFile file(start + std::to_string(i) + ".dat");
                file.write(elements.bytes[i]);
                file.commit();
            }
        } catch (const Error& error) {  // the trace goes on without them
            warn(std::string("execution trace: ") + error.what());
            save_elements_in("");
        }
    }

    // The next array at a freed address is a different one.
    static void on_memory(const MemoryReport& report, void* data) {
        if (report.bytes >= 0 || report.is_out_of_memory) return;
        auto& self = *static_cast<Graph*>(data);
        const ScopedLock lock(graph_mutex());
        self.storages_.forget({reinterpret_cast<std::uintptr_t>(report.address), true});
    }

    ThreadNodes& thread_nodes(std::uint32_t number) MAREY_REQUIRES(graph_mutex()) {
        ThreadNodes& thread = threads_[number];
        if (thread.root == 0) {
            NodeProperties root;
            root.id = thread.root = next_id_++;
            root.name = kThreadNode;
            root.parent = kRoot;
            root.thread = number;
            append_bare(root);
        }
        return thread;
    }

    std::vector<ArrayKey> array_ids(const std::vector<const ArrayView*>& arrays)
        MAREY_REQUIRES(graph_mutex()) {
        std::vector<ArrayKey> ids;
        ids.reserve(arrays.size());
        for (const ArrayView* array : arrays) {
            const StorageKey key = StorageKey::of(*array);
            if (!key.is_known()) {
                ids.push_back({next_id_++, 0});
                continue;
            }
            Storage* storage = storages_.find(key);
            if (storage == nullptr) storage = storages_.set(key, {next_id_++, {}});
            const std::uint64_t print = fingerprint(*array);
            const auto view = std::find_if(storage->views.begin(), storage->views.end(),
                                           [print](const auto& each) { return each.first == print; });
            if (view != storage->views.end()) {
                ids.push_back({view->second, storage->id});
                continue;
            }
            if (storage->views.size() == kMaxViews) storage->views.erase(storage->views.begin());
            storage->views.emplace_back(print, next_id_++);
            ids.push_back({storage->views.back().second, storage->id});
        }
        return ids;
    }

    void append_bare(const NodeProperties& facts) MAREY_REQUIRES(graph_mutex()) {
        file_.append(node_json(facts, kNoValues, kNoValues, attributes_json(facts, {})));
    }

    const std::uint32_t generation_ = fork_generation();
    std::atomic<bool> is_running_{false};
    ObserverHandle handle_ = 0;
    NodeFile file_ MAREY_GUARDED_BY(graph_mutex());
    std::string folder_
        MAREY_GUARDED_BY(graph_mutex());  ///< for the elements of arrays; empty: they are not saved
    std::uint64_t next_id_ MAREY_GUARDED_BY(graph_mutex()) = kRoot + 1;
    std::map<std::uint32_t, ThreadNodes> threads_ MAREY_GUARDED_BY(graph_mutex());  ///< by logical thread id
    std::unordered_map<std::uint64_t, OpenNode> open_ MAREY_GUARDED_BY(graph_mutex());
    StorageMap<Storage> storages_ MAREY_GUARDED_BY(graph_mutex()){kMaxStorages};
};

namespace {

/// Guards start, stop and finish, and `existing`. Taken before graph_mutex().
ForkMutex& lifetime_mutex() {
    static ForkMutex& only = *new ForkMutex;
    return only;
}

ExecutionTrace* existing MAREY_GUARDED_BY(lifetime_mutex()) = nullptr;

}  // namespace

void ExecutionTrace::finish_at_exit() noexcept {
    const ScopedLock lock(lifetime_mutex());  // so that it is not destroyed in the meantime
    if (existing != nullptr) existing->finish_or_warn();
}

ExecutionTrace::ExecutionTrace(const std::string& path) {
    static const int at_exit = std::atexit(finish_at_exit);
    static_cast<void>(at_exit);
    const ScopedLock lock(lifetime_mutex());
    if (existing != nullptr && existing->graph_ != nullptr && existing->graph_->is_ours())
        throw Error("another execution trace is being written: a process can write only one at a time");
    graph_ = std::make_unique<Graph>(path);
    existing = this;
}

ExecutionTrace::~ExecutionTrace() {
    const ScopedLock lock(lifetime_mutex());
    finish_or_warn();
    if (existing == this) existing = nullptr;
}

void ExecutionTrace::start() {
    const ScopedLock lock(lifetime_mutex());
    if (graph_ == nullptr) throw Error("cannot start the execution trace: it is already finished");
    graph_->start();
}

void ExecutionTrace::save_elements_in(const std::string& folder) {
    const ScopedLock lock(lifetime_mutex());
    if (graph_ != nullptr) graph_->save_elements_in(folder);
}

void ExecutionTrace::stop() {
    const ScopedLock lock(lifetime_mutex());
    if (graph_ != nullptr) graph_->stop();
}

bool ExecutionTrace::is_running() const noexcept {
    const ScopedLock lock(lifetime_mutex());
    return graph_ != nullptr && graph_->is_running();
}

void ExecutionTrace::finish() {
    const ScopedLock lock(lifetime_mutex());
    finish_locked();
}

void ExecutionTrace::finish_or_warn() noexcept {
    try {
        finish_locked();
    } catch (const std::exception& error) {
        warn(std::string("execution trace: ") + error.what());
    }
}

void ExecutionTrace::finish_locked() MAREY_UNCHECKED_LOCKS {  // its callers hold lifetime_mutex()
    if (graph_ == nullptr) return;
    graph_->detach();
    const std::unique_ptr<Graph> graph = std::move(graph_);
    if (existing == this) existing = nullptr;
    graph->complete();
}

}  // namespace marey
