// capture_files.h: the file names of captures: an unused one for a run, and those that a run has written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace marey::cli {

/// An unused name in the current folder: "app.marey", or "app-2.marey" and so on if that exists.
std::string free_capture_name(std::string_view program);

/// The paths of all captures in the folder of `path`, in no order.
std::vector<std::string> captures_beside(const std::string& path);

/// Whether `name` is the capture of a child process of a run that writes `main_name`: "app.<pid>.marey" or
/// "app.<pid>.<n>.marey" for "app.marey", and "app.rank<n>.marey" or "app.rank<n>.<pid>.marey" for a rank of
/// a distributed program. Both names are without folders.
bool is_child_capture(std::string_view main_name, std::string_view name);

/// Whether `path` is a folder.
bool is_folder(const std::string& path);

/// The captures of the run that a capture belongs to, in its folder: `path` first. Only `path` if it does not
/// name its run.
std::vector<std::string> captures_of_tree(const std::string& path);

/// Groups captures by the run that they belong to, in the order given. A file that names no run is a group of
/// its own.
std::vector<std::vector<std::string>> runs_of(const std::vector<std::string>& paths);

/// The existing captures of a run: `path` first, then those of child processes in the same folder. An
/// unreadable folder counts as empty.
std::vector<std::string> captures_of(const std::string& path);

}  // namespace marey::cli
