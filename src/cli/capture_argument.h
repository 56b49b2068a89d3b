// capture_argument.h: the arguments FILE, --from and --session that most verbs take, and loading the file.
#pragma once

#include <optional>

#include <marey/trace.h>

#include "cli/command_line.h"

namespace marey::cli {

/// Declares FILE and --from. Both variables must outlive the parsing.
void declare_file(Options& options, std::string& file, std::string& from);
/// The same for several files.
void declare_files(Options& options, std::vector<std::string>& files, std::string& from);

/// Declares --from.
void declare_from(Options& options, std::string& from);
/// Declares --session.
void declare_session(Options& options, std::optional<std::uint64_t>& session);

struct CaptureArgument {
    std::vector<std::string> files;  ///< as given: captures, or folders of captures
    std::string from;                ///< the name of its format; empty: detected from its content
    std::optional<std::uint64_t> session;
    bool is_alone = false;                 ///< not the other processes of the run
    std::optional<std::uint64_t> process;  ///< only this process (pid)
    std::optional<std::uint64_t> rank;     ///< only this rank

    bool show_importlib = false;
    std::vector<std::string> exclude;  ///< patterns of ranges to leave out
    std::string begin, end;            ///< durations since the start of the recording; empty: all of it

    void declare(Options& options);
    /// The first file, which stands for all in the names of files made from them.
    const std::string& file() const { return files.front(); }
    /// Declares --begin, --end, --exclude and --show-importlib, which filtered() applies.
    void declare_filter(Options& options);
    /// Reads the files, or all captures of the run that a single one belongs to, as one trace, and shows
    /// progress. Throws marey::Error.
    Trace load() const;
    /// The files that load() reads.
    std::vector<std::string> paths() const;
    /// Leaves out the ranges that the user does not want to see. Throws marey::Error for an invalid time.
    Trace filtered(Trace trace, bool flatten_imports = false) const;

  private:
    Trace load_one(const std::string& path) const;
    Trace chosen_processes(Trace trace) const;
};

/// Reads a time such as "1.5s", in nanoseconds. Throws marey::Error with the option's name if it is invalid.
std::int64_t parsed_time(const char* option, const std::string& text);

/// Throws marey::Error if a file does not exist. Other captures of a run may be missing, but none that was
/// asked for.
void require_files(const std::vector<std::string>& files);

/// The words, with the capture that a process writes for each that is the number of a process, and of no
/// file. Throws marey::Error if it does not exist or is not being recorded; `unrecorded`, unless null, takes
/// such processes instead.
std::vector<std::string> with_captures_of_processes(const std::vector<std::string>& words,
                                                    std::vector<std::int64_t>* unrecorded = nullptr);

/// The captures that are being written, if there are no words; otherwise capture_paths(). Throws
/// marey::Error, naming the verb, if there are none.
std::vector<std::string> captures_now(const std::vector<std::string>& words, const std::string& verb,
                                      std::vector<std::int64_t>* unrecorded = nullptr);

/// The captures that the arguments of a verb stand for: those of processes and in folders, and the other
/// processes of the run if a single capture is given. Throws marey::Error for a file that does not exist and
/// for a folder without captures.
std::vector<std::string> capture_paths(const std::vector<std::string>& words, bool is_alone,
                                       std::vector<std::int64_t>* unrecorded = nullptr);

/// `path` without ".marey" ("dir/app" for "dir/app.marey"): the start of the names of files made from it.
std::string without_suffix(const std::string& path);

}  // namespace marey::cli
