// capture_files.h: the names of captures: a free one for a run, and those that a run left behind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace marey::cli {

/// "app.marey", or "app-2.marey" and so on when that is taken, in the current folder.
std::string free_capture_name(std::string_view program);

/// The paths of all captures in the folder of `path`, in no order.
std::vector<std::string> captures_beside(const std::string& path);

/// Whether `name` is what a child process of a run into `main_name` calls its capture: "app.<pid>.marey" or
/// "app.<pid>.<n>.marey" for "app.marey", and "app.rank<n>.marey" or "app.rank<n>.<pid>.marey" where it is a
/// rank of a distributed program. Both without folders.
bool is_child_capture(std::string_view main_name, std::string_view name);

/// "app.rank3.marey" for rank 3 of several, as the variables RANK and WORLD_SIZE say; else `path`.
std::string rank_capture_name(const std::string& path, std::string_view rank, std::string_view world_size);

/// The capture `path` and those of child processes beside it, those that exist, `path` first. Takes a folder
/// that cannot be read for an empty one.
std::vector<std::string> captures_of(const std::string& path);

}  // namespace marey::cli
