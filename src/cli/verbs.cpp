// verbs.cpp: the list of verbs.
#include "cli/verb.h"

// In the order of the help text.
#define MAREY_VERBS(VERB) \
    VERB(run)             \
    VERB(ps)              \
    VERB(now)             \
    VERB(top)             \
    VERB(snapshot)        \
    VERB(watch)           \
    VERB(start)           \
    VERB(stop)            \
    VERB(info)            \
    VERB(view)            \
    VERB(explain)         \
    VERB(report)          \
    VERB(tree)            \
    VERB(lines)           \
    VERB(steps)           \
    VERB(diff)            \
    VERB(check)           \
    VERB(stacks)          \
    VERB(memory)          \
    VERB(gpu)             \
    VERB(sql)             \
    VERB(ask)             \
    VERB(mcp)             \
    VERB(ranks)           \
    VERB(find)            \
    VERB(export)          \
    VERB(validate)        \
    VERB(symbolize)       \
    VERB(merge)           \
    VERB(compact)         \
    VERB(redact)          \
    VERB(doctor)

namespace marey::cli {

#define MAREY_DECLARE_VERB(name) std::unique_ptr<Verb> make_##name##_verb();
MAREY_VERBS(MAREY_DECLARE_VERB)

std::span<const VerbEntry> all_verbs() {
#define MAREY_LIST_VERB(name) {#name, make_##name##_verb},
    static constexpr VerbEntry kVerbs[] = {MAREY_VERBS(MAREY_LIST_VERB)};
    return kVerbs;
}

}  // namespace marey::cli
