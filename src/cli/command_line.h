// command_line.h: how verbs declare their options, and parsing the command line. Hides CLI11, which takes
// ten seconds to compile, from all other files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace marey::cli {

/// Exit codes of the command. A verb that runs a program returns that program's exit code.
inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 2;  ///< also for usage errors
/// Not an exit code: the Python package runs the verb, with the options that were given.
inline constexpr int kRunInPython = -1;

/// Collects the options of one verb. Every variable passed must outlive the parsing; it keeps its value if
/// the option is absent. `names` has the form "-o,--output".
class Options {
  public:
    explicit Options(CLI::App& app) : app_(app) {}

    void required(std::string& value, const std::string& placeholder, const std::string& help);
    void required(std::vector<std::string>& values, const std::string& placeholder, const std::string& help);
    void optional(std::string& value, const std::string& placeholder, const std::string& help);
    void optional(std::vector<std::string>& values, const std::string& placeholder, const std::string& help);
    void text(std::string& value, const std::string& names, const std::string& placeholder,
              const std::string& help);
    /// An option that may be repeated; each occurrence adds one value.
    void texts(std::vector<std::string>& values, const std::string& names, const std::string& placeholder,
               const std::string& help);
    void number(std::optional<std::uint64_t>& value, const std::string& names, const std::string& help);
    void percent(double& value, const std::string& names, const std::string& help);
    void choice(std::string& value, const std::string& names, const std::vector<std::string>& choices,
                const std::string& help);
    void flag(bool& value, const std::string& names, const std::string& help);
    /// A flag with an optional value: `--gpu` sets `usual`, `--gpu=NAME` sets NAME.
    void flag_or_text(std::string& value, const std::string& names, const std::string& usual,
                      const std::string& placeholder, const std::string& help);
    /// A name that an option had before: it works, with a warning, and --help does not show it.
    void old_name(const std::string& old, const std::string& name);
    /// A program and its arguments: all words after "--", or from the first word that is not an option.
    void command(std::vector<std::string>& words);

  private:
    CLI::App& app_;
};

/// Runs the `marey` command: parses the command line, runs the verb and returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace marey::cli
