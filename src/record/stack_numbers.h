// stack_numbers.h: stacks by number: a tree of frames that all threads of the process share.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <marey/detail/log_format.h>

#include "record/recorder_mutex.h"

namespace marey {

class Spool;

/// A number stands for a frame and the stack around it, which has a smaller number; 0: no frame. Equal stacks
/// have equal numbers. Numbers stay valid until the process ends, and in forked children.
///
/// The nodes are in memory and, while there is a capture, also in its Stacks blocks, which the recorder
/// provides ahead.
class StackNumbers {
  public:
    /// The number of `frame` within the stack `outer`. 0: there is no space. Lock-free and async-signal-safe.
    std::uint32_t add(std::uint32_t outer, std::uint64_t frame) noexcept;
    /// Of all frames, innermost first.
    std::uint32_t add(std::span<const std::uint64_t> frames) noexcept;
    /// The numbers given out are 1 to this.
    std::uint32_t count() const noexcept { return used_.load(std::memory_order_acquire); }
    /// The frame and the stack around it that a number stands for. False: it is not complete.
    bool get(std::uint32_t number, std::uint32_t& outer, std::uint64_t& frame) const noexcept;
    /// Nodes have been added for which the capture has no block: mirror() helps.
    bool is_behind() const noexcept { return is_behind_.load(std::memory_order_relaxed); }

    /// Provides the blocks that the capture (null: there is none) needs, and one more. Does nothing before
    /// the first stack. False: the disk is full.
    bool mirror(Spool* spool) noexcept MAREY_REQUIRES(recorder_mutex);
    /// Before the capture is closed. Returns when no thread writes into it any more; false: one may do so for
    /// ever.
    bool end_mirror() noexcept MAREY_REQUIRES(recorder_mutex);
    /// In the child of a fork: the capture was that of the parent.
    void forked() noexcept;
    /// Appends all nodes to a names stream.
    void append_to(std::vector<std::byte>& names) const;

  private:
    using Node = detail::StackNode;
    static constexpr std::size_t kBlocks = 1024;  // two million nodes, 32 MiB
    static constexpr std::size_t kTables = 11;    // each twice the one before
    static constexpr std::size_t kProbes = 8;
    using Slot = std::atomic<std::uint64_t>;  // above the low half a part of the hash, below it the number

    std::uint32_t new_node(std::uint32_t outer, std::uint64_t frame) noexcept;
    Node* node_at(std::uint32_t number) const noexcept;
    static void write(Node& node, std::uint32_t outer, std::uint64_t frame) noexcept;

    std::atomic<std::uint32_t> used_{0};  ///< numbers given out
    std::array<std::atomic<Node*>, kBlocks> nodes_{};
    std::array<std::atomic<Node*>, kBlocks> in_file_{};
    std::array<std::atomic<Slot*>, kTables> tables_{};
    std::atomic<std::uint32_t> writers_{0};  ///< threads that may write into the capture
    std::atomic<bool> is_behind_{false};
};

/// Appends such nodes to a names stream: those from number `first` on.
void append_stack_nodes(std::vector<std::byte>& names, std::uint32_t first,
                        std::span<const detail::StackNode> nodes);

/// That of this process.
StackNumbers& stack_numbers() noexcept;

}  // namespace marey
