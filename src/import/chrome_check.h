// chrome_check.h: the rules of Chrome's trace JSON, checked on the text itself: what an importer would mend
// or skip is seen here.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "analyze/finding_list.h"

namespace marey {

/// Whether a file that begins with these bytes looks like JSON.
bool looks_like_json(std::span<const std::byte> head) noexcept;

/// Adds what is wrong with the text of a whole file. Takes memory for the times of its events and the ids of
/// its arrows.
void check_chrome_json(std::string_view text, FindingList& findings);

}  // namespace marey
