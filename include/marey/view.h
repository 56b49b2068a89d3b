// view.h: shows traces in the browser: starts the server and the page of `marey view`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <marey/compare.h>
#include <marey/detail/export.h>
#include <marey/load.h>
#include <marey/trace.h>

namespace marey {

/// A trace to show.
struct ViewSource {
    std::string name;             ///< the title: usually the file
    std::function<Trace()> load;  ///< called on a thread of the server, again for each reload; may throw
    /// Updated by load(), for the page to show. The server sets its on_outline. Null: not known.
    std::shared_ptr<LoadProgress> progress{};
    bool folds_imports = true;  ///< show each Python import as one range, as `marey report` does
    /// The newest part of a trace that is still being recorded. Null: the page cannot follow it.
    std::function<Trace(std::int64_t last_ns)> load_last{};
};

/// Options of open_view().
struct ViewOptions {
    std::uint16_t port = 0;  ///< 0: any free port
    /// Source files below these folders and the working directory may be shown.
    std::vector<std::string> source_dirs{};
    /// Compared by a page of two traces; null: these two are. Must outlive the viewer.
    RunComparison* comparison = nullptr;
    bool is_offline = false;  ///< do not listen: only Viewer::answer() is used, and it waits for the traces
};

/// A running server. The destructor stops it.
class Viewer {
  public:
    Viewer() = default;
    Viewer(const Viewer&) = delete;
    Viewer& operator=(const Viewer&) = delete;
    virtual ~Viewer() = default;

    /// The address to open. Contains a secret: whoever has it can read the traces.
    virtual std::string url() const = 0;
    virtual std::uint16_t port() const noexcept = 0;
    /// Returns the server's answer to a request for this path and query, such as "/api/outline". Throws
    /// marey::Error.
    virtual std::string answer(const std::string& target) const = 0;
};

/// Starts a server on the loopback interface and returns at once; the traces are loaded in the background.
/// Loads libmarey_view.so, which is in the same folder as libmarey.so. Throws marey::Error, for example if
/// the port is in use.
MAREY_API std::unique_ptr<Viewer> open_view(std::vector<ViewSource> sources, const ViewOptions& options = {});

}  // namespace marey
