// controlled.h: the processes that marey start and marey stop ask.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include <marey/control.h>
#include <marey/error.h>

#include "cli/command_line.h"

namespace marey::cli {

struct ControlledArgument {
    std::vector<std::string> words;
    bool is_all = false;
    std::string ranks;  ///< "0-7", "3"

    void declare(Options& options) {
        options.optional(words, "PID", "Processes");
        options.flag(is_all, "--all", "All processes of this user that take requests");
        options.text(ranks, "--rank", "RANKS", "With --all: only these ranks, such as 0-7");
    }
    /// Throws marey::Error, naming the verb, if there are none.
    std::vector<std::int64_t> pids(const std::string& verb) const {
        std::vector<std::int64_t> found;
        if (!is_all) {
            for (const std::string& word : words) found.push_back(number(verb, word));
            if (found.empty()) throw Error(verb + ": name processes, or give --all");
            return found;
        }
        if (!words.empty()) throw Error(verb + ": --all and " + words[0] + " are mutually exclusive");
        const std::size_t dash = ranks.find('-');
        const std::int64_t first = ranks.empty() ? 0 : number(verb, ranks.substr(0, dash));
        const std::int64_t last = dash == std::string::npos ? first : number(verb, ranks.substr(dash + 1));
        for (const ControlledProcess& process : controlled_processes()) {
            if (ranks.empty() || (process.rank >= first && process.rank <= last))
                found.push_back(process.pid);
        }
        if (found.empty()) throw Error(verb + ": no such process takes requests");
        return found;
    }

  private:
    static std::int64_t number(const std::string& verb, const std::string& word) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc() || end != word.data() + word.size() || value < 0)
            throw Error(verb + ": invalid number '" + word + "'");
        return value;
    }
};

}  // namespace marey::cli
