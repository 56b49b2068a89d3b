// verb.h: the interface of a verb (subcommand) of the command `marey`, and the headers that most verbs need.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <span>

#include <marey/error.h>

#include "cli/capture_argument.h"
#include "cli/command_line.h"
#include "cli/footer.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/text_format.h"

namespace marey::cli {

/// One verb: one file `<name>_verb.cpp` that ends with MAREY_VERB(<name>, <class>), and one line in
/// verbs.cpp.
class Verb {
  public:
    virtual ~Verb() = default;
    virtual const char* help() const = 0;               ///< one line
    virtual const char* details() const { return ""; }  ///< shown below the options by --help
    virtual void declare(Options& options) = 0;         ///< the options refer to members of the verb
    /// Runs the verb and returns the exit code. A marey::Error becomes one line on stderr and kFailure.
    virtual int run() = 0;
};

#define MAREY_VERB(name, Class)                  \
    std::unique_ptr<Verb> make_##name##_verb() { \
        return std::make_unique<Class>();        \
    }

struct VerbEntry {
    const char* name;
    std::unique_ptr<Verb> (*make)();
};

/// Every verb, in the order of the help text.
std::span<const VerbEntry> all_verbs();

}  // namespace marey::cli
