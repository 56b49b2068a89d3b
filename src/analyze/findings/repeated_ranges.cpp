// repeated_ranges.cpp: calls.repeated: the same range again and again, with equal recorded values.
#include <map>

#include "analyze/findings/finding_rule.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// The recorded values as text: "path=a.csv, page=3". Empty if they cannot identify the work of a range:
/// a value was not recorded whole, or is a list or an input of an operator, or none of them is a text (sizes
/// often repeat).
std::string values_text(const Trace& trace, Row range) {
    std::string text;
    bool has_text = false;
    for (const Argument& value : trace.range_arguments(range)) {
        const std::string_view key = trace.string(value.key);
        // Other tools have the place of a call as values.
        if (value.role == ArgumentRole::Site || key == "filename" || key == "line") continue;
        if (value.role != ArgumentRole::Keyword || value.truncated || value.left_out != ValueKind::None)
            return "";
        text += (text.empty() ? "" : ", ") + std::string(key) + "=";
        if (value.kind == ValueKind::String) {
            text += trace.string(value.string);
            has_text = true;
        } else if (value.kind == ValueKind::Bool || value.kind == ValueKind::Int) {
            text += std::to_string(value.kind == ValueKind::Bool ? value.boolean : value.integer);
        } else if (value.kind == ValueKind::Double) {
            text += std::to_string(value.real);
        } else {
            return "";
        }
    }
    return has_text ? text : "";
}

struct Repeated {
    std::string values{};
    std::int64_t count = 0, total_ns = 0, first_ns = 0;
    Row first = kNoRow;
};

}  // namespace

void find_repeated_ranges(const FindingInput& in, Findings& findings) {
    constexpr double kRepeatedShare = 0.15;  // of the window
    constexpr std::int64_t kManyTimes = 5;
    const RangeColumns ranges = in.trace.ranges();
    std::map<std::pair<std::uint32_t, std::string>, Repeated> by_values;
    for (const ArgumentSlice& slice : in.trace.data().range_arguments) {
        const Row row = slice.row;
        // Outermost ranges are requests or jobs, which are repeated on purpose.
        const Scope scope = in.trace.sites()[ranges.site[row]].scope;
        if ((scope != Scope::User && scope != Scope::Function) || ranges.parent[row] == kNoRow ||
            in.trace.tracks()[in.trace.track_of(row)].kind != TrackKind::Thread)
            continue;
        const std::string values = values_text(in.trace, row);
        if (values.empty()) continue;
        const std::int64_t ns = in.trace.clipped_duration_ns(row);
        Repeated& repeated = by_values[{in.facts.slots.of_site[ranges.site[row]], values}];
        if (repeated.count++ == 0) repeated = {values, 1, 0, ns, row};
        repeated.total_ns += ns;
    }
    std::map<std::uint32_t, std::vector<Repeated>> by_name;
    for (auto& [key, repeated] : by_values) {
        if (repeated.count >= kManyTimes) by_name[key.first].push_back(std::move(repeated));
    }
    for (auto& [slot, rows] : by_name) {
        std::int64_t count = 0, saved_ns = 0;
        for (const Repeated& row : rows) {
            count += row.count;
            saved_ns += row.total_ns - row.first_ns;
        }
        if (!in.is_much(saved_ns, kRepeatedShare)) continue;
        std::ranges::stable_sort(rows, std::greater<>(), &Repeated::total_ns);
        const std::string name = in.facts.name(slot);
        Finding& finding = add_finding(
            in, findings, "calls.repeated", saved_ns,
            name + " ran " + times_text(static_cast<std::uint64_t>(count)) + " with " +
                (rows.size() == 1 ? "the same values"
                                  : "only " + count_text(rows.size()) + " different sets of values") +
                "; all but the first of each took " + in.of_time(saved_ns),
            name);
        set_place(in, finding, rows.front().first);
        rows.resize(std::min(rows.size(), kMostEvidence));
        for (const Repeated& row : rows) add_evidence(finding, row.values, row.count, row.total_ns);
    }
}

}  // namespace marey
