// browser.h: shows traces in the browser until the user ends the command.
#pragma once

#include <marey/view.h>

namespace marey::cli {

/// A trace that is read from a file. With `uses_cache`, a large one is kept in the user's cache.
ViewSource file_source(const std::string& file, const std::string& format, bool uses_cache = true);

/// The captures of one run.
ViewSource merged_source(const std::vector<std::string>& captures);

/// Starts the viewer, prints its address and, if `opens_browser`, opens it. Returns when the user presses
/// Ctrl-C or the process is told to end. Throws marey::Error if the viewer cannot be started.
void show_in_browser(std::vector<ViewSource> sources, const ViewOptions& options, bool opens_browser);

}  // namespace marey::cli
