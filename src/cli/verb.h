// verb.h: the shape of a verb of the command `marey`.
#pragma once

#include <memory>
#include <span>

#include "cli/command_line.h"

namespace marey::cli {

/// What main() returns. A verb that runs a program returns that program's.
inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 2;  ///< also for wrong usage

/// One verb: one file `<name>_verb.cpp` that defines make_<name>_verb(), and one line in verbs.cpp.
class Verb {
  public:
    virtual ~Verb() = default;
    virtual const char* help() const = 0;               ///< one line
    virtual const char* details() const { return ""; }  ///< shown below the options by --help
    virtual void declare(Options& options) = 0;         ///< the options refer to members of the verb
    /// Does it; returns the exit code. A marey::Error becomes one line on stderr and kFailure.
    virtual int run() = 0;
};

struct VerbEntry {
    const char* name;
    std::unique_ptr<Verb> (*make)();
};

/// Every verb, in the order in which help shows them.
std::span<const VerbEntry> all_verbs();

}  // namespace marey::cli
