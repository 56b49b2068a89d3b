// write.cpp: writes folded stacks, the input of flame graph tools.
#include <marey/export.h>

#include "base/output_file.h"
#include "formats/formats.h"

namespace marey {

std::size_t write_stacks(const Trace& trace, const std::string& path, const StackOptions& options) {
    const std::vector<FoldedStack> stacks = fold_stacks(trace, options);
    OutputFile file(path);
    for (const FoldedStack& stack : stacks) {
        file.write(stack.stack);
        file.write(" " + std::to_string(stack.value) + "\n");
    }
    file.commit();
    return stacks.size();
}

FileFormat folded_format() {
    static constexpr std::string_view kSuffixes[] = {".folded", ".folded.gz", ".stacks.txt"};
    return {"folded", "Folded stacks, self time in nanoseconds, for flame graphs",
            "all but self time per stack", kSuffixes,
            [](const Trace& trace, const std::string& path) { write_stacks(trace, path, {}); }};
}

}  // namespace marey
