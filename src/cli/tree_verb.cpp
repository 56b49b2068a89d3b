// tree_verb.cpp: marey tree: the call tree, with shares.
#include <marey/analyze.h>
#include <marey/results.h>

#include "cli/result_argument.h"
#include "cli/sample_text.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::uint64_t kDefaultPaths = 5;
constexpr double kDefaultMinShare = 0.1;
constexpr std::size_t kIndent = 2;

class TreeVerb final : public Verb {
  public:
    const char* help() const override { return "Show the call tree, with total and self times"; }
    const char* details() const override {
        return "Ranges with the same names from the root down share one line. share: of the time that\n"
               "root ranges cover on all threads; for device work, of the time that devices were busy.\n"
               "Hiding a line hides the lines below it. --bottom-up lists every name with its callers\n"
               "below it; times and shares are those of the name at the root when called that way.\n"
               "--inside, --row, --step and --by-step restrict the tree to some ranges; rows are numbered\n"
               "as in marey export --to csv with the same --exclude and --show-importlib. --hot shows the\n"
               "path from the root to the heaviest callee at each level, and the paths with the most\n"
               "self time. --json and --csv print every node unless a limit is given.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        capture_.declare_filter(options);
        options.flag(bottom_up_, "--bottom-up", "Show each name with its callers below it");
        options.flag(hot_, "--hot", "Show the hot path and the heaviest paths");
        options.text(inside_, "--inside", "NAME", "Show only ranges inside ranges of this name");
        options.number(row_, "--row", "Show only ranges inside the range with this row number");
        options.number(step_, "--step", "Show only ranges inside the step with this number");
        options.flag(by_step_, "--by-step", "Show one tree per step");
        options.text(step_name_, "--step-name", "PATTERN",
                     "Ranges to use as steps; * matches any text (ProfilerStep#*)");
        options.number(depth_, "--depth", "Levels to show (all)");
        options.percent(min_share_, "--min-share", "Hide lines with a smaller share than this (0.1)");
        options.choice(by_, "--by", {"name", "thread"}, "Show one tree for all threads or per thread (name)");
        output_.declare(options);
    }
    int run() override {
        if (hot_) {
            output_.result = "hot";
            output_.table = "heaviest";
        }
        output_.check();
        if (hot_ && bottom_up_) throw Error("tree: --hot and --bottom-up are mutually exclusive");
        Trace trace = with_function_names(capture_.load());
        if (!output_.is_data()) footer_ = footer(trace, standard_output());
        is_sampled_ = is_sampled(trace) || has_only_samples(trace);
        trace = capture_.filtered(std::move(trace));
        CallTree tree = make_tree(trace);
        if (tree.nodes.empty()) check_inside_matches(trace);
        if (hot_) {
            const std::size_t paths = output_.limit.value_or(kDefaultPaths);
            return output_.print(hot_path_result(trace, tree, paths),
                                 [&] { return hot_text(trace, tree, paths); });
        }
        TreeLimits limits{.max_depth = depth_.value_or(0),
                          .min_share = min_share(),
                          .max_nodes = output_.limit.value_or(output_.is_data() ? 0 : output_.usual_limit)};
        const bool is_empty = tree.nodes.empty();
        const std::size_t hidden = limit_tree(tree, limits);
        return output_.print(tree_result(trace, tree), [&] { return text(trace, tree, hidden, is_empty); });
    }

  private:
    CallTree make_tree(const Trace& trace) const {
        const Progress progress("building the tree");
        try {
            return call_tree(trace, tree_options());
        } catch (const Error& error) {
            throw Error(std::string("tree: ") + error.what());
        }
    }

    CallTreeOptions tree_options() const {
        CallTreeOptions options{.by_thread = by_ == "thread", .bottom_up = bottom_up_};
        if (bottom_up_ && depth_ && *depth_ > 0)
            options.caller_levels = static_cast<std::uint32_t>(std::min<std::uint64_t>(*depth_, kNoRow));
        options.inside = inside_;
        if (row_) options.inside_range = static_cast<Row>(std::min<std::uint64_t>(*row_, kNoRow - 1));
        if (step_) options.step = static_cast<std::int64_t>(*step_);
        options.by_step = by_step_;
        options.step_name = step_name_;
        // A tree of callers has up to 64 paths for each path of the trace: those that are hidden anyway,
        // below names with hardly any time, are not made if there are too many.
        constexpr double kLeastShare = 1e-4;  // smaller parts would take many passes, and leave out little
        const bool is_whole = inside_.empty() && !row_ && !step_ && !by_step_ && !options.by_thread;
        if (bottom_up_ && is_whole && min_share() >= kLeastShare)
            options.parts = static_cast<std::uint32_t>(1 / min_share());
        return options;
    }

