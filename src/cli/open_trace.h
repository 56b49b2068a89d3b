// open_trace.h: shows a capture in a browser.
#pragma once

#include <string>

namespace marey::cli {

/// Exports the capture for the viewer and opens the viewer. Prints on stderr what was done, or what to do if
/// there is no browser. Throws marey::Error if the capture cannot be exported.
void open_in_browser(const std::string& capture);

}  // namespace marey::cli
