// site_flags.h: what the word of a site's scope says besides the scope.
#pragma once

#include <cstdint>

namespace kymo {

/// Bits of SiteRecord::scope above the scope itself. Readers that do not know them leave them out.
enum SiteFlags : std::uint32_t {
    kSiteTraced = 1 << 8,  ///< of a call tracer: for sessions that asked for calls
};

}  // namespace kymo