    /// The share below which lines are hidden, 0 to 1.
    double min_share() const {
        return (min_share_ >= 0 ? min_share_ : output_.is_data() ? 0 : kDefaultMinShare) / 100;
    }

    void check_inside_matches(const Trace& trace) const {
        if (trace.ranges().size() == 0) return;
        if (!inside_.empty()) throw Error("tree: no range is named '" + inside_ + "'");
        const std::string kind = step_name_.empty() ? "of scope step or named ProfilerStep#n"
                                                    : "with a name that matches '" + step_name_ + "'";
        if (by_step_) throw Error("tree: there are no steps: no range " + kind);
        if (step_)
            throw Error("tree: there is no step " + std::to_string(*step_) + ": no such range " + kind);
    }

    static Table empty_table() {
        return Table({{"total"}, {"share"}, {"self"}, {"count"}, {"name", true, true, true}});
    }

    std::string text(const Trace& trace, const CallTree& tree, std::size_t hidden, bool is_empty) const {
        const Terminal terminal = standard_output();
        Table table = empty_table();
        for (const CallTreeNode& node : tree.nodes) add(table, trace, node, node.depth);
        std::string text = is_empty             ? "no ranges\n"
                           : tree.nodes.empty() ? ""
                           : output_.chooses()
                               ? output_.lines(tree_result(trace, tree).table("tree"), terminal)
                               : table.text(terminal);
        if (hidden > 0) {
            text += fmt::format("... and {} (see --min-share, --depth, --limit)\n",
                                format_plural(hidden, "more line"));
        }
        return end_lines(trace, terminal) + text + "\n" + imports_line(trace, terminal) + footer_;
    }

    std::string hot_text(const Trace& trace, const CallTree& tree, std::size_t paths) const {
        const Terminal terminal = standard_output();
        if (tree.nodes.empty()) return "no ranges\n\n" + footer_;
        Table path = empty_table();
        for (const std::uint32_t node : hot_path(tree))
            add(path, trace, tree.nodes[node], tree.nodes[node].depth);
        Table heaviest({{"self"}, {"share"}, {"count"}, {"path", true, true}});
        for (const std::uint32_t end : heaviest_nodes(tree, paths)) {
            std::string names;
            for (const std::uint32_t node : path_to(tree, end))
                names += (names.empty() ? "" : " > ") + label(trace, tree.nodes[node]);
            const CallTreeNode& node = tree.nodes[end];
            const std::int64_t whole = node.is_device ? tree.device_ns : tree.recorded_ns;
            heaviest.add(
                {time(node.self_ns),
                 format_share(whole > 0 ? static_cast<double>(node.self_ns) / static_cast<double>(whole) : 0),
                 format_count(node.count), names});
        }
        return end_lines(trace, terminal) + styled(terminal, Style::Bold, "hot path") + "\n" +
               path.text(terminal) + "\n" + styled(terminal, Style::Bold, "heaviest paths, by self time") +
               "\n" + heaviest.text(terminal) + "\n" + imports_line(trace, terminal) + footer_;
    }

    static std::string label(const Trace& trace, const CallTreeNode& node) {
        std::string text = node.is_thread ? thread_label(trace, node.thread) : printable(node.name);
        const bool is_outermost = node.parent == kNoRow;
        if (node.is_device && is_outermost && !node.is_thread) text += " (device)";
        if (node.step && !text.ends_with(fmt::format("#{}", *node.step)))
            text += fmt::format(" (step {})", *node.step);
        return text;
    }

    std::string time(std::int64_t ns) const { return (is_sampled_ ? "~" : "") + format_duration(ns); }

    void add(Table& table, const Trace& trace, const CallTreeNode& node, std::size_t level) const {
        const std::string indent(level * kIndent, ' ');
        table.add({time(node.total_ns), node.is_async ? "async" : format_share(node.share),
                   node.is_thread ? "" : time(node.self_ns), node.is_thread ? "" : format_count(node.count),
                   indent + label(trace, node)},
                  node.is_thread ? Style::Bold : Style::Plain);
    }

    CaptureArgument capture_;
    std::string footer_;
    bool is_sampled_ = false;
    bool bottom_up_ = false;
    bool hot_ = false;
    std::string inside_;
    std::optional<std::uint64_t> row_;
    std::optional<std::uint64_t> step_;
    bool by_step_ = false;
    std::string step_name_;
    std::optional<std::uint64_t> depth_;
    double min_share_ = -1;
    std::string by_ = "name";
    ResultArgument output_{.verb = "tree", .table = "tree", .usual_limit = 100, .row = "line"};
};

}  // namespace

MAREY_VERB(tree, TreeVerb)

}  // namespace marey::cli
