// command_line.h: how verbs declare their options, and the reading of the command line. Hides CLI11, which
// takes ten seconds to compile, from everybody else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace marey::cli {

/// Collects the options of one verb. Every variable given must outlive the parsing; it keeps its value when
/// the option is absent. `names` is "-o,--output".
class Options {
  public:
    explicit Options(CLI::App& app) : app_(app) {}

    void required(std::string& value, const std::string& placeholder, const std::string& help);
    void text(std::string& value, const std::string& names, const std::string& placeholder,
              const std::string& help);
    /// The same any number of times; each adds one.
    void texts(std::vector<std::string>& values, const std::string& names, const std::string& placeholder,
               const std::string& help);
    void number(std::optional<std::uint64_t>& value, const std::string& names, const std::string& help);
    void percent(double& value, const std::string& names, const std::string& help);
    void choice(std::string& value, const std::string& names, const std::vector<std::string>& choices,
                const std::string& help);
    void flag(bool& value, const std::string& names, const std::string& help);
    /// A flag that may say more: `--gpu` gives `usual`, `--gpu=NAME` the name.
    void flag_or_text(std::string& value, const std::string& names, const std::string& usual,
                      const std::string& placeholder, const std::string& help);
    /// A program and its arguments: all that follows "--" or the first word that is no option.
    void command(std::vector<std::string>& words);

  private:
    CLI::App& app_;
};

/// All of `marey`: reads the command line, does what it says, and returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace marey::cli
