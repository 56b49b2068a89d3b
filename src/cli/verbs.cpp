// verbs.cpp: the list of verbs.
#include "cli/verb.h"

// In the order in which help shows them.
#define KYMO_VERBS(VERB) \
    VERB(run)            \
    VERB(info)           \
    VERB(report)         \
    VERB(tree)           \
    VERB(steps)          \
    VERB(stacks)         \
    VERB(memory)         \
    VERB(gpu)            \
    VERB(export)         \
    VERB(validate)       \
    VERB(symbolize)      \
    VERB(compact)        \
    VERB(doctor)

namespace kymo::cli {

#define KYMO_DECLARE_VERB(name) std::unique_ptr<Verb> make_##name##_verb();
KYMO_VERBS(KYMO_DECLARE_VERB)

std::span<const VerbEntry> all_verbs() {
#define KYMO_LIST_VERB(name) {#name, make_##name##_verb},
    static constexpr VerbEntry kVerbs[] = {KYMO_VERBS(KYMO_LIST_VERB)};
    return kVerbs;
}

}  // namespace kymo::cli
