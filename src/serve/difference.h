// difference.h: what changed between the two traces that the page shows.
#pragma once

#include <marey/compare.h>

#include "serve/loaded_trace.h"
#include "serve/response.h"

namespace marey::serve {

/// The part of one trace that is compared.
struct ComparedPart {
    const LoadedTrace* loaded = nullptr;
    std::string name;
    Selection span;
};

/// Answers /api/diff and /api/difference. Safe to use from several threads.
class Difference {
  public:
    /// Compares with `comparison`, which must outlive it; null: the parts.
    explicit Difference(RunComparison* comparison) : given_(comparison) {}

    Response respond(const HttpRequest& http, const ComparedPart (&parts)[2]);

  private:
    Comparison compared(const Query& query, const ComparedPart (&parts)[2]) MAREY_REQUIRES(mutex_);

    RunComparison* given_;
    Mutex mutex_;
    // The last one, because both requests need it:
    std::string key_ MAREY_GUARDED_BY(mutex_);
    std::shared_ptr<const Comparison> last_ MAREY_GUARDED_BY(mutex_);
};

}  // namespace marey::serve
