// tree_verb.cpp: kymo tree: the call tree, with shares.
#include <fmt/format.h>

#include <kymo/analyze.h>

#include "cli/capture_argument.h"
#include "cli/footer.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace kymo::cli {
namespace {

constexpr std::uint64_t kUsualLimit = 100;
constexpr std::size_t kIndent = 2;

class TreeVerb final : public Verb {
  public:
    const char* help() const override { return "The call tree: which range calls which, with shares"; }
    const char* details() const override {
        return "Ranges with the same names from the root down are one line. share: of the time that root "
               "ranges cover,\n"
               "over all threads. A line that is hidden hides what is below it.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.number(depth_, "--depth", "Levels to show (all)");
        options.percent(min_share_, "--min-share", "Hide what takes less than that share (0.1)");
        options.choice(by_, "--by", {"name", "thread"}, "One tree for all threads, or one per thread");
        options.number(limit_, "--limit", "Lines to show (100; 0 shows all)");
    }
    int run() override {
        const Trace trace = capture_.load();
        const CallTree tree = [&] {
            const Progress progress("building the tree");
            return call_tree(trace, {.by_thread = by_ == "thread"});
        }();
        const Terminal terminal = standard_output();
        Table table({{"total"}, {"share"}, {"self"}, {"count"}, {"name", true, true}});
        const std::uint64_t limit = limit_.value_or(kUsualLimit);
        std::size_t shown = 0, hidden = 0;
        std::uint32_t hidden_below = kNoRow;  // depth of a hidden node whose subtree we are in
        for (const CallTreeNode& node : tree.nodes) {
            if (hidden_below != kNoRow && node.depth > hidden_below) {
                ++hidden;
                continue;
            }
            hidden_below = kNoRow;
            const bool small = node.share * 100 < min_share_;
            const bool deep = depth_ && node.depth >= *depth_;
            if (small || deep || (limit > 0 && shown >= limit)) {
                hidden_below = node.depth;
                ++hidden;
                continue;
            }
            ++shown;
            add(table, trace, node);
        }
        std::string text = tree.nodes.empty() ? "no ranges\n" : shown == 0 ? "" : table.text(terminal);
        if (hidden > 0) {
            text += fmt::format("... and {} (see --min-share, --depth, --limit)\n",
                                format_plural(hidden, "more line"));
        }
        write_out(text + "\n" + footer(trace, terminal));
        return kSuccess;
    }

  private:
    static void add(Table& table, const Trace& trace, const CallTreeNode& node) {
        const std::string indent(node.depth * kIndent, ' ');
        const std::string name = node.is_thread ? thread_label(trace, node.thread) : printable(node.name);
        table.add({format_duration(static_cast<double>(node.total_ns)),
                   node.is_async ? "async" : format_share(node.share),
                   node.is_thread ? "" : format_duration(static_cast<double>(node.self_ns)),
                   node.is_thread ? "" : format_count(node.count), indent + name},
                  node.is_thread ? Style::Bold : Style::Plain);
    }

    CaptureArgument capture_;
    std::optional<std::uint64_t> depth_;
    double min_share_ = 0.1;
    std::string by_ = "name";
    std::optional<std::uint64_t> limit_;
};

}  // namespace

std::unique_ptr<Verb> make_tree_verb() {
    return std::make_unique<TreeVerb>();
}

}  // namespace kymo::cli
