// stack_numbers.cpp: stacks by number: finding and adding nodes, and their copies in captures.
#include "record/stack_numbers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include <marey/detail/counter.h>

#include "record/spool.h"

namespace marey {

using detail::kStackNodes;

namespace {

constexpr std::size_t kFirstSlots = 1024;

/// Memory for `count` zeroed objects at `place`, which other threads may provide too. Null: there is none.
template <class T>
T* provided(std::atomic<T*>& place, std::size_t count) noexcept {
    T* there = place.load(std::memory_order_acquire);
    if (there != nullptr) return there;
    void* const memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    if (place.compare_exchange_strong(there, static_cast<T*>(memory), std::memory_order_acq_rel))
        return static_cast<T*>(memory);
    munmap(memory, count * sizeof(T));
    return there;
}

}  // namespace

StackNumbers& stack_numbers() noexcept {
    static constinit StackNumbers only;
    return only;
}

StackNumbers::Node* StackNumbers::node_at(std::uint32_t number) const noexcept {
    Node* const block = nodes_[(number - 1) / kStackNodes].load(std::memory_order_acquire);
    return block != nullptr ? block + (number - 1) % kStackNodes : nullptr;
}

void StackNumbers::write(Node& node, std::uint32_t outer, std::uint64_t frame) noexcept {
    detail::store_relaxed(node.frame, frame);
    detail::store_relaxed(node.outer, outer);
    detail::store_release(node.is_complete, 1u);
}

std::uint32_t StackNumbers::new_node(std::uint32_t outer, std::uint64_t frame) noexcept {
    if (used_.load(std::memory_order_relaxed) >= kBlocks * kStackNodes) return 0;
    const std::uint32_t place = used_.fetch_add(1, std::memory_order_relaxed);
    if (place >= kBlocks * kStackNodes) return 0;
    Node* const block = provided(nodes_[place / kStackNodes], kStackNodes);
    if (block == nullptr) return 0;
    write(block[place % kStackNodes], outer, frame);
    // Either mirror() sees the node, or it is seen here that there is a block.
    writers_.fetch_add(1, std::memory_order_seq_cst);
    Node* const copy = in_file_[place / kStackNodes].load(std::memory_order_seq_cst);
    if (copy != nullptr)
        write(copy[place % kStackNodes], outer, frame);
    else
        is_behind_.store(true, std::memory_order_relaxed);
    writers_.fetch_sub(1, std::memory_order_release);
    return place + 1;
}

std::uint32_t StackNumbers::add(std::uint32_t outer, std::uint64_t frame) noexcept {
    std::uint64_t hash = (frame ^ std::uint64_t{outer} << 21) * 0x9e3779b97f4a7c15ULL;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ULL;
    std::uint32_t number = 0;
    for (std::size_t table = 0; table < kTables; ++table) {
        const std::size_t size = kFirstSlots << table;
        Slot* const slots = provided(tables_[table], size);
        if (slots == nullptr) return number;
        for (std::size_t probe = 0; probe < kProbes; ++probe) {
            Slot& slot = slots[(hash + probe) & (size - 1)];
            std::uint64_t there = slot.load(std::memory_order_acquire);
            if (there == 0) {
                if (number == 0) number = new_node(outer, frame);
                if (number == 0) return 0;
                const std::uint64_t own = hash >> 32 << 32 | number;
                if (slot.compare_exchange_strong(there, own, std::memory_order_acq_rel)) return number;
            }
            if (there >> 32 != hash >> 32) continue;
            const Node* const node = node_at(static_cast<std::uint32_t>(there));
            if (node->outer == outer && node->frame == frame) return static_cast<std::uint32_t>(there);
        }
    }
    return number;
}

std::uint32_t StackNumbers::add(std::span<const std::uint64_t> frames) noexcept {
    std::uint32_t number = 0;
    for (std::size_t i = frames.size(); i-- != 0;) {
        number = add(number, frames[i]);
        if (number == 0) return 0;
    }
    return number;
}

bool StackNumbers::get(std::uint32_t number, std::uint32_t& outer, std::uint64_t& frame) const noexcept {
    const Node* const node = number != 0 && number <= kBlocks * kStackNodes ? node_at(number) : nullptr;
    if (node == nullptr || detail::load_acquire(node->is_complete) == 0) return false;
    outer = detail::load_relaxed(node->outer);
    frame = detail::load_relaxed(node->frame);
    return true;
}

bool StackNumbers::mirror(Spool* spool) noexcept {
    is_behind_.store(false, std::memory_order_seq_cst);
    const std::uint32_t used = used_.load(std::memory_order_relaxed);
    if (used == 0 || spool == nullptr) return true;
    const std::size_t wanted = std::min(used / kStackNodes + 2, kBlocks);
    for (std::size_t i = 0; i < wanted; ++i) {
        if (in_file_[i].load(std::memory_order_relaxed) != nullptr) continue;
        auto* const copies = reinterpret_cast<Node*>(spool->take_stacks_block(static_cast<std::uint32_t>(i)));
        if (copies == nullptr) return false;
        in_file_[i].store(copies, std::memory_order_seq_cst);
        const Node* const nodes = nodes_[i].load(std::memory_order_seq_cst);
        for (std::size_t k = 0; nodes != nullptr && k < kStackNodes; ++k) {
            if (detail::load_acquire(nodes[k].is_complete) != 0)
                write(copies[k], detail::load_relaxed(nodes[k].outer), detail::load_relaxed(nodes[k].frame));
        }
    }
    return true;
}

bool StackNumbers::end_mirror() noexcept {
    for (auto& copies : in_file_) copies.store(nullptr, std::memory_order_seq_cst);
    for (int tries = 0; writers_.load(std::memory_order_seq_cst) != 0; ++tries) {
        if (tries == 1000) return false;
        std::this_thread::yield();
    }
    return true;
}

void StackNumbers::forked() noexcept {
    for (auto& copies : in_file_) copies.store(nullptr, std::memory_order_relaxed);
    writers_.store(0, std::memory_order_relaxed);
}

void append_stack_nodes(std::vector<std::byte>& names, std::uint32_t first,
                        std::span<const detail::StackNode> nodes) {
    const auto put = [&names](std::span<const std::byte> bytes) {
        names.insert(names.end(), bytes.begin(), bytes.end());
    };
    detail::StackNodesRecord record{};
    record.head = {static_cast<std::uint16_t>(detail::NameKind::StackNodes), 0,
                   static_cast<std::uint32_t>(sizeof record + nodes.size_bytes())};
    record.first = first;
    record.count = static_cast<std::uint32_t>(nodes.size());
    put(std::as_bytes(std::span(&record, 1)));
    put(std::as_bytes(nodes));
}

void StackNumbers::append_to(std::vector<std::byte>& names) const {
    const std::size_t used =
        std::min<std::size_t>(used_.load(std::memory_order_acquire), kBlocks * kStackNodes);
    for (std::size_t first = 0; first < used; first += kStackNodes) {
        const Node* const nodes = nodes_[first / kStackNodes].load(std::memory_order_acquire);
        if (nodes == nullptr) continue;
        std::vector<Node> complete(std::min(used - first, kStackNodes));
        for (std::size_t i = 0; i < complete.size(); ++i) {
            if (detail::load_acquire(nodes[i].is_complete) == 0) continue;
            complete[i] = {detail::load_relaxed(nodes[i].frame), detail::load_relaxed(nodes[i].outer), 1};
        }
        append_stack_nodes(names, static_cast<std::uint32_t>(first + 1), complete);
    }
}

}  // namespace marey
