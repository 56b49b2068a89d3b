// stack_result.cpp: the columns of folded stacks.
#include <marey/results.h>

#include "results/result_rows.h"

namespace marey {

Result stack_result(std::span<const FoldedStack> stacks) {
    ResultRows<FoldedStack> rows("stacks", "Folded stacks, for flame graphs");
    rows.columns({
        {"stack", &FoldedStack::stack, "entries, outermost first, joined by ;", "stack"},
        {"value", &FoldedStack::value, "sum of the metric in ranges with exactly this stack", "value"},
    });
    for (const FoldedStack& stack : stacks) rows.add(stack);
    return made_result({}, rows);
}

}  // namespace marey
