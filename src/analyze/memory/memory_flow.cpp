// memory_flow.cpp: finds the outermost operators of the tree, and how each uses the memory of arrays.
#include "analyze/memory/memory_flow.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "analyze/events/event_order.h"

namespace marey {
namespace {

bool is_word(std::string_view text) noexcept {
    return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_' || c == '.';
    });
}

/// How an allocation was used within a step.
enum Use : std::uint8_t {
    kTouched = 1 << 0,  ///< by a range without a known access mode
    kRead = 1 << 1,
    kWritten = 1 << 2,
    kFreed = 1 << 3,
    kTaken = 1 << 4,
};

class Flow {
  public:
    Flow(const EventTree& tree, const ArrayIds& ids, std::vector<MemoryBlock>& blocks)
        : tree_(tree),
          trace_(tree.trace()),
          ids_(ids),
          blocks_(blocks),
          ranges_(static_cast<std::uint32_t>(trace_.ranges().size())),
          use_(blocks.size(), 0) {
        for (const SiteInfo& site : trace_.sites())
            is_operator_.push_back(site.scope == Scope::Function &&
                                   is_operator_name(trace_.string(site.name)));
    }

    std::vector<FlowNode> run() {
        find_steps();
        const EventOrder order(trace_);
        std::ranges::sort(steps_,
                          [&](const FlowNode& a, const FlowNode& b) { return order(a.node, b.node); });
        for (FlowNode& step : steps_) fill(step);
        return std::move(steps_);
    }

  private:
    bool is_range(std::uint32_t node) const noexcept { return node < ranges_; }
    Scope scope_of(std::uint32_t range) const noexcept {
        return trace_.sites()[trace_.ranges().site[range]].scope;
    }
    std::int64_t start_of(std::uint32_t node) const noexcept {
        return is_range(node) ? trace_.ranges().start_ns[node] : trace_.memory().time_ns[node - ranges_];
    }

    void find_steps() {
        std::vector<std::uint32_t> waiting(tree_.roots().begin(), tree_.roots().end());
        while (!waiting.empty()) {
            const std::uint32_t node = waiting.back();
            waiting.pop_back();
            const bool is_backward = is_range(node) && scope_of(node) == Scope::BackwardFunction;
            if (!is_range(node) || is_backward || is_operator_[trace_.ranges().site[node]]) {
                // Everything inside a backward node is part of its step, so steps are never nested.
                steps_.push_back({node, start_of(node), is_backward, {}});
                continue;
            }
            const auto children = tree_.children(node);
            waiting.insert(waiting.end(), children.begin(), children.end());
        }
    }

    void use(std::uint32_t allocation, std::uint8_t how) {
        if (allocation >= blocks_.size() || blocks_[allocation].array == kNoRow) return;
        if (use_[allocation] == 0) used_.push_back(allocation);
        use_[allocation] |= how;
    }
    void use_all(std::uint32_t node) {
        if (is_range(node)) {
            visit_inputs(trace_, node, [&](Row row) {
                const ArrayAccess access = trace_.arrays()[row].access;
                use(ids_.arrays[row].allocation, access == ArrayAccess::Write  ? kWritten
                                                 : access == ArrayAccess::Read ? kRead
                                                                               : kTouched);
            });
        } else if (const Row report = node - ranges_; trace_.memory().out_of_memory[report] == 0) {
            const std::int64_t bytes = trace_.memory().bytes[report];
            if (bytes != 0) use(ids_.reports[report].allocation, bytes < 0 ? kFreed : kTaken);
        }
    }

    void fill(FlowNode& step) {
        used_.clear();
        std::vector<std::uint32_t> waiting{step.node};
        while (!waiting.empty()) {
            const std::uint32_t node = waiting.back();
            waiting.pop_back();
            use_all(node);
            const auto children = tree_.children(node);
            waiting.insert(waiting.end(), children.begin(), children.end());
        }
        std::ranges::sort(used_, {}, [&](std::uint32_t a) { return std::pair(blocks_[a].array, a); });
        for (const std::uint32_t allocation : used_) {
            const std::uint8_t how = std::exchange(use_[allocation], std::uint8_t{0});
            std::uint32_t& versions = blocks_[allocation].versions;
            versions = std::max(versions, 1u);
            FlowEdge edge{allocation, versions - 1, (how & kTaken) != 0, (how & kFreed) != 0, false};
            // An access of unknown mode may be a write.
            const std::uint8_t access = how & (kTouched | kRead | kWritten);
            edge.is_written = !edge.is_freed && ((access & kWritten) != 0 || access == kTouched);
            if (edge.is_written && !edge.is_taken) ++versions;
            step.edges.push_back(edge);
        }
    }

    const EventTree& tree_;
    const Trace& trace_;
    const ArrayIds& ids_;
    std::vector<MemoryBlock>& blocks_;
    std::uint32_t ranges_;
    std::vector<char> is_operator_;  ///< per site
    std::vector<FlowNode> steps_;
    std::vector<std::uint8_t> use_;  ///< per allocation, in this step
    std::vector<std::uint32_t> used_;
};

}  // namespace

bool is_operator_name(std::string_view name) noexcept {
    const std::size_t colons = name.find("::");
    return colons != std::string_view::npos && is_word(name.substr(0, colons)) &&
           is_word(name.substr(colons + 2));
}

std::vector<FlowNode> memory_flow(const EventTree& tree, const ArrayIds& ids,
                                  std::vector<MemoryBlock>& blocks) {
    return Flow(tree, ids, blocks).run();
}

}  // namespace marey
