// recorded_turns.h: records two programs in turns, for a comparison.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace marey::cli {

/// Two commands, or one command in two commits of the repository in the current folder.
struct TurnOptions {
    std::string commands[2]{};
    std::string commits{};             ///< "main..HEAD"; empty: two commands
    std::string build{};               ///< a command for the shell, in each commit
    std::vector<std::string> words{};  ///< with `commits`: the program and its arguments
    std::uint64_t runs = 0;
    std::uint64_t warmups = 1;           ///< runs of each side before, which are not compared
    std::vector<std::string> options{};  ///< of marey run
    std::string keep{};                  ///< folder for the captures; empty: they are removed
};

/// The captures of both sides, in the order of recording: old, new, new, old, and so on. They exist as long
/// as this.
class RecordedTurns {
  public:
    /// Records. The programs' output goes to files beside the captures. Throws marey::Error if a program or a
    /// build fails.
    explicit RecordedTurns(const TurnOptions& options);
    ~RecordedTurns();
    RecordedTurns(const RecordedTurns&) = delete;
    RecordedTurns& operator=(const RecordedTurns&) = delete;

    const std::vector<std::string>& captures(int side) const { return captures_[side]; }
    /// The command, or the commit.
    const std::string& label(int side) const { return labels_[side]; }

  private:
    void check_out(const TurnOptions& options);
    void remove();
    std::string record(const TurnOptions& options, int side, const std::string& name) const;

    std::string temporary_, folder_;
    std::string labels_[2];
    std::string trees_[2];  ///< the folders of the commits
    std::vector<std::string> captures_[2];
};

}  // namespace marey::cli
